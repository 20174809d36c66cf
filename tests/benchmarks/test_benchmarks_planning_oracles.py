"""Every request can be solved: its oracle plan, run by the real engine with the real tools, satisfies its judge."""

from __future__ import annotations

import json

import pytest

from benchmarks.planning import REQUESTS, Outcome, Request, World, read_blank
from benchmarks.planning.__main__ import registry_for
from benchmarks.planning.oracle import plan_for
from bicameral.boundary import Extractor
from bicameral.models import ModelRequest, ScriptedProvider
from bicameral.plans import check, parse, print_plan
from bicameral.runs import Failed, Finished, run_plan


def perfect_reader(request: ModelRequest) -> str:
    """Fills each blank with what the world's author knows to be right."""
    text = request.messages[-1].text
    assert request.json_schema is not None
    names = list(request.json_schema["properties"])
    form = text.rsplit("\n\nForm: ", 1)[1]
    source = text.split("<<<\n", 1)[1].rsplit("\n>>>", 1)[0]
    instruction = form.split("\nFields:", 1)[0]
    blanks = {name: read_blank(source, instruction if name == "value" else name) for name in names}
    return json.dumps(blanks, default=lambda value: value.isoformat())


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: request.id)
async def test_the_oracle_plan_satisfies_the_judge(request_: Request) -> None:
    with World() as world:
        registry = registry_for(world)
        parsed = parse(plan_for(request_.id, world.site), registry)
        report = check(parsed.plan, registry, places=parsed.places)
        assert report.ok, [str(finding) for finding in report.errors]
        assert parse(print_plan(parsed.plan, registry), registry).plan.to_json() == parsed.plan.to_json()
        extractor = Extractor(ScriptedProvider(perfect_reader))
        outcome = await run_plan(parsed.plan, registry, extractor=extractor)
        assert not isinstance(outcome, Failed), str(outcome.error)
        assert isinstance(outcome, Finished)
        verdict = request_.judge(Outcome(world, outcome.answer, world.sent(), None))
        assert verdict.ok, verdict.why
