"""Patterns put together, two and three deep, with everything that the cost model is told before they run.

What is told of each pattern, by its place: the fixed words of its prompts, how long its replies are asked to be, how
many calls the task takes. Nothing is taken from a run. The tasks are small, so that a small model gets through them:
what is measured is whether the calls and tokens of a composition were foreseen, and whether its record gives it again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, LiteralString, TypedDict

from bicameral.patterns import FewShot, Guardrails, OrchestratorWorkers, OutputTemplate, Parallelization, ReAct, ReWOO
from bicameral.patterns.kernel import Pattern, Role
from bicameral.patterns.orchestration.orchestrator_workers import ORCHESTRATOR, WorkerSpec
from bicameral.patterns.reasoning.react import AGENT
from bicameral.patterns.reasoning.rewoo import PLANNER
from bicameral.patterns.reliability.degradation import GracefulDegradation, TemplatePath
from bicameral.patterns.reliability.guardrails import length_guard
from bicameral.patterns.reliability.injection_shield import InjectionShield, SpanMarker
from bicameral.patterns.reliability.schema_validation import HOST as VALIDATED_HOST, FailExit, SchemaValidation
from bicameral.patterns.reliability.tool_budget import ToolBudget
from bicameral.patterns.signal.few_shot import Pair, Pool, render_pairs
from bicameral.patterns.signal.output_template import HOST as FORM_HOST
from bicameral.patterns.strategies import list_tools
from bicameral.tools import Origin, Registry, Tool, tool

Sizes = Mapping[str, float | str]


@dataclass(frozen=True)
class ComposedCase:
    """A composition, its task, and what is known of its sizes beforehand.

    Args:
        says: What a right answer has in it, digits without separators.
        sizes: By the place of each pattern; that of the outermost is empty.
    """

    name: str
    make: Callable[[], Pattern[..., Any]]
    task: LiteralString
    says: Sequence[str]
    sizes: Mapping[str, Sizes] = field(default_factory=dict[str, Sizes])

    def is_right(self, answer: object) -> bool:
        """Whether an answer says everything that it has to."""
        told = re.sub(r"(?<=\d)[,. ](?=\d{3}\b)", "", str(answer)).lower()
        return all(text.lower() in told for text in self.says)

    @property
    def depth(self) -> int:
        """How many patterns are around the innermost one, and it."""
        return _depth(self.make())


def _depth(pattern: Pattern[..., Any]) -> int:
    return 1 + max(map(_depth, pattern.children.values()), default=0)


# What they work with ------------------------------------------------------------------------------------------------

_PEOPLE = {"Ghent": 270_473, "Bruges": 119_541}
_CUSTOMERS = {12: "Ada Young", 13: "Ben Hill"}


def office_tools() -> Sequence[Tool]:
    """The tools of every composition."""

    @tool(effect="read", outbound=False, origins=Origin("system", "public"), purpose={"city": "selects"})
    def population(city: str) -> int:
        """How many people live in a city."""
        return _PEOPLE[city]

    @tool(effect="read", outbound=False, origins=Origin("system"), purpose={"order": "selects"})
    def get_customer(order: int) -> str:
        """The name of the customer of an order."""
        return _CUSTOMERS[order]

    return (population, get_customer)


class Ticket(TypedDict):
    """What a mail is turned into."""

    kind: Literal["bug", "question", "praise"]
    sender: str


class Days(TypedDict):
    """On which day each of two houses is closed."""

    library: str
    museum: str


class Count(TypedDict):
    """A number of people."""

    city: str
    people: int


_MAIL: Final = "Hello, the heating in room 214 has been broken since Monday. Please send somebody. Regards, Ada Young"
_CITY: Final = "How many people live in Ghent?"
_ORDER: Final = "Which customer has placed order 12?"
_HOURS: Final = "Which day is the library closed? Which day is the museum closed?"

_LANGUAGE = Role("Worker", "In which language is this text written? Reply with one word.", max_tokens=12)
_SINCE = Role("Worker", "On which day did it begin? Reply with the day alone.", max_tokens=12)
_SENDER = Role("Worker", "Who wrote this mail? Reply with the name alone.", max_tokens=12)
_LIBRARY = Role(
    "Worker", "Answer from this fact alone, in one short sentence: The library is closed on Sunday.", max_tokens=32
)
_MUSEUM = Role(
    "Worker", "Answer from this fact alone, in one short sentence: The museum is closed on Monday.", max_tokens=32
)
_MAIL_PARTS = {"language": _LANGUAGE, "since": _SINCE, "from": _SENDER}
_POOL = Pool(
    "topics",
    (
        Pair("1", "The app closes when I print.", "bug: printing", typical=True),
        Pair("2", "How do I change my address?", "question: account", typical=True),
        Pair("3", "The new colours are lovely.", "praise: design", typical=True),
    ),
)
_WORKERS = (
    WorkerSpec("library", "knows when the library is open", _LIBRARY),
    WorkerSpec("museum", "knows when the museum is open", _MUSEUM),
)
_NESTED_WORKERS = (
    WorkerSpec("library", "knows when the library is open", Parallelization.sections({"day": _LIBRARY})),
    WorkerSpec("museum", "knows when the museum is open", Parallelization.sections({"day": _MUSEUM})),
)
_NO_ANSWER = TemplatePath("This cannot be looked up now.")
_BRIEF = (
    "Objective: Which day is the library closed?\nContext: none\nForm: one sentence\nLimits: library only\nTools: none"
)

# What is known of each ----------------------------------------------------------------------------------------------

_PLANNER_HEAD = f"{PLANNER.setup}\n\nTools:\n{list_tools(Registry(office_tools()))}"
_REWOO: Sizes = {
    "Planner.setup": _PLANNER_HEAD,
    "tools": 0,
    "items": 1,
    "observation": "#E1 = population(city=Ghent): 270473\n",
    "output": 12,
}
# Two tools with one argument each, as an engine writes their schemas into a prompt.
_REACT: Sizes = {"Agent.setup": AGENT.setup, "tools": 260, "steps": 2, "observation": 25, "output": 25}
_TICKET: Sizes = {
    "Host.setup": f"{FORM_HOST.setup}\n\nFields:\n- kind ('bug' or 'question' or 'praise')\n- sender (str)",
    "output": 16,
}
_VALIDATED_TICKET: Sizes = {
    "Host.setup": f"{VALIDATED_HOST.setup}\n\nFields:\n- kind ('bug' or 'question' or 'praise')\n- sender (str)",
    "output": 16,
}
_COUNT: Sizes = {"Host.setup": f"{FORM_HOST.setup}\n\nFields:\n- city (str)\n- people (int)", "output": 16}
_DAYS: Sizes = {"Host.setup": f"{FORM_HOST.setup}\n\nFields:\n- library (str)\n- museum (str)", "output": 16}
_WORD: Sizes = {"output": 3}
_SENTENCE: Sizes = {"output": 10}
_EXAMPLES: Sizes = {"example": render_pairs(_POOL.pairs[-1:]), "output": 6}
# The words that a shield puts before every prompt inside of it; its marks are random, and always as long as these.
_SHIELD_HEAD = SpanMarker("0" * 32, "delimit", 0.9, 0.5, _MAIL, lambda what, **facts: None).convention
_SHIELDED_MAIL_SIZES: Mapping[str, Sizes] = {
    f"parts.{name}": {"setup": f"{_SHIELD_HEAD}\n\n{role.setup}", "output": 3} for name, role in _MAIL_PARTS.items()
}
_MAIL_SIZES: Mapping[str, Sizes] = {f"parts.{name}": _WORD for name in _MAIL_PARTS}
_ORCHESTRATION: Sizes = {
    "Orchestrator.setup": f"{ORCHESTRATOR.setup}\n\nAt most 2 sub-tasks. The workers:\n"
    + "\n".join(f"- {each.name}: {each.can}" for each in _WORKERS),
    "items": 2,
    "brief": _BRIEF,
    "output": 25,
}


def _below(place: str, sizes: Mapping[str, Sizes]) -> Mapping[str, Sizes]:
    """The same sizes one level further down."""
    return {f"{place}.{at}" if at else place: each for at, each in sizes.items()}


def _guarded(inner: Pattern[..., Any]) -> Guardrails[..., Any]:
    return Guardrails(inner, (length_guard("input", 2_000), length_guard("output", 2_000)))


def _mail_parts() -> Parallelization:
    return Parallelization.sections(_MAIL_PARTS)


def _orchestrated(workers: Sequence[WorkerSpec]) -> OrchestratorWorkers:
    return OrchestratorWorkers(workers, max_workers=2, result_tokens=60)


COMPOSITIONS: Sequence[ComposedCase] = (
    ComposedCase(
        "lookup, then a form",
        lambda: ReWOO() | OutputTemplate.of(Count),
        _CITY,
        ("Ghent", "270473"),
        {"": {"input": _CITY}, "steps[0]": _REWOO, "steps[1]": _COUNT},
    ),
    ComposedCase(
        "three questions at once, then a form",
        lambda: _mail_parts() | OutputTemplate.of(Ticket),
        _MAIL,
        ("bug", "Ada Young"),
        {"": {"input": _MAIL}, **_below("steps[0]", _MAIL_SIZES), "steps[1]": _TICKET},
    ),
    ComposedCase(
        "a topic by examples, then three questions",
        lambda: FewShot(_POOL) | _mail_parts(),
        _MAIL,
        ("Monday",),
        {"": {"input": _MAIL}, "steps[0]": _EXAMPLES, **_below("steps[1]", _MAIL_SIZES)},
    ),
    ComposedCase(
        "a loop and a question at once",
        lambda: Parallelization.sections({"customer": ReAct(max_steps=4), "language": _LANGUAGE}),
        _ORDER,
        ("Ada Young", "English"),
        {"": {"input": _ORDER}, "parts.customer": _REACT, "parts.language": _WORD},
    ),
    ComposedCase(
        "a loop, then a question",
        lambda: ReAct(max_steps=4) | Parallelization.sections({"language": _LANGUAGE}),
        _ORDER,
        ("English",),
        {"": {"input": _ORDER}, "steps[0]": _REACT, "steps[1].parts.language": _WORD},
    ),
    ComposedCase(
        "a guarded lookup",
        lambda: _guarded(ReWOO()),
        _CITY,
        ("270473",),
        {"": {"input": _CITY}, "inner": _REWOO},
    ),
    ComposedCase(
        "guarded workers",
        lambda: _guarded(_orchestrated(_WORKERS)),
        _HOURS,
        ("Sunday", "Monday"),
        {
            "inner": {**_ORCHESTRATION, "input": _HOURS},
            "inner.workers[0].by": _SENTENCE,
            "inner.workers[1].by": _SENTENCE,
        },
    ),
    ComposedCase(
        "a guarded chain of a lookup and a form",
        lambda: _guarded(ReWOO() | OutputTemplate.of(Count)),
        _CITY,
        ("Ghent", "270473"),
        {"inner": {"input": _CITY}, "inner.steps[0]": _REWOO, "inner.steps[1]": _COUNT},
    ),
    ComposedCase(
        "a lookup and a question at once, then a form",
        lambda: Parallelization.sections({"people": ReWOO(), "language": _LANGUAGE}) | OutputTemplate.of(Count),
        _CITY,
        ("Ghent", "270473"),
        {
            "": {"input": _CITY},
            "steps[0].parts.people": _REWOO,
            "steps[0].parts.language": _WORD,
            "steps[1]": _COUNT,
        },
    ),
    ComposedCase(
        "a chain and a question at once",
        lambda: Parallelization.sections({"count": ReWOO() | OutputTemplate.of(Count), "language": _LANGUAGE}),
        _CITY,
        ("270473", "English"),
        {
            "": {"input": _CITY},
            "parts.count.steps[0]": _REWOO,
            "parts.count.steps[1]": _COUNT,
            "parts.language": _WORD,
        },
    ),
    ComposedCase(
        "workers that are patterns",
        lambda: _orchestrated(_NESTED_WORKERS),
        _HOURS,
        ("Sunday", "Monday"),
        {
            "": {**_ORCHESTRATION, "input": _HOURS},
            "workers[0].by.parts.day": _SENTENCE,
            "workers[1].by.parts.day": _SENTENCE,
        },
    ),
    ComposedCase(
        "workers that are patterns, then a form",
        lambda: _orchestrated(_NESTED_WORKERS) | OutputTemplate.of(Days),
        _HOURS,
        ("Sunday", "Monday"),
        {
            "": {"input": _HOURS},
            "steps[0]": _ORCHESTRATION,
            "steps[0].workers[0].by.parts.day": _SENTENCE,
            "steps[0].workers[1].by.parts.day": _SENTENCE,
            "steps[1]": _DAYS,
        },
    ),
    ComposedCase(
        "guarded parts at once",
        lambda: Parallelization.sections({"people": _guarded(ReWOO()), "topic": _guarded(FewShot(_POOL))}),
        _CITY,
        ("270473", "question"),
        {"": {"input": _CITY}, "parts.people.inner": _REWOO, "parts.topic.inner": _EXAMPLES},
    ),
    ComposedCase(
        "a guarded loop at once with examples",
        lambda: _guarded(Parallelization.sections({"customer": ReAct(max_steps=4), "topic": FewShot(_POOL)})),
        _ORDER,
        ("Ada Young", "question"),
        {"inner": {"input": _ORDER}, "inner.parts.customer": _REACT, "inner.parts.topic": _EXAMPLES},
    ),
    ComposedCase(
        "a lookup within a budget of tools, then a form",
        lambda: ToolBudget(ReWOO()) | OutputTemplate.of(Count),
        _CITY,
        ("Ghent", "270473"),
        {"": {"input": _CITY}, "steps[0].inner": _REWOO, "steps[1]": _COUNT},
    ),
    ComposedCase(
        "shielded questions at once, then a validated form",
        lambda: InjectionShield(_mail_parts()) | SchemaValidation.of(Ticket, FailExit()),
        _MAIL,
        ("bug", "Ada Young"),
        {"": {"input": _MAIL}, **_below("steps[0].inner", _SHIELDED_MAIL_SIZES), "steps[1]": _VALIDATED_TICKET},
    ),
    ComposedCase(
        "a guarded lookup with a fixed answer behind it",
        lambda: GracefulDegradation(_guarded(ReWOO()), ("models",), {"models": _NO_ANSWER}, _NO_ANSWER),
        _CITY,
        ("270473",),
        {"": {"input": _CITY}, "main.inner": _REWOO},
    ),
)
"""At least twelve, up to three deep."""
