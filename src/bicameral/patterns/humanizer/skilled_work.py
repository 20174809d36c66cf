"""H4 applied: a planner with a library of skills, which plans afresh where a skill does not work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from bicameral.patterns.humanizer.skills import Procedure, SkillAccumulation, SkillAdvice, SuccessVerdict
from bicameral.patterns.kernel import Context, Labelled, Pattern, format_text
from bicameral.retrieval import text_fingerprint


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
    succeeded: Callable[[Any], SuccessVerdict]

    async def execute(self, stage: Context, /, task: Labelled[str], recorded: Sequence[Procedure]) -> Labelled[Any]:
        advice = await self.skills.execute(stage, task, recorded)
        return await stage.run_part("work", lambda part: self._worked(part, task, advice))

    async def _worked(self, part: Context, task: Labelled[str], advice: Labelled[SkillAdvice]) -> Labelled[Any]:
        given = part.read(advice)
        if given["skill"] is None:
            return await self.planner.execute(part, task)
        known = text_fingerprint(part.read(task))
        before = part.meter.usage.tokens
        told = format_text("{task}\n\nThis has worked for such tasks:\n{plan}", task=task, plan=advice.field("plan"))
        result = await part.run_part("skill", lambda inner: self.planner.execute(inner, told))
        ok = await part.run_part("verdict", partial(self._judged, result=result))
        well, tokens = part.read(ok), part.meter.usage.tokens - before
        self.skills.store.record_use(
            given["skill"], task=known, values=given["values"], ok=well, tokens=tokens, label=ok.label
        )
        part.note("used", ok=well, tokens=tokens)
        if well:
            return result
        part.note("planned-afresh")
        return await self.planner.execute(part, task)

    async def _judged(self, part: Context, result: Labelled[Any]) -> Labelled[bool]:
        return part.derive(self.succeeded(part.read(result)) == "success")
