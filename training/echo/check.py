"""Every block that is written by hand against Echo's own schema and rules, and against the evaluation.

    python -m training.echo.check [FILE ...]

A phrasing is refused if a part of its account is not in its words, if Echo would not ask its question, if it is near to
a request of an evaluation set, or if its account has the structure of one that `benchmarks/intent` keeps for itself.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from benchmarks.everyday import REQUESTS as EVERYDAY
from benchmarks.intent import load_requests, reserved_skeletons
from benchmarks.planning import REQUESTS as PLANNING
from bicameral.planning import understand
from bicameral.text import text_stems
from training.delta.sample import standard_registry

from .blocks import CORPUS, EchoBlock, fill_block, read_echo_blocks
from .replies import Account, UnfitError, check_reply, render_reply

NEAR = 0.75
FEWEST_PHRASINGS = 3
_WORD = re.compile(r"[^\W_]+")


def against_evaluation(request: str, account: Account) -> Iterator[str]:
    """Why a request must not be used for training, a line each."""
    for said in (frozenset(text_stems(request)), all_words(request)):
        if any(_nearness(said, other) >= NEAR for other in evaluation_requests()):
            yield "too near to a request of the evaluation: ask for something else"
            break
    if account.skeleton in reserved_skeletons():
        yield f"the account has a structure that the evaluation keeps for itself: {account.skeleton}"


def _nearness(said: frozenset[str], other: frozenset[str]) -> float:
    return len(said & other) / max(1, len(said | other))


def all_words(text: str) -> frozenset[str]:
    """The words of any language: stems know English alone."""
    return frozenset(word.casefold() for word in _WORD.findall(text))


@cache
def evaluation_requests() -> tuple[frozenset[str], ...]:
    """The words of every request of the evaluation sets, as stems and as they are."""
    texts = [*(each.text for each in (*PLANNING, *EVERYDAY)), *(each.text for each in load_requests())]
    return tuple(said for text in texts for said in (frozenset(text_stems(text)), all_words(text)) if said)


def problems(block: EchoBlock) -> Iterator[str]:
    """What is wrong with a block, a line each."""
    if len(block.phrasings) < FEWEST_PHRASINGS:
        yield f"{block.place}: a block has at least {FEWEST_PHRASINGS} phrasings"
    for phrasing in block.phrasings:
        try:
            request, today, account = fill_block(block, phrasing, "check")
            check_reply(render_reply(account), understand(request, standard_registry(), today))
            yield from (f"{block.place}: {request!r}: {each}" for each in against_evaluation(request, account))
        except UnfitError as error:
            yield f"{block.place}: {phrasing!r}: {error}"


def main() -> int:
    paths = [Path(name) for name in sys.argv[1:]] or sorted(CORPUS.glob("*.txt"))
    blocks = [block for path in paths for block in read_echo_blocks(path)]
    found = [problem for block in blocks for problem in problems(block)]
    for problem in found:
        print(problem)
    asking = sum(any(line.startswith("? ") for line in block.account) for block in blocks)
    phrasings = sum(len(block.phrasings) for block in blocks)
    print(f"{len(blocks)} blocks ({asking} that leave something open), {phrasings} phrasings, {len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
