"""Every block of the corpus against the planner's own checks (parser, checker, grammar, intent) and its one form.

And it is nowhere near the evaluation: no request of `benchmarks/planning` or `benchmarks/everyday` in other words, no
file of its world, and no plan with the structure of one that `benchmarks/planning` keeps unseen.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
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
from bicameral.planning._statement_grammar import Opening
from bicameral.plans import check, parse
from bicameral.text import text_stems
from bicameral.tools import Registry

from .blocks import CORPUS, Block, language_of, read_blocks
from .canonical import canonical_plan
from .guards import unguarded_results
from .places import misplaced_lookups
from .sample import Sample, make_sample
from .slots import SLOT

_BYTES = LLTokenizer("byte")
_NAMED = re.compile(r"[\w./-]*\w\.(?:txt|md|log|csv|json|html)\b")
NEAR = 0.75


def problems(block: Block) -> Iterator[str]:
    """What is wrong with a block, a line each."""
    if block.plan != canonical_plan(block.plan):
        yield f"{block.place}: the plan has another form ({canonical_plan.__module__}):\n{canonical_plan(block.plan)}"
    if block.toolbox is None and (taken := unguarded_results(block.plan)):
        yield f"{block.place}: {', '.join(taken)} may be empty: python -m training.delta.guards"
    decoded: set[tuple[str, ...]] = set()
    for phrasing in block.phrasings:
        try:
            made = _filled(block, phrasing)
            found = [*against_evaluation(made), *_problems(made)]
            if block.toolbox is None:
                found += misplaced_lookups(block.plan, phrasing, language_of(block))
            # Phrasings have the same plan with other values: its grammar differs only by which kinds of objects the
            # request names.
            kinds = tuple(kind for kind, names in named_objects(made.intent.request).items() if names)
            if not found and kinds not in decoded:
                decoded.add(kinds)
                found = list(_undecodable(made))
        except (BicameralError, ValueError, KeyError, OSError) as error:
            yield f"{block.place}: {phrasing!r}: {error}"
            return
        yield from (f"{block.place}: {made.intent.request!r}: {each}" for each in found)
        if found:
            return


_FILLINGS = 5


def _filled(block: Block, phrasing: str) -> Sample:
    """A filling whose days and names fit, as the build looks for one."""
    for filling in range(_FILLINGS):
        try:
            made = make_sample(block, phrasing, f"check/{filling}")
        except (ValueError, IndexError):
            continue
        if not any(against_evaluation(made)):
            return made
    return make_sample(block, phrasing, "check")


def _problems(made: Sample) -> Iterator[str]:
    registry = made.registry
    if left := SLOT.search(made.intent.request + made.plan):
        yield f"unknown slot {left[0]}"
    if refusal_reason(made.plan) is not None:
        return
    try:
        parsed = parse(made.plan, registry)
        report = check(parsed.plan, registry, places=parsed.places, unbound=True)
        if not report.ok:
            yield from (str(finding) for finding in report.errors)
            return
        yield from (f"{finding.code} {finding.message}" for finding in report.findings if finding.code == "plan.unused")
        yield from (f"{each.code} {each.message}" for each in check_against_intent(parsed.plan, made.intent, registry))
    except BicameralError as error:
        yield str(error)


def _undecodable(made: Sample) -> Iterator[str]:
    lines = made.plan.splitlines(keepends=True)
    named = named_objects(made.intent.request)
    for number, line in enumerate(lines):
        openings = next_openings("".join(lines[:number]), made.registry)
        taken = _matcher(made, openings, named).validate_tokens(_BYTES.tokenize_str(line))
        if taken < len(line.encode()):
            yield f"the grammar refuses {line.strip()!r} at {line.encode()[taken:].decode(errors='replace').strip()!r}"
            return
    if refusal_reason(made.plan) is None and next_openings(made.plan, made.registry):
        yield "the plan does not end with an answer on every path"


_MATCHERS: dict[tuple[object, ...], LLMatcher] = {}
_MOST_MATCHERS = 600


def _matcher(made: Sample, openings: Sequence[Opening], named: Mapping[str, Sequence[str]]) -> LLMatcher:
    """The grammar of the next statement. Plans use the same variables again and again, and a grammar takes long."""
    key = made.toolbox, repr(openings), repr(named)
    if key not in _MATCHERS:
        if len(_MATCHERS) >= _MOST_MATCHERS:
            del _MATCHERS[next(iter(_MATCHERS))]
        _MATCHERS[key] = _compiled(made.registry, openings, named)
    # Validation leaves a matcher as it is, so that it can be used again.
    return _MATCHERS[key]


def _compiled(registry: Registry, openings: Sequence[Opening], named: Mapping[str, Sequence[str]]) -> LLMatcher:
    grammar = statement_grammar(registry, openings, named)
    return LLMatcher(_BYTES, LLMatcher.grammar_from_lark(grammar.split("\n", 1)[1]))


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


def block_problems(block: Block) -> list[str]:
    """`problems` as a list, for a process of its own."""
    return list(problems(block))


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("paths", type=Path, nargs="*", help="corpus files (default: all)")
    arguments.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one a core)")
    given = arguments.parse_args()
    blocks = [block for path in given.paths or sorted(CORPUS.glob("*.txt")) for block in read_blocks(path)]
    count = 0
    with ProcessPoolExecutor(given.jobs) as pool:
        for found in pool.map(block_problems, blocks, chunksize=16):
            count += len(found)
            for problem in found:
                print(problem, flush=True)
    phrasings = sum(len(block.phrasings) for block in blocks)
    print(f"{len(blocks)} blocks, {phrasings} phrasings, {count} problems")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
