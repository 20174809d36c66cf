"""JSON Schemas that a stranger wrote: whether one can be used, and what its references mean.

Understood are drafts 4 to 2020-12. A schema is refused where a check of values against it could fetch something, could
run without end, or would mean something else than its author wrote. The types that follow from a schema are in
`_schema_types`, the check of values in `_schema_check`.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, cast
from urllib.parse import unquote

from bicameral.errors import ToolError, require_extra

MAX_SCHEMA_SIZE = 256 * 1024
"""Bytes of a schema, as JSON."""
MAX_SCHEMA_DEPTH = 64
_MAX_PATTERN = 2_000
_PATTERN_MEMORY = 2 * 1024 * 1024
"""Bytes that one compiled pattern may take, with what it remembers of the texts that it has searched."""
MAX_PATTERNS = 50
"""Different patterns in one schema."""
_MAX_PATTERN_SIZE = 150_000
"""Of all patterns of a schema together, as RE2 measures it, so that they cannot fill the memory."""
_KNOWN_PATTERNS = 8_192
"""Patterns whose size is remembered: a schema is looked at several times, in every review and before every run."""

TYPE_NAMES = ("string", "number", "integer", "boolean", "object", "array", "null")

_ONE_SCHEMA = frozenset(
    "additionalItems additionalProperties contains contentSchema else if not propertyNames then unevaluatedItems "
    "unevaluatedProperties".split()
)
_SCHEMA_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_SCHEMA_MAPS = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})
_COUNTING = frozenset({"contains", "if", "not", "oneOf"})
"""Under these a value may be valid because a schema does not hold for it."""

_DIALECTS = {
    "json-schema.org/draft-04/schema": 4,
    "json-schema.org/draft-06/schema": 6,
    "json-schema.org/draft-07/schema": 7,
    "json-schema.org/draft/2019-09/schema": 2019,
    "json-schema.org/draft/2020-12/schema": 2020,
    # The latest, whichever that is.
    "json-schema.org/schema": 2020,
}
_OLD_DIALECTS = frozenset(f"json-schema.org/draft-0{number}/schema" for number in range(4))
_SINCE = {
    **dict.fromkeys(("const", "contains", "propertyNames"), 6),
    **dict.fromkeys(("if", "then", "else"), 7),
    **dict.fromkeys(
        "dependentRequired dependentSchemas maxContains minContains unevaluatedItems unevaluatedProperties".split(),
        2019,
    ),
    "prefixItems": 2020,
}
"""The dialect from which on a keyword counts; in an older one it is a word without a meaning."""
_LAST_LEGACY = 7
_ONLY_IN_LEGACY = frozenset({"dependencies"})
_DYNAMIC = ("$dynamicRef", "$recursiveRef")
_ESCAPE = re.compile(r"\\(?:u\{([0-9A-Fa-f]{1,6})\}|u([0-9A-Fa-f]{4})|.)", re.DOTALL)


def schema_problem(schema: object) -> str | None:
    """Why a schema cannot be used, in words that quote nothing of it; None if it can.

    Example:
        >>> schema_problem({"$ref": "https://example.com/schema.json"})
        'a reference leads out of the schema'
    """
    if not isinstance(schema, Mapping):
        return "it is not an object"
    try:
        plain = plain_schema(cast("Mapping[str, Any]", schema))
    except SchemaFault as error:
        return str(error)
    return next(_faults(SchemaDocument(plain)), None)


class SchemaFault(ValueError):
    """Why a schema cannot be used, in fixed words."""


def plain_schema(schema: Mapping[str, Any] | bool) -> dict[str, Any] | bool:
    """A private copy of a schema in plain dicts and lists; a SchemaFault if it is too large or too deep for one."""
    if isinstance(schema, bool):
        return schema
    # The depth first, without recursion: what follows would run into the recursion limit.
    if not _is_shallow(schema):
        raise SchemaFault(f"it is nested more than {MAX_SCHEMA_DEPTH} levels deep")
    try:
        text = json.dumps(dict(schema), ensure_ascii=False, allow_nan=False, default=_plain_mapping)
    except (TypeError, ValueError, OverflowError):
        raise SchemaFault("it is no JSON") from None
    if len(text.encode("utf-8", "surrogatepass")) > MAX_SCHEMA_SIZE:
        raise SchemaFault(f"it is larger than {MAX_SCHEMA_SIZE // 1024} KiB")
    return json.loads(text)


def _plain_mapping(value: object) -> dict[Any, Any]:
    if isinstance(value, Mapping):
        return dict(cast("Mapping[Any, Any]", value))
    raise TypeError("no JSON")


def _is_shallow(schema: object) -> bool:
    level: list[object] = [schema]
    for _ in range(MAX_SCHEMA_DEPTH):
        inner: list[object] = []
        for each in level:
            if isinstance(each, Mapping):
                inner.extend(cast("Mapping[Any, object]", each).values())
            elif isinstance(each, list | tuple):
                inner.extend(cast("list[object]", each))
            # A value that contains itself twice would double with each level.
            if len(inner) > MAX_SCHEMA_SIZE:
                raise SchemaFault(f"it is larger than {MAX_SCHEMA_SIZE // 1024} KiB")
        if not inner:
            return True
        level = inner
    return False


class SchemaDocument:
    """A schema whose references are resolved within it, and nowhere else."""

    def __init__(self, root: dict[str, Any] | bool) -> None:
        self.root = root
        dialect = root.get("$schema") if isinstance(root, dict) else None
        # The dialect of the root holds for the whole: `$schema` further in is ignored, so that no part can choose rules
        # of its own. One that is not known is refused before anything is checked.
        self.dialect = _DIALECTS.get(_dialect_name(dialect), 2020)
        # Up to draft 7 nothing beside a `$ref` counts.
        self.legacy = self.dialect <= _LAST_LEGACY
        self.is_draft4 = self.dialect == 4
        self._anchors: dict[str, Any] | None = None

    def keywords(self, schema: dict[str, Any]) -> Iterator[str]:
        """The keywords of a schema that count in its dialect."""
        if self.legacy and "$ref" in schema:
            yield "$ref"
            return
        unknown = frozenset[str]() if self.legacy else _ONLY_IN_LEGACY
        yield from (name for name in schema if name not in unknown and _SINCE.get(name, 0) <= self.dialect)

    def has_identifier(self, schema: dict[str, Any]) -> bool:
        """Whether a schema has an identifier of its own, and not only an anchor."""
        identifier = schema.get("$id", schema.get("id") if self.is_draft4 else None)
        return isinstance(identifier, str) and not identifier.startswith("#")

    def resolve(self, reference: object) -> dict[str, Any] | bool | None:
        """What a `$ref` stands for; None if it stands for nothing in this document."""
        if not isinstance(reference, str) or not reference.startswith("#"):
            return None
        fragment = unquote(reference[1:])
        if not fragment:
            return self.root
        if not fragment.startswith("/"):
            if self._anchors is None:
                self._anchors = dict(_anchors(self.root))
            return self._anchors.get(fragment)
        found: Any = self.root
        for part in fragment[1:].split("/"):
            name = part.replace("~1", "/").replace("~0", "~")
            if isinstance(found, dict) and name in found:
                found = cast("dict[str, Any]", found)[name]
            elif isinstance(found, list) and re.fullmatch("0|[1-9][0-9]{0,6}", name) is not None:
                items = cast("list[Any]", found)
                if int(name) >= len(items):
                    return None
                found = items[int(name)]
            else:
                return None
        return cast("dict[str, Any] | bool", found) if isinstance(found, dict | bool) else None


def _dialect_name(dialect: object) -> str:
    """The name of a dialect without what may stand around it: both ways to reach it, and an empty fragment."""
    return re.sub(r"\Ahttps?://", "", dialect).removesuffix("#") if isinstance(dialect, str) else ""


def _anchors(root: dict[str, Any] | bool) -> Iterator[tuple[str, Any]]:
    for schema in iter_schemas(root):
        if isinstance(schema, dict):
            entries = cast("dict[str, object]", schema)
            for keyword in ("$anchor", "$dynamicAnchor", "$id", "id"):
                name = entries.get(keyword)
                # Up to draft 7 an anchor is written as `"$id": "#name"`.
                if isinstance(name, str) and ("id" not in keyword or name.startswith("#")):
                    yield name.removeprefix("#"), entries


def iter_schemas(root: object) -> Iterator[object]:
    """A schema and every schema inside it, with what stands in such a place and is none."""
    waiting = [root]
    while waiting:
        schema = waiting.pop()
        yield schema
        if isinstance(schema, dict):
            waiting.extend(_inner_schemas(cast("dict[str, Any]", schema)))


def _inner_schemas(schema: dict[str, Any]) -> Iterator[object]:
    for keyword, value in schema.items():
        if keyword in _ONE_SCHEMA:
            yield value
        elif keyword in _SCHEMA_LISTS or (keyword == "items" and isinstance(value, list)):
            yield from cast("list[object]", value) if isinstance(value, list) else ()
        elif keyword == "items":
            yield value
        elif keyword in _SCHEMA_MAPS:
            yield from cast("dict[str, object]", value).values() if isinstance(value, dict) else ()
        elif keyword == "dependencies" and isinstance(value, dict):
            yield from (each for each in cast("dict[str, object]", value).values() if not isinstance(each, list))


def _faults(document: SchemaDocument) -> Iterator[str]:
    dialect = cast("dict[str, Any]", document.root).get("$schema")
    if dialect is not None and not isinstance(dialect, str):
        yield "its '$schema' is no text"
    elif _dialect_name(dialect) in _OLD_DIALECTS:
        yield "it is written in a draft of JSON Schema before draft 4"
    elif dialect is not None and _dialect_name(dialect) not in _DIALECTS:
        yield "it is written in a dialect of JSON Schema that is not known"
    reached: dict[tuple[int, bool], dict[str, Any]] = {}
    # A schema with an identifier of its own is a document of its own: references in it mean something else.
    waiting: list[tuple[object, bool]] = [(document.root, False)]
    while waiting:
        schema, renamed = waiting.pop()
        if isinstance(schema, bool):
            continue
        if not isinstance(schema, dict):
            yield "something that is neither an object nor a boolean stands for a schema"
            continue
        found = cast("dict[str, Any]", schema)
        if (id(found), renamed) in reached:
            continue
        reached[id(found), renamed] = found
        renamed = renamed or (found is not document.root and document.has_identifier(found))
        yield from _keyword_faults(found, document)
        waiting.extend((inner, renamed) for inner in _inner_schemas(found))
        if "$ref" in found:
            target = document.resolve(found["$ref"])
            if target is None:
                yield _reference_fault(found["$ref"])
            elif renamed:
                yield "a reference stands in a part with an identifier of its own"
            else:
                waiting.append((target, False))
        if any(keyword in found for keyword in _DYNAMIC):
            yield "it has a dynamic reference"
    yield from _pattern_faults({pattern for schema in reached.values() for pattern in _patterns(schema)})


def _pattern_faults(patterns: Iterable[str]) -> Iterator[str]:
    different = sorted(patterns)
    # Counted before any is compiled, which takes long.
    if len(different) > MAX_PATTERNS:
        yield "its regular expressions are too many or too large"
        return
    size = 0
    for pattern in different:
        if not is_usable_pattern(pattern):
            yield "a regular expression in it is none that RE2 accepts"
        size += _pattern_size(pattern)
        if size > _MAX_PATTERN_SIZE:
            yield "its regular expressions are too many or too large"


def _reference_fault(reference: object) -> str:
    if not isinstance(reference, str):
        return "a reference is no text"
    return "a reference leads to nothing" if reference.startswith("#") else "a reference leads out of the schema"


def _keyword_faults(schema: dict[str, Any], document: SchemaDocument) -> Iterator[str]:
    for keyword, value in schema.items():
        if keyword in ("exclusiveMinimum", "exclusiveMaximum") and document.is_draft4:
            fits = isinstance(value, bool)
        else:
            fits = _VALUE_TESTS[keyword](value) if keyword in _VALUE_TESTS else True
        if not fits:
            yield f"the value of {keyword!r} is not of the kind it must be"


def _patterns(schema: Mapping[str, object]) -> Iterator[str]:
    if isinstance(pattern := schema.get("pattern"), str):
        yield pattern
    if isinstance(named := schema.get("patternProperties"), Mapping):
        yield from cast("Mapping[str, object]", named)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: object) -> bool:
    return _is_number(value) and cast("float", value) >= 0 and cast("float", value) == int(cast("float", value))


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in cast("list[object]", value))


def _is_schemas(value: object) -> bool:
    return isinstance(value, list) and len(cast("list[object]", value)) > 0


def _is_dict(value: object) -> bool:
    return isinstance(value, dict)


def _is_type(value: object) -> bool:
    if isinstance(value, str):
        return value in TYPE_NAMES
    return _is_texts(value) and bool(value) and all(each in TYPE_NAMES for each in cast("list[str]", value))


_VALUE_TESTS: dict[str, Callable[[object], bool]] = {
    "type": _is_type,
    "enum": lambda value: isinstance(value, list),
    "required": _is_texts,
    "pattern": lambda value: isinstance(value, str),
    "format": lambda value: isinstance(value, str),
    "uniqueItems": lambda value: isinstance(value, bool),
    "multipleOf": lambda value: _is_number(value) and cast("float", value) > 0,
    "dependentRequired": lambda value: (
        isinstance(value, dict) and all(map(_is_texts, cast("dict[str, object]", value).values()))
    ),
    "dependencies": lambda value: (
        isinstance(value, dict)
        and all(_is_texts(each) or not isinstance(each, list) for each in cast("dict[str, object]", value).values())
    ),
    **dict.fromkeys(("maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum"), _is_number),
    **dict.fromkeys(
        "maxContains maxItems maxLength maxProperties minContains minItems minLength minProperties".split(), _is_count
    ),
    **dict.fromkeys(_SCHEMA_LISTS, _is_schemas),
    **dict.fromkeys(_SCHEMA_MAPS, _is_dict),
}


class CompiledPattern:
    """A regular expression whose search takes time linear in the text."""

    __slots__ = ("_found", "size")

    def __init__(self, found: Any) -> None:
        self._found = found
        self.size: int = max(found.programsize, 1)

    def search(self, text: str) -> bool:
        """Whether it matches anywhere in the text."""
        # As bytes: a text with a lone surrogate has no other form, and offsets in characters are not needed.
        return self._found.search(text.encode("utf-8", "surrogatepass")) is not None


def compile_pattern(pattern: str) -> CompiledPattern | None:
    """A pattern of a schema as RE2 reads it; None if it does not accept it."""
    if len(pattern) > _MAX_PATTERN:
        return None
    require_extra("mcp", "re2", error=ToolError, code="foreign.not-installed", needs="patterns in schemas need")
    from importlib import import_module

    re2: Any = import_module("re2")
    options = re2.Options()
    options.max_mem, options.log_errors, options.never_capture = _PATTERN_MEMORY, False, True
    try:
        # ECMAScript writes a character as \u00e9, RE2 as \x{00e9}.
        return CompiledPattern(re2.compile(_ESCAPE.sub(_hexadecimal, pattern).encode(), options))
    except (re2.error, UnicodeEncodeError):
        return None


@lru_cache(maxsize=_KNOWN_PATTERNS)
def _pattern_size(pattern: str) -> int:
    """RE2's measure of a pattern; 0 if it does not accept it."""
    compiled = compile_pattern(pattern)
    return 0 if compiled is None else compiled.size


def is_usable_pattern(pattern: str) -> bool:
    """Whether a regular expression can stand in a schema: RE2 accepts it."""
    return _pattern_size(pattern) > 0


def measure_patterns(schemas: Iterable[object], seconds: float) -> bool:
    """Whether every pattern in these schemas can be compiled in a time, all of them together.

    Afterwards it is known what each is. Everything that has the form of a pattern is looked at, wherever it stands.
    """
    end = time.monotonic() + seconds
    waiting = list(schemas)
    while waiting:
        each = waiting.pop()
        if isinstance(each, Mapping):
            entries = cast("Mapping[str, object]", each)
            for pattern in _patterns(entries):
                _pattern_size(pattern)
                if time.monotonic() > end:
                    return False
            waiting.extend(entries.values())
        elif isinstance(each, list | tuple):
            waiting.extend(cast("list[object]", each))
    return True


def without_unusable_patterns(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a schema without the regular expressions that RE2 does not accept, such as those that look ahead.

    Such a pattern bounds nothing here: no type and no policy relies on one, and the server checks its own. It stays
    where the schema would rule out more without it: in what must not hold, or must hold once. A schema with a pattern
    that stays, with too many of them, or that cannot be copied is one that `schema_problem` refuses.
    """
    try:
        copied = plain_schema(schema)
    except SchemaFault:
        return dict(schema)
    found = [cast("dict[str, Any]", each) for each in iter_schemas(copied) if isinstance(each, dict)]
    # Counted before any is compiled, as above.
    if len({pattern for entries in found for pattern in _patterns(entries)}) > MAX_PATTERNS:
        return cast("dict[str, Any]", copied)
    counted = _counted_schemas(SchemaDocument(copied))
    for entries in found:
        if id(entries) in counted:
            continue
        pattern, named = entries.get("pattern"), entries.get("patternProperties")
        if isinstance(pattern, str) and not is_usable_pattern(pattern):
            del entries["pattern"]
        if isinstance(named, dict) and not all(map(is_usable_pattern, cast("dict[str, Any]", named))):
            # Which fields they mean is not known, so that a field of any name may be there.
            del entries["patternProperties"]
            entries["additionalProperties"] = True
    return cast("dict[str, Any]", copied)


def _counted_schemas(document: SchemaDocument) -> set[int]:
    """The schemas of which it matters that they do not hold, by `id`: a wider one there makes all narrower."""
    reached: set[tuple[int, bool]] = set()
    waiting: list[tuple[object, bool]] = [(document.root, False)]
    while waiting:
        schema, counted = waiting.pop()
        if not isinstance(schema, dict) or (id(cast("object", schema)), counted) in reached:
            continue
        entries = cast("dict[str, Any]", schema)
        reached.add((id(entries), counted))
        for keyword in entries:
            inner = _inner_schemas({keyword: entries[keyword]})
            waiting.extend((each, counted or keyword in _COUNTING) for each in inner)
        if "$ref" in entries:
            waiting.append((document.resolve(entries["$ref"]), counted))
    return {identity for identity, counted in reached if counted}


def _hexadecimal(escape: re.Match[str]) -> str:
    code = escape[1] or escape[2]
    return rf"\x{{{code}}}" if code else escape[0]


def is_finite(value: object) -> bool:
    """Whether a number can stand in JSON."""
    return not isinstance(value, float) or math.isfinite(value)
