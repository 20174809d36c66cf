"""Plans as trees of statements, from which any part can be taken away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Statement:
    """A line of a plan, with the block below it and the block of its `else`."""

    line: str
    body: tuple[Statement, ...] = ()
    otherwise: tuple[Statement, ...] = ()

    def lines(self, indent: str = "") -> Iterator[str]:
        yield indent + self.line
        for each in self.body:
            yield from each.lines(indent + "    ")
        if self.otherwise:
            yield indent + "else:"
            for each in self.otherwise:
                yield from each.lines(indent + "    ")


Block = tuple[Statement, ...]


def written(block: Sequence[Statement]) -> str:
    """A block as the source of a plan."""
    return "\n".join(line for each in block for line in each.lines()) + "\n"


def smaller(block: Block) -> Iterator[Block]:
    """The block with one statement left out, or with one replaced by what stands below it."""
    for at, each in enumerate(block):
        rest = (block[:at], block[at + 1 :])
        yield (*rest[0], *rest[1])
        if each.body:
            yield (*rest[0], *each.body, *rest[1])
        for body in smaller(each.body):
            if body:
                yield (*rest[0], replace(each, body=body), *rest[1])
        for otherwise in smaller(each.otherwise):
            yield (*rest[0], replace(each, otherwise=otherwise), *rest[1])
