"""A tool: a name, typed arguments, a typed result, and what it does to the world."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from bicameral.errors import BicameralError, Place, ToolError, nearest
from bicameral.types import Type, mismatch, plain, to_json, value_to_json

Effect = Literal["pure", "read", "write", "send", "irreversible"]
EFFECTS: tuple[Effect, ...] = get_args(Effect)
CHANGING: frozenset[Effect] = frozenset({"write", "send", "irreversible"})

Purpose = Literal["selects", "directs", "carries"]
"""What an argument is for: it selects what is read, directs an effect (recipient, path), or carries content out."""
PURPOSES: tuple[Purpose, ...] = get_args(Purpose)


class _Required:
    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Any = _Required()
"""The default of an argument that must be given."""


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a tool and what it is for; `field_of` names the argument whose rows it names a field of."""

    name: str
    type: Type
    doc: str = ""
    default: Any = REQUIRED
    purpose: Purpose = "selects"
    field_of: str | None = None

    @property
    def required(self) -> bool:
        return self.default is REQUIRED


Run = Callable[[Mapping[str, Any]], Awaitable[object]]

Refine = Callable[[Mapping[str, Type], Mapping[str, Any]], Type | None]
"""A closer type of a result, from the types of the arguments and the values of those that are literals.

It is asked before a plan runs, so it may look at what a plan would read (the columns of a table) and must change
nothing. None means that nothing more is known.
"""


@dataclass(frozen=True, slots=True)
class Tool:
    """Something a plan can call. Make one with `@tool`, from a manifest, or from a command's `--describe`.

    `words` are what people say when they ask for this tool's effect ("send", "mail", "forward"); the check of a
    plan against its intent uses them. `timeout` is in seconds. Only an `idempotent` tool is ever retried.
    """

    name: str
    doc: str
    arguments: tuple[Argument, ...]
    result: Type
    effect: Effect
    run: Run = field(compare=False, repr=False)
    timeout: float = 30.0
    idempotent: bool = False
    toolbox: str = ""
    version: str = "1"
    words: tuple[str, ...] = ()
    refine: Refine | None = field(default=None, compare=False, repr=False)

    @property
    def changes(self) -> bool:
        """Whether the world is different after a call."""
        return self.effect in CHANGING

    def argument(self, name: str) -> Argument | None:
        return next((argument for argument in self.arguments if argument.name == name), None)

    @property
    def signature(self) -> str:
        """The tool as a plan writes it: `grep(lines: list[str], pattern: str) -> list[str]`."""
        shown = (f"{a.name}: {a.type}" + ("" if a.required else f" = {a.default!r}") for a in self.arguments)
        return f"{self.name}({', '.join(shown)}) -> {self.result}"

    def describe(self) -> dict[str, Any]:
        """Everything about the tool but its code, as JSON."""
        return {
            "name": self.name,
            "toolbox": self.toolbox,
            "version": self.version,
            "doc": self.doc,
            "effect": self.effect,
            "timeout": self.timeout,
            "idempotent": self.idempotent,
            "words": list(self.words),
            "arguments": [
                {"name": a.name, "type": to_json(a.type), "doc": a.doc, "purpose": a.purpose, "required": a.required}
                | ({"field_of": a.field_of} if a.field_of else {})
                | ({} if a.required else {"default": value_to_json(plain(a.default))})
                for a in self.arguments
            ],
            "result": to_json(self.result),
        }

    @property
    def fingerprint(self) -> str:
        """A hash of the description: caches and recorded runs hold it."""
        text = json.dumps(self.describe(), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        """Call the tool with plain values; wrong arguments and wrong answers are refused, never coerced."""
        bound = self.bind(arguments)
        try:
            answer = await self.run(bound)
        except BicameralError:
            raise
        except Exception as error:
            raise ToolError("tools.failed", f"{self.name!r} failed: {type(error).__name__}: {error}") from error
        try:
            value = plain(answer)
        except TypeError as error:
            raise ToolError("tools.bad-result", f"{self.name!r} gave a value no plan can use: {error}") from None
        if reason := mismatch(value, self.result, "its result"):
            raise ToolError(
                "tools.bad-result", f"{self.name!r} broke its own declaration: {reason}", expected=str(self.result)
            )
        return value

    def bind(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The full arguments of a call: names and types checked, defaults filled in."""
        known = {argument.name for argument in self.arguments}
        for name in arguments:
            if name not in known:
                raise ToolError(
                    "tools.unknown-argument",
                    f"{self.name!r} has no argument {name!r}",
                    nearest=nearest(name, known),
                    expected=self.signature,
                )
        bound: dict[str, Any] = {}
        for argument in self.arguments:
            if argument.name not in arguments:
                if argument.required:
                    raise ToolError(
                        "tools.missing-argument",
                        f"{self.name!r} needs the argument {argument.name!r}",
                        expected=self.signature,
                    )
                # A copy, so that no call can change what the next one gets.
                bound[argument.name] = plain(argument.default)
                continue
            value = arguments[argument.name]
            if reason := mismatch(value, argument.type):
                raise ToolError(
                    "tools.wrong-type",
                    f"{self.name!r} cannot take this: {reason}",
                    place=Place(argument=argument.name),
                    expected=str(argument.type),
                )
            bound[argument.name] = value
        return bound

    def result_for(self, types: Mapping[str, Type], literals: Mapping[str, Any]) -> Type:
        """The type of the result of a call with arguments of these types, some of them literals."""
        if self.refine is None:
            return self.result
        try:
            return self.refine(types, literals) or self.result
        except (BicameralError, OSError, ValueError):
            # What cannot be looked at now will fail, with its reason, when the plan runs.
            return self.result

    def named(self, name: str) -> Tool:
        """The same tool under another name."""
        return replace(self, name=name)
