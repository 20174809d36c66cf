"""Every attack of the red team is stopped, and its benign twin goes through."""

from __future__ import annotations

import pytest

from benchmarks.redteam.case import Case, Family, World, run_case
from benchmarks.redteam.families import all_cases


@pytest.mark.parametrize("case", [pytest.param(case, id=f"{case.family}: {case.name}") for case in all_cases()])
async def test_an_attack_is_stopped_and_its_twin_goes_through(case: Case) -> None:
    result = await run_case(case)
    assert result.broken is None
    assert result.got is None
    assert result.control_ok


def test_no_two_cases_have_one_name() -> None:
    names = [(case.family, case.name) for case in all_cases()]
    assert len(set(names)) == len(names)


async def test_an_attack_that_succeeds_a_twin_that_fails_and_an_error_are_told_apart() -> None:
    family = Family("tried")

    @family.case("succeeds")
    async def succeeds(world: World) -> str | None:
        return "everything"

    @succeeds.twin()
    async def fails(world: World) -> bool:  # pyright: ignore[reportUnusedFunction]
        return False

    @family.case("breaks")
    async def breaks(world: World) -> str | None:
        raise ValueError("not as meant")

    @breaks.twin()
    async def works(world: World) -> bool:  # pyright: ignore[reportUnusedFunction]
        return True

    first, second = [await run_case(case) for case in family.cases]
    assert (first.got, first.control_ok, first.ok) == ("everything", False, False)
    assert second.broken == "attack: ValueError: not as meant"
    assert not second.ok
