"""The planner's prompt, and type-directed decoding of its reply.

Rules and tools come first in the prompt, since they never change, and the request last. Where the provider supports
grammars a plan is decoded one statement at a time, under a grammar made from the tools and the variables in scope.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bicameral.errors import PlanError
from bicameral.models import Message, ReplyToken
from bicameral.planning._grammar_paths import NamedObjects
from bicameral.planning._intent_document import Intent, request_text
from bicameral.planning._matching import PlanExample, load_examples
from bicameral.planning._rounds import EarlierRounds, bound_names, replace_look
from bicameral.planning._statement_grammar import FENCE, Opening, statement_grammar
from bicameral.plans import Answer, Each, Scope, When, check_step, parse, type_of
from bicameral.sessions import Session
from bicameral.text import lazy_pattern
from bicameral.tools import Registry, Tool
from bicameral.types import ANY, DictType, ListType, NullType, OptionalType, RecordType, StrType, Type

PROMPT_VERSION = 5
"""Increased with every change of the prompt, since cached plans depend on it."""

PREFILL = f"{FENCE}python\n"

_RULES = """\
You write short plans in a small part of Python: assignments, tool calls, for, if/else. No import, def or while.
Use only the tools below, one call per line. Do everything that was asked and nothing else. Never make up content.
You cannot see files, tables, mails or calendars. Name what is there in the words of the request: file("bills"),
folder("photos"), column("amount due"), value("groceries"), person("Anna"), event("dentist"), mail("the offer").
Copy file names, numbers, addresses and quoted text of the request exactly.
To understand prose (a mail, a page, a document) use extract(text, "what to read", type), where type is
str, int, float, bool, date, datetime or {"field": type}. Every plan ends with answer(value).
If no tool can do it, write only cannot("why"). If something must be known first, write x = ask("question").
Built in: len sum min max sorted mean round unique str int float timedelta, f-strings, list comprehensions.
"""


def adapter_setup_messages(registry: Registry) -> tuple[Message, ...]:
    """The prompt before the request for a model with the adapter: it needs no examples."""
    tools = "\n".join(_tool_line(tool) for tool in registry)
    return (Message("system", f"{_RULES}\nTools:\n{tools}\n\nRecords:\n{record_lines(registry)}"),)


def setup_messages(registry: Registry, near: Sequence[PlanExample] = ()) -> tuple[Message, ...]:
    """The prompt before the request, with examples."""
    examples = (*load_examples().always, *near)
    shown = [example for example in examples if all(name in registry for name in example.tools)]
    turns = list(adapter_setup_messages(registry))
    for example in shown:
        turns += [Message("user", example.request), Message("assistant", f"{PREFILL}{example.plan}{FENCE}")]
    return tuple(turns)


def prompt_text(intent: Intent) -> str:
    """The intent as the planner reads it, with the days that it means.

    Nothing of the world is in it: names of files, columns and people are those of the request.
    """
    lines = [request_text(intent)]
    for named in intent.dates:
        if named.start == named.end:
            lines.append(f'"{named.phrase}" is date("{named.start}"), a {named.start:%A}')
        else:
            lines.append(f'"{named.phrase}" is from date("{named.start}") to date("{named.end}")')
    return "\n".join(lines)


def repair_text(code: str, problems: Sequence[str]) -> str:
    """The message to the planner about a plan that does not pass the check."""
    listed = "\n".join(f"- {problem}" for problem in problems)
    return f"This plan is wrong:\n{FENCE}python\n{code}{FENCE}\n{listed}\nWrite the corrected plan."


def _tool_line(tool: Tool) -> str:
    """A tool in few tokens: decoding enforces the types, so names and result are enough."""
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
    """The named records that tools return, with their fields."""
    return type_lines(tool.result for tool in registry)


def type_lines(types: Iterable[Type]) -> str:
    """The named records of some types, with their fields."""
    records: dict[str, RecordType] = {}
    for each in types:
        _collect_records(each, records)
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


MAX_STATEMENTS = 24
LONG_PLAN = 16
STATEMENT_TOKENS = 220
MAX_LEVEL = 4
_INDENT = lazy_pattern(r"^( *)")
_PLACEHOLDER = "_ = 0\n"


@dataclass(frozen=True, slots=True)
class Sampling:
    """How replies are chosen. At temperature 0 the likeliest one is; above it the seed decides, and repeats."""

    temperature: float = 0.0
    seed: int = 0


GREEDY = Sampling()


@dataclass(frozen=True, slots=True)
class PlanDraft:
    """The code that a model wrote, what makes it unusable, and the probabilities of its tokens if asked for.

    `refusal` is why the request cannot be served, if the model says so instead of writing a plan.
    """

    code: str
    problem: str | None = None
    confidence: tuple[ReplyToken, ...] = ()
    refusal: str | None = None


def refusal_reason(code: str) -> str | None:
    """The reason of a plan that is `cannot(reason)` and nothing else."""
    try:
        body = ast.parse(code).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    match body:
        case [ast.Expr(value=ast.Call(func=ast.Name(id="cannot"), args=[ast.Constant(value=str() as reason)]))]:
            return reason.strip() or "it does not say why"
        case _:
            return None


async def decode_typed(
    session: Session,
    request: str,
    registry: Registry,
    watch: Callable[[str], None] | None = None,
    *,
    named: NamedObjects | None = None,
    after: str = "",
    avoid: frozenset[str] = frozenset(),
    earlier: EarlierRounds | None = None,
    confidence: bool = False,
    sampling: Sampling = GREEDY,
    may_refuse: bool = True,
) -> PlanDraft:
    """A plan that type-checks by construction, statement by statement.

    Args:
        named: The objects that the request names, for the grammar.
        after: The correct beginning of a plan that is repaired; decoding continues after it.
        avoid: Tools that the next statement must not call.
        confidence: Whether to ask for the probability of each token.
        sampling: Temperature and seed of every statement.
        may_refuse: Whether the plan may be `cannot(reason)`; if not, neither may it begin with a question.
    """
    code, ending, tokens = after, False, list[ReplyToken]()
    opening = "" if earlier is None else earlier.opening
    given = frozenset[str]() if earlier is None else earlier.fixed_names
    for number in range(MAX_STATEMENTS):
        try:
            openings = next_openings(code, registry, earlier)
            if ending or number >= LONG_PLAN:
                openings = [replace(opening, ending=True) for opening in openings if opening.may_answer]
            if not may_refuse and not code:
                # A question as the first statement would be the refusal in other words.
                openings = [replace(opening, first=False, may_ask=False) for opening in openings]
        except PlanError as error:
            return PlanDraft(code, str(error))
        if not openings:
            return PlanDraft(code, confidence=tuple(tokens))
        reply = await session.ask(
            request,
            prefill=PREFILL + opening + code,
            grammar=statement_grammar(registry.without(avoid) if code == after else registry, openings, named, given),
            max_tokens=STATEMENT_TOKENS,
            confidence=confidence,
            temperature=sampling.temperature,
            seed=sampling.seed,
        )
        statement = reply.text
        if reply.finish == "length" or not statement.endswith("\n"):
            return PlanDraft(code + statement.rstrip("\n") + "\n", "a statement is too long")
        if _is_repetition(statement, code) and not ending:
            # A small model that repeats itself is done and only failed to end the plan.
            ending = True
            continue
        code += statement
        tokens += reply.confidence
        if watch is not None:
            watch(statement.rstrip("\n"))
        if reason := refusal_reason(code):
            return PlanDraft(code, refusal=reason, confidence=tuple(tokens))
    return PlanDraft(code, f"the plan has more than {MAX_STATEMENTS} statements")


def _is_repetition(statement: str, code: str) -> bool:
    """Whether the code has this statement or one that assigns the same value, or a name is assigned to itself."""
    lines = [line.strip() for line in code.splitlines()]
    line = statement.strip()
    if line.endswith(":") or ".append(" in line or "+=" in line or line.startswith(("answer(", "look(")):
        return False
    name, _, value = line.partition(" = ")
    return (
        line in lines
        or (bool(value) and name == value)
        or (bool(value) and any(each.endswith(f" = {value}") for each in lines))
    )


class _LineWatch:
    """Passes a text that comes in pieces on as whole lines, each of them once."""

    def __init__(self, watch: Callable[[str], None]) -> None:
        self._watch = watch
        self._rest = ""
        self._told = self._empty = 0

    def hear(self, text: str) -> None:
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            # Empty lines wait for the next one: at the end of a plan there are none.
            if not line.strip():
                self._empty += 1
                continue
            for _ in range(self._empty):
                self._tell("")
            self._empty = 0
            self._tell(line)

    def finish(self, code: str) -> None:
        """Tell the lines of the whole text that were not told yet."""
        for line in code.splitlines()[self._told :]:
            self._tell(line)

    def _tell(self, line: str) -> None:
        self._told += 1
        self._watch(line)


async def decode_freely(
    session: Session,
    request: str,
    watch: Callable[[str], None] | None = None,
    *,
    confidence: bool = False,
    sampling: Sampling = GREEDY,
) -> PlanDraft:
    """A plan without a grammar: all text before the closing fence. It is watched line by line, as it is written."""
    lines = None if watch is None else _LineWatch(watch)
    reply = await session.ask(
        request,
        prefill=PREFILL,
        stop=(FENCE,),
        confidence=confidence,
        temperature=sampling.temperature,
        seed=sampling.seed,
        hear=None if lines is None else lines.hear,
    )
    code = reply.text.removeprefix(PREFILL).rstrip() + "\n"
    if lines is not None:
        lines.finish(code)
    problem = "the plan was cut off" if reply.finish == "length" else None
    return PlanDraft(code, problem, reply.confidence, None if problem else refusal_reason(code))


def next_openings(code: str, registry: Registry, earlier: EarlierRounds | None = None) -> list[Opening]:
    """The places where the next statement may stand; none once the plan answers on every path."""
    earlier = earlier or EarlierRounds(may_look=False)
    known, may_look = earlier.variables, earlier.may_look
    if may_look:
        code = replace_look(code).text
    lines = code.splitlines()
    if not lines:
        return [Opening(0, known, first=True)]
    level = _indent_level(lines[-1])
    opens = lines[-1].rstrip().endswith(":")
    whole = code + "    " * (level + 1) + _PLACEHOLDER if opens else code
    steps = parse(whole, registry).plan.steps
    if not opens and has_answer_on_every_path(steps):
        return []
    scopes = _block_scopes(steps, registry, level + 1 if opens else level, known)
    if opens:
        inside = lines[-1].lstrip().startswith("for ")
        return [Opening(level + 1, scopes[level + 1], deeper=level + 1 < MAX_LEVEL, may_answer=not inside)]
    ended = lines[-1].lstrip().startswith("answer(")
    return [
        Opening(
            at,
            scopes[at],
            _can_take_else(lines, at),
            at < MAX_LEVEL,
            may_answer=not _is_in_loop(lines, at),
            looks=tuple(scopes[at]) if may_look and at == 0 and "answer(" not in code else (),
        )
        for at in range(level, -1, -1)
        if not (ended and at == level)
    ]


def _indent_level(line: str) -> int:
    match = _INDENT.match(line)
    return len(match[1]) // 4 if match else 0


def _can_take_else(lines: Sequence[str], level: int) -> bool:
    """Whether the last statement at this level is an `if` whose block has just ended and that has no `else` yet."""
    last = next((line.strip() for line in reversed(lines) if _indent_level(line) <= level), "")
    return last.startswith("if ") and _indent_level(lines[-1]) > level


def _is_in_loop(lines: Sequence[str], level: int) -> bool:
    """Whether a statement at this level stands directly in the body of a loop."""
    header = next((line.strip() for line in reversed(lines) if _indent_level(line) < level), "")
    return header.startswith("for ")


def _block_scopes(
    steps: Sequence[Any], registry: Registry, depth: int, known: Mapping[str, Type]
) -> list[Mapping[str, Type]]:
    """The variables in scope at the end of each open block, from the outermost to the innermost."""
    scope, found = Scope.from_types(known), list[Mapping[str, Type]]()
    for level in range(depth + 1):
        before = scope
        for step in steps:
            before = scope
            _, scope = check_step(step, scope, registry, "")
        found.append({name: scope.variables[name].type for name in bound_names(scope) if name != "_"})
        if level == depth:
            break
        steps, scope = _open_block(steps[-1], before)
    return found


def _open_block(step: Any, scope: Scope) -> tuple[Sequence[Any], Scope]:
    """The open block of the last statement, and the scope in which it begins."""
    match step:
        case Each():
            over = type_of(step.over, scope)
            item = over.item if isinstance(over, ListType) else ANY
            for name in step.names:
                scope = scope.bind(name, item if len(step.names) == 1 else ANY)
            return step.steps, scope
        case When():
            return (step.otherwise or step.steps), scope
        case _:
            return (), scope


def has_answer_on_every_path(steps: Sequence[Any]) -> bool:
    """Whether every path through these steps ends with an answer."""
    for step in steps:
        match step:
            case Answer():
                return True
            case When() if (
                step.otherwise and has_answer_on_every_path(step.steps) and has_answer_on_every_path(step.otherwise)
            ):
                return True
            case _:
                continue
    return False
