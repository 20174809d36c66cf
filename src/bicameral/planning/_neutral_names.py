"""What a planner sees of the tools: nothing of the world, and neutral names for tools that describe themselves.

No byte that somebody else can choose reaches a privileged prompt. What tools know of files before a run (the columns of
a table) is left out: a planner names a column in the words of the request, and binding finds it. A program that
describes itself and whose word the user does not take chose the names of its tools, arguments and fields, so a planner
is shown `tool_1` and `argument_1` in their place, and which words of the request fit the description.
"""

from __future__ import annotations

from dataclasses import replace

from bicameral import types as t
from bicameral.planning._matching import shared_words
from bicameral.plans import Call, Plan, rewrite_steps
from bicameral.text import lazy_pattern
from bicameral.tools import Registry, Tool

_NEUTRAL_NAME = lazy_pattern(r"\btool_\w+")
_MAX_DOC_LENGTH = 500


class NeutralNames:
    """The neutral names of one request, the same for the prompt, the grammar, the check and all rounds.

    Example:
        >>> names = NeutralNames("Total the amounts in sales.csv")
        >>> names.planner_registry(registry)["read_csv"].refine is None
        True
    """

    def __init__(self, request: str = "") -> None:
        self._request = request
        self._tools: dict[str, str] = {}
        self._calls: dict[str, tuple[str, dict[str, str]]] = {}
        self.influenced = False
        """Whether a description that somebody else wrote decided which words of the request the planner is shown."""

    def planner_registry(self, registry: Registry) -> Registry:
        """The same tools as a planner may see them."""
        return Registry(self._planner_tool(tool) for tool in registry)

    def _planner_tool(self, tool: Tool) -> Tool:
        if tool.self_described:
            return self._neutral_tool(tool)
        # A tool without effects refines its result from the types that it is given, and reads nothing.
        return tool if tool.refine is None or tool.effect == "pure" else replace(tool, refine=None)

    def _neutral_tool(self, tool: Tool) -> Tool:
        name = self._tools.setdefault(tool.name, f"tool_{len(self._tools) + 1}")
        arguments = {each.name: f"argument_{number}" for number, each in enumerate(tool.arguments, 1)}
        self._calls[name] = (tool.name, {neutral: real for real, neutral in arguments.items()})
        told = " ".join((tool.name.replace("_", " "), *tool.words, tool.doc[:_MAX_DOC_LENGTH]))
        said = shared_words(self._request, told)
        quoted = " and ".join(f'"{phrase}"' for phrase in said)
        self.influenced = True
        return replace(
            tool,
            name=name,
            doc="A command" + (f", matches {quoted}" if quoted else ""),
            words=(),
            configured={},
            arguments=tuple(
                replace(each, name=arguments[each.name], doc="", type=_without_names(each.type))
                for each in tool.arguments
            ),
            result=_without_names(tool.result),
            refine=None,
            receivers=tuple(arguments[each] for each in tool.receivers),
            attaches={},
            origins={},
            accepts=(),
            gives=(),
            capabilities=(),
            described=None,
        )

    def to_real(self, plan: Plan) -> Plan:
        """The plan with the real names of tools and their arguments."""
        if not self._calls:
            return plan
        steps = rewrite_steps(plan.steps, self._to_real_step, lambda expr: expr)
        return plan.model_copy(update={"steps": steps})

    def _to_real_step(self, step: object) -> object:
        if not isinstance(step, Call) or step.tool not in self._calls:
            return step
        tool, arguments = self._calls[step.tool]
        given = {arguments.get(name, name): value for name, value in step.args.items()}
        return step.model_copy(update={"tool": tool, "args": given})

    def to_readable(self, text: str) -> str:
        """A text with the real names of tools, for people."""
        real = {name: tool for name, (tool, _) in self._calls.items()}
        return _NEUTRAL_NAME.sub(lambda found: real.get(found[0], found[0]), text) if real else text


def _without_names(type_: t.Type) -> t.Type:
    """The type without names of fields and without words that may be chosen."""
    match type_:
        case t.ListType(item=item):
            return t.ListType(_without_names(item))
        case t.OptionalType(item=item):
            return t.OptionalType(_without_names(item))
        case t.TupleType(items=items):
            return t.TupleType(tuple(map(_without_names, items)))
        case t.DictType(value=value):
            return t.DictType(_without_names(value))
        case t.RecordType():
            return t.DictType(t.ANY)
        case t.LiteralType():
            return t.STR
        case t.StrType(format=format_) if format_ not in (None, "path", "email", "url", "id"):
            return t.STR
        case _:
            return type_
