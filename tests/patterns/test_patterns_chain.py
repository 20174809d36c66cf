"""Chains: `a.then(b)` and `a | b`, gates between the steps, and what each step gets to read."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypedDict

import pytest
from patterns_models import performed
from patterns_world import HOSTILE, answered, table

from bicameral.errors import CatalogError
from bicameral.journal import open_journal_at
from bicameral.labels import Labelled, program_text
from bicameral.models import LocalProvider, ModelRequest
from bicameral.patterns import GaveUp, Parallelization
from bicameral.patterns.kernel import Context, NoteEvent, Pattern, Role, replay_pattern, untrusted_value
from bicameral.patterns.orchestration.chain import Branch, Chain, Spread, not_empty
from bicameral.tools import Origin, tool
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


# Steps, and what they read ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Give(Pattern[[Labelled[str]], Any]):
    """A value, whatever comes in."""

    id: ClassVar[str] = "S2"
    value: Any = None

    async def execute(self, context: Context, /, text: Labelled[str]) -> Labelled[Any]:
        return context.derive(self.value, text)


@dataclass(frozen=True)
class Fetch(Pattern[[Labelled[str]], Any]):
    """A record of one trusted field and one that a stranger wrote."""

    id: ClassVar[str] = "S2"

    async def execute(self, context: Context, /, text: Labelled[str]) -> Labelled[Any]:
        return await context.call("read_order", {})


class Order(TypedDict):
    id: str
    note: str


ORDER = {"product": "lamp", "city": "Ghent", "secret": "canary-7731"}


def notes(outcome: Any, what: str) -> list[dict[str, Any]]:
    return [each.facts for each in outcome.trace if isinstance(each, NoteEvent) and each.what == what]


@holds("O2.4")
@pytest.mark.parametrize("names", [("product",), ("product", "city")])
def test_a_step_reads_the_fields_that_it_takes_and_no_others(names: tuple[str, ...]) -> None:
    there = table(echo)
    chain = Chain.of(Give(ORDER), Say()).with_fields(1, *names)
    outcome = answered(asyncio.run(chain.run(there.desk, program_text("go"))))
    assert all(ORDER[name] in outcome.value for name in names)
    assert "canary-7731" not in "".join(there.privileged.prompts)
    whole = asyncio.run(Chain.of(Give(ORDER), Say()).run(there.desk, program_text("go")))
    assert "canary-7731" in answered(whole).value


def test_a_step_that_takes_a_trusted_field_stays_with_the_privileged_model() -> None:
    """The field beside it is a stranger's: it is not read, so it labels nothing."""

    @tool(effect="read", outbound=False, origins={"": Origin("system"), "note": Origin("third_party")})
    def read_order() -> Order:
        """An order with a note of the customer."""
        return {"id": "4411", "note": HOSTILE}

    there = table(echo, echo, tools=[read_order])
    taken = Chain.of(Fetch(), Say())
    trusted = answered(asyncio.run(taken.with_fields(1, "id").run(there.desk, program_text("go"))))
    assert (trusted.value, trusted.label.trusted) == ("<4411>", True)
    assert not there.quarantined.asked
    other = answered(asyncio.run(taken.with_fields(1, "note").run(there.desk, program_text("go"))))
    assert not other.label.trusted
    assert not any(HOSTILE in prompt for prompt in there.privileged.prompts)


def test_a_field_that_is_not_there_ends_the_chain() -> None:
    outcome = asyncio.run(
        Chain.of(Give(ORDER), Say()).with_fields(1, "price").run(table(echo).desk, program_text("go"))
    )
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "labels.no-field"


@holds("O2.1")
def test_the_steps_that_ran_are_those_that_were_declared() -> None:
    replies = iter(["", "good", "end"])
    chain = Chain.of(Say("a"), Give("x"), Say("b")).with_gate(0, not_empty)
    outcome = answered(asyncio.run(chain.run(table(lambda request: next(replies)).desk, program_text("go"))))
    assert [(each["step"], each["again"]) for each in notes(outcome, "step")] == [
        (1, False),
        (1, True),
        (2, False),
        (3, False),
    ]
    assert [each.at for each in outcome.model_calls] == ["1 S2/", "1 S2 (2)/", "3 S2/"]


@pytest.mark.parametrize("steps", [1, 8])
def test_a_chain_has_at_most_seven_steps_and_a_first_one(steps: int) -> None:
    if steps == 8:
        with pytest.raises(CatalogError, match=r"pattern\.bad-knob"):
            Chain.of(*[Say()] * 8)
    for wrong in ((), (Branch({"a": Say()}),)):
        with pytest.raises(CatalogError, match=r"pattern\.bad-knob"):
            Chain(wrong)


# Gates --------------------------------------------------------------------------------------------------------------


def test_a_step_that_is_sent_back_reads_why() -> None:
    replies = iter(["", "good"])
    there = table(lambda request: next(replies))
    answered(asyncio.run(Chain.of(Say()).with_gate(0, not_empty).run(there.desk, program_text("go"))))
    first, second = there.privileged.prompts
    assert "sent back" not in first
    assert "An earlier result was sent back: it is empty" in second


@holds("O2.7")
@pytest.mark.parametrize("retries", [0, 1, 3])
def test_a_gate_sends_back_at_most_max_retries_times(retries: int) -> None:
    there = table(lambda request: "")
    chain: Chain[[Labelled[str]], str] = Chain((Say(),), {0: not_empty}, retries)
    assert isinstance(asyncio.run(chain.run(there.desk, program_text("go"))), GaveUp)
    assert len(there.privileged.asked) == 1 + retries
    with pytest.raises(CatalogError, match=r"pattern\.bad-knob"):
        Chain((Say(),), {0: not_empty}, 4)


@holds("O2.6")
@pytest.mark.parametrize("verdict", [ValueError, True, False, ""])
def test_a_gate_without_a_verdict_lets_nothing_pass_and_is_on_record(verdict: Any) -> None:
    def gate(value: Any) -> Any:
        if verdict is ValueError:
            raise ValueError(f"what about {value}?")
        return verdict

    there = table(echo)
    outcome = asyncio.run(Chain.of(Say(), Say()).with_gate(0, gate).run(there.desk, program_text("go")))
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "pattern.gate-failed"
    assert "<go>" not in str(outcome.error)
    assert [each["passed"] for each in notes(outcome, "gate")] == [False]
    assert len(there.privileged.asked) == 1


@pytest.mark.parametrize("trusted", [True, False])
def test_words_of_a_gate_about_an_untrusted_value_reach_no_error(trusted: bool, tmp_path: Path) -> None:
    journal = open_journal_at(tmp_path / "journal.db")
    there = table(echo, echo, journal=journal)
    chain = Chain.of(Say(), Say()).with_gate(0, lambda text: f"nobody wants {text}")
    text = program_text(HOSTILE) if trusted else untrusted_value(HOSTILE, "web")
    outcome = asyncio.run(chain.run(there.desk, text))
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "pattern.gate-failed"
    assert (HOSTILE in str(outcome.error)) is trusted
    assert (HOSTILE in json.dumps([each.to_json() for each in outcome.trace])) is False
    sent_back = (there.privileged if trusted else there.quarantined).prompts[-1]
    assert f"nobody wants <{HOSTILE}>" in sent_back, "the model that wrote it reads them"


@holds("O2.6")
def test_every_verdict_is_on_record_with_the_value_that_it_is_about(tmp_path: Path) -> None:
    journal = open_journal_at(tmp_path / "journal.db")
    replies = iter(["", "good", "good"])
    there = table(lambda request: next(replies), journal=journal)
    chain = Chain.of(Say(), Say()).with_gate(0, not_empty).with_gate(1, not_empty)
    outcome = answered(asyncio.run(chain.run(there.desk, program_text("go"))))
    verdicts = [event.body for event in journal.events(outcome.run) if event.body.get("noted") == "gate"]
    assert [(each["step"], each["passed"]) for each in verdicts] == [(1, False), (1, True), (2, True)]
    assert verdicts[0]["value"] != verdicts[1]["value"] == verdicts[2]["value"]


def test_words_of_a_gate_about_untrusted_text_reach_no_error_and_no_privileged_prompt() -> None:
    there = table(["never"], lambda request: "read")
    chain = Chain.of(Say(), Say()).with_gate(0, lambda text: f"{HOSTILE} {text}")
    outcome = asyncio.run(chain.run(there.desk, untrusted_value("a page", "web")))
    assert isinstance(outcome, GaveUp)
    assert HOSTILE not in str(outcome.error)
    assert HOSTILE not in str(outcome.trace)
    assert HOSTILE in there.quarantined.prompts[1]
    assert not there.privileged.asked


# Branches and lists ---------------------------------------------------------------------------------------------------


@holds("O2.2")
@pytest.mark.parametrize(("kind", "system"), [("bug", "You fix."), ("praise", "You thank.")])
def test_a_branch_takes_the_way_that_the_value_names(kind: str, system: str) -> None:
    there = table(echo)
    branch = Branch({"bug": Say("fix"), "praise": Say("thank")}, by="kind")
    outcome = answered(asyncio.run(Chain.of(Give({"kind": kind}), branch).run(there.desk, program_text("go"))))
    assert [request.messages[0].text for request in there.privileged.asked] == [system]
    assert [each["way"] for each in notes(outcome, "branch")] == [kind]


@holds("O2.2")
@pytest.mark.parametrize("kind", ["spam", "", None, 7, HOSTILE])
def test_a_value_that_names_no_way_ends_the_chain(kind: Any) -> None:
    there = table(echo)
    branch = Branch({"bug": Say("fix")}, by="kind")
    outcome = asyncio.run(Chain.of(Give({"kind": kind}), branch).run(there.desk, program_text("go")))
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "pattern.no-way"
    assert HOSTILE not in str(outcome.error)
    assert not there.privileged.asked


def test_what_a_stranger_chose_has_his_label_behind_the_branch() -> None:
    there = table([], echo)
    chain = Chain.of(Give("bug"), Branch({"bug": Give("fixed")}), Say())
    outcome = answered(asyncio.run(chain.run(there.desk, untrusted_value("a page", "web"))))
    assert not outcome.label.trusted
    assert not there.privileged.asked


def test_there_are_at_most_max_forks_levels_of_branches() -> None:
    two = Branch({"a": Chain.of(Say(), Branch({"b": Say()}))})
    assert Chain.of(Say(), two).max_forks == 2
    with pytest.raises(CatalogError, match=r"pattern\.bad-knob"):
        Chain((Say(), two), max_forks=1)
    with pytest.raises(CatalogError, match=r"pattern\.bad-knob"):
        Chain.of(Say(), Branch({"c": Chain.of(Say(), two)}))


def test_a_list_is_spread_over_parts_and_gathered_in_order() -> None:
    there = table(echo)
    chain = Chain.of(Give(["a", "b", "c"]), Spread(Say(), width=2))
    outcome = answered(asyncio.run(chain.run(there.desk, program_text("go"))))
    assert outcome.value == ["<a>", "<b>", "<c>"]
    assert not any("a" in request.messages[-1].text for request in there.privileged.asked[1:])


@pytest.mark.parametrize("value", ["no list", ["x"] * 21])
def test_what_cannot_be_spread_ends_the_chain(value: Any) -> None:
    outcome = asyncio.run(Chain.of(Give(value), Spread(Say())).run(table(echo).desk, program_text("go")))
    assert isinstance(outcome, GaveUp)
    assert outcome.error.code == "pattern.bad-spread"


@pytest.mark.model
def test_the_example_comes_out_right(small_model: LocalProvider, tmp_path: Path) -> None:
    example, outcome = performed("O2", small_model, tmp_path)
    assert example.is_correct(answered(outcome)), outcome


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
