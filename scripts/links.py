"""Check the links of the documentation: pages, files and anchors.

python -m scripts.links    prints every dead link; exits 1 if there is one

The pages are read on the site and in the repository. An anchor must exist in both, though Python-Markdown and GitHub
form anchors differently; and a page of `docs/` must not link to a file outside of it, which the site does not have.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
_FENCE = re.compile(r"^(?P<mark>```+)[^\n]*\n.*?^(?P=mark)$", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
_LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?[^)]*\)|^\[[^\]]+\]:\s+(\S+)", re.MULTILINE)
_HEADING = re.compile(r"^#+ (.*?)(?: #+)?$", re.MULTILINE)
_REFERENCE = re.compile(r"\bdocs/([a-z-]+\.md)(?:#([\w-]+))?")


@dataclass(frozen=True)
class DeadLink:
    """A link that leads nowhere, where it stands, and why."""

    file: Path
    line: int
    target: str
    why: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.target}: {self.why}"


def pages(root: Path = ROOT) -> list[Path]:
    """Every page that readers see: those of the site, and those of the repository."""
    return [*sorted(root.glob("*.md")), *sorted((root / "docs").rglob("*.md")), *sorted(root.glob("training/*.md"))]


def dead_links(root: Path = ROOT) -> list[DeadLink]:
    """Every dead link of the pages, of the navigation, and of the messages in `src` that name a page."""
    return [
        *(dead for page in pages(root) for dead in _dead_in_page(page, root)),
        *_dead_in_navigation(root),
        *(dead for file in sorted((root / "src").rglob("*.py")) for dead in _dead_in_source(file, root)),
    ]


def anchors(page: Path) -> set[str]:
    """The anchors of a page that exist on the site and in the repository."""
    headings = [_plain(heading[1]) for heading in _HEADING.finditer(_without_fences(page.read_text(encoding="utf-8")))]
    return set(_numbered(headings, _site_slug, "_")) & set(_numbered(headings, _repository_slug, "-"))


def navigation(root: Path = ROOT) -> list[str]:
    """The pages that `mkdocs.yml` names, in order."""
    return list(_leaves(yaml.safe_load((root / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]))


def _dead_in_page(page: Path, root: Path) -> Iterator[DeadLink]:
    text = _CODE.sub(_blank, _without_fences(page.read_text(encoding="utf-8")))
    for found in _LINK.finditer(text):
        target = found[1] or found[2]
        why = _why_dead(target, page, root)
        if why:
            yield DeadLink(page.relative_to(root), text.count("\n", 0, found.start()) + 1, target, why)


def _why_dead(target: str, page: Path, root: Path) -> str:
    if re.match(r"https://|mailto:", target):
        return ""
    path, _, anchor = target.partition("#")
    file = (page.parent / path).resolve() if path else page
    if not file.exists():
        return "there is no such file"
    if not file.is_relative_to(root) or (page.is_relative_to(root / "docs") and not file.is_relative_to(root / "docs")):
        return "the site does not have it: name the file without a link"
    return "" if not anchor or anchor in anchors(file) else "the page has no such heading"


def _dead_in_navigation(root: Path) -> Iterator[DeadLink]:
    named, there = navigation(root), {str(page.relative_to(root / "docs")) for page in (root / "docs").rglob("*.md")}
    for page in named:
        if page not in there:
            yield DeadLink(Path("mkdocs.yml"), 1, page, "there is no such page")
        elif named.count(page) > 1:
            yield DeadLink(Path("mkdocs.yml"), 1, page, "it is there twice")
    for page in sorted(there - set(named)):
        yield DeadLink(Path("mkdocs.yml"), 1, page, "the navigation does not have this page")


def _dead_in_source(file: Path, root: Path) -> Iterator[DeadLink]:
    text = file.read_text(encoding="utf-8")
    for found in _REFERENCE.finditer(text):
        page = root / "docs" / found[1]
        if not page.exists() or (found[2] and found[2] not in anchors(page)):
            yield DeadLink(
                file.relative_to(root), text.count("\n", 0, found.start()) + 1, found[0], "it does not exist"
            )


def _leaves(entry: object) -> Iterator[str]:
    match entry:
        case str():
            yield entry
        case list():
            for each in entry:  # pyright: ignore[reportUnknownVariableType]
                yield from _leaves(each)  # pyright: ignore[reportUnknownArgumentType]
        case dict():
            for each in entry.values():  # pyright: ignore[reportUnknownVariableType]
                yield from _leaves(each)  # pyright: ignore[reportUnknownArgumentType]
        case _:
            raise TypeError(f"{entry!r} is no entry of a navigation")


def _without_fences(text: str) -> str:
    return _FENCE.sub(_blank, text)


def _blank(found: re.Match[str]) -> str:
    """As many lines as were there, so that line numbers stay right."""
    return "\n" * found[0].count("\n")


def _plain(heading: str) -> str:
    """A heading without its markup."""
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")


def _site_slug(heading: str) -> str:
    ascii_only = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode()
    return re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", ascii_only).strip().lower())


def _repository_slug(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-")


def _numbered(headings: Iterable[str], slug: Callable[[str], str], mark: str) -> Iterator[str]:
    """The slugs of headings; one that is there again gets a number."""
    seen: dict[str, int] = {}
    for heading in headings:
        name = slug(heading)
        count = seen.get(name, 0)
        seen[name] = count + 1
        yield f"{name}{mark}{count}" if count else name


def main() -> int:
    found = dead_links()
    for dead in found:
        sys.stderr.write(f"{dead}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
