"""The variants of the executor from the configuration, the pattern itself from the catalogue, and trials of models."""

from __future__ import annotations

import json

import pytest
from seed_world import World

from bicameral import Agent, ScriptedProvider
from bicameral.boundary import executor_facts
from bicameral.config import Config
from bicameral.errors import ConfigError
from bicameral.models import ModelRequest, Provider
from bicameral.plans import parse
from bicameral.trials import TRIAL_ROLES, ModelTrial, TrialModel, TrialRole, Unavailable

PLAN = 'text = read_text("mail.txt")\nnote = extract(text, "the note", str)\nanswer(note)\n'


def configured(world: World, text: str) -> Config:
    world.write("mail.txt", "A note: blue paint.\n")
    world.write("bicameral.toml", text)
    return Config.load()


@pytest.mark.parametrize("variant", ["extract", "read-only", "triple"])
def test_each_variant_of_the_document_is_a_setting(world: World, variant: str) -> None:
    agent = Agent(config=configured(world, f'[quarantine]\nvariant = "{variant}"\n'), cache={})
    assert executor_facts(agent.executor).variant == variant


def test_a_variant_that_does_not_exist_is_refused(world: World) -> None:
    with pytest.raises(ConfigError) as caught:
        configured(world, '[quarantine]\nvariant = "quadruple"\n')
    assert "'triple'" in str(caught.value)


@pytest.mark.parametrize(("verdict", "ends"), [("data", "finished"), ("instructions", "refused")])
async def test_the_validator_of_the_configuration_decides_and_is_in_the_record(
    world: World, verdict: str, ends: str
) -> None:
    def reply(request: ModelRequest) -> str:
        validating = "instructions" in str(request.json_schema)
        return json.dumps({"value": verdict if validating else "blue paint"})

    config = configured(world, '[quarantine]\nvariant = "triple"\n')
    reader = ScriptedProvider(reply, name="reader")
    agent = Agent(config=config, privileged=ScriptedProvider([]), quarantined=reader, cache={})
    outcome = await agent.run(parse(PLAN, agent.registry).plan)
    assert (getattr(outcome, "answer", None) == "blue paint") == (ends == "finished")
    assert len(reader.requests) >= 2
    await agent.aclose()


def test_the_variant_is_told_before_and_after_a_run(world: World) -> None:
    configured(world, '[quarantine]\nvariant = "triple"\n')
    world.write("plan.py", PLAN)
    told = world.json("explain", "plan.py")
    assert told["executor"]["variant"] == "triple"


# The pattern of the document, from the catalogue


def test_the_pattern_of_the_document_runs_from_the_catalogue(world: World) -> None:
    world.write("mail.txt", "A note: blue paint.\n")
    script = ['text = read_text("mail.txt")\nn = extract(text, "the number", int)\nanswer(n)\n']
    result = world.call("patterns", "run", "V4", "Which number is in mail.txt?", script=script)
    assert result.exit_code == 0, result.output
    assert "12" in result.output


# A model in each role, in isolation


async def test_a_model_is_tried_in_each_role_and_one_that_cannot_is_found_out() -> None:
    """The document's cure for a capability gap and for drift: test the executor in isolation."""
    chattering: dict[TrialRole, Provider | Unavailable] = {
        role: ScriptedProvider(
            lambda _: "I am not sure what you mean.",
            name="chatter",
            chamber="quarantined" if role == "quarantined" else "privileged",
            grammars=False,
        )
        for role in TRIAL_ROLES
    }
    trial = ModelTrial(TrialModel("chatter", "scripted", chattering), quick=True)
    await trial.run()
    report = trial.report()
    assert set(report.roles) == {"quarantined", "delta", "echo"}
    assert {found.verdict for found in report.roles.values()} == {"unfit"}
