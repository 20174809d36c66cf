"""Structured documents: YAML with the line of every key, and pydantic's validation errors as faults a person can fix.

YAML yields plain values only, and nothing in a file can act on whoever reads it. A fault names the key, what was
expected and the nearest name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

from pydantic import BaseModel, ValidationError

from bicameral.errors import ConfigError, Place, nearest_name

if TYPE_CHECKING:
    import yaml


KeyPath = tuple[str | int, ...]

MAX_YAML_VALUES = 20_000
"""Anchors let a few lines stand for a whole memory; a configuration has not so many values."""
MAX_YAML_DEPTH = 50
_SCALAR_TAGS = {"str", "int", "float", "bool", "null", "timestamp"}


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """What a file says, and where each of its keys stands."""

    file: Path
    settings: dict[str, Any]
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


def parse_yaml(text: str, file: Path) -> YamlDocument:
    """A YAML file whose top is a mapping; anything else is `config.bad-yaml` with its line."""
    import yaml

    try:
        root = cast("yaml.Node | None", yaml.compose(text, Loader=yaml.SafeLoader))  # pyright: ignore[reportUnknownMemberType]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = " ".join(filter(None, (error.context, error.problem)))
        raise _bad_yaml_error(file, mark, f"this is not YAML: {what or error}") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        what = f"the character {error.character!r} cannot stand in it"
        raise ConfigError(
            "config.bad-yaml", f"this is not YAML: {what}", place=Place(file=str(file), line=line)
        ) from None
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(
            "config.bad-yaml", f"this is not YAML: {error}", place=Place(file=str(file), line=1)
        ) from None
    except RecursionError:
        raise ConfigError(
            "config.bad-yaml", "the values are nested too deeply", place=Place(file=str(file), line=1)
        ) from None
    if root is None:
        return YamlDocument(file, {})
    if not isinstance(root, yaml.MappingNode):
        raise _bad_yaml_error(
            file, root.start_mark, "the file holds no settings", expected="keys with values, such as `llm:`"
        )
    reader = _YamlReader(file)
    return YamlDocument(file, cast("dict[str, Any]", reader.read_value(root, ())), reader.lines)


class _YamlReader:
    """Makes plain values of YAML's nodes and writes down where they are."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._count = 0
        self.lines: dict[KeyPath, tuple[int, int]] = {}

    def read_value(self, node: yaml.Node, path: KeyPath) -> Any:
        import yaml

        self._count += 1
        if self._count > MAX_YAML_VALUES or len(path) > MAX_YAML_DEPTH:
            raise _bad_yaml_error(
                self._file, node.start_mark, "there are too many values, or they are nested too deeply"
            )
        if path:
            self.lines.setdefault(path, (node.start_mark.line + 1, node.start_mark.column + 1))
        match node:
            case yaml.MappingNode():
                return self._read_mapping(node, path)
            case yaml.SequenceNode():
                if _tag_name(node) != "seq":
                    raise self._unsupported_tag_error(node)
                return [self.read_value(item, (*path, index)) for index, item in enumerate(node.value)]
            case _:
                return self._read_scalar(node)

    def _read_mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, Any]:
        if _tag_name(node) != "map":
            raise self._unsupported_tag_error(node)
        found: dict[str, Any] = {}
        for key, inner in node.value:
            name = self._read_key(key)
            if name in found:
                raise _bad_yaml_error(self._file, key.start_mark, f"the key {name!r} is there twice")
            self.lines[(*path, name)] = (key.start_mark.line + 1, key.start_mark.column + 1)
            found[name] = self.read_value(inner, (*path, name))
        return found

    def _read_key(self, key: yaml.Node) -> str:
        kind = _tag_name(key)
        if kind == "str":
            return str(key.value)
        if kind == "merge":
            raise _bad_yaml_error(self._file, key.start_mark, "'<<' is not understood here", fix="Write the keys out.")
        shown = str(key.value) if kind in _SCALAR_TAGS else "this"
        raise _bad_yaml_error(
            self._file, key.start_mark, f"{shown[:40]!r} is no name", expected="text", fix="Put it in quotation marks."
        )

    def _read_scalar(self, node: yaml.Node) -> Any:
        import yaml

        kind = _tag_name(node)
        if kind not in _SCALAR_TAGS:
            raise self._unsupported_tag_error(node)
        text = str(node.value)
        if kind in ("str", "timestamp"):
            return text
        if kind == "int" and len(text) > 40:
            raise _bad_yaml_error(self._file, node.start_mark, "the number is too long")
        try:
            return yaml.safe_load(text)
        except (ValueError, OverflowError, yaml.YAMLError):
            # `0o9` and such look like numbers and are none.
            raise _bad_yaml_error(self._file, node.start_mark, f"{text[:40]!r} is no {kind}") from None

    def _unsupported_tag_error(self, node: yaml.Node) -> ConfigError:
        tag = re.sub(r"^tag:yaml\.org,2002:", "!!", str(node.tag))
        return _bad_yaml_error(self._file, node.start_mark, f"a value of the kind {tag[:60]!r} cannot stand here")


def _tag_name(node: yaml.Node) -> str:
    return str(node.tag).removeprefix("tag:yaml.org,2002:")


def _bad_yaml_error(
    file: Path, mark: Any, message: str, *, expected: str | None = None, fix: str | None = None
) -> ConfigError:
    place = Place(file=str(file), line=1) if mark is None else Place(str(file), mark.line + 1, mark.column + 1)
    return ConfigError("config.bad-yaml", message, place=place, expected=expected, fix=fix)


@dataclass(frozen=True, slots=True)
class KeyFault:
    """One thing that is wrong under one key."""

    path: tuple[str | int, ...]
    message: str
    expected: str | None = None
    nearest: str | None = None

    @property
    def key(self) -> str:
        """The key as people write it: `tools[0].arguments.path`."""
        text = ""
        for part in self.path:
            text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
        return text


def first_key_fault(error: ValidationError, model: type[BaseModel]) -> KeyFault:
    """The fault to mend first: a key that does not exist before one that is missing, since a typo causes both."""
    found = error.errors(include_url=False)
    detail = next((each for each in found if each["type"] == "extra_forbidden"), found[0])
    path = _document_path(detail["loc"], model)
    match detail["type"]:
        case "extra_forbidden":
            known = _known_keys(model, path[:-1])
            name = str(path[-1])
            return KeyFault(path, "there is no such key", ", ".join(known), nearest_name(name, known))
        case "missing":
            return KeyFault(path, "the key is missing")
        case "literal_error":
            given = detail["input"]
            expected = str(detail.get("ctx", {}).get("expected", ""))
            choices = [choice.strip("' ") for choice in expected.replace(" or ", ", ").split(",")]
            return KeyFault(path, f"{given!r} will not do", expected, nearest_name(str(given), choices))
        case _:
            return KeyFault(path, detail["msg"][:1].lower() + detail["msg"][1:])


def _document_path(location: Sequence[str | int], model: type[BaseModel]) -> tuple[str | int, ...]:
    """The location without the names of union members and aliases that pydantic weaves in."""
    path: list[str | int] = []
    here: list[type[BaseModel]] = [model]
    for part in location:
        if isinstance(part, str) and not here and path:
            # Below a plain value there are no keys: this names a member of a union.
            continue
        if isinstance(part, str) and any(part == each.__name__ for each in here):
            continue
        path.append(part)
        if isinstance(part, str) and any(part in each.model_fields for each in here):
            here = [inner for each in here if part in each.model_fields for inner in _field_models(each, part)]
    return tuple(path)


def _field_models(model: type[BaseModel], field: str) -> list[type[BaseModel]]:
    found: list[type[BaseModel]] = []
    waiting: list[Any] = [model.model_fields[field].annotation]
    while waiting:
        annotation = waiting.pop()
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            found.append(annotation)
        waiting.extend(get_args(annotation))
    return found


def _known_keys(model: type[BaseModel], path: Sequence[str | int]) -> list[str]:
    here: list[type[BaseModel]] = [model]
    for part in path:
        if isinstance(part, str) and any(part in each.model_fields for each in here):
            here = [inner for each in here if part in each.model_fields for inner in _field_models(each, part)]
    return [field.alias or name for each in here for name, field in each.model_fields.items()]
