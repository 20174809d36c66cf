"""H4, procedural skill accumulation: a way that has verifiably worked becomes a named procedure for the next such task.

Use it where a fifth of the tasks or more resemble earlier ones and it can be told for certain whether one succeeded. A
skill is text for whoever plans; nothing in it runs, and it calls no tool. It is written only after several proven
successes of one shape, by a model that never sees the values of those tasks, and code checks it. What was learned from
a run that a stranger had a hand in stays in quarantine until a person has looked at it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, TypedDict, cast

from bicameral.errors import ModelError
from bicameral.labels import TRUSTED_USER, join
from bicameral.retrieval import Embedder
from bicameral.types import STR, Field, ListType, LiteralType, RecordType, TupleType, Type, optional

from ..kernel import Answered, Example, Labelled, Pattern, Role, Stage, from_user, labelled, said
from ._procedures import Did, Nameless, Procedure, procedure_of, without_values
from ._skill import Skill, SkillText
from ._skill_check import MAX_STEPS, NAMES, fault_of
from ._skill_store import SkillStore

__all__ = ["Advice", "Did", "Procedure", "Skill", "SkillAccumulation", "SkillStore", "SkillText", "procedure_of"]

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
Verdict = Literal["success", "failure", "unknown"]
SuccessCheck = Callable[[str, Sequence[tuple[str, Mapping[str, Any]]]], Verdict]
"""Whether a task was done, from its words and the calls that were made for it. Whoever cannot tell says "unknown"."""


class Advice(TypedDict):
    """A way that has worked before, for whoever plans: the skill and its steps, or None and no plan."""

    skill: str | None
    plan: str
    values: dict[str, str]


_NOTHING = Advice(skill=None, plan="", values={})


@dataclass(frozen=True)
class SkillAccumulation(Pattern[[Labelled[str], Sequence[Procedure]], Advice]):
    """Learn from what was done since, then say which skill does the task: one call of a model, and one a skill learned.

    `check` tells for certain whether a recorded procedure did its task; what it does not call a success is not learned.

    Example:
        >>> skills = SkillAccumulation(SkillStore(folder / "skills.jsonl"), check)
        >>> outcome = await skills.run(desk, said("How many people live in Ghent?"), [procedure_of(journal, run, task)])
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
    embedder: Embedder | None = None
    parameteriser: Role = PARAMETERISER
    adaptor: Role = ADAPTOR

    async def on(self, stage: Stage, /, task: Labelled[str], recorded: Sequence[Procedure]) -> Labelled[Advice]:
        for number, procedure in enumerate(recorded, 1):
            # Each on a part of its own: what a stranger had a hand in says nothing about the others.
            await stage.do(f"learn {number}", partial(self._learned, procedure=procedure))
        return await stage.do("advise", partial(self._advised, task=task))

    # Learning -------------------------------------------------------------------------------------------------------

    async def _learned(self, part: Stage, procedure: Procedure) -> Labelled[None]:
        task = part.read(procedure.task)
        steps = [(step.tool, part.read(step.arguments)) for step in procedure.steps]
        label = part.give(None).label
        if not 0 < len(steps) <= MAX_STEPS or self.check(task, steps) != "success":
            part.note("not-proven")
            return part.give(None)
        record = without_values(task, steps)
        proven = self.store.succeeded(procedure.tools, procedure.run, NAMES.sub(" ", record.task), label)
        if proven < self.min_successes or self.store.known(procedure.tools, trusted=label.trusted):
            part.note("success", proven=proven)
            return part.give(None)
        written = await self._written(part, record, procedure.tools)
        learned = None if written is None else self.store.learn(written, procedure.tools, label, most=self.max_skills)
        part.note("learned" if learned else "not-learned", trusted=label.trusted)
        return part.give(None)

    async def _written(self, part: Stage, record: Nameless, tools: Sequence[str]) -> SkillText | None:
        """The skill as the model writes it and the validator accepts it; one that is sent back too often is dropped."""
        steps = "\n".join(f"{number}. {step}" for number, step in enumerate(record.steps, 1))
        asked = part.give(f"Task: {record.task}\nCalls:\n{steps}")
        wanted, wrong = _form(record), part.give("")
        for left in range(self.max_revisions, -1, -1):
            try:
                reply = await part.fill(self.parameteriser, asked, wrong, wanted=wanted, retries=0)
            except ModelError as error:
                if error.code != "models.bad-reply":
                    raise
                fault = "it is not of the wanted form"
            else:
                skill = _skill(part.read(reply), record)
                fault = fault_of(skill, record, tools, part.registry.names)
                if fault is None:
                    return skill
            part.note("skill-rejected", retries=left)
            wrong = part.give(f"\n\nThis does not do: {fault}.")
        return None

    # Using ----------------------------------------------------------------------------------------------------------

    async def _advised(self, part: Stage, task: Labelled[str]) -> Labelled[Advice]:
        skills = self.store.fitting(part.read(task), self.k, self.embedder)
        own = said("").under(self.store.label)
        part.note("fitting", skills=len(skills))
        if not skills:
            return part.give(_NOTHING, own)
        shown = [
            labelled(f"Skill {number}. {_shown(skill)}\n\n", join(TRUSTED_USER, skill.label))
            for number, skill in enumerate(skills, 1)
        ]
        reply = part.read(await part.fill(self.adaptor, own, *shown, "Task: ", task, wanted=_choice(skills)))
        chosen = None if reply["choice"] == "none" else skills[int(reply["choice"]) - 1]
        values = {} if chosen is None else {name: reply["values"][name] for name in chosen.text.parameters}
        if chosen is None or not all(values.values()):
            part.note("declined", chosen=chosen is not None)
            return part.give(_NOTHING)
        part.note("advised", parameters=len(values))
        return part.give(Advice(skill=chosen.id, plan=_plan(chosen.text, values), values=values))


def _form(record: Nameless) -> Type:
    """The form of a skill: one line for each call of the record, no more and no fewer."""
    texts = (Field("name", STR), Field("when", STR), Field("preconditions", ListType(STR)))
    return RecordType((*texts, Field("steps", TupleType((STR,) * len(record.steps)))))


def _skill(form: Mapping[str, Any], record: Nameless) -> SkillText:
    """What a model wrote about a record. The calls are the record's own: a model can only say what they are for."""
    steps = zip(record.steps, cast("list[str]", form["steps"]), strict=True)
    told = tuple(call if words.strip() in ("", call) else f"{call}: {words}" for call, words in steps)
    return SkillText(form["name"], form["when"], tuple(form["preconditions"]), record.parameters, told)


def _choice(skills: Sequence[Skill]) -> Type:
    """The form of a choice: one of the skills that are shown or none, and values for names that they have."""
    names = dict.fromkeys(name for skill in skills for name in skill.text.parameters)
    # Of several skills one is chosen, and the names of the others have no value.
    values = RecordType(tuple(Field(name, STR if len(skills) == 1 else optional(STR)) for name in names))
    numbers = (*map(str, range(1, len(skills) + 1)), "none")
    return RecordType((Field("choice", LiteralType(numbers)), Field("values", values)))


def _shown(skill: Skill) -> str:
    return f"{skill.text.name}: {skill.text.when}\n{_plan(skill.text, {})}"


def _plan(skill: SkillText, values: Mapping[str, str]) -> str:
    """The steps with these values in them; nothing else of a skill ever changes."""
    before = [f"Beforehand: {each}" for each in skill.preconditions]
    steps = [f"{number}. {step}" for number, step in enumerate(skill.steps, 1)]
    return "\n".join(NAMES.sub(lambda name: values.get(name[1], name[0]), line) for line in (*before, *steps))


# An example ---------------------------------------------------------------------------------------------------------

_TASK: Final = "Tell me the weather in Oslo in Spanish."
_EARLIER = (("Ghent", "French", "It rains."), ("Bruges", "Dutch", "The sun shines."))


def _recorded(folder: Path) -> list[Procedure]:
    return [
        Procedure(
            f"run {number}",
            from_user(f"Tell me the weather in {city} in {language}."),
            (
                Did("forecast", from_user({"city": city})),
                Did("translate", from_user({"text": words, "language": language})),
            ),
        )
        for number, (city, language, words) in enumerate(_EARLIER, 1)
    ]


def _good(outcome: Answered[Advice]) -> bool:
    plan = outcome.value["plan"]
    return all(word in plan for word in ("Oslo", "Spanish")) and "Ghent" not in plan and len(outcome.asked) == 2


def _sizes(folder: Path) -> dict[str, int | float | str]:
    record = without_values("Tell me the weather in Ghent in French.", [("forecast", {"city": "Ghent"})])
    brief = f"Task: {record.task}\nCalls:\n1. forecast(city={{city}})\n2. translate(text=…, language={{language}})"
    return {"setup": PARAMETERISER.setup, "input": _TASK, "items": 2, "brief": brief, "example": 70, "item_output": 25}


EXAMPLE = Example(
    "Two runs went the same way; the skill that comes of them is filled in for a third task.",
    lambda folder: SkillAccumulation(SkillStore(folder / "skills.jsonl"), lambda task, steps: "success", k=1),
    lambda folder: (said(_TASK), _recorded(folder)),
    _good,
    _sizes,
)
