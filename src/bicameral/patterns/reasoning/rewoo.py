"""R5, ReWOO: all calls are planned before the first is made, and the answer is written once, from their results.

Use it where the calls can be planned in advance and only values pass from one to the next. The planner never sees a
result, so untrusted text cannot change which tools are called; the solver sees the results and has no tools. If it says
that they do not suffice, another plan may be written: only where everything that was read is trusted, and nothing was
changed. Otherwise that the evidence is insufficient is the outcome.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final, TypedDict, cast

from bicameral.catalog.costs import estimate_tokens
from bicameral.errors import BicameralError, ModelError, PlanError, RunError
from bicameral.labels import TRUSTED_USER
from bicameral.patterns.kernel import (
    Answered,
    Context,
    Labelled,
    Pattern,
    PatternExample,
    PromptText,
    Role,
    format_text,
    indent_lines,
    join_labelled,
    make_labelled,
    map_labelled,
)
from bicameral.patterns.strategies import list_tools, parse_arguments
from bicameral.tools import Origin, Registry, Tool, tool
from bicameral.types import STR, Field, ListType, LiteralType, RecordType, Type, mismatch

PLANNER = Role(
    "Planner",
    "Write all calls of tools that answer the question, in order. A value may be the result of an earlier call: #E1 "
    'for the first, #E2 for the second. For example, for "How much do tea and milk cost?": {"calls": [{"tool": '
    '"price", "arguments": [{"name": "of", "value": "tea"}]}, {"tool": "price", "arguments": [{"name": "of", "value": '
    '"milk"}]}, {"tool": "sum", "arguments": [{"name": "a", "value": "#E1"}, {"name": "b", "value": "#E2"}]}]}',
    reads="trusted",
    tier="large",
    job="planning",
    phase="plan",
)
SOLVER = Role(
    "Solver",
    "Answer the question from the evidence alone, in one short sentence.",
    tier="small",
    job="summarizing",
    phase="final_answer",
    max_tokens=128,
)
INSUFFICIENT = "INSUFFICIENT"
"""What the Solver replies if the results do not answer the question."""
_REFERENCE = re.compile(r"#E([0-9]{1,9})")


class _PlannedArgument(TypedDict):
    name: str
    value: str


class _PlannedCall(TypedDict):
    tool: str
    arguments: list[_PlannedArgument]


def _plan_form(registry: Registry) -> Type:
    """The form of a plan over these tools; a tool that does not exist cannot be written in it."""
    arguments = sorted({argument.name for tool in registry for argument in tool.arguments})
    argument = RecordType((Field("name", LiteralType(tuple(arguments)) if arguments else STR), Field("value", STR)))
    call = RecordType((Field("tool", LiteralType(registry.names)), Field("arguments", ListType(argument))))
    return RecordType((Field("calls", ListType(call)),))


@dataclass(frozen=True)
class ReWOO(Pattern[[Labelled[str]], str]):
    """Plan, call, answer: two model calls for any number of tools, and one more for each plan that is rejected.

    An answer that the results do not give is none: the outcome is `GaveUp` with `pattern.insufficient`.

    Args:
        max_calls: The most calls of a plan.
        max_replans: How often a plan that does not check is written again.
        second_plans: How often another plan is written because the results did not suffice.
        cite: Whether the answer names the results that it rests on, as in "390,014 people. [#E3]". Only calls that gave
            a result can be named, and an answer that names none is not accepted.
        width: How many calls run at once.

    Example:
        >>> outcome = await ReWOO().run(runtime, program_text("How many people live in Ghent and Bruges together?"))
        >>> len(outcome.model_calls)
        2
    """

    id: ClassVar[str] = "R5"
    max_calls: int = 12
    max_replans: int = 1
    planner: Role = PLANNER
    solver: Role = SOLVER
    width: int = 8
    second_plans: int = 1
    cite: bool = False

    async def execute(self, context: Context, /, question: Labelled[str]) -> Labelled[str]:
        failed: list[str] = []
        for left in range(self.second_plans, -1, -1):
            plan = await self._plan(context, question, failed)
            found = await self._run_calls(context, plan)
            answer = await self._solve(context, question, plan, found)
            if answer is not None:
                return answer
            context.note("insufficient", plans=left)
            if left == 0 or not _may_plan_again(context, plan, found):
                break
            failed.append(_failed_plan(plan, found))
        raise RunError(
            "pattern.insufficient",
            "the results of the planned calls do not answer the question",
            fix="Ask more narrowly, give it a tool that knows more, or use R4, which decides call by call.",
        )

    async def _solve(
        self,
        context: Context,
        question: Labelled[str],
        plan: Sequence[_PlannedCall],
        found: Mapping[int, Labelled[Any]],
    ) -> Labelled[str] | None:
        """The answer; None if the results do not give one."""
        lines = [_evidence_line(context, number, call, found) for number, call in enumerate(plan)]
        parts: tuple[PromptText, ...] = ("Evidence:\n", *lines, "\nQuestion: ", question)
        if not self.cite:
            gaps = "\nIf the answer needs a call that failed, reply INSUFFICIENT." if len(found) < len(plan) else ""
            answer = await context.ask(self.solver, *parts, gaps)
            return None if _is_insufficient(context, answer) else answer
        if not found:
            return None
        solved = await context.fill(
            self.solver,
            *parts,
            _CITING,
            wanted=_cited_form(sorted(found)),
            check=_citation_fault,
            retries=1,
        )
        if context.read(map_labelled(solved, lambda reply: not reply["evidence"])):
            return None
        return map_labelled(solved, _render_cited)

    async def _plan(self, context: Context, question: Labelled[str], failed: Sequence[str]) -> Sequence[_PlannedCall]:
        """The planned calls, checked. A rejected plan is never run; the planner gets the reason and writes another.

        `failed` are plans whose results did not suffice, without the results.
        """
        if not len(context.registry):
            raise PlanError("pattern.bad-plan", "there are no tools to plan with")
        tools = context.derive(f"Tools:\n{list_tools(context.registry)}")
        asked: tuple[PromptText, ...] = ("Question: ", question)
        for each in failed:
            asked = (*asked, "\n\nThis plan did not answer it, write another one:\n", context.derive(each))
        try:
            plan = await context.fill(
                self.planner,
                *asked,
                wanted=_plan_form(context.registry),
                check=lambda plan: _plan_fault(plan["calls"], context.registry, self.max_calls),
                stable=[tools],
                retries=self.max_replans,
            )
        except ModelError as error:
            if error.code != "models.bad-reply":
                raise
            raise PlanError("pattern.bad-plan", error.message) from None
        calls = cast("list[_PlannedCall]", context.read(plan)["calls"])
        context.note("planned", calls=len(calls), depth=max(_call_depths(calls)))
        return calls

    async def _run_calls(self, context: Context, calls: Sequence[_PlannedCall]) -> Mapping[int, Labelled[Any]]:
        """The results by call, without calls that failed or needed one that did. Independent calls run in parallel."""
        found: dict[int, Labelled[Any]] = {}
        depths = _call_depths(calls)
        for level in range(max(depths) + 1):
            batch = [number for number, depth in enumerate(depths) if depth == level]
            ready = [number for number in batch if _referenced_calls(calls[number]) <= found.keys()]
            for number in set(batch) - set(ready):
                context.note("node-blocked", node=number + 1)
            works = [(f"E{number + 1}", partial(_run_call, call=calls[number], found=found)) for number in ready]
            results = await context.run_parallel(works, width=self.width)
            for number, result in zip(ready, results, strict=True):
                if isinstance(result, BicameralError):
                    context.note("node-failed", node=number + 1, code=result.code)
                else:
                    found[number] = result
        return found


def _may_plan_again(context: Context, plan: Sequence[_PlannedCall], found: Mapping[int, Labelled[Any]]) -> bool:
    """Whether another plan may follow this one.

    Untrusted text must not decide that anything is planned, also not by being useless. And calls that change something
    would be made twice: even one that failed may have had its effect.
    """
    if not all(each.label.trusted for each in found.values()):
        return False
    return context.read_label.trusted and not any(context.registry[call["tool"]].changes for call in plan)


def _failed_plan(plan: Sequence[_PlannedCall], found: Mapping[int, Labelled[Any]]) -> str:
    """A plan as the Planner reads it again: which calls failed, and no result."""
    return "\n".join(
        f"#E{number + 1} = {_render_call(call)}: {'gave a result' if number in found else 'failed'}"
        for number, call in enumerate(plan)
    )


def _is_insufficient(context: Context, reply: Labelled[str]) -> bool:
    """Whether a reply says that there is no answer. Whoever wrote the evidence may have decided that."""
    return context.read(map_labelled(reply, lambda text: text.strip(" .!\"'\n").upper() == INSUFFICIENT))


_CITING = (
    "\nName in `evidence` every result that the answer rests on. If the results do not answer the question, leave "
    "`evidence` and `answer` empty."
)


def _cited_form(found: Sequence[int]) -> Type:
    """The form of an answer with citations; only calls that gave a result can be cited."""
    names = LiteralType(tuple(f"#E{number + 1}" for number in found))
    return RecordType((Field("answer", STR), Field("evidence", ListType(names))))


def _citation_fault(reply: Mapping[str, Any]) -> str | None:
    if bool(reply["answer"].strip()) == bool(reply["evidence"]):
        return None
    return "an answer needs the results that it rests on in `evidence`, and without an answer `evidence` is empty"


def _render_cited(reply: Mapping[str, Any]) -> str:
    # A reference inside of the answer was not checked, and must not look like one that was.
    answer = _REFERENCE.sub(r"E\1", reply["answer"].strip())
    return f"{answer} [{', '.join(dict.fromkeys(reply['evidence']))}]"


def _render_call(call: _PlannedCall) -> str:
    arguments = ", ".join(f"{each['name']}={each['value']}" for each in call["arguments"])
    return f"{call['tool']}({arguments})"


def _evidence_line(
    context: Context, number: int, call: _PlannedCall, found: Mapping[int, Labelled[Any]]
) -> Labelled[str]:
    """One call as the Solver reads it. Lines of a result are indented, so that none looks like another call."""
    if number in found:
        result = format_text("{gave}", gave=found[number]).map(indent_lines)
    else:
        blocked = not _referenced_calls(call) <= found.keys()
        result = context.derive("(not called: it needs a call that failed)" if blocked else "(this call failed)")
    asked = context.derive(f"#E{number + 1} = {_render_call(call)}")
    return format_text("{asked}: {gave}\n", asked=asked, gave=result)


async def _run_call(part: Context, call: _PlannedCall, found: Mapping[int, Labelled[Any]]) -> Labelled[Any]:
    tool = part.registry[call["tool"]]
    return await part.call(
        tool.name, {each["name"]: _substitute_results(each, tool, found) for each in call["arguments"]}
    )


def _substitute_results(argument: _PlannedArgument, tool: Tool, found: Mapping[int, Labelled[Any]]) -> Labelled[Any]:
    """An argument with results in place of its references. They stay closed; a reference inside one is not followed."""
    name, text = argument["name"], argument["value"]
    numbers = _references(text)
    if not numbers:
        # The planner wrote it, and a planner reads only trusted text.
        return make_labelled(_parse_argument(text, name, tool), TRUSTED_USER)
    if text.strip() == f"#E{numbers[0] + 1}":
        return found[numbers[0]]

    def substitute(results: list[Any]) -> Any:
        by_number = {each: str(value) for each, value in zip(numbers, results, strict=True)}
        return _parse_argument(_REFERENCE.sub(lambda match: by_number[int(match[1]) - 1], text), name, tool)

    return map_labelled(join_labelled(found[each] for each in numbers), substitute)


def _parse_argument(text: str, name: str, tool: Tool) -> Any:
    """The value of a text as this argument: the text or, if only that fits, its JSON value."""
    try:
        value: Any = json.loads(text, parse_constant=str)  # no NaN, no Infinity
    except (ValueError, RecursionError):
        return text
    # A text that fits neither way stays a text, which the call refuses.
    return value if not _is_fitting(text, name, tool) and _is_fitting(value, name, tool) else text


def _is_fitting(value: Any, name: str, tool: Tool) -> bool:
    kind = next(argument.type for argument in tool.arguments if argument.name == name)
    return mismatch(parse_arguments(tool, {name: value})[name], kind) is None


def _references(text: str) -> list[int]:
    return [int(each) - 1 for each in _REFERENCE.findall(text)]


def _referenced_calls(call: _PlannedCall) -> set[int]:
    return {each for argument in call["arguments"] for each in _references(argument["value"])}


def _plan_fault(calls: Sequence[_PlannedCall], registry: Registry, most: int) -> str | None:
    """Arguments that a tool does not take, a value of a wrong type, or a reference that does not point back."""
    if not 0 < len(calls) <= most:
        return f"it has {len(calls)} calls, and may have 1 to {most}"
    for number, call in enumerate(calls):
        found = registry[call["tool"]]
        names = [each["name"] for each in call["arguments"]]
        known = {argument.name for argument in found.arguments}
        needed = {argument.name for argument in found.arguments if argument.required}
        if set(names) - known or needed - set(names) or len(set(names)) != len(names):
            takes = ", ".join(argument.name for argument in found.arguments) or "nothing"
            return f"call {number + 1}: {found.name} takes {takes}"
        if any(not 0 <= each < number for each in _referenced_calls(call)):
            return f"call {number + 1} refers to a call that does not come before it"
        for each in call["arguments"]:
            value = _parse_argument(each["value"], each["name"], found)
            if not _references(each["value"]) and not _is_fitting(value, each["name"], found):
                return f"call {number + 1}: {each['name']} is not of {found.signature}"
    return None


def _call_depths(calls: Sequence[_PlannedCall]) -> list[int]:
    """The longest chain of references before each call. Calls of equal depth can run in parallel."""
    known: list[int] = []
    for call in calls:
        known.append(1 + max((known[each] for each in _referenced_calls(call)), default=-1))
    return known


# An example ---------------------------------------------------------------------------------------------------------

_PEOPLE = {"Ghent": 270_473, "Bruges": 119_541, "Leuven": 105_193}
_QUESTION: Final = "How many people live in Ghent and in Bruges together?"


def _tools(folder: Path) -> Sequence[Tool]:
    @tool(effect="read", outbound=False, origins=Origin("system", "public"), purpose={"city": "selects"})
    def population(city: str) -> int:
        """How many people live in a city."""
        return _PEOPLE[city]

    @tool(effect="pure", origins=Origin("system", "public"))
    def add(a: int, b: int) -> int:
        """The sum of two numbers."""
        return a + b

    return (population, add)


def _is_correct(outcome: Answered[str]) -> bool:
    called = sorted(each.tool for each in outcome.tool_calls)
    return re.sub(r"[^0-9]", "", outcome.value).endswith("390014") and called == ["add", "population", "population"]


def _sizes(folder: Path) -> dict[str, int | float | str]:
    head = f"{PLANNER.setup}\n\nTools:\n{list_tools(Registry(_tools(folder)))}"
    mean, line = (estimate_tokens(head) + estimate_tokens(SOLVER.setup)) / 2, "#E1 = population(city=Ghent): 100000\n"
    return {"setup": mean, "tools": 0, "input": _QUESTION, "items": 3, "observation": line, "output": 20}


EXAMPLE = PatternExample(
    "The people of two cities are looked up side by side and added up.",
    lambda folder: ReWOO(),
    _QUESTION,
    _is_correct,
    _sizes,
    _tools,
)
