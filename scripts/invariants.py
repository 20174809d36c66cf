"""Which test holds which invariant of the implemented patterns.

A test says so with `@holds("R4.3")`: the third invariant of R4 in the catalogue. Every invariant that is held by `type`
or by `run` needs one. Tests are read and not run.

python -m scripts.invariants            lists the invariants with their tests
python -m scripts.invariants --check    exits 1 if one has no test, or a test claims one that there is not
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bicameral.catalog import catalog
from bicameral.catalog.facts import Invariant
from bicameral.patterns import IMPLEMENTED

ROOT = Path(__file__).parents[1]
DEMANDED = ("type", "run")
"""The enforcements that a test must show. The linter's rules and the user's own tests hold the others."""
_SELDOM_RUN = {"only_live", "skip", "skipif", "xfail"}
"""Marks of tests that an ordinary run may leave out, so that they hold nothing."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A test that says which invariant it holds."""

    invariant: str
    file: str
    test: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}::{self.test}"


@dataclass(frozen=True, slots=True)
class Coverage:
    """The invariants that need a test, the tests that hold them, and what is wrong with claims."""

    demanded: Mapping[str, Invariant]
    tests: Mapping[str, Sequence[Claim]]
    faults: Sequence[str]

    @property
    def missing(self) -> list[str]:
        """The invariants that need a test and have none."""
        return [id for id in self.demanded if id not in self.tests]

    def to_json(self) -> dict[str, int]:
        """The number of invariants that need a test, and of those that have one."""
        return {"invariants": len(self.demanded), "invariants_held": len(self.demanded) - len(self.missing)}


def measure_coverage(root: Path = ROOT, patterns: Sequence[str] = tuple(IMPLEMENTED)) -> Coverage:
    """Compare the claims of the tests with the invariants of these patterns.

    Example:
        >>> measure_coverage().to_json()
        {'invariants': 82, 'invariants_held': 82}
    """
    demanded = {
        id: each for pattern in patterns for id, each in pattern_invariants(pattern).items() if each.held in DEMANDED
    }
    tests: dict[str, list[Claim]] = {}
    faults: list[str] = []
    for claim in read_claims(root):
        if (fault := _claim_fault(claim)) is None:
            tests.setdefault(claim.invariant, []).append(claim)
        else:
            faults.append(f"{claim.file}:{claim.line}: {fault}")
    return Coverage(demanded, tests, faults)


def pattern_invariants(pattern: str) -> Mapping[str, Invariant]:
    """The invariants of a pattern by their ids, counted from 1 on."""
    return {f"{pattern}.{number}": each for number, each in enumerate(catalog().pattern(pattern).invariants, 1)}


def read_claims(root: Path = ROOT) -> Iterator[Claim]:
    """All claims of the tests below `root/tests`."""
    for file in sorted((root / "tests").rglob("test_*.py")):
        text = file.read_text(encoding="utf-8")
        if "holds(" in text:
            yield from _claims_in(ast.parse(text), file.relative_to(root).as_posix())


def _claims_in(tree: ast.Module, file: str) -> Iterator[Claim]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        runs = node.name.startswith("test_") and not _SELDOM_RUN & _mark_names(node.decorator_list)
        for decorator in node.decorator_list:
            match decorator:
                case ast.Call(func=ast.Name(id="holds"), args=args):
                    for given in args:
                        yield Claim(_claimed_id(given) if runs else "", file, node.name, decorator.lineno)
                case _:
                    pass


def _claimed_id(argument: ast.expr) -> str:
    """The id of an invariant in a claim; an empty text if it is no literal."""
    match argument:
        case ast.Constant(value=str(id)):
            return id
        case _:
            return ""


def _mark_names(decorators: Sequence[ast.expr]) -> set[str]:
    """The names in `@pytest.mark.NAME` and `@pytest.mark.NAME(…)`."""
    bare = (each.func if isinstance(each, ast.Call) else each for each in decorators)
    return {each.attr for each in bare if isinstance(each, ast.Attribute)}


def _claim_fault(claim: Claim) -> str | None:
    """Why a claim counts for nothing, or None."""
    if not claim.invariant:
        return f"{claim.test} is not always run, or its claim is no literal text"
    pattern = claim.invariant.partition(".")[0]
    known = pattern in catalog().patterns
    found: Mapping[str, Invariant] = pattern_invariants(pattern) if known else {}
    if claim.invariant not in found:
        return f"there is no invariant {claim.invariant!r}"
    if found[claim.invariant].held == "lint":
        return f"{claim.invariant} is held by the linter: its rule has tests of its own"
    return None


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.invariants", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--check", action="store_true", help="exit 1 if an invariant has no test")
    check = parser.parse_args(given).check
    found = measure_coverage()
    if not check:
        for id, invariant in found.demanded.items():
            print(f"{id:6} {invariant.held:4}  {invariant.rule}")
            for claim in found.tests.get(id, ()):
                print(f"             {claim}")
    problems = [*found.faults, *(f"no test holds {id}: {found.demanded[id].rule}" for id in found.missing)]
    print("\n".join(problems) or f"{len(found.demanded)} invariants, each with a test")
    return 1 if check and problems else 0


if __name__ == "__main__":
    sys.exit(main())
