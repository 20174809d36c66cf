"""The slack suite: its tools know a channel by its name, which its maker chose; a plan knows it by the service's id.

A real Slack gives each channel an id, and its tools take either. Here the ids are numbers in the order in which the
service lists its channels; no tool makes or removes one, so they hold for a whole run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypedDict

from bicameral.types import Id

from . import Shape

_ID = re.compile(r"C(\d{4})")


class Channel(TypedDict):
    id: Id
    name: str


def _channels(raw: list[str]) -> list[dict[str, Any]]:
    return [{"id": f"C{number:04}", "name": name} for number, name in enumerate(raw)]


def given(environment: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments as the suite's tools take them: a channel by its name."""
    found, names = _ID.fullmatch(str(arguments.get("channel"))), environment.slack.channels
    if found is None or int(found[1]) >= len(names):
        return dict(arguments)
    return {**arguments, "channel": names[int(found[1])]}


SHAPES: Mapping[str, Shape] = {"get_channels": Shape(list[Channel], _channels)}
