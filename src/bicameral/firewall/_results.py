"""Results of one session: kept by name, shown as views or as marked text, and put into later calls by their names.

What others may have written is shown as its view (bounded values, counts, `<text>`) under a name that has the tag of
the session, so that a name of an earlier session, which the client's model may still know, stands for nothing. The
value that is kept is never changed; secrets are taken only out of what is shown. Memory is bounded: the oldest results
are forgotten, and a name that is forgotten is an error and not an empty text.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, LiteralString, cast

from bicameral.boundary import HandleContent
from bicameral.display import make_visible
from bicameral.errors import RunError, ToolError
from bicameral.labels import Label, LabelTree, join_all
from bicameral.patterns.handles import ParsedCall, ResultNames, fill_call, render_result
from bicameral.secrets import redact_secrets
from bicameral.tools import Tool
from bicameral.types import Table, Type, to_plain

if TYPE_CHECKING:
    from bicameral.patterns.reliability.injection_shield import SpanMarker

HANDLE_NOTE = (
    "Others may have written this, so it is not shown. Write {name}, or a part of it such as {name}[0].field, as an "
    "argument of a tool or within a text to use it."
)
_INSTEAD = "[secret]"
_TAG_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
"""Without letters and digits that look alike: a person may read them out."""
_NAMED_FROM = 500
"""Trusted results of so many characters get their name told, so that they need not be written out again."""
MAX_DEPTH = 40
"""How deep the arguments of a client may be nested."""
MAX_NAMES = 64
"""Names in the arguments of one call. Each brings in its whole value, so that a few letters could fill the memory."""
_MAX_PARTS = 100_000
MAX_EXPANDED = 16_000_000
"""Characters that the names of one call may bring in together."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What the client's model reads of a result, the label of that, and the name under which the result is kept."""

    text: str
    label: Label
    handle: str = ""


class SessionResults:
    """The results of one session, by name.

    Args:
        kept_chars: Characters that are kept; beyond it the oldest results are forgotten.
        argument_chars: Characters that a client may write as the arguments of one call.
    """

    def __init__(self, kept_chars: int, argument_chars: int) -> None:
        self.names = ResultNames(tag="".join(secrets.choice(_TAG_LETTERS) for _ in range(4)))
        self._kept_chars = kept_chars
        self._argument_chars = argument_chars
        self._sizes: dict[str, int] = {}
        self._size = 0
        self._secret = secrets.token_hex(16)
        self._marker: SpanMarker | None = None

    def keep(self, value: Any, type_: Type, tree: LabelTree) -> str:
        """Keep a result, and return its name; the oldest ones are forgotten where there is no room."""
        name = self.names.add(value, type_, tree)
        self._sizes[name] = size = value_size(value)
        self._size += size
        while self._size > self._kept_chars and len(self._sizes) > 1:
            oldest = next(iter(self._sizes))
            self._size -= self._sizes.pop(oldest)
            self.names.forget(oldest)
        return name

    def find(self, written: object) -> tuple[str, HandleContent]:
        """The result that a name stands for."""
        content = self.names.find(written) if isinstance(written, str) else None
        if content is None or not isinstance(written, str):
            raise ToolError(
                "tools.wrong-type", f"there is no result {str(written)[:60]!r}", expected="a name of this session"
            )
        return written.strip().lstrip("$"), content

    def fill(self, tool: Tool, written: Mapping[str, Any], read: Label) -> ParsedCall:
        """The call that a client means, with the values and labels of the names that it wrote."""
        self.check_arguments(written)
        return fill_call(tool, written, self.names, read)

    def check_arguments(self, written: object) -> None:
        """Refuse arguments that are too large, or become so once their names are replaced, before anything is done."""
        chars = names = expanded = 0
        waiting: list[tuple[object, int]] = [(written, 0)]
        while waiting:
            part, depth = waiting.pop()
            if depth > MAX_DEPTH:
                raise _too_large_error(f"they are nested deeper than {MAX_DEPTH} levels")
            match part:
                case str():
                    chars += len(part)
                    for name in self.names.names_in(part):
                        names += 1
                        expanded += self._sizes.get(name, 0)
                case dict():
                    entries = cast("dict[object, object]", part)
                    chars += sum(len(str(key)) for key in entries) + 4 * len(entries)
                    waiting.extend((each, depth + 1) for each in entries.values())
                case list():
                    items = cast("list[object]", part)
                    chars += 2 * len(items)
                    waiting.extend((each, depth + 1) for each in items)
                case _:
                    chars += 8
            if chars > self._argument_chars:
                raise _too_large_error(f"they have more than {self._argument_chars:,} characters")
            if names > MAX_NAMES:
                raise _too_large_error(f"they have more than {MAX_NAMES} names of results")
            if expanded > MAX_EXPANDED:
                raise _too_large_error(f"the results that they name have more than {MAX_EXPANDED:,} characters")

    def label_of_names(self, written: object) -> Label:
        """The join of the labels of all results that are named in arguments."""
        found: list[Label] = []
        waiting: list[object] = [written]
        # The arguments may be too large: then this looks at a part of them, which is refused as a whole.
        for _ in range(_MAX_PARTS):
            if not waiting:
                break
            part = waiting.pop()
            match part:
                case str():
                    names = self.names.names_in(part[: self._argument_chars])
                    known = (self.names.contents.get(name) for name in names)
                    found += [content.label_tree.flat for content in known if content is not None]
                case dict():
                    waiting.extend(cast("dict[object, object]", part).values())
                case list():
                    waiting.extend(cast("list[object]", part))
                case _:
                    pass
        return join_all(found)

    def show(self, value: Any, type_: Type, tree: LabelTree, *, as_text: bool = False) -> Shown:
        """Keep a result, and say what the client's model reads of it.

        Args:
            value: The result.
            type_: Its type.
            tree: Its labels.
            as_text: Whether untrusted text is shown, between marks, instead of a view.
        """
        name = self.keep(value, type_, tree)
        if tree.flat.trusted:
            text = shown_text(value)
            whole = f"\n(kept whole as ${name})" if len(text) > _NAMED_FROM else ""
            return Shown(f"{text}{whole}", tree.flat, name)
        if as_text:
            return self.show_text(name)
        return self.show_view(name)

    def show_view(self, name: str, before: str = "") -> Shown:
        """What may be read of a result without reading any text of others."""
        view = self.names.view(name)
        note = HANDLE_NOTE.format(name=f"${name}")
        return Shown(f"{before}${name} = {redact(view.text)}\n({note})", view.label, name)

    def show_text(self, name: str) -> Shown:
        """The text of a result between marks; its view, where it seems to give orders to a model."""
        content = self.names.contents[name]
        marker = self._span_marker()
        # Hidden characters are written out: a model reads what no person sees.
        text = make_visible(shown_text(content.value))
        try:
            marked = marker.mark(text)
        except RunError:
            return self.show_view(name, "This text seems to give orders to a model, so it is not shown.\n")
        return Shown(f"{marker.convention}\n${name} =\n{marked}\n{marker.anchor}", content.label_tree.flat, name)

    def check_canary(self, written: object) -> None:
        """Refuse a call that has the secret word of the marks in it: whoever wrote it does as a text said."""
        if self._marker is not None:
            self._marker.check_reply(repr(written))

    def _span_marker(self) -> SpanMarker:
        if self._marker is None:
            # Loaded with the first text that is shown: the patterns behind it take time to load.
            from bicameral.patterns.reliability.injection_shield import SpanMarker

            self._marker = SpanMarker(self._secret, "delimit", 0.9, 0.5, "", _ignore_note)
        return self._marker


def redact(text: str) -> str:
    """A text without known secrets, and without what has the form of one."""
    return redact_secrets(text, _INSTEAD)


def shown_text(value: Any) -> str:
    """A value as a text for the client, cut to a length and without secrets."""
    # First without secrets and then cut: half a secret is not recognised.
    return redact(render_result(redact_texts(value)))


def redact_texts(value: Any) -> Any:
    """A value whose texts have no secrets."""
    match value:
        case str():
            return redact(value)
        case dict():
            found: dict[str, Any] = {}
            for key, each in cast("dict[object, Any]", value).items():
                name = redact(str(key))
                # Two keys that are secrets stay two entries: nobody may say yes to one that they have not seen.
                found[name if name not in found else f"{name} {len(found) + 1}"] = redact_texts(each)
            return found
        case list() | tuple():
            return [redact_texts(each) for each in cast("list[Any]", value)]
        case _:
            return to_plain(value) if type(value) is Table else value


def value_size(value: object) -> int:
    """About how many characters a value has."""
    size = 0
    waiting: list[object] = [value]
    while waiting:
        part = waiting.pop()
        if type(part) is Table:
            part = to_plain(part)
        match part:
            case str():
                size += len(part)
            case dict():
                entries = cast("dict[object, object]", part)
                size += 8 * len(entries)
                waiting.extend((*entries, *entries.values()))
            case list() | tuple():
                items = cast("list[object]", part)
                size += 8 * len(items)
                waiting.extend(items)
            case _:
                size += 8
    return size


def _too_large_error(why: str) -> ToolError:
    return ToolError("firewall.arguments-too-large", f"the arguments are too large: {why}")


def _ignore_note(what: LiteralString, **facts: str | float | bool) -> None:
    return
