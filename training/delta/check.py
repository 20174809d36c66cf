"""Every block of the corpus against the planner's own checks: parser, checker, grammar, intent.

And it is nowhere near the evaluation: no request of `benchmarks/planning` or `benchmarks/everyday` in other words, no
file of its world, and no plan with the structure of one that `benchmarks/planning` keeps unseen.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from llguidance import LLMatcher, LLTokenizer

from benchmarks.everyday import REQUESTS as EVERYDAY
from benchmarks.planning import REQUESTS, reserved_skeletons, world_files
from benchmarks.planning.skeletons import skeleton_of
from bicameral.errors import BicameralError
from bicameral.planning import check_against_intent, statement_grammar
from bicameral.planning._decode import next_openings, refusal_reason
from bicameral.planning._matching import named_objects
from bicameral.plans import check, parse
from bicameral.text import text_stems

from .blocks import CORPUS, Block, read_blocks
from .sample import Sample, make_sample
from .slots import SLOT

_BYTES = LLTokenizer("byte")
_NAMED = re.compile(r"[\w./-]*\w\.(?:txt|md|log|csv|json|html)\b")
NEAR = 0.75


def problems(block: Block) -> Iterator[str]:
    """What is wrong with a block, a line each."""
    for phrasing in block.phrasings:
        try:
            made = make_sample(block, phrasing, "check")
            found = [*against_evaluation(made), *_problems(made)]
        except (BicameralError, ValueError, KeyError, OSError) as error:
            yield f"{block.place}: {phrasing!r}: {error}"
            return
        yield from (f"{block.place}: {made.intent.request!r}: {each}" for each in found)
        if found:
            return


def _problems(made: Sample) -> Iterator[str]:
    registry = made.registry
    if left := SLOT.search(made.intent.request + made.plan):
        yield f"unknown slot {left[0]}"
    if refusal_reason(made.plan) is not None:
        yield from _undecodable(made)
        return
    try:
        parsed = parse(made.plan, registry)
        report = check(parsed.plan, registry, places=parsed.places, unbound=True)
        if not report.ok:
            yield from (str(finding) for finding in report.errors)
            return
        yield from (f"{finding.code} {finding.message}" for finding in report.findings if finding.code == "plan.unused")
        yield from (f"{each.code} {each.message}" for each in check_against_intent(parsed.plan, made.intent, registry))
        yield from _undecodable(made)
    except BicameralError as error:
        yield str(error)


def _undecodable(made: Sample) -> Iterator[str]:
    lines = made.plan.splitlines(keepends=True)
    for number, line in enumerate(lines):
        before = "".join(lines[:number])
        grammar = statement_grammar(
            made.registry, next_openings(before, made.registry), named_objects(made.intent.request)
        )
        matcher = LLMatcher(_BYTES, LLMatcher.grammar_from_lark(grammar.split("\n", 1)[1]))
        taken = matcher.validate_tokens(_BYTES.tokenize_str(line))
        if taken < len(line.encode()):
            yield f"the grammar refuses {line.strip()!r} at {line.encode()[taken:].decode(errors='replace').strip()!r}"
            return
    if refusal_reason(made.plan) is None and next_openings(made.plan, made.registry):
        yield "the plan does not end with an answer on every path"


def against_evaluation(made: Sample) -> Iterator[str]:
    names = {Path(name).name.lower() for name in _NAMED.findall(made.intent.request)}
    if shared := names & _evaluation_files():
        yield f"{', '.join(shared)} also occurs in the evaluation's world: choose another name"
    said = set(text_stems(made.intent.request))
    if any(len(said & other) / max(1, len(said | other)) >= NEAR for other in _evaluation_requests()):
        yield "too near to a request of the evaluation: ask for something else"
    # Other words for the same structure would be a twin all the same.
    if made.toolbox is None and skeleton_of(made.plan) in reserved_skeletons():
        yield "the plan has the structure of one that the evaluation keeps unseen: do something else"


@cache
def _evaluation_files() -> frozenset[str]:
    return frozenset(
        world_files() | {Path(name).name.lower() for each in REQUESTS for name in _NAMED.findall(each.text)}
    )


@cache
def _evaluation_requests() -> tuple[frozenset[str], ...]:
    return tuple(frozenset(text_stems(request.text)) for request in (*REQUESTS, *EVERYDAY))


def main() -> int:
    paths = [Path(name) for name in sys.argv[1:]] or sorted(CORPUS.glob("*.txt"))
    blocks = [block for path in paths for block in read_blocks(path)]
    found = [problem for block in blocks for problem in problems(block)]
    for problem in found:
        print(problem)
    phrasings = sum(len(block.phrasings) for block in blocks)
    print(f"{len(blocks)} blocks, {phrasings} phrasings, {len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
