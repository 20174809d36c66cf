"""The planner's prompt: rules and tools first, since they never change, the request last."""

from __future__ import annotations

from collections.abc import Sequence

from bicameral.models import Message
from bicameral.planning._intent import Intent
from bicameral.planning._matching import FILE_PATTERN, PlanExample, load_examples
from bicameral.planning._neutral_names import NeutralNames
from bicameral.planning._statement_grammar import FENCE
from bicameral.tools import Registry, Tool
from bicameral.types import DictType, ListType, NullType, OptionalType, RecordType, StrType, Type

PROMPT_VERSION = 4
"""Counts up whenever the prompt changes, since cached plans depend on it."""

PREFILL = f"{FENCE}python\n"

_RULES = """\
You write short plans in a small part of Python: assignments, tool calls, for, if/else. No import, def or while.
Use only the tools below, one call per line. Use exactly the names, numbers and addresses of the request.
Do everything that was asked and nothing else. Never make up content: work with what tools return.
To understand prose (a mail, a page, a document) use extract(text, "what to read", type), where type is
str, int, float, bool, date, datetime or {"field": type}. Every plan ends with answer(value).
Search for words in the singular: "error", not "errors".
Built in: len sum min max sorted mean round str int float timedelta, f-strings, list comprehensions.
"""


def adapter_setup_messages(registry: Registry) -> tuple[Message, ...]:
    """The part of the prompt before the request, for a model that was trained to write plans: it needs no examples."""
    return (Message("system", f"{_RULES}\nTools:\n{tool_lines(registry)}\n\nRecords:\n{record_lines(registry)}"),)


def setup_messages(registry: Registry, near: Sequence[PlanExample] = ()) -> tuple[Message, ...]:
    """The part of the prompt before the request."""
    shown = [example for example in (*load_examples().always, *near) if _is_usable(example, registry)]
    turns = list(adapter_setup_messages(registry))
    for example in shown:
        turns += [Message("user", example.request), Message("assistant", f"{PREFILL}{example.plan}{FENCE}")]
    return tuple(turns)


def request_text(intent: Intent, registry: Registry, names: NeutralNames, *, account: bool = True) -> str:
    """The request as the planner reads it, with the days it means and the columns of the tables it names.

    `registry` and `names` are those of the planner: what somebody else called a column is not in them.

    Echo's account of a request helps a model that was not trained on requests as people write them.
    """
    lines = [intent.request]
    if account and intent.by == "echo":
        steps = "; ".join(step.action + (f" {step.about}" if step.about else "") for step in intent.steps)
        lines.append(f"(that is: {steps})")
    for named in intent.dates:
        if named.start == named.end:
            lines.append(f'"{named.phrase}" is date("{named.start}"), a {named.start:%A}')
        else:
            lines.append(f'"{named.phrase}" is from date("{named.start}") to date("{named.end}")')
    lines += [f"{name}: {names.describe(type_)}" for name, type_ in named_tables(intent.request, registry)]
    return "\n".join(lines)


def named_tables(request: str, registry: Registry) -> list[tuple[str, Type]]:
    """The tables that a request names, and what is known of each."""
    found: list[tuple[str, Type]] = []
    for name in dict.fromkeys(FILE_PATTERN.findall(request)):
        for tool in registry:
            required = [argument.name for argument in tool.arguments if argument.required]
            if tool.refine is None or len(required) != 1:
                continue
            known = tool.refined_result({}, {required[0]: name})
            if known != tool.result:
                found.append((name, known))
                break
    return found


def repair_text(code: str, problems: Sequence[str]) -> str:
    """What a planner is told about a plan that does not hold."""
    listed = "\n".join(f"- {problem}" for problem in problems)
    return f"This plan is wrong:\n{FENCE}python\n{code}{FENCE}\n{listed}\nWrite the corrected plan."


def tool_lines(registry: Registry) -> str:
    return "\n".join(_tool_line(tool) for tool in registry)


def _tool_line(tool: Tool) -> str:
    """A tool in few tokens: decoding holds to the types anyway, so the names and the result are enough."""
    arguments = ", ".join(a.name + ("" if a.required else "=") for a in tool.arguments)
    result = "" if isinstance(tool.result, NullType) else f" -> {_short_type(tool.result)}"
    return f"{tool.name}({arguments}){result}: {tool.doc.split(chr(10), 1)[0].rstrip('.')}"


def _short_type(type_: Type) -> str:
    match type_:
        case ListType(item=DictType()):
            return "rows"
        case ListType(item=StrType()):
            return "lines"
        case _:
            return str(type_)


def record_lines(registry: Registry) -> str:
    """The records that tools give and their fields."""
    records: dict[str, RecordType] = {}
    for tool in registry:
        _collect_records(tool.result, records)
    return "\n".join(f"{name}: {', '.join(record.names)}" for name, record in records.items())


def _collect_records(type_: Type, records: dict[str, RecordType]) -> None:
    match type_:
        case ListType(item=item) | OptionalType(item=item):
            _collect_records(item, records)
        case RecordType(name=name, fields=fields) if name:
            records.setdefault(name, type_)
            for field in fields:
                _collect_records(field.type, records)
        case _:
            return


def _is_usable(example: PlanExample, registry: Registry) -> bool:
    """Whether every tool of an example exists here, under the name the example uses."""
    return all(name in registry for name in example.tools)
