"""The corpus as text: blocks of phrasings and one plan, with slots to fill.

#: How many <words> are in <txt>?            a phrasing; every phrasing of a block asks for the same
#~ cnt the <words> in <txt> pls              a sloppy one
lines = read_lines("<txt>")
found = grep(lines, "<word>")
answer(len(found))

A plan that begins with `found = find(<request>)` follows a search for the whole request, which the runtime writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"
SEARCH_LINE = "found = find(<request>)"


@dataclass(frozen=True, slots=True)
class Block:
    """One plan, and the ways in which people ask for it.

    A `searched` one follows a search for the whole request, which the runtime has written.
    """

    place: str
    toolbox: str | None
    phrasings: tuple[str, ...]
    plan: str
    searched: bool = False


def read_blocks(path: Path) -> Iterator[Block]:
    """The blocks of a corpus file. `## toolbox NAME` at the top says that they use `toolboxes/NAME.py` instead."""
    toolbox: str | None = None
    start, lines = 1, list[str]()
    for number, line in enumerate([*path.read_text("utf-8").splitlines(), ""], 1):
        if line.startswith("## toolbox "):
            toolbox = line.removeprefix("## toolbox ").strip()
        elif line.strip():
            start = start if lines else number
            lines.append(line)
        elif lines:
            yield _block(lines, f"{path.name}:{start}", toolbox)
            lines = []


def _block(lines: list[str], place: str, toolbox: str | None) -> Block:
    phrasings = tuple(line[3:].strip() for line in lines if line.startswith(("#: ", "#~ ")))
    plan = [line for line in lines if not line.startswith(("#: ", "#~ "))]
    if not phrasings or not plan:
        raise ValueError(f"{place}: a block needs a phrasing and a plan")
    searched = plan[0] == SEARCH_LINE
    return Block(place, toolbox, phrasings, "\n".join(plan[searched:]) + "\n", searched)


def language_of(block: Block) -> str:
    """The language of a block: composed ones say it, and files of the corpus may end with it."""
    parts = block.place.split("/")
    if parts[0] == "compose":
        return parts[1]
    stem = block.place.partition(".")[0]
    return stem.rpartition("_")[2] if stem.rpartition("_")[2] in ("de", "fr", "es") else "en"
