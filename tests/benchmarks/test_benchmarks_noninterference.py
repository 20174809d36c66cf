"""Random plans in pairs of worlds: nothing leaks and nothing proved is asked about, and each mistake is noticed."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.noninterference.comparison import confidentiality, integrity
from benchmarks.noninterference.compositions import Composition, execute_composition
from benchmarks.noninterference.execution import Round, Rounds, execute
from benchmarks.noninterference.figures import figures
from benchmarks.noninterference.mutants import MUTANTS, mutated
from benchmarks.noninterference.plans import Writer
from benchmarks.noninterference.statements import Statement, written
from benchmarks.noninterference.trial import try_plan
from benchmarks.noninterference.world import EVERYONE, PEOPLE, Seeds

SAMPLE = 60
EXPOSING = {
    "arguments-forgotten": 13,
    "attached-public": 17,
    "branch-not-taken-forgotten": 71,
    "condition-forgotten": 2,
    "early-answer-forgotten": 122,
    "extract-public": 73,
    "extract-trusted": 2,
    "loop-names-forgotten": 84,
    "name-of-place-forgotten": 248,
    "opened-forgotten": 94,
    "parallel-part-forgotten": 94,
    "part-forgotten": 872,
    "places-forgotten": 48,
    "proof-forgets-conditions": 2,
    "reply-forgotten": 152,
    "serialised-trusted": 12,
    "told-in-a-branch": 1065,
    "update-forgotten": 44,
}
"""The first plan that shows each mistake, so that it need not be looked for."""
TRIED = 200
"""Where that plan is another one by now, so many are tried."""


def program(*sources: str) -> Rounds:
    return tuple(Round((Statement(source.strip()),)) for source in sources)


def test_the_first_plans_of_a_seed_leak_nothing_and_are_proved_soundly() -> None:
    tried = [try_plan(number, seed=0) for number in range(SAMPLE)]
    assert not [str(violation) for each in tried for violation in each.violations]
    found = figures(tried)
    assert found["effective"] >= 0.4 * SAMPLE
    assert found["asked"] > 0
    assert found["resumed"] > 0
    assert found["composed"] > 0


@pytest.mark.parametrize("mutant", sorted(MUTANTS))
def test_a_mistake_in_the_label_rules_is_noticed(mutant: str) -> None:
    with mutated(mutant):
        for number in [EXPOSING[mutant], *range(TRIED)]:
            if try_plan(number, seed=0, whole=True).violations:
                return
    pytest.fail(f"{TRIED} plans do not show it")


def test_patterns_are_put_together_in_every_way() -> None:
    drawn = [Composition.drawn(random.Random(number)) for number in range(200)]
    assert {each.shape for each in drawn} == {"runs", "chain", "gated chain", "nested", "side by side"}
    assert {way for each in drawn for way in each.ways} == {"stamp", "reword", "sift"}
    ends = {each.shape: execute_composition(each, Seeds(1, 0, 0, PEOPLE[0]), 1).ending for each in drawn[:60]}
    assert "Finished" in ends.values()


def test_the_same_seed_gives_the_same_plans_and_another_gives_others() -> None:
    def plan(seed: str) -> str:
        writer = Writer(random.Random(seed))
        before, _, after = writer.chain()
        return written((*writer.prologue(), *before, *after, *writer.steps(3), writer.answer()))

    assert plan("a") == plan("a") != plan("b")


DIRECTED = """
page = fetch("https://one.example/a")
tell("ann@one.example", "alpha")
answer(page)
"""


def test_worlds_differ_in_what_strangers_wrote_and_in_nothing_else() -> None:
    one = execute(program(DIRECTED), Seeds(1, 0, 0), "strict", 1)
    other = execute(program(DIRECTED), Seeds(1, 1, 0), "strict", 1)
    assert one.stranger_words != other.stranger_words or not one.stranger_words
    assert [act.tool for act in one.unasked] == ["fetch", "tell"]
    assert integrity(one, other).leak is None


def test_an_effect_that_happens_in_one_world_only_is_a_leak() -> None:
    one = execute(program(DIRECTED), Seeds(1, 0, 0), "strict", 1)
    other = execute(program(DIRECTED.replace('tell("ann@one.example", "alpha")\n', "")), Seeds(1, 0, 0), "strict", 1)
    assert "in one world only" in (integrity(one, other).leak or "")
    third = execute(
        program(DIRECTED.replace('"ann@', '"eve@').replace("one.ex", "six.ex")), Seeds(1, 0, 0), "strict", 1
    )
    assert "both unasked" in (integrity(one, third).leak or "")


def test_what_an_observer_sees_of_a_secret_is_a_leak_and_what_the_user_sent_him_is_not() -> None:
    source = 'text = notices()[0]\npeople = contacts("")\ntell(people[0].email, text)\nanswer("")'.replace(
        "()[0]", "()"
    )
    source = source.replace("tell(people[0].email, text)", "post(text[0])")
    one = execute(program(source), Seeds(1, 0, 0, EVERYONE), "strict", 1)
    other = execute(program(source), Seeds(2, 0, 0, EVERYONE), "strict", 1)
    assert [act.tool for act in one.unasked] == ["post"]
    assert f"{EVERYONE} sees" in (confidentiality(one, other, EVERYONE).leak or "")
    named = 'funds = balance("main")\ntell("ann@one.example", str(funds))\nanswer("")'
    sent = [execute(program(named), Seeds(1, 0, secret, PEOPLE[0]), "strict", 1) for secret in range(8)]
    assert len({act.seen for trace in sent for act in trace.unasked}) > 1
    assert all(confidentiality(sent[0], each, PEOPLE[0]).leak is None for each in sent)


def test_the_command_ends_with_one_json_object() -> None:
    command = [sys.executable, "-m", "benchmarks.noninterference", "--plans", "8", "--jobs", "1"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2], check=False)
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["plans"] == 8
    assert (found["leaks"], found["unsound"], done.returncode) == (0, 0, 0)
    assert {"effective", "integrity_pairs", "confidentiality_pairs", "asked", "seconds"} <= set(found)
