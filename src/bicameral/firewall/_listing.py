"""What a client reads of the tools: names, reviewed lines, and argument schemas that also take names of results.

Nothing here is a server's own text: names and lines come from declarations that a person has reviewed, and schemas are
made from types. A tool that nobody has reviewed is not listed, unless the settings show such tools; then its name is
untrusted text that the client reads. What is not listed cannot be called. Schemas of results are not advertised, since
a client that validates would refuse a view.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bicameral import types as t
from bicameral.display import make_visible
from bicameral.errors import ConfigError
from bicameral.firewall._settings import FirewallSettings, server_of
from bicameral.labels import NOTHING, USER, Label, Source, join_all
from bicameral.patterns.handles import EXTRACT_DOC, EXTRACT_TOOL, extract_schema
from bicameral.tools import Effect, Registry, Tool

REVEAL_TOOL = "reveal"
REVEAL_DOC = (
    "Ask the user whether you may read the text of a result that is not shown to you. If they agree you get the text, "
    "and from then on each of your calls that changes or sends something is put to the user."
)
UNREVIEWED_DOC = "Nobody has reviewed this tool: each call is put to the user, and its results are not shown."
_MAX_DOC = 1_000
_HANDLE: Mapping[str, Any] = {"type": "string", "pattern": "^\\$", "description": "the name of a result, such as $r1"}


@dataclass(frozen=True, slots=True)
class ToolListing:
    """One tool as a client sees it; `effect` and `outbound` are what a person has declared."""

    name: str
    doc: str
    schema: Mapping[str, Any]
    effect: Effect
    outbound: bool
    idempotent: bool


@dataclass(frozen=True, slots=True)
class ToolList:
    """The tools that clients see and can call, and the label of the list itself."""

    tools: Mapping[str, Tool]
    listings: tuple[ToolListing, ...]
    label: Label = NOTHING

    @classmethod
    def of(cls, registry: Registry, settings: FirewallSettings, *, extracts: bool) -> ToolList:
        """The tools of a registry as the settings allow them; `extracts` says whether there is a quarantined model."""
        for name in (EXTRACT_TOOL, REVEAL_TOOL):
            if name in registry:
                raise ConfigError(
                    "firewall.tool-name",
                    f"a tool is called {name!r}, which is the name of one of the firewall's own",
                    fix="Give it another name in the declarations of its server.",
                )
        tools = {tool.name: tool for tool in registry if _is_visible(tool, settings)}
        own = (*((_extract_listing(),) if extracts else ()), _reveal_listing())
        # Whoever reads a name that nobody has reviewed has read a text of that server.
        label = join_all(
            Label({Source("third_party", tool.name, "listing")}, {USER})
            for tool in tools.values()
            if tool.self_described
        )
        return cls(tools, (*(_listing(tool) for tool in tools.values()), *own), label)


def _is_visible(tool: Tool, settings: FirewallSettings) -> bool:
    allow = settings.rules(server_of(tool)).allow
    return (allow is None or tool.name in allow) and (not tool.self_described or settings.undeclared == "show")


def _listing(tool: Tool) -> ToolListing:
    doc = UNREVIEWED_DOC if tool.self_described else make_visible(" ".join(tool.doc.split()))[:_MAX_DOC]
    return ToolListing(
        tool.name, doc, argument_schemas(tool), tool.effect, tool.outbound is True, tool.idempotent or not tool.changes
    )


def _extract_listing() -> ToolListing:
    return ToolListing(EXTRACT_TOOL, EXTRACT_DOC, extract_schema().parameters, "read", outbound=False, idempotent=True)


def _reveal_listing() -> ToolListing:
    schema = _object_schema({"handle": dict(_HANDLE)}, ["handle"])
    return ToolListing(REVEAL_TOOL, REVEAL_DOC, schema, "read", outbound=False, idempotent=True)


def argument_schemas(tool: Tool) -> dict[str, Any]:
    """The schema of a tool's arguments, each of which can also be given by the name of a result."""
    properties: dict[str, Any] = {}
    for argument in tool.arguments:
        # What nobody has reviewed about an argument is its text, too.
        doc = "" if tool.self_described else make_visible(" ".join(argument.doc.split()))[:_MAX_DOC]
        properties[argument.name] = value_schema(argument.type) | ({"description": doc} if doc else {})
    return _object_schema(properties, [argument.name for argument in tool.arguments if argument.required])


def value_schema(type_: t.Type) -> dict[str, Any]:
    """The JSON Schema of a value of a type, or of a name that stands for one, at every level."""
    match type_:
        case t.OptionalType(item=item):
            return {"anyOf": [*_choices(item), {"type": "null"}]}
        case t.AnyType() | t.CellType():
            return {}
        case _:
            choices = list(_choices(type_))
            return choices[0] if len(choices) == 1 else {"anyOf": choices}


def _choices(type_: t.Type) -> Iterator[dict[str, Any]]:
    plain = _plain_schema(type_)
    yield plain
    # A plain text takes a name as it is.
    if plain not in ({"type": "string"}, {}):
        yield dict(_HANDLE)


def _plain_schema(type_: t.Type) -> dict[str, Any]:
    match type_:
        case t.ListType(item=item):
            return {"type": "array", "items": value_schema(item)}
        case t.TupleType(items=items):
            schemas = [value_schema(item) for item in items]
            return {"type": "array", "prefixItems": schemas, "minItems": len(items), "maxItems": len(items)}
        case t.DictType(value=value):
            return {"type": "object", "additionalProperties": value_schema(value)}
        case t.RecordType(fields=fields):
            properties = {field.name: value_schema(field.type) for field in fields}
            return _object_schema(properties, [field.name for field in fields])
        case _:
            try:
                return t.type_json_schema(type_)
            except ValueError:
                # Whatever has no schema is checked when it is called.
                return {}


def _object_schema(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
