"""H4 at work: a planner with a library of skills, which plans afresh where a skill does not do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from bicameral.retrieval import fingerprint

from ..kernel import Labelled, Pattern, Stage, text
from .skills import Advice, Procedure, SkillAccumulation, Verdict


@dataclass(frozen=True)
class SkilledWork(Pattern[[Labelled[str], Sequence[Procedure]], Any]):
    """A planner that is told of the skill for its task. If that fails it plans afresh, once; each use is recorded.

    Example:
        >>> work = SkilledWork(skills, ReWOO(), lambda answer: "success" if "INSUFFICIENT" not in answer else "failure")
        >>> outcome = await work.run(desk, said("How many people live in Ghent?"), ())
    """

    id: ClassVar[str] = "H4"
    skills: SkillAccumulation
    planner: Pattern[[Labelled[str]], Any]
    succeeded: Callable[[Any], Verdict]

    async def on(self, stage: Stage, /, task: Labelled[str], recorded: Sequence[Procedure]) -> Labelled[Any]:
        advice = await self.skills.on(stage, task, recorded)
        return await stage.do("work", lambda part: self._worked(part, task, advice))

    async def _worked(self, part: Stage, task: Labelled[str], advice: Labelled[Advice]) -> Labelled[Any]:
        given = part.read(advice)
        if given["skill"] is None:
            return await self.planner.on(part, task)
        known = fingerprint(part.read(task))
        before = part.meter.taken.tokens
        told = text("{task}\n\nThis has worked for such tasks:\n{plan}", task=task, plan=advice.field("plan"))
        result = await part.do("skill", lambda inner: self.planner.on(inner, told))
        ok = await part.do("verdict", partial(self._judged, result=result))
        well, tokens = part.read(ok), part.meter.taken.tokens - before
        self.skills.store.used(
            given["skill"], task=known, values=given["values"], ok=well, tokens=tokens, label=ok.label
        )
        part.note("used", ok=well, tokens=tokens)
        if well:
            return result
        part.note("planned-afresh")
        return await self.planner.on(part, task)

    async def _judged(self, part: Stage, result: Labelled[Any]) -> Labelled[bool]:
        return part.give(self.succeeded(part.read(result)) == "success")
