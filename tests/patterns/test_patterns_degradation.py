"""V19: a failure leads to one declared path, the answer says so, and nothing goes back to the main path."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, get_type_hints

import pytest
from patterns_models import performed
from patterns_world import EVE, Line, Table, answered, table

from bicameral.errors import BicameralError, CatalogError, ModelError, PolicyError, RunError, ToolError
from bicameral.journal import open_journal_at
from bicameral.labels import Labelled
from bicameral.limits import strategy_limits
from bicameral.models import LocalProvider
from bicameral.patterns import (
    Chain,
    Exhausted,
    GaveUp,
    GracefulDegradation,
    Guardrails,
    Role,
    ZeroShot,
    program_text,
    untrusted_value,
)
from bicameral.patterns.kernel import Context, NoteEvent, Pattern, replay_pattern
from bicameral.patterns.reliability.degradation import (
    REFUSALS,
    AnswerCache,
    CachedPath,
    FallbackPath,
    RulePath,
    ServedAnswer,
    SimplerPath,
    TemplatePath,
)
from bicameral.patterns.reliability.guardrails import Guard, Refuse
from bicameral.policy import Policy
from bicameral.tools import Origin, tool
from invariants import holds

LATER = TemplatePath("Please try later.")
QUESTION = program_text("How many live in Ghent?")
SMALL = Role("Fallback model", "Answer in a few words.", tier="small")
DOWN = ModelError("models.unavailable", "it does not answer")


async def _write(context: Context) -> Labelled[None]:
    return context.derive(None)


@dataclass(frozen=True)
class Main(Pattern[[Labelled[str]], str]):
    """A main path that reads, perhaps changes something, and fails with this error."""

    id: ClassVar[str] = "S1"
    error: BicameralError | None = None
    first: str = ""
    runs: list[str] = field(default_factory=list[str], compare=False)

    async def execute(self, context: Context, /, text: Labelled[str]) -> Labelled[str]:
        self.runs.append(context.path)
        if self.first == "once":
            await context.once("write to a store", partial(_write, context))
        if self.first == "send":
            await context.call("send", {"to": "bob@example.com", "body": "hello"})
        if self.first == "read_page":
            context.read(await context.call("read_page", {"name": "news"}))
        if self.error is not None:
            raise self.error
        return context.derive("270,473", text)


def made(main: Pattern[..., Any], path: FallbackPath, code: str = "models", **options: Any) -> GracefulDegradation[...]:
    return GracefulDegradation(main, (code,), {code: path}, LATER, **options)


def ran(pattern: GracefulDegradation[...], there: Table | None = None, question: Any = QUESTION) -> Any:
    return asyncio.run(pattern.run((there or table()).desk, question))


def served(outcome: Any) -> tuple[Any, ...]:
    value = answered(outcome).value
    return value["value"], value["degraded"], value["fallback"], value["cause"]


def notes(outcome: Any, what: str) -> list[Mapping[str, Any]]:
    return [each.facts for each in outcome.trace if isinstance(each, NoteEvent) and each.what == what]


# Marks ----------------------------------------------------------------------------------------------------------------


def test_an_answer_of_the_main_path_is_not_marked() -> None:
    outcome = ran(made(Main(), LATER))
    assert answered(outcome).value == ServedAnswer(value="270,473", degraded=False, fallback=None, cause=None, age=None)
    assert notes(outcome, "served") == []


def _rule(text: str) -> str | None:
    return "about 270,000" if "Ghent" in text else None


@holds("V19.3")
@pytest.mark.parametrize(
    ("path", "value", "name"),
    [
        (SimplerPath(SMALL), "many", "model"),
        (SimplerPath(ZeroShot()), "many", "model"),
        (RulePath(_rule), "about 270,000", "rule"),
        (LATER, "Please try later.", "template"),
    ],
)
def test_an_answer_of_a_fallback_says_so_and_names_class_and_cause(path: FallbackPath, value: str, name: str) -> None:
    outcome = ran(made(Main(DOWN), path), table(["many"]))
    assert served(outcome) == (value, True, name, "models.unavailable")
    assert notes(outcome, "served") == [{"fallback": name, "cause": "models.unavailable"}]
    # The type has the mark: there is no answer without one.
    assert {"degraded", "fallback", "cause"} <= get_type_hints(ServedAnswer).keys()
    assert ServedAnswer.__optional_keys__ == frozenset()


def test_a_fallback_reads_the_question_and_nothing_of_the_failed_work() -> None:
    there = table(["the half-finished canary-1180", DOWN, "many"])
    main = ZeroShot(Role("Thinker", "Think.")) | ZeroShot(Role("Writer", "Write."))
    outcome = ran(made(main, SimplerPath(SMALL)), there)
    assert served(outcome)[0] == "many"
    assert [message.text for message in there.privileged.asked[2].messages] == [SMALL.setup, "How many live in Ghent?"]


# Routes ---------------------------------------------------------------------------------------------------------------


@holds("V19.1")
def test_every_declared_failure_has_a_class_or_nothing_is_made() -> None:
    for fails in (("models", "tools.timeout"), ()):
        with pytest.raises(CatalogError) as caught:
            GracefulDegradation(Main(), fails, {"models": LATER}, LATER)
        assert caught.value.code == "pattern.bad-route"
    assert GracefulDegradation(Main(), ("models.timeout",), {"models": LATER}, LATER).fails


def test_a_failure_that_nobody_declared_gets_the_template_and_is_told() -> None:
    outcome = ran(made(Main(ToolError("tools.failed", "broken")), SimplerPath(SMALL)), table(["never"]))
    assert served(outcome) == ("Please try later.", True, "template", "tools.failed")
    assert notes(outcome, "undeclared-failure") == [{"cause": "tools.failed"}]


def _has_none(text: str) -> None:
    return None


def _fails(text: str) -> float:
    return 1 / 0


@pytest.mark.parametrize(
    ("path", "script"),
    [
        (SimplerPath(SMALL), [DOWN]),
        (RulePath(_has_none), []),
        (RulePath(_fails), []),
        (CachedPath(AnswerCache(Path("/nonexistent/folder"))), []),
    ],
)
def test_a_fallback_that_fails_is_ended_by_the_template_and_no_other_is_tried(
    path: FallbackPath, script: list[Line]
) -> None:
    main = Main(DOWN)
    there = table(script)
    both = {"models": path, "pattern": SimplerPath(SMALL)}
    outcome = ran(GracefulDegradation(main, ("models",), both, LATER), there)
    assert served(outcome) == ("Please try later.", True, "template", "models.unavailable")
    assert len(notes(outcome, "fallback-failed")) == 1
    assert len(main.runs) == 1
    assert len(there.privileged.asked) == len(script)


@dataclass(frozen=True)
class Around(Pattern[[Labelled[str]], Any]):
    """Calls a function, which may hold anything."""

    id: ClassVar[str] = "S2"
    work: Any = None

    async def execute(self, context: Context, /, text: Labelled[str]) -> Labelled[Any]:
        return await self.work(context, text)


def test_a_fallback_that_leads_back_to_the_main_path_does_not_build() -> None:
    main = ZeroShot(Role("Main", "Answer well."))

    async def hidden(context: Context, text: Labelled[str]) -> Labelled[Any]:
        return await main.execute(context, text)

    async def handed(main: Any, context: Context, text: Labelled[str]) -> Labelled[Any]:
        return await main.execute(context, text)

    again = ZeroShot(Role("Main", "Answer well."))
    for by in (again, ZeroShot() | again, Around(hidden), Around(partial(handed, main))):
        with pytest.raises(CatalogError) as caught:
            made(main, SimplerPath(by))
        assert caught.value.code == "pattern.bad-route"
    assert made(main, SimplerPath(ZeroShot(SMALL)))


def test_a_fallback_has_no_fallbacks_of_its_own() -> None:
    inner = made(Main(), LATER)
    for by in (inner, Chain.of(inner, ZeroShot())):
        with pytest.raises(CatalogError, match=r"pattern\.bad-route"):
            made(ZeroShot(), SimplerPath(by))
    with pytest.raises(CatalogError, match=r"pattern\.bad-route"):
        made(ZeroShot(), SimplerPath(SMALL), max_depth=1)
    assert made(ZeroShot(), LATER, max_depth=1)


def test_a_limit_of_the_main_path_is_a_failure_and_one_of_the_run_ends_it() -> None:
    busy = ZeroShot() | ZeroShot() | ZeroShot()
    own = made(busy, RulePath(_rule), "strategy", bounds=strategy_limits(calls=2))
    assert served(ran(own, table(["a"] * 5))) == ("about 270,000", True, "rule", "strategy.exhausted")
    outcome = ran(made(busy, RulePath(_rule), "strategy"), table(["a"] * 5, bounds=strategy_limits(calls=2)))
    assert isinstance(outcome, Exhausted)


# Refusals and effects -------------------------------------------------------------------------------------------------


@holds("V19.6")
@pytest.mark.parametrize("code", [*REFUSALS, "policy.denied", "labels.laundered"])
def test_a_refusal_leads_to_a_template_alone(code: str) -> None:
    for path in (SimplerPath(SMALL), RulePath(_rule), CachedPath(AnswerCache(Path("cache")))):
        with pytest.raises(CatalogError) as caught:
            made(Main(), path, code)
        assert caught.value.code == "pattern.bad-route"
    assert made(Main(), LATER, code)


@holds("V19.6")
@pytest.mark.parametrize(
    "error", [PolicyError("policy.denied", "no"), ModelError("models.refused", "no"), RunError("pattern.guarded", "no")]
)
def test_a_refusal_inside_a_declared_area_still_gets_the_template(error: BicameralError) -> None:
    there = table(["never"])
    area = error.code.partition(".")[0]
    on = {} if area == "policy" else {area: SimplerPath(SMALL)}
    pattern = GracefulDegradation(Main(error), ("models",), {"models": LATER} | on, LATER)
    assert served(ran(pattern, there)) == ("Please try later.", True, "template", error.code)
    assert not there.privileged.asked


@holds("V19.6")
def test_a_guard_cannot_be_passed_by_failing_over() -> None:
    guarded = Guardrails(ZeroShot(), (Guard("nothing", "input", lambda seen: Refuse("not this")),))
    there = table(["the weaker model answers"])
    pattern = GracefulDegradation(guarded, ("pattern",), {"pattern": SimplerPath(SMALL)}, LATER)
    assert served(ran(pattern, there))[:3] == ("Please try later.", True, "template")
    assert not there.privileged.asked


@holds("V19.6")
def test_what_policy_denies_is_answered_by_the_template_alone() -> None:
    there = table(["never"])
    never = '@id("never")\nforbid (principal, action == Action::"call", resource in Tool::"send");'
    there.desk = replace(there.desk, policy=Policy.parse(never, registry=there.desk.registry))
    pattern = GracefulDegradation(Main(None, "send"), ("run",), {"run": SimplerPath(SMALL)}, LATER)
    assert served(ran(pattern, there)) == ("Please try later.", True, "template", "policy.denied")
    assert there.world.done == []
    assert not there.privileged.asked


@pytest.mark.parametrize(("first", "template"), [("send", True), ("once", True), ("", False), ("read_page", False)])
def test_after_an_effect_only_the_template_answers(first: str, template: bool) -> None:
    """A second path might send the mail again."""
    there = table()
    outcome = ran(made(Main(DOWN, first), SimplerPath(Main())), there)
    assert served(outcome)[:3] == (("Please try later.", True, "template") if template else ("270,473", True, "model"))


def test_after_a_call_that_may_have_had_an_effect_only_the_template_answers() -> None:
    @tool(name="send", effect="send", purpose={"to": "directs", "body": "carries"}, origins=Origin("system"))
    def cut_off(to: str, body: str) -> str:
        """Send a mail."""
        raise ToolError("tools.timeout", "the connection was cut off")

    outcome = ran(made(Main(None, "send"), SimplerPath(Main()), "tools"), table(tools=[cut_off]))
    assert served(outcome) == ("Please try later.", True, "template", "tools.timeout")


def test_a_persons_no_is_not_caught() -> None:
    send = Main(RunError("run.refused", "the person said no"))
    assert isinstance(ran(GracefulDegradation(send, ("run",), {"run": LATER}, LATER)), GaveUp)


def test_what_untrusted_text_made_fail_is_untrusted() -> None:
    there = table(["never"], ["many"])
    outcome = ran(made(Main(DOWN, "read_page"), SimplerPath(SMALL)), there)
    assert served(outcome)[0] == "many"
    assert not outcome.label.trusted
    assert not there.privileged.asked, "the failure may be what the page wanted"
    fixed = ran(made(Main(DOWN, "read_page"), LATER))
    assert not fixed.label.trusted
    assert EVE not in str(outcome.trace)


# The cache ------------------------------------------------------------------------------------------------------------


def cached(folder: Path, main: Pattern[..., Any], **options: Any) -> GracefulDegradation[...]:
    return made(main, CachedPath(AnswerCache(folder)), **options)


@holds("V19.5")
def test_a_cached_answer_shows_its_age_and_has_its_labels(tmp_path: Path) -> None:
    replies: list[Any] = ["270,473", DOWN, DOWN, DOWN]
    there = table(replies, ["from a page", DOWN])
    pattern = cached(tmp_path / "cache", ZeroShot())
    assert served(ran(pattern, there)) == ("270,473", False, None, None)
    found = answered(ran(pattern, there))
    assert served(found) == ("270,473", True, "cache", "models.unavailable")
    assert 0 <= found.value["age"] < 60
    assert found.label.trusted
    assert served(ran(pattern, there, program_text("Another question?")))[2] == "template"
    # The same words of a stranger are another question, whose answer stays untrusted.
    strange = untrusted_value("How many live in Ghent?", "mail")
    assert served(ran(pattern, there, strange))[:2] == ("from a page", False)
    kept = answered(ran(pattern, there, strange))
    assert served(kept)[2] == "cache"
    assert not kept.label.trusted


@holds("V19.5")
@pytest.mark.parametrize(("age", "hit"), [(10, True), (3500, True), (3700, False), (-60, False)])
def test_an_expired_answer_is_a_miss(age: float, hit: bool, tmp_path: Path) -> None:
    pattern = cached(tmp_path, ZeroShot())
    key = pattern._cache_key(((QUESTION,), {}))  # pyright: ignore[reportPrivateUsage]
    AnswerCache(tmp_path).keep(key, program_text("270,473"), time.time() - age)
    outcome = answered(ran(pattern, table([DOWN])))
    assert served(outcome)[2] == ("cache" if hit else "template")
    if hit:
        assert abs(outcome.value["age"] - age) < 60


@pytest.mark.parametrize("text", ["", "{}", '{"at": "now"}', '{"at": 1e12, "answer": 1}', "[" * 5000])
def test_a_damaged_answer_is_a_miss(text: str, tmp_path: Path) -> None:
    pattern = cached(tmp_path, ZeroShot())
    key = pattern._cache_key(((QUESTION,), {}))  # pyright: ignore[reportPrivateUsage]
    (tmp_path / f"{key}.json").write_text(text)
    assert served(ran(pattern, table([DOWN])))[2] == "template"


def test_an_answer_that_others_can_write_is_a_miss(tmp_path: Path) -> None:
    pattern = cached(tmp_path, ZeroShot())
    key = pattern._cache_key(((QUESTION,), {}))  # pyright: ignore[reportPrivateUsage]
    AnswerCache(tmp_path).keep(key, program_text("270,473"), time.time())
    (tmp_path / f"{key}.json").chmod(0o666)
    assert served(ran(pattern, table([DOWN])))[2] == "template"


def test_a_replay_serves_the_same_answer_of_the_same_age(tmp_path: Path) -> None:
    with open_journal_at(tmp_path / "journal.db") as journal:
        there = table(["270,473", DOWN], journal=journal)
        pattern = cached(tmp_path / "cache", ZeroShot())
        outcomes = [ran(pattern, there), ran(pattern, there)]
        (file,) = (tmp_path / "cache").glob("*.json")
        file.unlink()
        for outcome in outcomes:
            again = asyncio.run(replay_pattern(journal, outcome.run, there.desk.registry, there.desk.policy))
            assert again.identical, again.differences
            assert again.answer == answered(outcome).value
        assert not file.exists(), "a replay keeps nothing"


def test_shares_and_gains_are_judged_by_the_knobs() -> None:
    pattern = made(Main(), LATER)
    good = ServedAnswer(value=1, degraded=False, fallback=None, cause=None, age=None)
    bad = ServedAnswer(value=1, degraded=True, fallback="rule", cause="models.timeout", age=None)
    assert [pattern.alarms([bad] * n + [good] * (100 - n)) for n in (0, 5, 6)] == [False, False, True]
    assert [pattern.gains(1000, tokens) for tokens in (400, 500, 600)] == [True, True, False]
    with pytest.raises(CatalogError, match=r"pattern\.bad-knob"):
        made(Main(), LATER, max_depth=3)


@pytest.mark.model
def test_the_example_comes_out_right(small_model: LocalProvider, tmp_path: Path) -> None:
    example, outcome = performed("V19", small_model, tmp_path)
    assert example.is_correct(answered(outcome)), outcome
