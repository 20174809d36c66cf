"""`Tool`: a name, typed arguments, a typed result, an effect, and the security facts that policies rely on."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

from bicameral import types as t
from bicameral.errors import BicameralError, Place, ToolError, describe_error, nearest_name
from bicameral.labels import NOTHING, Label, LabelTree, Readers
from bicameral.tools._argument import CHANGING, EFFECTS, PURPOSES, UNDECLARED, Argument, Effect, Purpose
from bicameral.tools._call_identity import CodeHash
from bicameral.tools._call_labels import (
    AttachedOrigins,
    ResultPart,
    attach_faults,
    attached_labels,
    compile_parts,
    default_attached,
    fresh_names,
    has_fresh,
    itemised_tree,
    join_arguments,
    readers_by_name,
    resolve_readers,
    result_tree,
)
from bicameral.tools._folders import Folders
from bicameral.tools._media import plain_capabilities, plain_media
from bicameral.tools._origins import Origin, Origins, inner_type, origin_faults
from bicameral.tools._path_rules import FAILED_TARGET, FindTarget, WriteTarget, target_by_name

if TYPE_CHECKING:
    from bicameral.tools._confirmed_effects import DescribedEffect

ToolRunner = Callable[[Mapping[str, Any]], Awaitable[object]]

RefineResult = Callable[[Mapping[str, t.Type], Mapping[str, Any]], t.Type | None]
"""A closer type of a result, from the types of the arguments and the values of those that are literals.

It runs before the plan does, so it may read what the plan would read (the columns of a table) but must change nothing.
None means that nothing more is known.
"""


@runtime_checkable
class CellLookup(Protocol):
    """A refinement that also knows the short texts in each column that a plan would read."""

    @property
    def endings(self) -> tuple[str, ...]:
        """The endings of the files that can be read, in small letters and with the dot."""
        ...

    def cells(self, literals: Mapping[str, Any], /) -> Mapping[str, frozenset[str]]: ...


OwnershipTest = Callable[[Mapping[str, Any]], bool]
"""Whether a call with these arguments reads only the user's own data (a folder that is configured as trusted).

Before a run only the arguments that are literals are given.
"""


@dataclass(frozen=True, slots=True)
class Tool:
    """Something a plan can call. Make one with `@tool`, from a manifest, or from a command's `--describe`.

    Only an `idempotent` or `keyed` tool is ever retried. Security facts that are left out get the worst case as
    default.

    Args:
        timeout: In seconds.
        idempotent: Whether repeating a call has no further effect.
        keyed: Whether repeating a call with the same `call_key` has no further effect.
        words: What people say when they ask for this tool's effect ("send", "mail", "forward"); the check of a plan
            against its intent uses them.
        configured: Values from the user's settings that an argument may have where the request names none.
        refine: Gives a closer type of the result for known arguments.
        origins: Where each part of a result comes from, and who may read it.
        outbound: Whether a call tells somebody else something, if only by asking.
        receivers: The arguments that name the recipients; by default all that direct the call.
        attaches: The arguments that name something stored elsewhere that is sent along, with its origin; by default all
            that may name something.
        attached_in: The folders of these things where they are files. The tool reads them with `read_attached`, and an
            approval is bound to their content.
        hosts: The only hosts it can reach, if it is so confined.
        keeps: The argument whose items a pure tool returns unchanged.
        itemised: The field of the result, or "" for the result itself, that is a list whose items come from different
            places: each item gets the label that it would have alone. Otherwise all items share the worst one.
        columnar: Whether it takes and returns large tables by columns (`bicameral.types.Table`); any other tool gets
            plain lists. Only for pure and reading tools, about whose arguments nobody is asked.
        owned: Whether the result of a call is the user's own.
        target: Finds the kind of file that a call writes, such as one that other programs execute. Without it, a tool
            that writes and has an argument of type path is judged by the file name alone.
        files_only: Whether all that a call changes are files, each of them through the `Folders` of the toolbox. Such a
            call can be rehearsed, to show its changes before they are made, and taken back whole.
        code: A hash of the code; a run is resumed only with the code it began with.
        declared: False where no security fact was declared.
        self_described: Whether its name and texts come from a program that the user does not trust; no planner reads
            them.
        unreviewed: Whether nobody has said anything of it (a tool of a server that was only named): every call asks.
        unaddressed: Whether nobody has said which argument names who gets it: what only the user may read is not taken
            for the name of a receiver.
        for_executor: Whether the read-only executor may call it by itself, with arguments that untrusted text chose.
            Only the configuration or the caller says so, never a toolbox.
        accepts: The media types of files and texts that it takes (`application/pdf`, `image/*`), for a lookup and for
            the choice of the tools that a planner is shown.
        gives: The media types of what it gives or writes.
        capabilities: What it can do, as words joined by hyphens (`document-ocr`).
        described: For a program that describes itself: the effect that this suggests, and what the user made of it.
    """

    name: str
    doc: str
    arguments: tuple[Argument, ...]
    result: t.Type
    effect: Effect
    run: ToolRunner = field(compare=False, repr=False)
    timeout: float = 30.0
    idempotent: bool = False
    keyed: bool = False
    toolbox: str = ""
    version: str = "1"
    words: tuple[str, ...] = ()
    configured: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]], hash=False)
    refine: RefineResult | None = field(default=None, compare=False, repr=False)
    origins: Origins = field(default_factory=dict[str, Origin], hash=False)
    outbound: bool = UNDECLARED
    receivers: tuple[str, ...] = UNDECLARED
    attaches: AttachedOrigins = field(default=UNDECLARED, hash=False)
    hosts: tuple[str, ...] = ()
    keeps: str | None = None
    itemised: str | None = None
    columnar: bool = field(default=False, compare=False)
    owned: OwnershipTest | None = field(default=None, compare=False, repr=False)
    attached_in: Folders | None = field(default=None, compare=False, repr=False)
    target: FindTarget | None = field(default=None, compare=False, repr=False)
    files_only: bool = field(default=False, compare=False)
    code: CodeHash | None = field(default=None, compare=False, repr=False)
    declared: bool = UNDECLARED
    self_described: bool = False
    unreviewed: bool = False
    unaddressed: bool = False
    for_executor: bool = field(default=False, compare=False)
    accepts: tuple[str, ...] = ()
    gives: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    described: DescribedEffect | None = field(default=None, compare=False, repr=False)
    _parts: ResultPart = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        _check_declaration(self)
        set_ = object.__setattr__
        set_(self, "origins", MappingProxyType(dict(self.origins)))
        if self.declared is UNDECLARED:
            facts = (self.outbound, *(each.purpose for each in self.arguments))
            has_facts = any(fact is not UNDECLARED for fact in facts)
            set_(self, "declared", has_facts or bool(self.origins) or self.effect == "pure")
        if self.outbound is UNDECLARED:
            # A tool that declares nothing may send anything to anybody, unless it is pure.
            undeclared = not self.declared and self.effect != "pure"
            set_(self, "outbound", self.effect in ("send", "irreversible") or undeclared)
        # An argument without a purpose gets the more dangerous one that fits the effect.
        purpose: Purpose = "directs" if self.changes or self.outbound else "selects"
        purposes = (replace(each, purpose=purpose) if each.purpose is UNDECLARED else each for each in self.arguments)
        set_(self, "arguments", tuple(purposes))
        receivers = None if self.receivers is UNDECLARED else self.receivers
        attaches = default_attached(self, receivers) if self.attaches is UNDECLARED else dict(self.attaches)
        set_(self, "attaches", MappingProxyType(attaches))
        if self.receivers is UNDECLARED:
            set_(self, "receivers", tuple(each.name for each in self.arguments if each.purpose == "directs"))
        if self.target is None and self.effect == "write":
            paths = tuple(each.name for each in self.arguments if each.purpose == "directs" and _is_path(each.type))
            set_(self, "target", target_by_name(paths, copied=self.copies_content) if paths else None)
        set_(self, "_parts", compile_parts(self.origins if self.declared else {}, self.result))
        if self.for_executor and (fault := executor_fault(self)) is not None:
            raise ToolError("tools.not-for-executor", f"{self.name!r} {fault}")

    @property
    def changes(self) -> bool:
        """Whether a call changes anything."""
        return self.effect in CHANGING

    @property
    def is_repeatable(self) -> bool:
        """Whether a call with unknown outcome may be repeated."""
        return not self.changes or self.idempotent or self.keyed

    @property
    def copies_content(self) -> bool:
        """Whether a call writes content that it reads itself: an attachment, a file that it copies."""
        selects = self.owned is not None or any(each.purpose == "selects" for each in self.arguments)
        return self.effect == "write" and selects

    def argument(self, name: str) -> Argument | None:
        return next((argument for argument in self.arguments if argument.name == name), None)

    @property
    def signature(self) -> str:
        """The tool as a plan writes it: `grep(lines: list[str], pattern: str) -> list[str]`."""
        parameters = (f"{a.name}: {a.type}" + ("" if a.required else f" = {a.default!r}") for a in self.arguments)
        return f"{self.name}({', '.join(parameters)}) -> {self.result}"

    def describe(self) -> dict[str, Any]:
        """Everything about the tool except its code, as JSON."""
        return {
            "name": self.name,
            "toolbox": self.toolbox,
            "version": self.version,
            "doc": self.doc,
            "effect": self.effect,
            "timeout": self.timeout,
            "idempotent": self.idempotent,
            **({"keyed": True} if self.keyed else {}),
            **({"self_described": True} if self.self_described else {}),
            **({"unreviewed": True} if self.unreviewed else {}),
            **({"unaddressed": True} if self.unaddressed else {}),
            "words": list(self.words),
            **{name: list(each) for name in ("accepts", "gives", "capabilities") if (each := getattr(self, name))},
            "declared": self.declared,
            "outbound": self.outbound,
            "receivers": list(self.receivers),
            **({"attaches": {name: each.to_json() for name, each in self.attaches.items()}} if self.attaches else {}),
            "origins": {part: origin.to_json() for part, origin in self.origins.items()},
            **({"hosts": list(self.hosts)} if self.hosts else {}),
            **({"keeps": self.keeps} if self.keeps else {}),
            **({"itemised": self.itemised} if self.itemised is not None else {}),
            **({"owned": "where the user trusts the folder"} if self.owned else {}),
            "arguments": [
                {
                    "name": a.name,
                    "type": t.type_to_json(a.type),
                    "doc": a.doc,
                    "purpose": a.purpose,
                    "required": a.required,
                }
                | ({"field_of": a.field_of} if a.field_of else {})
                | ({"refers": a.refers} if a.refers else {})
                | ({} if a.required else {"default": t.value_to_json(t.to_plain(a.default))})
                for a in self.arguments
            ],
            "result": t.type_to_json(self.result),
        }

    @property
    def fingerprint(self) -> str:
        """A hash of the description, for caches and recorded runs."""
        text = json.dumps(self.describe(), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        """Call the tool with plain values; wrong arguments and wrong results are refused, never coerced."""
        bound = self.bind(arguments)
        try:
            answer = await self.run(bound)
        except BicameralError:
            raise
        except Exception as error:
            raise ToolError("tools.failed", f"{self.name!r} failed: {describe_error(error)}") from error
        # Exact built-in types only: an object of the tool's own could change or misreport itself later.
        try:
            value = t.to_plain(answer)
        except TypeError as error:
            raise ToolError("tools.bad-result", f"{self.name!r} gave a value no plan can use: {error}") from None
        if reason := t.mismatch(value, self.result, "its result"):
            raise ToolError(
                "tools.bad-result", f"{self.name!r} broke its own declaration: {reason}", expected=str(self.result)
            )
        return value

    def bind(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The complete arguments of a call: names and types checked, defaults filled in."""
        known = {argument.name for argument in self.arguments}
        for name in arguments:
            if name not in known:
                raise ToolError(
                    "tools.unknown-argument",
                    f"{self.name!r} has no argument {name!r}",
                    nearest=nearest_name(name, known),
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
                # A copy, so that no call can change the default of the next one.
                bound[argument.name] = t.to_plain(argument.default)
                continue
            value = arguments[argument.name]
            if reason := t.mismatch(value, argument.type):
                raise ToolError(
                    "tools.wrong-type",
                    f"{self.name!r} cannot take this: {reason}",
                    place=Place(argument=argument.name),
                    expected=str(argument.type),
                )
            bound[argument.name] = value
        return bound

    def refined_result(self, types: Mapping[str, t.Type], literals: Mapping[str, Any]) -> t.Type:
        """The type of the result of a call with arguments of these types, some of them literals."""
        if self.refine is None:
            return self.result
        try:
            return self.refine(types, literals) or self.result
        except (BicameralError, OSError, ValueError):
            # The call itself will report the reason when the plan runs.
            return self.result

    @property
    def table_endings(self) -> tuple[str, ...]:
        """The endings of the files that the tool reads as tables; none if it reads no tables."""
        return self.refine.endings if isinstance(self.refine, CellLookup) else ()

    def column_texts(self, literals: Mapping[str, Any]) -> Mapping[str, frozenset[str]]:
        """The short texts in each column that a call with these literals reads, as far as they are known now.

        They are untrusted: the user's own words may be looked up in them, but no model reads them.
        """
        if not isinstance(self.refine, CellLookup):
            return {}
        try:
            return self.refine.cells(literals)
        except (BicameralError, OSError, ValueError):
            return {}

    def result_labels(
        self, value: object | None, step: str, *, arguments: Mapping[str, Any] | None = None
    ) -> LabelTree:
        """The labels of a result by the tool's origins alone; `call_labels` adds those of the arguments.

        Args:
            value: The result; None before a run, where readers that only the value names are not counted.
            step: The step of the plan.
            arguments: The arguments of the call (before a run the literals), for a tool whose result may be the user's
                own.
        """
        if self.declared and not self.origins and self.effect == "pure":
            return NOTHING
        owned = self.is_owned_call(arguments)
        if value is not None and self.itemised is not None:
            return itemised_tree(self._parts, self.name, step, value, owned, self.itemised)
        known = () if value is None else resolve_readers(self._parts, value)
        return result_tree(self._parts, self.name, step, known, owned)

    def call_labels(
        self,
        trees: Mapping[str, LabelTree],
        value: object | None,
        step: str,
        *,
        arguments: Mapping[str, Any] | None = None,
    ) -> LabelTree:
        """The labels of a call's result: those of its origins, joined with those of all arguments."""
        return join_arguments(self.result_labels(value, step, arguments=arguments), trees, self.keeps, self._parts)

    def attached_labels(self, given: Mapping[str, Any], names: Sequence[str], step: str) -> Iterator[tuple[str, Label]]:
        """The arguments of a call that name something that is sent along, with the label of that thing.

        `names` are the arguments that are given, `given` the values that are known: before a run the literals.
        """
        return attached_labels(self, given, names, step)

    @property
    def has_fresh_names(self) -> bool:
        """Whether the service makes up a name for what a call creates."""
        return has_fresh(self._parts)

    def fresh_names(self, value: object) -> frozenset[str]:
        """The names that the service made up for what a call created."""
        return fresh_names(self._parts, value)

    def named_readers(self, value: object) -> dict[tuple[str, str], Readers]:
        """Who may read the things that a result of this tool names, by their kinds and names."""
        if not self.declared or not any(origin.names for origin in self.origins.values()):
            return {}
        return readers_by_name(self.origins, self.result, value)

    def is_owned_call(self, arguments: Mapping[str, Any] | None) -> bool:
        """Whether a call with these arguments reads only the user's own data."""
        if self.owned is None or arguments is None:
            return False
        try:
            return self.owned(arguments) is True
        except Exception:
            # Fail closed: without an answer the result does not count as the user's own.
            return False

    def write_target(self, arguments: Mapping[str, Any]) -> WriteTarget | None:
        """What is known of the file that a call with these arguments writes; None if it writes none."""
        if self.target is None:
            return None
        try:
            found = cast("object", self.target(arguments))
        except Exception as error:
            if isinstance(error, ToolError) and error.code == "tools.protected":
                return replace(FAILED_TARGET, protected=error.message)
            return FAILED_TARGET
        return found if isinstance(found, WriteTarget) else FAILED_TARGET

    def with_name(self, name: str) -> Tool:
        """The same tool under another name."""
        return replace(self, name=name)


def _is_path(type_: t.Type) -> bool:
    match type_:
        case t.OptionalType(item=item) | t.ListType(item=item):
            return _is_path(item)
        case t.StrType(format=kind):
            return kind == "path"
        case _:
            return False


def _check_words(tool: Tool) -> None:
    """Refuse values that policies do not know: such a tool could not be judged."""
    if tool.effect not in EFFECTS:
        raise ToolError(
            "tools.unknown-effect", f"{tool.name!r} has the effect {tool.effect!r}", expected=", ".join(EFFECTS)
        )
    names = [argument.name for argument in tool.arguments]
    if len(set(names)) < len(names):
        raise ToolError("tools.bad-signature", f"{tool.name!r} has two arguments of one name")
    for argument in tool.arguments:
        if argument.purpose is not UNDECLARED and argument.purpose not in PURPOSES:
            raise ToolError(
                "tools.unknown-purpose", f"{tool.name!r}: {argument.purpose!r}", expected=", ".join(PURPOSES)
            )
    for name, value in (("outbound", tool.outbound), ("declared", tool.declared), ("keyed", tool.keyed)):
        if value is not UNDECLARED and type(value) is not bool:
            raise ToolError("tools.bad-origins", f"{tool.name!r}: {name!r} is neither true nor false")
    if tool.effect == "send" and tool.outbound is False:
        raise ToolError("tools.bad-origins", f"{tool.name!r} sends something, and is said to tell nobody anything")
    if tool.columnar and tool.effect not in ("pure", "read"):
        raise ToolError("tools.bad-signature", f"{tool.name!r} changes something, so that it takes plain rows only")
    for media in (tool.accepts, tool.gives):
        if plain_media(media) != tuple(media):
            raise ToolError(
                "tools.bad-media", f"{tool.name!r}: {list(media)!r}", expected="MIME types in small letters"
            )
    if plain_capabilities(tool.capabilities) != tuple(tool.capabilities):
        raise ToolError(
            "tools.bad-media", f"{tool.name!r}: {list(tool.capabilities)!r}", expected="words joined by hyphens"
        )
    if not 0 < tool.timeout < math.inf:
        raise ToolError("tools.bad-signature", f"{tool.name!r} has a timeout of {tool.timeout!r} seconds")


_FORM_TYPES = (
    t.StrType,
    t.IntType,
    t.FloatType,
    t.BoolType,
    t.DateType,
    t.DateTimeType,
    t.TimeType,
    t.LiteralType,
)


def executor_fault(tool: Tool) -> str | None:
    """Why the read-only executor may not call a tool by itself; None if it may.

    Untrusted text chooses the arguments of such a call, so that it must change nothing and tell nobody anything: the
    address of a web page, or of any other host, could carry away what was read. Declarations that a program makes
    about itself, or that are missing, do not count.
    """
    if tool.self_described or not tool.declared:
        return "does not say what it does, or only its own program says so"
    if tool.effect != "read":
        return f"has the effect {tool.effect!r} and not 'read'"
    if tool.outbound or tool.hosts:
        return "reaches somebody else, who would learn what it is asked"
    unfit = next(
        (
            each
            for each in tool.arguments
            if each.required and not isinstance(t.without_optional(each.type), _FORM_TYPES)
        ),
        None,
    )
    return None if unfit is None else f"needs {unfit.name!r}, a {unfit.type}, which no form of single values can hold"


def _check_declaration(tool: Tool) -> None:
    """Refuse facts that cannot be true of this tool: a wrong fact is worse than none."""
    _check_words(tool)
    for fault in origin_faults(tool.origins, tool.result):
        raise ToolError(
            "tools.bad-origins",
            f"{tool.name!r}, the origin of {str(fault.path[0] if fault.path else '')[:100]!r}: {fault.message[:500]}",
            expected=fault.expected,
            nearest=fault.nearest,
        )
    known = {argument.name: argument for argument in tool.arguments}
    named = (*(() if tool.receivers is UNDECLARED else tool.receivers), *((tool.keeps,) if tool.keeps else ()))
    for name in named:
        if name not in known:
            raise ToolError(
                "tools.unknown-argument",
                f"{tool.name!r} declares something of {name!r}, which it does not have",
                nearest=nearest_name(name, known),
            )
    for fault in () if tool.attaches is UNDECLARED else attach_faults(tool.attaches, known):
        raise ToolError(
            "tools.bad-origins", f"{tool.name!r}, what it attaches: {fault.message[:500]}", expected=fault.expected
        )
    if tool.itemised is not None:
        listed = inner_type(tool.result, tool.itemised) if tool.itemised else tool.result
        if not isinstance(t.without_optional(listed or t.ANY), t.ListType):
            raise ToolError(
                "tools.bad-origins",
                f"{tool.name!r} cannot label the items of {tool.itemised!r} one by one",
                expected="the name of a field of the result that is a list, or '' for a list",
            )
    if tool.keeps and (
        tool.effect != "pure" or tool.origins or not isinstance(t.without_optional(tool.result), t.ListType)
    ):
        raise ToolError(
            "tools.bad-origins",
            f"{tool.name!r} cannot keep the items of {tool.keeps!r}",
            expected="a pure tool without origins of its own that gives a list",
        )
