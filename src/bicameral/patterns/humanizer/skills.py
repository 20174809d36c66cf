"""H4, procedural skill accumulation: a sequence of calls that has verifiably worked becomes a skill for similar tasks.

Use it where a fifth of the tasks or more resemble earlier ones and code can tell for certain whether one succeeded. A
skill is text for a planner; nothing in it runs, and it calls no tool. It is written only after several proven successes
with the same calls, by a model that never sees the values of those tasks, and code checks it against the record. A
skill from a run that read untrusted text stays in quarantine until a person has reviewed it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, TypedDict, cast

from bicameral.boundary import screen
from bicameral.errors import LabelError, RunError
from bicameral.journal import Event, Journal
from bicameral.labels import TRUSTED_USER, UNKNOWN, Label, join, join_all, label_tree_from_json
from bicameral.patterns.humanizer._skill_store import (
    Skill as Skill,
    SkillStore as SkillStore,
    SkillText as SkillText,
    skill_text_from_plain,
)
from bicameral.patterns.kernel import (
    Answered,
    Context,
    Labelled,
    Pattern,
    PatternExample,
    Role,
    format_text,
    from_user,
    make_labelled,
    program_text,
)
from bicameral.retrieval import Embedder, text_fingerprint
from bicameral.tools import call_key
from bicameral.types import STR, Field, ListType, LiteralType, RecordType, TupleType, Type, optional_type, to_plain

_MIN_VALUE_LENGTH = 2
"""Shorter values occur in too many texts to be recognised as parameters."""


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One call of a run. The label of its arguments includes the label of whatever chose the call."""

    tool: str
    arguments: Labelled[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Procedure:
    """The calls of one run for a task, in order."""

    run: str
    task: Labelled[str]
    steps: tuple[RecordedCall, ...]

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools in the order of the calls: procedures with the same tools count as the same way."""
        return tuple(step.tool for step in self.steps)


def read_procedure(journal: Journal, run: str, task: Labelled[str]) -> Procedure:
    """The successful calls of a finished run, with their labels, from its record."""
    # A skill is learned from this, so a record that was tampered with is refused.
    if wrong := journal.verify(run):
        raise RunError("pattern.bad-record", f"the record of run {run} is not as it was written: {wrong[0]}")
    events = journal.events(run)
    if not events or events[-1].kind != "run-finished":
        raise RunError("pattern.bad-record", f"run {run} has not come to its end")
    ended = {event.step for event in events if event.kind == "step-finished"}
    calls = [event for event in events if event.kind == "step-started" and event.step in ended]
    return Procedure(
        run, task, tuple(_recorded_call(event) for event in calls if isinstance(event.body.get("tool"), str))
    )


def _recorded_call(event: Event) -> RecordedCall:
    arguments: Mapping[str, Any] = event.body.get("arguments") or {}
    trees: Mapping[str, Any] = event.body.get("shades") or {}
    label = join_all(
        [_label_from_json(event.body.get("control")), *(_label_from_json(trees.get(name)) for name in arguments)]
    )
    return RecordedCall(event.body["tool"], make_labelled(arguments, join(TRUSTED_USER, label)))


def _label_from_json(data: object) -> Label:
    try:
        return label_tree_from_json(data).flat
    except LabelError:
        # A call without a readable label counts as untrusted.
        return UNKNOWN


@dataclass(frozen=True, slots=True)
class ParameterisedProcedure:
    """A procedure without the values of its task: each value that occurs in the task is a named parameter."""

    task: str
    steps: tuple[str, ...]
    parameters: tuple[str, ...]
    values: tuple[str, ...]
    """Every value of the procedure, as text."""


def parameterise_procedure(task: str, steps: Sequence[tuple[str, Mapping[str, Any]]]) -> ParameterisedProcedure:
    """The task and the steps with a name in braces for each value that the task contains, and dots for all others."""
    names: dict[str, str] = {}
    calls: list[str] = []
    values: list[str] = []
    for tool, arguments in steps:
        shown: list[str] = []
        for name, value in arguments.items():
            text = str(value)
            values.append(text)
            if text not in names and len(text) >= _MIN_VALUE_LENGTH and _whole_words(text).search(task):
                names[text] = _unused_name(name, names.values())
            shown.append(f"{name}={{{names[text]}}}" if text in names else f"{name}=…")
        calls.append(f"{tool}({', '.join(shown)})")
    # The longest values first: a shorter one may be a part of a longer one.
    for text in sorted(names, key=len, reverse=True):
        task = _whole_words(text).sub(f"{{{names[text]}}}", task)
    return ParameterisedProcedure(task, tuple(calls), tuple(names.values()), tuple(values))


def _whole_words(words: str) -> re.Pattern[str]:
    """Matches these words as whole words, and not inside a parameter name in braces."""
    return re.compile(rf"(?<![\w{{]){re.escape(words)}(?![\w}}])", re.IGNORECASE)


def _unused_name(name: str, taken: Iterable[str]) -> str:
    used = set(taken)
    return next(each for each in (name, *(f"{name}_{number}" for number in range(2, 1000))) if each not in used)


MAX_NAME = 60
MAX_SKILL_LINE = 200
MAX_STEPS = 12
MAX_PRECONDITIONS = 5
PARAMETER_NAME = re.compile(r"\{(\w+)\}")
_MIN_CHECKED_LENGTH = 3


def skill_fault(
    skill: SkillText, record: ParameterisedProcedure, tools: Iterable[str], others: Iterable[str]
) -> str | None:
    """What is wrong with a skill, in fixed words, or None. `tools` are those of the record, `others` all that exist."""
    texts = (skill.name, skill.when, *skill.lines)
    whole = "\n".join(texts)
    if not _has_valid_shape(skill, texts):
        return "a short name, one line that says when to use it, and one short line for each call"
    if set(PARAMETER_NAME.findall(whole)) - set(record.parameters):
        return "no names may stand in braces but those of the record"
    if any(len(value) >= _MIN_CHECKED_LENGTH and _contains_words(value, whole) for value in record.values):
        return "values of that one task must not stand in it"
    if any(_contains_words(name, whole) for name in set(others) - set(tools)):
        return "it names a tool that was not called"
    if screen(whole).alert:
        return "it speaks to a model instead of saying what to do"
    return None


def _has_valid_shape(skill: SkillText, texts: Sequence[str]) -> bool:
    lines = all(text.strip() and len(text) <= MAX_SKILL_LINE and text.isprintable() for text in texts)
    counts = 1 <= len(skill.steps) <= MAX_STEPS and len(skill.preconditions) <= MAX_PRECONDITIONS
    return lines and counts and len(skill.name) <= MAX_NAME


def _contains_words(words: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text, re.IGNORECASE) is not None


PARAMETERISER = Role(
    "Parameteriser",
    "Below are a task and the calls that solved it. Write a skill for all tasks of this kind: a short name, when it is "
    "of use, what must be known beforehand, and for each call a few words that say what it is for. Keep the names in "
    "braces as they are.",
    tier="large",
    max_tokens=384,
)
ADAPTOR = Role(
    "Adaptor",
    "Below are skills and a task. Choose the skill that does the task, and fill in each of its names in braces with "
    "what the task says. If none of them does the task, choose none.",
    tier="small",
    max_tokens=192,
)
SuccessVerdict = Literal["success", "failure", "unknown"]
SuccessCheck = Callable[[str, Sequence[tuple[str, Mapping[str, Any]]]], SuccessVerdict]
"""Whether a task was done, from its text and its calls. A check that cannot tell returns "unknown"."""


class SkillAdvice(TypedDict):
    """A skill and its steps for a planner; None and an empty plan if no skill fits."""

    skill: str | None
    plan: str
    values: dict[str, str]


_DAY = 86_400.0
_NO_ADVICE = SkillAdvice(skill=None, plan="", values={})


@dataclass(frozen=True)
class SkillAccumulation(Pattern[[Labelled[str], Sequence[Procedure]], SkillAdvice]):
    """Learn from recorded procedures, then choose a skill for the task: one model call, and one for each skill learned.

    Args:
        check: Whether a recorded procedure did its task; nothing is learned without "success".
        k: How many skills the model chooses from.
        min_successes: How many runs must have succeeded in the same way before a skill is written.
        max_revisions: How often a rejected skill is written again.
        fresh_days: How many days after its last proof a skill is still chosen from; 0 is no limit. A new success of
            its shape, or a person's review, makes it fresh again.

    Example:
        >>> skills = SkillAccumulation(SkillStore(folder / "records.db"), check)
        >>> task = program_text("How many people live in Ghent?")
        >>> outcome = await skills.run(runtime, task, [read_procedure(journal, run, task)])
        >>> outcome.value["plan"]
        '1. Look up the population of Ghent.'
    """

    id: ClassVar[str] = "H4"
    store: SkillStore
    check: SuccessCheck
    k: int = 3
    min_successes: int = 2
    max_skills: int = 200
    max_revisions: int = 1
    fresh_days: float = 0
    embedder: Embedder | None = None
    parameteriser: Role = PARAMETERISER
    adaptor: Role = ADAPTOR

    async def execute(
        self, context: Context, /, task: Labelled[str], recorded: Sequence[Procedure]
    ) -> Labelled[SkillAdvice]:
        for number, procedure in enumerate(recorded, 1):
            # A part for each: an untrusted procedure must not make what is learned from the others untrusted.
            await context.run_part(f"learn {number}", partial(self._learn, procedure=procedure))
        return await context.run_part("advise", partial(self._advise, task=task))

    # Learning -------------------------------------------------------------------------------------------------------

    async def _learn(self, part: Context, procedure: Procedure) -> Labelled[None]:
        task = part.read(procedure.task)
        steps = [(step.tool, part.read(step.arguments)) for step in procedure.steps]
        label = part.derive(None).label
        if not 0 < len(steps) <= MAX_STEPS or self.check(task, steps) != "success":
            part.note("not-proven")
            return part.derive(None)
        record = parameterise_procedure(task, steps)
        tools = procedure.tools

        async def keep_success() -> Labelled[dict[str, Any]]:
            proven = self.store.record_success(tools, procedure.run, PARAMETER_NAME.sub(" ", record.task), label)
            known = self.store.has_skill(tools, trusted=label.trusted)
            return make_labelled({"proven": proven, "known": known}, label)

        # Repeatable: a run is one success, however often it is recorded.
        kept = part.read(await part.once("record a success", keep_success, repeatable=True))
        if kept["proven"] < self.min_successes or kept["known"]:
            part.note("success", proven=kept["proven"])
            return part.derive(None)
        written = await self._write_skill(part, record, tools)
        learned = written is not None and await self._keep_skill(part, written, tools, label)
        part.note("learned" if learned else "not-learned", trusted=label.trusted)
        return part.derive(None)

    async def _keep_skill(self, part: Context, text: SkillText, tools: Sequence[str], label: Label) -> bool:
        async def keep() -> Labelled[bool]:
            return make_labelled(self.store.learn(text, tools, label, most=self.max_skills) is not None, label)

        # Repeatable: what is there already is not stored twice.
        return part.read(await part.once("store a skill", keep, repeatable=True))

    async def _write_skill(
        self, part: Context, record: ParameterisedProcedure, tools: Sequence[str]
    ) -> SkillText | None:
        """The skill as the model writes it, if `skill_fault` accepts it; None after too many rejections."""
        steps = "\n".join(f"{number}. {step}" for number, step in enumerate(record.steps, 1))
        asked = part.derive(f"Task: {record.task}\nCalls:\n{steps}")

        def fault(form: Mapping[str, Any]) -> str | None:
            return skill_fault(_skill_from_form(form, record), record, tools, part.registry.names)

        form = await part.read_form(
            self.parameteriser, asked, wanted=_skill_form(record), check=fault, retries=self.max_revisions
        )
        return None if form is None else _skill_from_form(form, record)

    # Using ----------------------------------------------------------------------------------------------------------

    async def _advise(self, part: Context, task: Labelled[str]) -> Labelled[SkillAdvice]:
        words = part.read(task)
        # Which skills fit depends on all of them, so each carries the labels of all.
        found = part.recall("skills", lambda: self._find_skills(words))
        skills = [_FoundSkill(each["id"], skill_text_from_plain(each["text"])) for each in part.read(found)]
        own = program_text("").with_label(found.label)
        part.note("fitting", skills=len(skills))
        if not skills:
            return part.derive(_NO_ADVICE, own)
        shown = [
            make_labelled(
                f"Skill {number}. {skill.text.name}: {skill.text.when}\n{_render_steps(skill.text, {})}\n\n",
                join(TRUSTED_USER, found.label),
            )
            for number, skill in enumerate(skills, 1)
        ]
        reply = part.read(await part.fill(self.adaptor, own, *shown, "Task: ", task, wanted=_choice_form(skills)))
        chosen = None if reply["choice"] == "none" else skills[int(reply["choice"]) - 1]
        values = {} if chosen is None else {name: reply["values"][name] for name in chosen.text.parameters}
        if chosen is None or not all(values.values()):
            part.note("declined", chosen=chosen is not None)
            return part.derive(_NO_ADVICE)
        part.note("advised", parameters=len(values))
        return part.derive(SkillAdvice(skill=chosen.id, plan=_render_steps(chosen.text, values), values=values))

    def _find_skills(self, task: str) -> Labelled[list[dict[str, Any]]]:
        since = time.time() - self.fresh_days * _DAY if self.fresh_days else 0.0
        skills = self.store.best_matches(task, self.k, self.embedder, proven_since=since)
        plain = [{"id": skill.id, "text": to_plain(skill.text)} for skill in skills]
        return make_labelled(plain, self.store.label)


@dataclass(frozen=True, slots=True)
class _FoundSkill:
    id: str
    text: SkillText


def _skill_form(record: ParameterisedProcedure) -> Type:
    """The form of a skill, with exactly one line for each call of the record."""
    texts = (Field("name", STR), Field("when", STR), Field("preconditions", ListType(STR)))
    return RecordType((*texts, Field("steps", TupleType((STR,) * len(record.steps)))))


def _skill_from_form(form: Mapping[str, Any], record: ParameterisedProcedure) -> SkillText:
    """The skill from what a model wrote. The calls are those of the record: a model only describes their purpose."""
    steps = zip(record.steps, cast("list[str]", form["steps"]), strict=True)
    lines = tuple(call if words.strip() in ("", call) else f"{call}: {words}" for call, words in steps)
    return SkillText(form["name"], form["when"], tuple(form["preconditions"]), record.parameters, lines)


def _choice_form(skills: Sequence[_FoundSkill]) -> Type:
    """The form of a choice: one of the shown skills or none, and values for their parameters."""
    names = dict.fromkeys(name for skill in skills for name in skill.text.parameters)
    # With several skills the parameters of those that are not chosen have no value.
    values = RecordType(tuple(Field(name, STR if len(skills) == 1 else optional_type(STR)) for name in names))
    numbers = (*map(str, range(1, len(skills) + 1)), "none")
    return RecordType((Field("choice", LiteralType(numbers)), Field("values", values)))


def _render_steps(skill: SkillText, values: Mapping[str, str]) -> str:
    """The preconditions and steps with these values in place of their parameters."""
    before = [f"Beforehand: {each}" for each in skill.preconditions]
    steps = [f"{number}. {step}" for number, step in enumerate(skill.steps, 1)]
    return "\n".join(PARAMETER_NAME.sub(lambda name: values.get(name[1], name[0]), line) for line in (*before, *steps))


@dataclass(frozen=True)
class SkilledWork(Pattern[[Labelled[str], Sequence[Procedure]], Any]):
    """A planner that gets the skill for its task. If the result is no success it plans once more without the skill.

    Every use of a skill is recorded with its result.

    Example:
        >>> work = SkilledWork(skills, ReWOO(), lambda answer: "success" if "INSUFFICIENT" not in answer else "failure")
        >>> outcome = await work.run(runtime, program_text("How many people live in Ghent?"), ())
    """

    id: ClassVar[str] = "H4"
    skills: SkillAccumulation
    planner: Pattern[[Labelled[str]], Any]
    succeeded: Callable[[Any], SuccessVerdict]

    async def execute(self, context: Context, /, task: Labelled[str], recorded: Sequence[Procedure]) -> Labelled[Any]:
        advice = await self.skills.execute(context, task, recorded)
        return await context.run_part("work", lambda part: self._plan_with_advice(part, task, advice))

    async def _plan_with_advice(
        self, part: Context, task: Labelled[str], advice: Labelled[SkillAdvice]
    ) -> Labelled[Any]:
        given = part.read(advice)
        if (skill := given["skill"]) is None:
            return await self.planner.execute(part, task)
        fingerprint = text_fingerprint(part.read(task))
        before = part.meter.usage.tokens
        advised = format_text("{task}\n\nThis has worked for such tasks:\n{plan}", task=task, plan=advice.field("plan"))
        result = await part.run_part("skill", lambda inner: self.planner.execute(inner, advised))
        ok = await part.run_part("verdict", partial(self._check_result, result=result))
        succeeded, tokens = part.read(ok), part.meter.usage.tokens - before

        async def keep_use() -> Labelled[None]:
            self.skills.store.record_use(
                skill,
                task=fingerprint,
                values=given["values"],
                ok=succeeded,
                tokens=tokens,
                label=ok.label,
                key=call_key(),
            )
            return make_labelled(None, ok.label)

        # Repeatable: the key is the same each time.
        await part.once("record a use", keep_use, repeatable=True)
        part.note("used", ok=succeeded, tokens=tokens)
        if succeeded:
            return result
        part.note("planned-afresh")
        return await self.planner.execute(part, task)

    async def _check_result(self, part: Context, result: Labelled[Any]) -> Labelled[bool]:
        return part.derive(self.succeeded(part.read(result)) == "success")


# An example ---------------------------------------------------------------------------------------------------------

_TASK: Final = "Tell me the weather in Oslo in Spanish."
_EARLIER = (("Ghent", "French", "It rains."), ("Bruges", "Dutch", "The sun shines."))


def _example_procedures(folder: Path) -> list[Procedure]:
    return [
        Procedure(
            f"run {number}",
            from_user(f"Tell me the weather in {city} in {language}."),
            (
                RecordedCall("forecast", from_user({"city": city})),
                RecordedCall("translate", from_user({"text": words, "language": language})),
            ),
        )
        for number, (city, language, words) in enumerate(_EARLIER, 1)
    ]


def _is_correct(outcome: Answered[SkillAdvice]) -> bool:
    plan = outcome.value["plan"]
    return all(word in plan for word in ("Oslo", "Spanish")) and "Ghent" not in plan and len(outcome.model_calls) == 2


def _sizes(folder: Path) -> dict[str, int | float | str]:
    record = parameterise_procedure("Tell me the weather in Ghent in French.", [("forecast", {"city": "Ghent"})])
    brief = f"Task: {record.task}\nCalls:\n1. forecast(city={{city}})\n2. translate(text=…, language={{language}})"
    return {"setup": PARAMETERISER.setup, "input": _TASK, "items": 2, "brief": brief, "example": 70, "item_output": 25}


EXAMPLE = PatternExample(
    "Two runs went the same way; the skill that comes of them is filled in for a third task.",
    lambda folder: SkillAccumulation(SkillStore(folder / "records.db"), lambda task, steps: "success", k=1),
    lambda folder: (program_text(_TASK), _example_procedures(folder)),
    _is_correct,
    _sizes,
)
