"""Values that direct an effect (recipient, path, link, amount, id, day) and that nobody gave.

Such a value must come from the request, the settings, a binding, or a tool's result. A reference counts by its words:
what they are bound to is there, but nobody named it if the words are the planner's own. `ungrounded_directives` follows
every literal of a plan to the arguments that direct calls, however it is assembled: an expression of constants is
evaluated and its value looked up as a whole, since `"eve" + "@" + "example.org"` has only harmless parts; where
literals are joined with results of tools, each literal must be in the request. What cannot be followed is refused.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import product
from typing import Any, cast

from bicameral.planning._effect_words import fold
from bicameral.planning._intent_document import Intent
from bicameral.plans import (
    Apply,
    Ask,
    Call,
    Choose,
    Clause,
    Compare,
    Comprehension,
    Compute,
    Const,
    Each,
    EvaluationError,
    Extract,
    Format,
    Get,
    Index,
    Lambda,
    ListOf,
    Plan,
    Ref,
    Reference,
    Slice,
    Update,
    When,
    children,
    directing_arguments,
    evaluate_expr,
    free_names,
    walk,
)
from bicameral.text import STOP_WORDS, mentions, mentions_path
from bicameral.tools import Registry, Tool
from bicameral.types import LiteralType

MAX_ALTERNATIVES = 64
_PASSES = 3
"""How often a loop is walked: literals move at most a few variables further with each turn."""


@dataclass(frozen=True, slots=True)
class UngroundedDirective:
    """A literal that directs a call and that neither the request nor the settings have."""

    path: str
    tool: str
    argument: str
    value: str


@dataclass(frozen=True, slots=True)
class _Origin:
    """Where a value comes from.

    `values` are all values that it can have, if it is made of constants alone. Otherwise `whole` are the constants that
    it may be or contain as they are, and `pieces` those that were joined with something else. `lost`: constants were
    joined in a way that cannot be followed.
    """

    values: tuple[Any, ...] | None = None
    whole: frozenset[Any] = frozenset()
    pieces: frozenset[Any] = frozenset()
    lost: bool = False

    def leaves(self) -> frozenset[Any]:
        found = frozenset(leaf for value in self.values or () for leaf in _leaves(value))
        return found | self.whole


_FROM_TOOL = _Origin()
Origins = dict[str, _Origin]


def ungrounded_directives(
    plan: Plan, intent: Intent, registry: Registry, settings: Collection[str] = ()
) -> tuple[UngroundedDirective, ...]:
    """The literals of a plan that direct an effect and that nobody gave.

    Args:
        plan: The plan.
        intent: What it is for: its request and its days.
        registry: The tools.
        settings: Values of the user's settings, such as the own addresses (`policy.me`).

    Example:
        >>> ungrounded_directives(plan, Intent(request="Mail the menu to Kim"), registry)
        (UngroundedDirective(path='1', tool='send_mail', argument='to', value='kim@example.com'),)
    """
    walker = _DirectiveWalker(registry, _Grounds(intent, frozenset(map(str.casefold, settings))))
    walker.walk(plan.steps, {}, "")
    return tuple(dict.fromkeys(walker.found))


class _DirectiveWalker:
    def __init__(self, registry: Registry, grounds: _Grounds) -> None:
        self._registry = registry
        self._grounds = grounds
        self.found: list[UngroundedDirective] = []

    def walk(self, steps: tuple[Any, ...], env: Origins, at: str) -> None:
        """Follow values through steps; the variables are changed in place."""
        for number, step in enumerate(steps):
            path = f"{at}{number}"
            match step:
                case Call():
                    given = {name: _origin_of(value, env) for name, value in step.args.items()}
                    result = self._after_call(step, given, path)
                    if step.name is not None:
                        env[step.name] = result
                case Compute():
                    env[step.name] = _origin_of(step.value, env)
                case Update():
                    env[step.name] = _after_update(step, env)
                case Extract():
                    # A model that reads only what the plan itself says returns the plan's words.
                    source = _origin_of(step.source, env)
                    constants = source.leaves() if source.values is not None else frozenset[Any]()
                    env[step.name] = _Origin(pieces=constants, lost=bool(constants))
                case Ask():
                    env[step.name] = _FROM_TOOL
                case When():
                    other = dict(env)
                    self.walk(step.steps, env, f"{path}/then/")
                    self.walk(step.otherwise, other, f"{path}/else/")
                    for name, origin in other.items():
                        env[name] = _either(env[name], origin) if name in env else origin
                case Each():
                    item = _item_of(_origin_of(step.over, env))
                    for _ in range(_PASSES):
                        before = dict(env)
                        env.update(dict.fromkeys(step.names, item))
                        self.walk(step.steps, env, f"{path}/")
                        for name, origin in before.items():
                            env[name] = _either(origin, env[name])
                case _:
                    pass

    def _after_call(self, step: Call, given: Mapping[str, _Origin], path: str) -> _Origin:
        tool = self._registry.get(step.tool)
        if tool is None:
            return _Origin(lost=True)
        if tool.changes or tool.outbound:
            for name, _ in directing_arguments(tool):
                if name in given:
                    wrong = self._grounds.ungrounded(given[name], _is_recipient(tool, name), declared=tool.declared)
                    self.found += [UngroundedDirective(path, tool.name, name, str(value)) for value in wrong]
        return _after_tool(tool, given)


def _is_recipient(tool: Tool, name: str) -> bool:
    return tool.declared and tool.effect == "send" and name in tool.receivers


def _after_tool(tool: Tool, given: Mapping[str, _Origin]) -> _Origin:
    """A pure tool makes its result of its arguments; what any other returns comes from the world."""
    if tool.effect != "pure" or tool.outbound or not given:
        return _FROM_TOOL
    if tool.keeps is not None:
        return given.get(tool.keeps, _FROM_TOOL)
    parts = [
        origin for name, origin in given.items() if (argument := tool.argument(name)) is None or not argument.field_of
    ]
    return _Origin(pieces=frozenset[Any]().union(*(each.leaves() | each.pieces for each in parts)))


def _leaves(value: Any) -> Iterator[Any]:
    match value:
        case dict():
            for key, each in cast("dict[Any, Any]", value).items():
                yield from _leaves(key)
                yield from _leaves(each)
        case list() | tuple() | set() | frozenset():
            for each in cast("list[Any]", value):
                yield from _leaves(each)
        case None | bool():
            return
        case _:
            yield value


def _either(one: _Origin, other: _Origin) -> _Origin:
    if one == other:
        return one
    if one.values is not None and other.values is not None:
        merged = _distinct((*one.values, *other.values))
        if merged is not None:
            return _Origin(merged, lost=one.lost or other.lost)
    return _Origin(None, one.leaves() | other.leaves(), one.pieces | other.pieces, one.lost or other.lost)


def _distinct(values: tuple[Any, ...]) -> tuple[Any, ...] | None:
    found = list({repr(value): value for value in values}.values())
    return tuple(found) if len(found) <= MAX_ALTERNATIVES else None


def _item_of(over: _Origin) -> _Origin:
    if over.values is None:
        return over
    items = [item for value in over.values for item in (value if isinstance(value, list | tuple) else _leaves(value))]
    kept = _distinct(tuple(cast("list[Any]", items)))
    # A turn with several names takes an item apart: each of them may be any part.
    parts = tuple(leaf for item in items for leaf in _leaves(item))
    return (
        _Origin(kept, frozenset(), frozenset())
        if kept is not None and parts == tuple(items)
        else _Origin(whole=over.leaves())
    )


def _after_update(step: Update, env: Origins) -> _Origin:
    now, value = env.get(step.name, _FROM_TOOL), _origin_of(step.value, env)
    if step.op != "add":
        key = _origin_of(step.key, env) if step.key is not None else _FROM_TOOL
        return _Origin(
            None, now.leaves() | value.leaves() | key.leaves(), now.pieces | value.pieces, now.lost or value.lost
        )
    if now.values is not None and value.values is not None and len(now.values) * len(value.values) <= MAX_ALTERNATIVES:
        try:
            return _Origin(_distinct(tuple(a + b for a, b in product(now.values, value.values))), lost=now.lost)
        except TypeError:
            pass
    return _joined_origin([now, value])


def _joined_origin(parts: list[_Origin]) -> _Origin:
    """The origin of a new value made of several: their constants are pieces of it, and no longer whole."""
    constants = frozenset[Any]().union(*(each.leaves() | each.pieces for each in parts))
    lost = any(each.lost for each in parts) or all(each.values is not None for each in parts)
    return _Origin(pieces=constants, lost=lost and bool(constants))


class _ReferenceWords(str):
    """The words of a reference: what they are bound to comes from the world, but the words must be the request's."""

    __slots__ = ()


def _has_reference(expr: Any) -> bool:
    return isinstance(expr, Reference) or any(map(_has_reference, children(expr)))


def _origin_of(expr: Any, env: Origins) -> _Origin:
    if isinstance(expr, Reference):
        return _Origin(whole=frozenset({_ReferenceWords(expr.words)}))
    names = free_names(expr)
    known = {name: env[name].values for name in names if name in env}
    if len(known) == len(names) and all(values is not None for values in known.values()) and not _has_reference(expr):
        return _evaluate(expr, {name: values for name, values in known.items() if values is not None})
    match expr:
        case Ref(name=name):
            return env.get(name, _FROM_TOOL)
        case Get(value=value) | Index(value=value):
            # The key only selects.
            return _origin_of(value, env)
        case Slice(value=value):
            found = _origin_of(value, env)
            return _Origin(None, frozenset(), found.leaves() | found.pieces, found.lost)
        case Compare() | Lambda():
            return _FROM_TOOL
        case Choose(then=then, otherwise=otherwise):
            return _either(_origin_of(then, env), _origin_of(otherwise, env))
        case Comprehension(clauses=clauses, element=element, key=key):
            inner = dict(env)
            for clause in clauses:
                inner.update(dict.fromkeys(cast("Clause", clause).names, _item_of(_origin_of(clause.over, inner))))
            parts = [_origin_of(each, inner) for each in (key, element) if each is not None]
            return reduce(_either, parts)
        case Apply(function="round", args=args):
            # The number of digits is no part of the value.
            return _joined_origin([_origin_of(each, env) for each in args[:1]])
        case Apply(function=function, args=args) if function in ("get", "first", "last", "sorted", "unique", "list"):
            kept = [*args[:1], *(args[2:] if function == "get" else ())]
            return reduce(_either, [_origin_of(each, env) for each in kept], _FROM_TOOL)
        case Format(parts=parts):
            given = [_Origin((part,)) if isinstance(part, str) else _origin_of(part.value, env) for part in parts]
            return _joined_origin(given)
        case _ if expr.kind in ("list", "tuple", "dict", "logic"):
            return reduce(_either, [_origin_of(each, env) for each in children(expr)], _FROM_TOOL)
        case _:
            return _joined_origin([_origin_of(each, env) for each in children(expr)])


def _evaluate(expr: Any, known: Mapping[str, tuple[Any, ...]]) -> _Origin:
    """The values of an expression of constants, for each choice of the values of its variables."""
    count = reduce(lambda total, values: total * len(values), known.values(), 1)
    if isinstance(expr, Lambda):
        return _FROM_TOOL
    if count <= MAX_ALTERNATIVES:
        try:
            made = [evaluate_expr(expr, dict(zip(known, each, strict=True))) for each in product(*known.values())]
            return _Origin(_distinct(tuple(made)))
        except (EvaluationError, ValueError, TypeError, KeyError, OverflowError):
            pass
    return _Origin(
        pieces=frozenset(leaf for values in known.values() for each in values for leaf in _leaves(each)), lost=True
    )


# Grounds --------------------------------------------------------------------------------------------------------------

_TOKEN = re.compile(r"[a-z]+|\d+")
_EXTENSIONS = frozenset(
    "txt csv json md log pdf html xml yaml yml tsv xlsx docx ics eml zip png jpg jpeg gif svg tar gz bak".split()
)
_CONNECTIVES = frozenset(
    "a an and of the to in by for with from on at re fwd fw aw wg und von der die das et de la el y".split()
)
_NUMBER_WORDS: tuple[tuple[int, str], ...] = (
    (0, "zero no none off null"),
    (1, "one once single a an ein eine un une una"),
    (2, "two twice both double zwei deux dos"),
    (3, "three drei trois tres"),
    (4, "four vier quatre cuatro quarter"),
    (5, "five funf cinq cinco"),
    (6, "six sechs seis"),
    (7, "seven sieben sept siete week weekly woche semaine semana"),
    (8, "eight acht huit ocho"),
    (9, "nine neun neuf nueve"),
    (10, "ten zehn dix diez"),
    (11, "eleven elf onze once"),
    (12, "twelve zwolf dozen douze doce noon"),
    (15, "quarter fifteen viertel quart cuarto"),
    (20, "twenty zwanzig vingt veinte"),
    (24, "day tag jour dia"),
    (30, "half thirty halbe demi media"),
    (50, "fifty half"),
    (60, "hour stunde heure hora minute"),
    (90, "ninety"),
    (100, "hundred full percent max hundert cent cien"),
    (1000, "thousand tausend mille mil"),
)
_HOURS = re.compile(r"\b(?:hours?|hrs?|h|stunden?|heures?|horas?)\b|\d:\d\d|\d\s*[ap]m\b")
_PERCENT = re.compile(r"%|\bper ?cent\b|\bprozent\b|\bpour cent\b|\bpor ciento\b")
_FREE_NUMBERS = (0, 1, -1)


class _Grounds:
    """What a request and the settings give."""

    def __init__(self, intent: Intent, own: frozenset[str]) -> None:
        self._request = intent.request
        self._own = own
        self._folded = fold(intent.request)
        self._words = frozenset(_TOKEN.findall(self._folded))
        self._numbers = {float(each.replace(",", ".")) for each in re.findall(r"\d+(?:[.,]\d+)?", self._folded)}
        self._numbers |= {
            float(each.replace(",", "").replace(".", "")) for each in re.findall(r"\d{1,3}(?:[.,]\d{3})+", self._folded)
        }
        self._numbers |= {float(number) for number, words in _NUMBER_WORDS if self._words & set(words.split())}
        self._numbers |= self._derived_numbers()
        self._ranges = [(each.start - dt.timedelta(1), each.end + dt.timedelta(1)) for each in intent.dates]

    def _derived_numbers(self) -> set[float]:
        """Minutes of the hours and between the times that are given, and factors of the percentages."""
        found: set[float] = set()
        if _HOURS.search(self._folded):
            hours = [each for each in self._numbers if each <= 24]
            found |= {60 * each for each in hours} | {60 * abs(one - other) for one in hours for other in hours}
        if _PERCENT.search(self._folded):
            found |= {
                round(factor, 6) for each in self._numbers for factor in (each / 100, 1 + each / 100, 1 - each / 100)
            }
        return found

    def ungrounded(self, origin: _Origin, recipient: bool, *, declared: bool) -> list[Any]:
        """The constants in a value that nobody gave."""
        wrong = [value for value in origin.leaves() if not self._is_given(value, declared)]
        if recipient:
            # An address made of pieces is a new address, whatever the pieces are.
            wrong += [piece for piece in origin.pieces if isinstance(piece, str) and re.search(r"[\w@]", piece)]
        else:
            wrong += [piece for piece in origin.pieces if not self._is_piece_given(piece, declared)]
        if origin.lost and not wrong:
            wrong.append("…")
        return sorted(wrong, key=str)

    def is_given(self, value: Any) -> bool:
        """Whether the request or the settings have a constant."""
        return self._is_given(value, declared=True)

    def _is_given(self, value: Any, declared: bool) -> bool:
        match value:
            case dt.datetime():
                return self._has_day(value.date())
            case dt.date():
                return self._has_day(value)
            case _ReferenceWords():
                return all(map(self._has_token, _TOKEN.findall(fold(value))))
            case str():
                return self._has_text(value, declared)
            case int() | float():
                return value in _FREE_NUMBERS or float(value) in self._numbers or float(-value) in self._numbers
            case dt.timedelta() | dt.time():
                return True
            case _:
                return False

    def _is_piece_given(self, value: Any, declared: bool) -> bool:
        if isinstance(value, str) and (
            "@" in value or "://" in value or ".." in value or value.strip().startswith(("/", "~"))
        ):
            # A separator between results of tools is one slash; a longer beginning leads out of the folder.
            return value == "/" or mentions(self._request, value)
        return self._is_given(value, declared)

    def _has_text(self, text: str, declared: bool) -> bool:
        bare = text.strip()
        if bare in ("", ".") or bare.casefold() in self._own or mentions(self._request, bare):
            return True
        if "@" in bare or "://" in bare:
            return False
        if mentions_path(self._request, bare):
            return True
        if (bare.startswith(("/", "~")) and len(bare) > 1) or ".." in bare or "\\" in bare:
            return False
        if (day := _day_in(bare)) is not None and self._has_day(day):
            bare = bare.replace(day.isoformat(), " ")
        tokens = _TOKEN.findall(fold(bare))
        # The text of a mail or an entry, which an undeclared tool is given, is long: only names and codes direct.
        if not declared and _is_prose(text, tokens):
            return True
        return all(self._has_token(token) for token in tokens)

    def _has_token(self, token: str) -> bool:
        if token.isdigit():
            return token in self._words or float(token) in self._numbers or len(token) == 1
        if token in self._words or token in _EXTENSIONS or token in _CONNECTIVES:
            return True
        # Other forms of a word of the request: invoices, invoice.
        return len(token) > 3 and any(
            len(word) > 3 and (word.startswith(token[:-1]) or token.startswith(word[:-1])) for word in self._words
        )

    def _has_day(self, day: dt.date) -> bool:
        return day.isoformat() in self._request or any(start <= day <= end for start, end in self._ranges)


def _is_prose(text: str, tokens: list[str]) -> bool:
    """Whether a text is a sentence or the beginning of one, and neither a name nor a code."""
    if re.search(r"[\d/\\@]", text) or len(tokens) < (2 if text[-1:] == " " else 3):
        return False
    return len(tokens) > 4 or any(token in STOP_WORDS for token in tokens)


def _day_in(text: str) -> dt.date | None:
    found = re.search(r"\d{4}-\d\d-\d\d", text)
    try:
        return None if found is None else dt.date.fromisoformat(found.group())
    except ValueError:
        return None


# Constants that select ----------------------------------------------------------------------------------------------

_YES_OR_NO = frozenset("yes no true false ja nein oui non si sí no x done open erledigt offen".split())


@dataclass(frozen=True, slots=True)
class InventedConstant:
    """A constant by which a plan selects, and that neither the request nor the settings have."""

    path: str
    value: str


def invented_constants(
    plan: Plan, intent: Intent, registry: Registry, settings: Collection[str] = ()
) -> tuple[InventedConstant, ...]:
    """The numbers, words and days by which a plan selects and that nobody gave: a person should see them.

    Only what is compared or searched for counts. Texts that are shown or sent, keys, positions and the numbers 0 and 1
    do not, and neither do words for yes and no: nobody says them for what is "unpaid".

    Example:
        >>> invented_constants(plan, Intent(request="What is due?"), registry)
        (InventedConstant(path='1', value='2023-10-01'),)
    """
    grounds = _Grounds(intent, frozenset(map(str.casefold, settings)))
    found: dict[InventedConstant, None] = {}
    for path, step in walk(plan.steps):
        for value in _selecting_constants(step, registry):
            if isinstance(value, str) and value.strip().casefold() in _YES_OR_NO:
                continue
            if not grounds.is_given(value):
                found[InventedConstant(path, str(value))] = None
    return tuple(found)


def _selecting_constants(step: Any, registry: Registry) -> Iterator[Any]:
    tool = registry.get(step.tool) if isinstance(step, Call) else None
    if isinstance(step, Call) and tool is not None and not tool.changes:
        for argument in tool.arguments:
            expr = step.args.get(argument.name)
            if expr is not None and not argument.field_of and not isinstance(argument.type, LiteralType):
                yield from _constants_in(expr)
    for expr in children(step):
        yield from _compared_constants(expr)


def _compared_constants(expr: Any) -> Iterator[Any]:
    if isinstance(expr, Compare):
        for operand in (expr.first, *(each for _, each in expr.rest)):
            yield from _constants_in(operand)
    for child in children(expr):
        # The steps inside a step are walked by themselves.
        if hasattr(child, "kind"):
            yield from _compared_constants(child)


def _constants_in(expr: Any) -> Iterator[Any]:
    match expr:
        case Const(value=bool() | None):
            return
        case Const(value=value):
            yield value
        case Apply(function="date" | "datetime"):
            try:
                yield evaluate_expr(expr, {})
            except EvaluationError:
                return
        case ListOf(items=items):
            for each in items:
                yield from _constants_in(each)
        case _:
            return
