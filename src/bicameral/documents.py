"""Structured documents: YAML with the line of every key, and pydantic's validation errors as faults a person can fix.

YAML yields plain values only, and nothing in a file can act on whoever reads it. It is read from parser events, with
the C parser where there is one: building nodes first would take half as long again. A fault names the key, what was
expected and the nearest name. TOML is only written here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields as dataclass_fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, cast, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ValidationError

from bicameral.errors import BicameralError, ConfigError, Place, nearest_name

if TYPE_CHECKING:
    import yaml

KeyPath = tuple[str | int, ...]

MAX_YAML_VALUES = 20_000
"""The values of a user's file. Anchors let a few lines stand for a whole memory; a configuration has not so many."""
MAX_YAML_DEPTH = 50
_LONGEST_NUMBER = 40
_SCALAR_KINDS = {"str", "int", "float", "bool", "null", "timestamp"}
_TAG_PREFIX = "tag:yaml.org,2002:"
_CONSTANTS = {"true": True, "false": False, "null": None, "~": None, "": None}
# The numbers that need no resolver. A leading zero would be octal.
_PLAIN_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,14})(\.\d{1,15})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """The value of a file, and the place of each of its keys."""

    file: Path
    settings: Any
    lines: Mapping[KeyPath, tuple[int, int]] = field(default_factory=dict[KeyPath, tuple[int, int]])

    def locate(self, path: KeyPath) -> Place:
        """The place of a key, or of the nearest around it."""
        for length in range(len(path), 0, -1):
            if (found := self.lines.get(path[:length])) is not None:
                return Place(file=str(self.file), line=found[0], column=found[1])
        return Place(file=str(self.file), line=1)

    def known_depth(self, path: KeyPath) -> int:
        """How far along a path this document goes."""
        return next((length for length in range(len(path), 0, -1) if path[:length] in self.lines), 0)


MakeError = Callable[..., BicameralError]
"""Makes the error of a reader from a message, `place`, and perhaps `expected` and `fix`."""


def _bad_yaml(message: str, **more: Any) -> ConfigError:
    return ConfigError("config.bad-yaml", message, **more)


def parse_yaml(text: str, file: Path) -> YamlDocument:
    """A YAML file whose top is a mapping; anything else is `config.bad-yaml` with its line."""
    document = read_yaml(text, file, _bad_yaml, YamlLimits())
    if () not in document.lines:
        return YamlDocument(file, {})
    if not isinstance(document.settings, dict):
        line, column = document.lines[()]
        raise _bad_yaml(
            "the file holds no settings",
            place=Place(str(file), line, column),
            expected="keys with values, such as `llm:`",
        )
    return document


@dataclass(frozen=True, slots=True)
class YamlLimits:
    """How much a file may hold, with anchors written out.

    Args:
        plain: Refuse anchors and tags, and take every word but true, false and null for a text (`yes` is one).
    """

    values: int = MAX_YAML_VALUES
    depth: int = MAX_YAML_DEPTH
    plain: bool = False


def read_yaml(text: str, file: Path, make_error: MakeError, limits: YamlLimits) -> YamlDocument:
    """The plain value of a YAML text, whatever it is, and the line and column of everything in it."""
    import yaml

    name = str(file)
    if (bad := yaml.reader.Reader.NON_PRINTABLE.search(text)) is not None:
        place = Place(name, text.count("\n", 0, bad.start()) + 1)
        raise make_error(f"this is not YAML: the character {bad[0]!r} cannot stand in it", place=place)
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        events = cast("Iterator[Any]", yaml.parse(text, Loader=loader))  # pyright: ignore[reportUnknownMemberType]
        reader = _EventReader(name, events, make_error, limits)
        return YamlDocument(file, reader.read_document(), reader.lines)
    except yaml.MarkedYAMLError as error:
        error = _python_parser_error(text) or error
        mark = error.problem_mark or error.context_mark
        what = " ".join(filter(None, (error.context, error.problem)))
        place = Place(name, mark.line + 1, mark.column + 1) if mark else Place(name, 1)
        raise make_error(f"this is not YAML: {what or error}", place=place) from None
    except (yaml.YAMLError, ValueError) as error:
        raise make_error(f"this is not YAML: {error}", place=Place(name, 1)) from None
    except RecursionError:
        raise make_error("the values are nested too deeply", place=Place(name, 1)) from None


def _python_parser_error(text: str) -> yaml.MarkedYAMLError | None:
    """What the Python parser says of a text: its words and marks are better than those of the C parser."""
    import yaml

    try:
        for _ in yaml.parse(text, Loader=yaml.SafeLoader):  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
            pass
    except yaml.MarkedYAMLError as error:
        return error
    return None


class _EventReader:
    """Makes plain values of parser events and records where they are."""

    def __init__(self, file: str, events: Iterator[Any], make_error: MakeError, limits: YamlLimits) -> None:
        import yaml

        self._yaml = yaml
        self._file = file
        self._events = events
        self._make_error = make_error
        self._limits = limits
        self._count = 0
        self._anchors: dict[str, list[Any]] = {}
        self._replay: list[Any] = []
        self.lines: dict[KeyPath, tuple[int, int]] = {}

    def read_document(self) -> Any:
        value: Any = None
        documents = 0
        for event in self._events:
            if isinstance(event, self._yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise self._error(event, "there is a second document in the file")
            elif isinstance(event, self._yaml.NodeEvent):
                value = self._value(event, ())
        return value

    def _next(self) -> Any:
        return self._replay.pop() if self._replay else next(self._events)

    def _value(self, event: Any, path: KeyPath) -> Any:
        self._count += 1
        if self._count > self._limits.values:
            raise self._error(event, "there are too many values")
        if len(path) > self._limits.depth:
            raise self._error(event, f"the values are nested deeper than {self._limits.depth}")
        if event.anchor is not None:
            event = self._resolve_anchor(event)
        mark = event.start_mark
        self.lines.setdefault(path, (mark.line + 1, mark.column + 1))
        if isinstance(event, self._yaml.ScalarEvent):
            return self._scalar(event)
        kind = "seq" if isinstance(event, self._yaml.SequenceStartEvent) else "map"
        if event.tag is not None and (self._limits.plain or event.tag not in ("!", f"{_TAG_PREFIX}{kind}")):
            raise self._tag_error(event)
        return self._list(path) if kind == "seq" else self._mapping(path)

    def _resolve_anchor(self, event: Any) -> Any:
        """The first event of the value that is meant; its other events come next.

        The events of an anchor are replayed, so that values behind an alias count against the limit each time and have
        the place of the anchor. An alias within its own anchor ends at the limit of depth.
        """
        if self._limits.plain:
            raise self._error(event, "anchors are not understood here", fix="Write it out.")
        known = self._anchors.get(str(event.anchor))
        if not isinstance(event, self._yaml.AliasEvent):
            # An anchor within one that is replayed comes again, as the same event.
            if known is not None and known[0] is not event:
                raise self._error(event, f"the anchor {str(event.anchor)[:40]!r} is there twice")
            events: list[Any] = [event]
            depth = self._nesting(event)
            while depth:
                events.append(self._next())
                depth += self._nesting(events[-1])
            self._anchors[str(event.anchor)] = events
        elif known is None:
            raise self._error(event, f"there is no anchor {str(event.anchor)[:40]!r} before this")
        events = self._anchors[str(event.anchor)]
        self._replay.extend(reversed(events[1:]))
        return events[0]

    def _nesting(self, event: Any) -> int:
        starts = isinstance(event, self._yaml.CollectionStartEvent)
        return 1 if starts else -1 if isinstance(event, self._yaml.CollectionEndEvent) else 0

    def _list(self, path: KeyPath) -> list[Any]:
        items: list[Any] = []
        while not isinstance(event := self._next(), self._yaml.SequenceEndEvent):
            items.append(self._value(event, (*path, len(items))))
        return items

    def _mapping(self, path: KeyPath) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not isinstance(event := self._next(), self._yaml.MappingEndEvent):
            key = self._key(event)
            if key in found:
                raise self._error(event, f"the key {key!r} is there twice")
            self.lines[(*path, key)] = (event.start_mark.line + 1, event.start_mark.column + 1)
            found[key] = self._value(self._next(), (*path, key))
        return found

    def _key(self, event: Any) -> str:
        if event.anchor is not None:
            event = self._resolve_anchor(event)
        if not isinstance(event, self._yaml.ScalarEvent):
            raise self._error(event, "a key is no text", expected="text")
        text, kind = str(event.value), self._kind(event)
        if kind == "merge":
            raise self._error(event, "'<<' is not understood here", fix="Write the keys out.")
        if kind != "str":
            raise self._error(event, f"{text[:40]!r} is no name", expected="text", fix="Put it in quotation marks.")
        return text

    def _scalar(self, event: Any) -> Any:
        text = str(event.value)
        if not event.style and event.tag is None:
            if text in _CONSTANTS:
                return _CONSTANTS[text]
            if (number := _PLAIN_NUMBER.fullmatch(text)) is not None:
                return float(text) if number[1] else int(text)
        kind = self._kind(event)
        if kind not in _SCALAR_KINDS or (event.tag is not None and self._limits.plain):
            raise self._tag_error(event)
        if kind in ("str", "timestamp"):
            return text
        if kind == "int" and len(text) > _LONGEST_NUMBER:
            raise self._error(event, "the number is too long")
        try:
            return self._yaml.safe_load(text)
        except (ValueError, OverflowError, self._yaml.YAMLError):
            # `0o9` and such look like numbers and are none.
            raise self._error(event, f"{text[:40]!r} is no {kind}") from None

    def _kind(self, event: Any) -> str:
        """The kind of a scalar: the tag that it has, or the one that PyYAML finds in a plain text."""
        text = str(event.value)
        if event.tag not in (None, "!"):
            return str(event.tag).removeprefix(_TAG_PREFIX)
        if event.style or self._limits.plain:
            return "str"
        resolvers = self._yaml.SafeLoader.yaml_implicit_resolvers.get(text[:1], [])
        return next((tag.removeprefix(_TAG_PREFIX) for tag, pattern in resolvers if pattern.match(text)), "str")

    def _tag_error(self, event: Any) -> BicameralError:
        tag = str(event.tag).replace(_TAG_PREFIX, "!!")
        return self._error(event, f"a value of the kind {tag[:60]!r} cannot stand here")

    def _error(self, event: Any, message: str, **more: Any) -> BicameralError:
        mark = event.start_mark
        return self._make_error(message, place=Place(self._file, mark.line + 1, mark.column + 1), **more)


@dataclass(frozen=True, slots=True)
class KeyFault:
    """One thing that is wrong under one key.

    Args:
        kind: Pydantic's word for it, or `unknown`.
        given: The value that stands there.
        known: The keys that may stand there if it is an unknown one, or the words if it is a wrong one.
    """

    path: tuple[str | int, ...]
    message: str
    expected: str | None = None
    nearest: str | None = None
    kind: str = ""
    given: Any = None
    known: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The key as people write it: `tools[0].arguments.path`."""
        text = ""
        for part in self.path:
            text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
        return text

    @property
    def pydantic_words(self) -> str:
        """What pydantic says belongs there, without its opening: `a valid integer`."""
        return self.message.removeprefix("input should be ").removeprefix("value error, ")

    @property
    def expected_kind(self) -> str:
        """The kind of value that belongs there, in our words."""
        return _KIND_WORDS.get(self.kind, self.pydantic_words)


_KIND_WORDS = {
    "bool_type": "true or false",
    "int_type": "a whole number",
    "float_type": "a number",
    "string_type": "a text",
    "string_too_short": "a text",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "dataclass_type": "a mapping",
}
_UNKNOWN_KEY = ("extra_forbidden", "unexpected_keyword_argument")


def first_key_fault(error: ValidationError, model: type[Any], aliases: Mapping[str, str] | None = None) -> KeyFault:
    """The fault to mend first: a key that does not exist before one that is missing, since a typo causes both.

    Args:
        model: The pydantic model or the dataclass that was validated.
        aliases: The keys of fields of dataclasses that are called otherwise.
    """
    details = error.errors(include_url=False)
    detail = next((each for each in details if each["type"] in _UNKNOWN_KEY), details[0])
    fields = _FieldTypes(aliases or {})
    path = fields.document_path(detail["loc"], model)
    kind, given = str(detail["type"]), detail["input"]
    message = detail["msg"][:1].lower() + detail["msg"][1:]
    match kind:
        case "extra_forbidden" | "unexpected_keyword_argument":
            known = fields.known_keys(model, path[:-1])
            close = nearest_name(str(path[-1]), known)
            return KeyFault(path, "there is no such key", ", ".join(known), close, "unknown", given, tuple(known))
        case "missing":
            return KeyFault(path, "the key is missing", kind=kind)
        case "literal_error":
            expected = str(detail.get("ctx", {}).get("expected", ""))
            choices = [choice.strip("' ") for choice in expected.replace(" or ", ", ").split(",")]
            close = nearest_name(str(given), choices)
            return KeyFault(path, f"{given!r} will not do", expected, close, kind, given, tuple(choices))
        case _:
            return KeyFault(path, message, kind=kind, given=given)


class _FieldTypes:
    """The keys of models and dataclasses, and what is under each."""

    def __init__(self, aliases: Mapping[str, str]) -> None:
        self._aliases = aliases

    def document_path(self, location: Sequence[str | int], model: type[Any]) -> tuple[str | int, ...]:
        """The location without the names of union members and aliases that pydantic weaves in."""
        path: list[str | int] = []
        here: list[type[Any]] = [model]
        plain: list[Any] = []
        for part in location:
            if here:
                if isinstance(part, str) and any(part == each.__name__ for each in here):
                    continue
                annotations = [table[str(part)] for each in here if part in (table := self._fields(each))]
                here = self._below(here, part)
            elif isinstance(part, int) or (len(plain) == 1 and _is_mapping(plain[0])):
                # The index of a list, or a key of a plain mapping (`dict[str, int]`).
                annotations = [inner for each in plain for inner in get_args(each) if inner is not ...][-1:]
            else:
                # Below any other plain value there are no keys: this names a member of a union.
                plain = [each for each in plain if _is_mapping(each)][:1]
                continue
            path.append(part)
            plain = [member for each in annotations for member in _union_members(each)]
        return tuple(path)

    def known_keys(self, model: type[Any], path: Sequence[str | int]) -> list[str]:
        here: list[type[Any]] = [model]
        for part in path:
            here = self._below(here, part)
        return [key for each in here for key in self._fields(each)]

    def _below(self, here: list[type[Any]], part: str | int) -> list[type[Any]]:
        """The models under a key; a number, or a name of the user's own, leads to the same ones."""
        tables = [table for each in here if part in (table := self._fields(each))]
        if not tables:
            return here
        return [inner for table in tables for inner in _models_in(table[str(part)])]

    def _fields(self, model: type[Any]) -> dict[str, Any]:
        if issubclass(model, BaseModel):
            return {field.alias or name: field.annotation for name, field in model.model_fields.items()}
        hints = get_type_hints(model)
        names = (each.name for each in dataclass_fields(model) if each.init)
        return {self._aliases.get(name, name): hints[name] for name in names}


def _is_mapping(annotation: Any) -> bool:
    origin = get_origin(annotation)
    return isinstance(origin, type) and issubclass(origin, Mapping)


def _union_members(annotation: Any) -> list[Any]:
    """The types that an annotation allows, except None: pydantic does not name that one."""
    if get_origin(annotation) is Annotated:
        return _union_members(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return [each for member in get_args(annotation) for each in _union_members(member)]
    return [] if annotation in (None, NoneType) else [annotation]


def _models_in(annotation: Any) -> list[type[Any]]:
    models: list[type[Any]] = []
    waiting = [annotation]
    while waiting:
        each: Any = waiting.pop()
        if isinstance(each, type) and (is_dataclass(cast("Any", each)) or issubclass(each, BaseModel)):
            models.append(cast("type[Any]", each))
        waiting.extend(get_args(each))
    return models


_BARE_TOML_KEY = re.compile(r"[A-Za-z0-9_-]+")


def toml_pairs(values: Mapping[str, Any]) -> Iterator[str]:
    """Plain values as lines of TOML, for the files that are written here: `name = value`.

    Example:
        >>> list(toml_pairs({"command": ["mcp-server-time"], "a b": True}))
        ['command = ["mcp-server-time"]', '"a b" = true']
    """
    for name, value in values.items():
        yield f"{toml_key(name)} = {_toml_value(value)}"


def toml_key(name: str) -> str:
    """A name as a key of TOML, in quotation marks where it needs them."""
    return name if _BARE_TOML_KEY.fullmatch(name) else _toml_text(name)


def _toml_value(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _toml_text(value)
        case int() | float():
            return repr(value)
        case list():
            return f"[{', '.join(_toml_value(each) for each in value)}]"  # pyright: ignore[reportUnknownVariableType]
        case dict():
            pairs = (f"{toml_key(str(key))} = {_toml_value(each)}" for key, each in value.items() if each is not None)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
            return f"{{ {', '.join(pairs)} }}" if value else "{}"
        case _:
            raise TypeError(f"{type(value).__name__} has no form in TOML")


def _toml_text(text: str) -> str:
    # JSON's escapes are TOML's, but for surrogates, which no valid text has, and DEL, which TOML wants escaped.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
