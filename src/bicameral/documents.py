"""YAML read with the line of every key: plain values only, and nothing that a file could do to whoever reads it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from bicameral.errors import ConfigError, Place

if TYPE_CHECKING:
    import yaml

Keys = tuple[str | int, ...]

MAX_VALUES = 20_000
"""Anchors let a few lines stand for a whole memory; a configuration has not so many values."""
MAX_DEPTH = 50
_KINDS = {"str", "int", "float", "bool", "null", "timestamp"}


@dataclass(frozen=True, slots=True)
class Document:
    """What a file says, and where each of its keys stands."""

    file: Path
    settings: dict[str, Any]
    lines: Mapping[Keys, tuple[int, int]] = field(default_factory=dict[Keys, tuple[int, int]])

    def locate(self, path: Keys) -> Place:
        """The place of a key, or of the nearest around it."""
        for length in range(len(path), 0, -1):
            if (found := self.lines.get(path[:length])) is not None:
                return Place(file=str(self.file), line=found[0], column=found[1])
        return Place(file=str(self.file), line=1)

    def depth(self, path: Keys) -> int:
        """How far along a path this document goes."""
        return next((length for length in range(len(path), 0, -1) if path[:length] in self.lines), 0)


def parse_yaml(text: str, file: Path) -> Document:
    """A YAML file whose top is a mapping; anything else is `config.bad-yaml` with its line."""
    import yaml

    try:
        root = cast("yaml.Node | None", yaml.compose(text, Loader=yaml.SafeLoader))  # pyright: ignore[reportUnknownMemberType]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = " ".join(filter(None, (error.context, error.problem)))
        raise _bad(file, mark, f"this is not YAML: {what or error}") from None
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
        return Document(file, {})
    if not isinstance(root, yaml.MappingNode):
        raise _bad(file, root.start_mark, "the file holds no settings", expected="keys with values, such as `llm:`")
    reader = _Reader(file)
    return Document(file, cast("dict[str, Any]", reader.value(root, ())), reader.lines)


class _Reader:
    """Makes plain values of YAML's nodes and writes down where they are."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._count = 0
        self.lines: dict[Keys, tuple[int, int]] = {}

    def value(self, node: yaml.Node, path: Keys) -> Any:
        import yaml

        self._count += 1
        if self._count > MAX_VALUES or len(path) > MAX_DEPTH:
            raise _bad(self._file, node.start_mark, "there are too many values, or they are nested too deeply")
        if path:
            self.lines.setdefault(path, (node.start_mark.line + 1, node.start_mark.column + 1))
        match node:
            case yaml.MappingNode():
                return self._mapping(node, path)
            case yaml.SequenceNode():
                if _kind(node) != "seq":
                    raise self._strange(node)
                return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]
            case _:
                return self._scalar(node)

    def _mapping(self, node: yaml.MappingNode, path: Keys) -> dict[str, Any]:
        if _kind(node) != "map":
            raise self._strange(node)
        found: dict[str, Any] = {}
        for key, inner in node.value:
            name = self._name(key)
            if name in found:
                raise _bad(self._file, key.start_mark, f"the key {name!r} is there twice")
            self.lines[(*path, name)] = (key.start_mark.line + 1, key.start_mark.column + 1)
            found[name] = self.value(inner, (*path, name))
        return found

    def _name(self, key: yaml.Node) -> str:
        kind = _kind(key)
        if kind == "str":
            return str(key.value)
        if kind == "merge":
            raise _bad(self._file, key.start_mark, "'<<' is not understood here", fix="Write the keys out.")
        shown = str(key.value) if kind in _KINDS else "this"
        raise _bad(
            self._file, key.start_mark, f"{shown[:40]!r} is no name", expected="text", fix="Put it in quotation marks."
        )

    def _scalar(self, node: yaml.Node) -> Any:
        import yaml

        kind = _kind(node)
        if kind not in _KINDS:
            raise self._strange(node)
        text = str(node.value)
        if kind in ("str", "timestamp"):
            return text
        if kind == "int" and len(text) > 40:
            raise _bad(self._file, node.start_mark, "the number is too long")
        try:
            return yaml.safe_load(text)
        except (ValueError, OverflowError, yaml.YAMLError):
            # `0o9` and such look like numbers and are none.
            raise _bad(self._file, node.start_mark, f"{text[:40]!r} is no {kind}") from None

    def _strange(self, node: yaml.Node) -> ConfigError:
        tag = re.sub(r"^tag:yaml\.org,2002:", "!!", str(node.tag))
        return _bad(self._file, node.start_mark, f"a value of the kind {tag[:60]!r} cannot stand here")


def _kind(node: yaml.Node) -> str:
    return str(node.tag).removeprefix("tag:yaml.org,2002:")


def _bad(file: Path, mark: Any, message: str, *, expected: str | None = None, fix: str | None = None) -> ConfigError:
    place = Place(file=str(file), line=1) if mark is None else Place(str(file), mark.line + 1, mark.column + 1)
    return ConfigError("config.bad-yaml", message, place=place, expected=expected, fix=fix)
