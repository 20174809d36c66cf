"""Results that a conversation keeps by name: what the privileged model reads of them, and how it uses them.

A result that others may have written is shown as its privileged view: bounded values and counts, and `<text>` for a
text. Its name (`$r1`, `$r1.field`, `$r1[0]`) stands for the value as an argument or within a text. A name is replaced
once and what comes in its place is not read again, so a text that holds `$r2` brings in nothing.

Where a model may still know names of an earlier conversation, such as that of a client that has connected anew, names
have a tag (`$r1_k3f9`): a name without it, or with that of another conversation, stands for nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, cast

from bicameral.boundary import BoundaryError, HandleContent
from bicameral.errors import ToolError
from bicameral.labels import Label, LabelTree, join, join_all, taint
from bicameral.patterns._reasoner_view import ResultView, view_result
from bicameral.patterns._tool_messages import write_result
from bicameral.types import ANY, DictType, ListType, RecordType, TupleType, Type, to_plain

MAX_NAMED = 20
"""Results that a sentence names; older ones keep their names and are not listed."""
_PATH = r"(?:\.[A-Za-z_][A-Za-z0-9_]{0,60}|\[[0-9]{1,6}\])*"
_NAME = re.compile(rf"\$(?:\{{(r[1-9][0-9]{{0,3}})({_PATH})\}}|(r[1-9][0-9]{{0,3}})({_PATH}))")
_TAGGED = r"r[1-9][0-9]{0,6}(?:_[a-z0-9]{4})?"
# The tag is optional here, so that a name without one is found, and refused.
_TAGGED_NAME = re.compile(rf"\$(?:\{{({_TAGGED})({_PATH})\}}|({_TAGGED})({_PATH}))")
_PART = re.compile(r"\.([A-Za-z_][A-Za-z0-9_]*)|\[([0-9]+)\]")


@dataclass(frozen=True, slots=True)
class FilledValue:
    """A value after its names are replaced; `names` are those that were."""

    value: Any
    tree: LabelTree
    names: tuple[str, ...] = ()


@dataclass(slots=True)
class ResultNames:
    """The results of one conversation, by name."""

    contents: dict[str, HandleContent] = field(default_factory=dict[str, HandleContent])
    hidden: list[str] = field(default_factory=list[str])
    """The names of those that are not shown in full."""
    tag: str = ""
    """What the names of this conversation end with: four letters or digits, or nothing."""
    added: int = 0
    """How many were kept so far; those that were forgotten count, so that no name is given twice."""

    def add(self, value: Any, type_: Type, tree: LabelTree) -> str:
        """Keep a result, and return its name."""
        self.added += 1
        name = f"r{self.added}_{self.tag}" if self.tag else f"r{self.added}"
        self.contents[name] = HandleContent(value, type_, tree)
        return name

    def forget(self, name: str) -> None:
        """Keep a result no longer; its name stands for nothing from now on."""
        self.contents.pop(name, None)
        if name in self.hidden:
            self.hidden.remove(name)

    def names_in(self, text: str) -> list[str]:
        """The names in a text, whether or not they stand for something."""
        return [_split_name(found)[0] for found in self._pattern.finditer(text)]

    @property
    def _pattern(self) -> re.Pattern[str]:
        return _TAGGED_NAME if self.tag else _NAME

    def view(self, name: str) -> ResultView:
        """What a privileged model may read of a result."""
        content = self.contents[name]
        if name not in self.hidden:
            self.hidden.append(name)
        try:
            return view_result(content, "trusted-text")
        except BoundaryError:
            # A value without a plain form has no view. That it has none depends on its content.
            return ResultView("<value>", content.label_tree.flat)

    def describe(self) -> str:
        """The names of the newest hidden results with their types; empty if there are none."""
        shown = [f"${name} ({_short_type(self.contents[name].type)})" for name in self.hidden[-MAX_NAMED:]]
        return ", ".join(shown)

    def find(self, written: str) -> HandleContent | None:
        """What a name such as `$r1.body` stands for; None if it stands for nothing."""
        found = self._pattern.fullmatch(written.strip())
        return None if found is None else self._content(*_split_name(found))

    def fill(self, written: Any, read: Label) -> FilledValue:
        """What a model wrote, with the values of the names in it; each carries its own label and the model's."""
        if not self.contents and not self.tag:
            return FilledValue(written, read)
        match written:
            case str() if (found := self._pattern.fullmatch(written.strip())) is not None:
                name, path = _split_name(found)
                content = self._content(name, path)
                if content is None:
                    raise _no_result_error(written)
                return FilledValue(content.value, taint(content.label_tree, read), (name,))
            case str():
                return self.fill_text(written, read)
            case list():
                parts = [self.fill(each, read) for each in cast("list[Any]", written)]
                return _joined([each.value for each in parts], parts, read)
            case dict():
                entries = {str(key): self.fill(each, read) for key, each in cast("dict[Any, Any]", written).items()}
                return _joined({key: each.value for key, each in entries.items()}, entries.values(), read)
            case _:
                return FilledValue(written, read)

    def fill_text(self, text: str, read: Label, *, strict: bool = True) -> FilledValue:
        """A text with the values of the names in it. If not `strict`, a name that stands for nothing stays."""
        names: list[str] = []
        labels: list[Label] = [read]

        def replace_name(found: re.Match[str]) -> str:
            name, path = _split_name(found)
            parts = [part.group() for part in _PART.finditer(path)]
            # In running text a name may be followed by a full stop and a word: the longest name that is one counts.
            shortest = len(parts) if found.group(1) else 0
            for count in range(len(parts), shortest - 1, -1):
                content = self._content(name, "".join(parts[:count]))
                if content is not None:
                    names.append(name)
                    labels.append(content.label_tree.flat)
                    return write_result(content.value) + "".join(parts[count:])
            if strict:
                raise _no_result_error(found.group())
            return found.group()

        filled = self._pattern.sub(replace_name, text)
        return FilledValue(filled, join_all(labels), tuple(names))

    def _content(self, name: str, path: str) -> HandleContent | None:
        content = self.contents.get(name)
        if content is None:
            return None
        value, type_, tree = content.value, content.type, content.label_tree
        for part in _PART.finditer(path):
            try:
                plain: Any = cast("Any", value) if isinstance(value, dict | list) else to_plain(value)
            except TypeError:
                return None
            key, at = part.groups()
            if key is not None and isinstance(plain, dict) and key in plain:
                value, type_, tree = cast("dict[str, Any]", plain)[key], _field_type(type_, key), tree.field(key)
            elif at is not None and isinstance(plain, list) and int(at) < len(cast("list[Any]", plain)):
                value, type_, tree = (
                    cast("list[Any]", plain)[int(at)],
                    _item_type(type_, int(at)),
                    tree.place(int(at)),
                )
            else:
                return None
        return HandleContent(value, type_, tree)


def _split_name(found: re.Match[str]) -> tuple[str, str]:
    braced, braced_path, bare, path = found.groups()
    return (braced, braced_path) if braced else (bare, path)


def _joined(value: Any, parts: Any, read: Label) -> FilledValue:
    every: list[FilledValue] = list(parts)
    label = join(read, join_all(each.tree.flat for each in every))
    return FilledValue(value, label, tuple(name for each in every for name in each.names))


def _field_type(type_: Type, name: str) -> Type:
    match type_:
        case RecordType():
            return type_.get(name) or ANY
        case DictType(value=value):
            return value
        case _:
            return ANY


def _item_type(type_: Type, at: int) -> Type:
    match type_:
        case ListType(item=item):
            return item
        case TupleType(items=items) if at < len(items):
            return items[at]
        case _:
            return ANY


def _short_type(type_: Type) -> str:
    text = str(type_)
    return text if len(text) <= 80 else f"{text[:79]}…"


def _no_result_error(written: str) -> ToolError:
    # The name is the model's own text.
    return ToolError("tools.wrong-type", f"there is no result {written.strip()[:60]!r}")
