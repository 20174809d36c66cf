"""O17, agent isolation: a sub-task runs in a context of its own, from a written brief, and gives a typed result.

Use it where a sub-task can be described in full and the context around it is full, noisy or none of its business. The
child reads its setup and the brief, has the tools that are declared for it, and nothing of its work comes back but a
value that fits the contract. What it did is in the trace, below the part of the parent. What a pattern around all of
this puts before every prompt (H1) stands before the child's too: it belongs to the program, not to the parent.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Final, TypedDict

from bicameral.errors import CatalogError, ModelError, RunError
from bicameral.patterns.kernel import (
    Answered,
    Context,
    Labelled,
    NoteEvent,
    Pattern,
    PatternExample,
    Responder,
    Role,
    approximate_tokens,
)
from bicameral.patterns.orchestration.orchestrator_workers import spawn_allowance
from bicameral.patterns.signal.output_template import name_fields, render_form
from bicameral.types import Type, mismatch, type_from_annotation

WRITER = Role(
    "Brief writer",
    "Write a brief for somebody who knows nothing else: the task, every fact that it needs, and what to leave out. Do "
    "not do the task yourself.",
    tier="small",
    job="planning",
    max_tokens=256,
)
CHILD = Role(
    "Child",
    "Do what the brief says. Reply with one JSON object of the wanted form and nothing else.",
    job="acting",
    phase="act",
    max_tokens=256,
)
_STARTED: Final = "child-started"


@dataclass(frozen=True)
class AgentIsolation(Pattern[[Labelled[str]], Any]):
    """One child for one task. There are at most `max_children` in a run, at most `max_depth` inside one another.

    A result that does not fit is `pattern.broken-contract`; no part of it gets out.

    Args:
        wanted: The contract: the type of the result.
        child: A role that is asked once and has no tools, or any pattern that takes a text and gives such a value.
        tools: The tools that the child may call.
        writer: Writes the brief; without one the task is the brief.
        brief_tokens: The most tokens of a brief, as an estimate. A longer one is refused.
        parent_share: The share of its window that a parent fills before a child pays.

    Example:
        >>> looking = AgentIsolation.of(Address, child=ReAct() | OutputTemplate.of(Address), tools=("find_person",))
        >>> outcome = await looking.run(runtime, program_text("Find the address of Ada Young."))
    """

    id: ClassVar[str] = "O17"
    wanted: Type
    child: Responder = CHILD
    tools: tuple[str, ...] = ()
    writer: Role | None = WRITER
    brief_tokens: int = 5000
    max_children: int = 6
    max_depth: int = 1
    parent_share: float = 0.3

    @classmethod
    def of(cls, contract: Any, **options: Any) -> AgentIsolation:
        """An isolated child whose contract is a Python annotation."""
        return cls(type_from_annotation(contract), **options)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tools and isinstance(self.child, Role):
            raise CatalogError(
                "pattern.bad-worker",
                "O17: the child has tools, and is asked only once",
                fix="Let a pattern that calls tools do the work, such as ReAct().",
            )

    def pays_off(self, parent_tokens: int, window: int) -> bool:
        """Whether the parent's context is full enough for a child to pay."""
        return parent_tokens >= self.parent_share * window

    async def execute(self, context: Context, /, task: Labelled[str]) -> Labelled[Any]:
        with spawn_allowance(self.max_children, self.max_depth) as allowance:
            # Children of other parts of the run count as well; the allowance knows only those around this one.
            started = sum(isinstance(each, NoteEvent) and each.what == _STARTED for each in context.shared.trace)
            if started >= self.max_children or not allowance.take(1):
                raise RunError(
                    "pattern.too-many-children",
                    f"{started} children were started in this run",
                    expected=f"at most {self.max_children}",
                    fix="Cut the work up into fewer sub-tasks, or raise `max_children`.",
                )
            context.note(_STARTED)
            brief = await context.run_part("brief", partial(self._write_brief, task=task))
            return await context.run_part("child", partial(self._run_child, brief=brief))

    async def _write_brief(self, part: Context, task: Labelled[str]) -> Labelled[str]:
        brief = task if self.writer is None else await part.ask(self.writer, task)
        tokens = approximate_tokens(part.read(brief))
        part.note("brief", tokens=tokens)
        if tokens > self.brief_tokens:
            raise RunError(
                "pattern.long-brief",
                f"the brief has about {tokens} tokens",
                expected=f"at most {self.brief_tokens}",
                fix="Say what is out of scope, or give the material to the child's tools.",
            )
        return brief

    async def _run_child(self, part: Context, brief: Labelled[str]) -> Labelled[Any]:
        part.restrict_tools(self.tools)
        if isinstance(self.child, Role):
            form = part.derive(render_form(self.wanted))
            try:
                return await part.fill(self.child, brief, wanted=self.wanted, stable=[form], retries=0)
            except ModelError as error:
                if error.code != "models.bad-reply":
                    raise
                raise self._broken_contract_error() from None
        result = await self.child.execute(part, brief)
        if mismatch(part.read(result), self.wanted):
            raise self._broken_contract_error()
        return result

    def _broken_contract_error(self) -> RunError:
        return RunError(
            "pattern.broken-contract",
            "what the child gave does not fit its contract",
            expected=name_fields(self.wanted),
            fix="The run has what it gave: `bicameral runs show`.",
        )


# An example ---------------------------------------------------------------------------------------------------------


class _Home(TypedDict):
    city: str


_TASK: Final = "Ada Young lives in Ghent and works in Bruges. In which city does she live?"


def _is_correct(outcome: Answered[dict[str, Any]]) -> bool:
    return outcome.value["city"].strip().lower() == "ghent"


EXAMPLE = PatternExample(
    "A question is answered by a child that reads a brief and gives one field.",
    lambda folder: AgentIsolation.of(_Home),
    _TASK,
    _is_correct,
    lambda folder: {"setup": CHILD.setup, "input": _TASK, "brief": 40, "tools": 0, "output": 8},
)
