"""Stacks to be linted, and what was found in them, as people read it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bicameral.display import visible
from bicameral.errors import BicameralError, CatalogError, nearest, words_of
from bicameral.secrets import masked

from ._output import Output

if TYPE_CHECKING:
    from bicameral.catalog.lint import Finding, Report, Rule
    from bicameral.catalog.stacks import Fact, Stack

_COMPOSITION = re.compile(r"(?:EX|ST)\d+")
_OBJECT = re.compile(r"[\w.]+:[\w.]+")
_STYLES = {"error": "bold red", "warning": "yellow", "note": "cyan"}
_MAX_CHARACTERS = 500_000
Line = tuple[str, str]
"""A line and its style."""


@dataclass(frozen=True, slots=True)
class Linted:
    """One of the things that were asked about: what was found, or why it could not be read."""

    what: str
    report: Report | None = None
    error: BicameralError | None = None

    def to_json(self) -> dict[str, Any]:
        if self.report is None:
            return {"source": self.what, "ok": False, "error": self.error.to_json() if self.error else None}
        return {"source": self.what, **self.report.to_json()}


def open_stack(what: str, folder: Path) -> Stack:
    """The stack in a file, on standard input (`-`), of a Python object (`module:object`), or a known one (`EX1`)."""
    from bicameral.catalog.stacks import compositions, parse_stack, read_stack, stack_of

    if what == "-":
        return parse_stack(_standard_input(), file="stdin")
    path = folder / what
    if _OBJECT.fullmatch(what) and not path.exists():
        return stack_of(_object(what, folder))
    if _COMPOSITION.fullmatch(what) and not path.exists() and what in compositions():
        return compositions()[what].stack
    return read_stack(path if folder != Path() else Path(what))


def _standard_input() -> str:
    try:
        text = sys.stdin.read(_MAX_CHARACTERS + 1)
    except UnicodeDecodeError:
        raise CatalogError("stack.cannot-read", "standard input is not text in UTF-8") from None
    if len(text) > _MAX_CHARACTERS:
        raise CatalogError("stack.cannot-read", f"there are more than {_MAX_CHARACTERS:,} characters")
    return text


def _object(what: str, folder: Path) -> object:
    """What a module calls by a name; modules are looked for in the working folder too."""
    module, _, name = what.partition(":")
    start = str(folder.absolute())
    if start not in sys.path:
        sys.path.insert(0, start)
    try:
        found: object = import_module(module)
    except Exception as error:
        raise CatalogError("stack.cannot-read", f"{module!r} cannot be imported: {words_of(error)}") from None
    for part in name.split("."):
        known = [each for each in dir(found) if not each.startswith("_")]
        try:
            found = getattr(found, part)
        except AttributeError:
            raise CatalogError(
                "stack.cannot-read", f"{module!r} has no {name!r}", nearest=nearest(part, known)
            ) from None
    return found


def show_report(out: Output, source: str, report: Report, *, quiet: bool = False) -> None:
    """All that was found in one stack."""
    _show(out, _report_lines(source, report, quiet=quiet))


def show_rules(out: Output, rules: Iterable[Rule]) -> None:
    """Every rule in a line."""
    _show(out, ((f"{rule.id:<26}{rule.severity:<9}{rule.family:<14}{rule.name}", "") for rule in rules))


def show_facts(out: Output, facts: Iterable[Fact]) -> None:
    """Everything that a stack can say of itself, in a line each."""
    for fact in facts:
        where = "declares" if fact.kind == "statement" else "facts"
        derived = f" [{fact.derived}]" if fact.derived else ""
        default = f" [usually {fact.default:g}]" if fact.default is not None else ""
        _show(out, [(f"{where}.{fact.name:<30} {fact.what} ({fact.expected}){derived}{default}", "")])


def show_rule(out: Output, rule: Rule) -> None:
    """Everything about one rule."""
    needs = sorted({name for check in rule.checks for name in check.names})
    lines = [
        (f"{rule.id}: {rule.name}", "bold"),
        (f"  {rule.severity} ({rule.family})", _STYLES[rule.severity]),
        (f"  rule: {rule.rule}", ""),
        (f"  why:  {rule.why}", ""),
        (f"  fix:  {rule.fix}", ""),
    ]
    if needs:
        lines.append((f"  asks: {', '.join(needs)}", ""))
    lines += [(f"  see:  bicameral patterns show {id}", "dim") for id in rule.patterns]
    _show(out, lines)


def _report_lines(source: str, report: Report, *, quiet: bool) -> Iterator[Line]:
    for finding in report.findings:
        if not finding.undecided and not (quiet and finding.severity == "note"):
            yield from _finding_lines(source, finding)
    undecided = [finding for finding in report.findings if finding.undecided]
    if undecided and not quiet:
        yield "not decided, because nobody says it:", _STYLES["note"]
        wide = max(len(finding.wants[0]) for finding in undecided)
        for finding in undecided:
            what = finding.message.partition("`: ")[2]
            yield f"    {finding.wants[0]:<{wide}}  {what}  [{', '.join(finding.rules)}]", ""
    for finding in report.waived:
        yield f"waived: {finding.message}  [{', '.join(finding.rules)}]: {finding.waived}", "dim"
    yield f"{source}: {summary([report])}", "bold" if report.ok else "bold red"


def _finding_lines(source: str, finding: Finding) -> Iterator[Line]:
    place = finding.place
    where = f"{source}:{place.line}:{place.column or 1}" if place.line is not None else source
    rules = ", ".join(finding.rules)
    yield f"{where}: {finding.severity}: {finding.message}  [{rules}]", _STYLES[finding.severity]
    if finding.path:
        yield f"    at:  {finding.path}", "dim"
    yield f"    why: {finding.reason}", ""
    yield f"    fix: {finding.fix}", ""


def summary(reports: Sequence[Report]) -> str:
    """How many findings there are, in words."""
    found = [finding for report in reports for finding in report.findings]
    if not found:
        return "nothing to say"
    counts = {kind: sum(finding.severity == kind for finding in found) for kind in ("error", "warning", "note")}
    return ", ".join(f"{count} {kind}{'' if count == 1 else 's'}" for kind, count in counts.items() if count)


def _show(out: Output, lines: Iterable[Line]) -> None:
    """Lines on standard output, with colours where a person looks at them."""
    if out.as_json:
        return
    if not sys.stdout.isatty():
        for text, _ in lines:
            out.show(text)
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    for text, style in lines:
        console.print(Text(visible(masked(text)), style=style))
