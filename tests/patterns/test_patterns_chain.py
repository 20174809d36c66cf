"""Chains: `a.then(b)` and `a | b`, gates between the steps, and what each step gets to read."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
from patterns_world import HOSTILE, answered, table

from bicameral.errors import CatalogError
from bicameral.journal import open_journal_at
from bicameral.labels import Labelled, program_text
from bicameral.models import ModelRequest
from bicameral.patterns import GaveUp, Parallelization
from bicameral.patterns.kernel import Context, NoteEvent, Pattern, Role, replay_pattern, untrusted_value
from bicameral.patterns.orchestration.chain import Chain
from invariants import holds


@dataclass(frozen=True)
class Say(Pattern[[Labelled[str]], str]):
    """One question to one role."""

    id: ClassVar[str] = "S2"
    word: str = "say"

    async def execute(self, context: Context, /, text: Labelled[str]) -> Labelled[str]:
        return await context.ask(Role(self.word.title(), f"You {self.word}."), text)


def echo(request: ModelRequest) -> str:
    return f"<{request.messages[-1].text}>"


@holds("O2.1", "O2.4")
def test_each_step_reads_the_result_of_the_one_before_and_nothing_else() -> None:
    there = table(echo)
    chain = Say("draft") | Say("shorten") | Say("translate")
    outcome = answered(asyncio.run(chain.run(there.desk, program_text("a secret of the first step"))))
    assert outcome.value == "<<<a secret of the first step>>>"
    assert [each.at for each in outcome.model_calls] == ["1 S2/", "2 S2/", "3 S2/"]
    systems = [request.messages[0].text for request in there.privileged.asked]
    assert systems == ["You draft.", "You shorten.", "You translate."]


def test_the_order_of_the_bars_makes_no_difference() -> None:
    one, two, three = Say("a"), Say("b"), Say("c")
    assert ((one | two) | three) == (one | (two | three)) == Chain.of(one, two, three)


def test_labels_pass_from_step_to_step() -> None:
    there = table([], lambda request: "read")
    outcome = answered(asyncio.run((Say() | Say()).run(there.desk, untrusted_value(HOSTILE, "web"))))
    assert not outcome.label.trusted
    assert there.privileged.asked == [], "what a stranger wrote stays with the quarantined model in every step"


@holds("O2.6", "O2.7")
def test_a_gate_sends_back_and_then_ends_the_chain() -> None:
    replies = iter(["", "good", "end"])
    there = table(lambda request: next(replies))
    chain = Chain.of(Say(), Say()).with_gate(0, lambda text: None if text else "it is empty")
    outcome = answered(asyncio.run(chain.run(there.desk, program_text("go"))))
    assert outcome.value == "end"
    verdicts = [each.facts["passed"] for each in outcome.trace if isinstance(each, NoteEvent) and each.what == "gate"]
    assert verdicts == [False, True]
    ended = asyncio.run(chain.run(table(lambda request: "").desk, program_text("go")))
    assert isinstance(ended, GaveUp)
    assert ended.error.code == "pattern.gate-failed"
    assert "it is empty" in str(ended.error)


def test_a_gate_behind_no_step_is_refused() -> None:
    with pytest.raises(CatalogError) as caught:
        Chain.of(Say(), Say()).with_gate(2, lambda text: None)
    assert caught.value.code == "pattern.bad-knob"


def test_children_are_found_at_any_depth() -> None:
    inner = Say("a") | Say("b")
    whole = Parallelization.sections({"left": inner, "right": Say("c")}) | Say("d")
    assert {at for at, _ in whole.walk()} == {
        "",
        "steps[0]",
        "steps[0].parts.left",
        "steps[0].parts.left.steps[0]",
        "steps[0].parts.left.steps[1]",
        "steps[0].parts.right",
        "steps[1]",
    }


def test_a_composition_of_three_levels_is_replayed(tmp_path: Path) -> None:
    journal = open_journal_at(tmp_path / "journal.db")
    there = table(echo, journal=journal)
    whole = Chain.of(Say("a"), Chain.of(Say("b"), Say("c")).with_gate(0, lambda text: None))
    outcome = answered(asyncio.run(whole.run(there.desk, program_text("go"))))
    again = asyncio.run(replay_pattern(journal, outcome.run, there.desk.registry, there.desk.policy, pattern=whole))
    assert again.identical, again.differences
    assert again.answer == outcome.value


TYPED = textwrap.dedent(
    """
    from bicameral.patterns.kernel import Pattern, Labelled, Context

    class Number(Pattern[[Labelled[str]], int]):
        async def execute(self, context: Context, /, text: Labelled[str]) -> Labelled[int]: ...

    class Half(Pattern[[Labelled[int]], float]):
        async def execute(self, context: Context, /, number: Labelled[int]) -> Labelled[float]: ...

    good: Pattern[[Labelled[str]], float] = Number() | Half()
    """
)


@pytest.mark.parametrize(("last", "fits"), [("", True), ("bad = Half() | Number()", False)])
@holds("O2.3")
def test_the_type_checker_knows_which_patterns_fit(tmp_path: Path, last: str, fits: bool) -> None:
    (tmp_path / "typed.py").write_text(TYPED + last)
    program = Path(sys.executable).with_name("basedpyright")
    checked = subprocess.run(
        [program, "--pythonpath", sys.executable, "--level", "error", "typed.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (checked.returncode == 0) is fits, checked.stdout
