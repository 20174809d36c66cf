"""Names in backticks on the pages exist in the code, so that a renamed class or function is renamed there, too."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from docs_snippets import ROOT

from bicameral.plans import FUNCTIONS
from bicameral.tools import REFERENCE_KINDS

PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md")), ROOT / "training" / "README.md"]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
_FENCE = re.compile(r"^```[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_MODULE = re.compile(r"bicameral(?:\.\w+)+")
_CLASS = re.compile(r"([A-Z]\w*[a-z]\w*)(?:\.(\w+))?(?:\(.*\)|\[.*\])?")
_CALL = re.compile(r"(?:([a-z]\w*)\.)?(?:[a-z]\w*\.)*([a-z]\w*)\(.*\)")
_FILES = ("toml", "db", "md", "yaml", "json", "jsonl")

# Names of Python, of libraries, of plans in rounds, and of other languages that the pages speak of.
_OTHERS = frozenset(
    "Any Command FallbackModel Literal LiteralString Send StateGraph ToolNode TypedDict getTag hasTag look to_thread"
    " tool_1".split()
)
# What variables of these names are on every page.
_VARIABLES = {"agent": "Agent", "journal": "Journal", "runs": "Runs", "stage": "Context"}


@cache
def _defined() -> tuple[frozenset[str], dict[str, frozenset[str]]]:
    """Every class, function, method, field and module-level name of the code, and the members of each class."""
    names: set[str] = set()
    members: dict[str, set[str]] = {}
    bases: dict[str, set[str]] = {}
    for file in SOURCES:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        names.update(_assigned(tree.body))
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                names.add(node.name)
            if isinstance(node, ast.ClassDef):
                members.setdefault(node.name, set()).update(_members(node))
                bases.setdefault(node.name, set()).update(_base_names(node))
    names.update(*members.values())
    whole = {name: frozenset[str]().union(*(members.get(each, ()) for each in _above(name, bases))) for name in members}
    return frozenset(names), whole


@cache
def _texts() -> frozenset[str]:
    """Dotted names that the code has as texts: counters of telemetry."""
    texts = (text for file in SOURCES for text in re.findall(r'"(bicameral[.\w]+)"', file.read_text(encoding="utf-8")))
    return frozenset(texts) | {"bicameral.reasoner_tokens", "bicameral.executor_tokens"}


def _members(node: ast.ClassDef) -> Iterator[str]:
    yield from _assigned(node.body)
    for inner in node.body:
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield inner.name
    for inner in ast.walk(node):
        match inner:
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                yield name
            case _:
                continue


def _assigned(body: list[ast.stmt]) -> Iterator[str]:
    for statement in body:
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            for each in ast.walk(statement):
                if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                    yield each.id


def _base_names(node: ast.ClassDef) -> set[str]:
    return {each.id for base in node.bases for each in ast.walk(base) if isinstance(each, ast.Name)}


def _above(name: str, bases: dict[str, set[str]]) -> set[str]:
    found, left = set[str](), [name]
    while left:
        each = left.pop()
        if each not in found:
            found.add(each)
            left.extend(bases.get(each, ()))
    return found


def unknown_names(text: str) -> list[str]:
    """The names in backticks that neither the code, nor the page's own snippets, nor Python define."""
    names, members = _defined()
    snippets = "\n".join(_FENCE.findall(text))
    spans = [span for span in _SPAN.findall(_FENCE.sub("", text)) if not _is_known(span, names, members, snippets)]
    return list(dict.fromkeys(spans))


def _is_known(span: str, names: frozenset[str], members: dict[str, frozenset[str]], snippets: str) -> bool:
    if (inner := re.fullmatch(r"[\w.]+\((.+)\)", span)) and not all(
        _is_known(name, names, members, snippets) for name in re.findall(r"\b[A-Z]\w+\b(?=\()", inner[1])
    ):
        return False
    if found := _MODULE.fullmatch(span):
        return found[0].rpartition(".")[2] in _FILES or found[0] in _texts() or _exists(found[0])
    if found := _CLASS.fullmatch(span):
        name, member = found.groups()
        if not re.search(r"[a-z][A-Z]|^[A-Z][a-z]+$", name) or span in _OTHERS or name in _OTHERS:
            return True
        if name in members:
            return member is None or member in members[name]
        return name in names or hasattr(builtins, name) or re.search(rf"\b{name}\b", snippets) is not None
    if found := _CALL.fullmatch(span):
        owner, name = found.groups()
        if owner in _VARIABLES and span.startswith(f"{owner}.{name}("):
            return name in members[_VARIABLES[owner]]
        elsewhere = name in FUNCTIONS or name in REFERENCE_KINDS or name in _OTHERS or hasattr(builtins, name)
        known = name in names or elsewhere
        return known or re.search(rf"\b{name}\b", snippets) is not None
    return True


def _exists(path: str) -> bool:
    """Whether a dotted name is a package, a module, or a name in one; nothing is imported."""
    *folders, last = path.split(".")
    place = ROOT / "src" / Path(*folders)
    if (place / last).is_dir() or (place / f"{last}.py").exists():
        return True
    module = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    return module.exists() and re.search(rf"\b{last}\b", module.read_text(encoding="utf-8")) is not None


@pytest.mark.parametrize("page", [pytest.param(page, id=str(page.relative_to(ROOT))) for page in PAGES])
def test_every_name_in_backticks_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    # What has changed names what is gone.
    assert (
        unknown_names(re.sub(r"^### (?:Changed|Removed)\n.*?(?=^##)", "", text, flags=re.DOTALL | re.MULTILINE)) == []
    )


@pytest.mark.parametrize(
    "span",
    [
        "Shade",
        "Agent.desk",
        "agent.desk()",
        "Agent(Shade())",
        "counted()",
        "bicameral.intent",
        "bicameral.labels.Shade",
        "Desk(…)",
    ],
)
def test_a_name_that_is_gone_is_found(span: str) -> None:
    assert unknown_names(f"Use `{span}` here.") == [span]


@pytest.mark.parametrize(
    "span",
    [
        "Agent",
        "Agent.follow",
        "agent.runtime()",
        "bicameral.toml",
        "bicameral.labels.LabelTree",
        "Mine.run",
        "extract()",
    ],
)
def test_a_name_that_exists_is_not_reported(span: str) -> None:
    assert unknown_names(f"Use `{span}` here.\n\n```python\nclass Mine: ...\n```\n") == []
