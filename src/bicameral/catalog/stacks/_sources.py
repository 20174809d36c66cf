"""Where stacks come from: a file, a text, Python objects with `architecture()`, and the published compositions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from bicameral.catalog.facts._reader import DATA_FOLDER
from bicameral.catalog.stacks._reader import read_description
from bicameral.catalog.stacks._stack import Stack, StackPath, argument_place
from bicameral.documents import YamlDocument, parse_yaml
from bicameral.errors import CatalogError, Place, describe_error

MAX_BYTES = 500_000


def read_stack(path: Path | str) -> Stack:
    """The stack that a YAML file describes.

    Example:
        >>> read_stack("triage.yaml").name
        'Mail triage'
    """
    file = Path(path)
    place = Place(file=str(file))
    fix = "Check the path and its permissions."
    try:
        if not file.is_file():
            what = "this is a folder" if file.is_dir() else "there is no such file"
            raise CatalogError("stack.cannot-read", what, place=place, fix=fix)
        if file.stat().st_size > MAX_BYTES:
            raise CatalogError("stack.cannot-read", f"the file has more than {MAX_BYTES:,} bytes", place=place)
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise CatalogError("stack.cannot-read", "the file is not text in UTF-8", place=place) from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise CatalogError("stack.cannot-read", f"the file cannot be read: {reason}", place=place, fix=fix) from None
    return parse_stack(text, file=str(file))


def parse_stack(text: str, *, file: str = "stack") -> Stack:
    """The stack that a YAML text describes; `file` is its name in errors."""
    document = parse_yaml(text, Path(file))
    return read_description(document.settings, lambda path: document.locate(path), file)


def stack_of(source: object, *, name: str | None = None) -> Stack:
    """The stack of a Python object.

    Args:
        source: A mapping in the shape of the YAML, an object with `architecture()`, or a list of them. A list becomes
            one stack: the agents are added, and what is said about the whole is merged.
        name: The name of the stack, if it is not the one in the description.

    Example:
        >>> stack_of([{"patterns": ["R4"]}, {"patterns": ["V9", "V14"]}]).whole.patterns >= {"R4", "V9"}
        True
    """
    described = _describe_object(source, ())
    if name is not None:
        described = {**described, "name": name}
    return read_description(described, argument_place)


def stack_yaml(source: object) -> str:
    """The YAML of what a Python object describes, as `read_stack` reads it.

    Example:
        >>> parse_stack(stack_yaml(ReAct() | OutputTemplate.of(City))) == stack_of(ReAct() | OutputTemplate.of(City))
        True
    """
    import yaml

    described = _describe_object(source, ())
    read_description(described, argument_place)
    return yaml.safe_dump(_plain(described), sort_keys=False, allow_unicode=True, default_flow_style=None, width=120)


def _plain(value: Any) -> Any:
    """A description with nothing but what YAML has."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in cast("Iterable[Any]", value)]
    return value


def _describe_object(described: object, path: StackPath) -> Mapping[str, Any]:
    """The description of an object in the shape of a stack.

    `architecture()` is code of somebody else: whatever it raises or returns is an error of the description.
    """

    def error(message: str, expected: str | None = None) -> CatalogError:
        return CatalogError("stack.not-described", message, place=argument_place(path), expected=expected)

    if isinstance(described, Mapping):
        return cast("Mapping[str, Any]", described)
    if isinstance(described, list | tuple):
        items = cast("Iterable[object]", described)
        return _merge_descriptions([_describe_object(each, (*path, number)) for number, each in enumerate(items)])
    name = _object_name(described)
    architecture = cast("Callable[[], object] | None", getattr(described, "architecture", None))
    if architecture is None or isinstance(described, type) or not callable(architecture):
        expected = "a mapping, a list, or an object with architecture()"
        raise error(f"{name} does not say what it is made of", expected)
    try:
        answer = architecture()
    except Exception as failure:
        raise error(f"architecture() of {name} failed: {describe_error(failure)}") from None
    if not isinstance(answer, Mapping):
        raise error(f"architecture() of {name} gave {_object_name(answer)}", "a mapping in the shape of a stack")
    return cast("Mapping[str, Any]", answer)


def _object_name(value: object) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else f"an object of {type(value).__name__}"


def _merge_descriptions(parts: list[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Several descriptions as one: lists are concatenated, mappings merged."""
    names = [str(part["name"]) for part in parts if part.get("name")]
    whole: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            if key != "name":
                whole[key] = _merge_values(key, whole[key], value) if key in whole else value
    return {**whole, "name": " + ".join(dict.fromkeys(names))} if names else whole


def _merge_values(key: str, one: Any, other: Any) -> Any:
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return [*cast("list[Any]", one), *cast("list[Any]", other)]
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        first, second = cast("Mapping[str, Any]", one), cast("Mapping[str, Any]", other)
        for name in first.keys() & second.keys():
            if key == "agents" or first[name] != second[name]:
                code = "stack.duplicate-agent" if key == "agents" else "stack.contradiction"
                message = f"two agents are called {name!r}" if key == "agents" else f"{key}.{name} is said in two ways"
                raise CatalogError(
                    code, message, place=argument_place((key, name)), fix="Give one of them another name."
                )
        return {**first, **second}
    if cast("object", one) == other:
        return cast("object", one)
    raise CatalogError("stack.contradiction", f"{key} is said in two ways", place=argument_place((key,)))


_COMPOSITIONS_FILE = "data/compositions.yaml"


@dataclass(frozen=True, slots=True)
class Composition:
    """A published stack: its goal, how its parts work together, and what each of them does."""

    id: str
    name: str
    goal: str
    how: str
    does: Mapping[str, str]
    stack: Stack
    missing: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Patterns (`K10|K12`: either) that it lacks, with those of its own that need them."""
    law1: tuple[str, ...] = ()
    """The patterns of LAW1 that it lacks."""


@cache
def compositions() -> Mapping[str, Composition]:
    """Every composition by its id: EX1 to EX9 are examples, ST1 to ST8 parts.

    Example:
        >>> compositions()["EX2"].missing
        {'V12': ('O4',)}
    """
    document = _compositions_document()
    return MappingProxyType({id: _read_composition(id, each, document) for id, each in document.settings.items()})


def composition_yaml(id: str) -> str:
    """The stack of a composition as YAML, to begin a stack of one's own with."""
    return stack_yaml(_compositions_document().settings[id]["stack"])


@cache
def _compositions_document() -> YamlDocument:
    text = (DATA_FOLDER / "compositions.yaml").read_text(encoding="utf-8")
    return parse_yaml(text, Path(_COMPOSITIONS_FILE))


def _read_composition(id: str, given: Mapping[str, Any], document: YamlDocument) -> Composition:
    def locate(path: StackPath) -> Place:
        return document.locate((id, "stack", *path))

    expected: Mapping[str, Any] = given.get("expected", {})
    return Composition(
        id,
        given["name"],
        given["goal"],
        given["how"],
        given["does"],
        read_description(given["stack"], locate, _COMPOSITIONS_FILE),
        {wanted: tuple(users) for wanted, users in expected.get("missing", {}).items()},
        tuple(expected.get("law1", ())),
    )
