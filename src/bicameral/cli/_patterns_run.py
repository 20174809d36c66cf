"""A pattern run at the command line: its own example, or a request with the configured tools."""

from __future__ import annotations

import inspect
import json
import tempfile
from collections.abc import Mapping
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from bicameral.errors import CatalogError, nearest

from ._approving import TerminalApprover
from ._exits import FAILED
from ._live import display
from ._output import Output
from ._render import done_text
from ._usage import tokens_text
from ._values import answer_text, readable
from ._working import code_of

if TYPE_CHECKING:
    from bicameral.agent import Agent
    from bicameral.patterns import Outcome, Pattern


def knobs_of(id: str, written: tuple[str, ...]) -> dict[str, Any]:
    """`max_steps=4` as a knob and its value; a `CatalogError` names the nearest knob that there is."""
    from bicameral.catalog import catalog

    known, found = catalog().pattern(id).knobs, dict[str, Any]()
    for each in written:
        name, equals, value = each.partition("=")
        if not equals or name not in known:
            raise CatalogError(
                "catalog.unknown-knob",
                f"{id} has no knob {name!r}" if equals else f"{each!r} sets nothing",
                expected="NAME=VALUE",
                nearest=nearest(name, known),
                fix=f"It has {', '.join(known)}." if known else "It has none.",
            )
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found


def made(id: str, knobs: Mapping[str, Any]) -> Pattern[..., Any]:
    """The pattern itself, for a request: one that needs nothing but its knobs, and is given nothing but a text."""
    from bicameral.patterns import pattern_class

    kind = pattern_class(id)
    needs = [each.name for each in fields(kind) if each.default is MISSING and each.default_factory is MISSING]  # pyright: ignore[reportArgumentType]
    takes = list(inspect.signature(kind.on).parameters.values())[2:]
    if needs or sum(each.default is inspect.Parameter.empty for each in takes) != 1:
        raise CatalogError(
            "pattern.needs-more",
            f"{id} needs more than a request",
            fix=f"Run its example with `bicameral patterns run {id}`, or use it from Python.",
        )
    return kind(**{name: value for name, value in knobs.items() if name in {each.name for each in fields(kind)}})  # pyright: ignore[reportArgumentType]


class Playing:
    """One pattern at the command line, from its id to the exit code."""

    def __init__(self, out: Output) -> None:
        self._out = out

    async def request(self, agent: Agent, id: str, request: str, knobs: Mapping[str, Any]) -> int:
        """With the agent's own tools."""
        from bicameral.labels import received

        return await self._played(agent, made(id, knobs), (received(request),))

    async def example(self, agent: Agent, id: str, knobs: Mapping[str, Any]) -> int:
        """The pattern's own example, with its own tools, in a folder that goes with it."""
        from bicameral.patterns import Answered, example_of
        from bicameral.policy import Policy
        from bicameral.tools import Registry

        example = example_of(id)
        self._out.say(example.about, style="dim")
        with tempfile.TemporaryDirectory(prefix="bicameral-pattern-") as name:
            folder = Path(name)
            registry = Registry(example.tools(folder))
            pattern: Pattern[..., Any] = replace(cast("Any", example.make(folder)), **knobs)
            outcome = await self._run(agent, pattern, example.give(folder), registry, Policy((), registry))
            good = isinstance(outcome, Answered) and example.good(outcome)
        self._show(outcome)
        if outcome.ok:
            self._out.say("as it should be" if good else "not what it should be", style="green" if good else "yellow")
        self._out.object(outcome_json(outcome) | {"good": good})
        return code_of(outcome) if not outcome.ok or good else FAILED

    async def _played(self, agent: Agent, pattern: Pattern[..., Any], given: tuple[Any, ...]) -> int:
        outcome = await self._run(agent, pattern, given, agent.registry, agent.policy)
        self._show(outcome)
        self._out.object(outcome_json(outcome))
        return code_of(outcome)

    async def _run(
        self, agent: Agent, pattern: Pattern[..., Any], given: tuple[Any, ...], registry: Any, policy: Any
    ) -> Outcome[Any]:
        with display(self._out) as shown:
            approver = TerminalApprover(self._out, registry, shown.quiet) if self._out.interactive else None
            desk = agent.desk(approver=approver, observer=shown.step)
            return await pattern.run(replace(desk, registry=registry, policy=policy), *given)

    def _show(self, outcome: Outcome[Any]) -> None:
        from bicameral.patterns import Answered, GaveUp

        for moment in outcome.trace:
            self._out.say(f"  {moment_text(moment.to_json())}", style="dim")
        if text := tokens_text(outcome.taken.models.to_json()):
            self._out.say(text, style="dim")
        done = done_text(outcome.effects)
        match outcome:
            case Answered(value=value, run=run, taken=taken):
                self._out.say(
                    f"done in {taken.seconds:.1f} s" + (f": {done}" if done else "") + f" ({run})", style="dim"
                )
                self._out.show(answer_text(value, self._out.width))
            case GaveUp(error=error, run=run):
                self._out.say(f"error: {error}", style="red")
                self._out.say(f"  {f'done before that: {done}' if done else 'nothing had been changed'} ({run})")
            case _:
                self._out.say(f"error: {outcome.limit:g} {outcome.bound} were not enough ({outcome.run})", style="red")


def moment_text(moment: Mapping[str, Any]) -> str:
    """`worker 1/ asked Worker (local:0.5b, quarantined): 120 + 14 tokens, 1.2 s`."""
    at = f"{moment['at']} " if moment["at"] else ""
    if "asked" in moment:
        spent = f"{moment['prompt_tokens']:,} + {moment['output_tokens']:,} tokens, {moment['seconds']:.1f} s"
        return f"{at}asked {moment['asked']} ({moment['model']}, {moment['chamber']}): {spent}"
    if "called" in moment:
        failed = f", failed: {moment['error']}" if "error" in moment else ""
        return f"{at}called {moment['called']}{failed}"
    facts = ", ".join(f"{name} {value}" for name, value in moment.items() if name not in ("noted", "at"))
    return f"{at}{moment['noted']}" + (f": {facts}" if facts else "")


def outcome_json(outcome: Outcome[Any]) -> dict[str, Any]:
    """Everything, for a program."""
    from bicameral.labels import shade_to_json
    from bicameral.patterns import Answered, GaveUp

    facts: dict[str, Any] = {
        "ok": outcome.ok,
        "run": outcome.run,
        "pattern": outcome.pattern,
        "trace": [moment.to_json() for moment in outcome.trace],
        "taken": outcome.taken.to_json(),
        "effects": [{"step": done.step, "tool": done.tool, "effect": done.effect} for done in outcome.effects],
    }
    match outcome:
        case Answered(value=value, shade=shade):
            return facts | {"value": readable(value), "shade": shade_to_json(shade)}
        case GaveUp(error=error, in_flight=in_flight):
            return facts | {"error": error.to_json(), "in_flight": list(in_flight)}
        case _:
            return facts | {"bound": outcome.bound, "spent": outcome.spent, "limit": outcome.limit}
