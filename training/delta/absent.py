"""Requests under prompts that lack the tools they need: what the right plan says there.

A model that has only seen requests with the tools for them writes some plan with whatever is left. So a share of the
pairs stands under a prompt without a toolbox that its plan needs, and the plan is the refusal. `absent.toml` has the
refusals, in the form in which the corpus writes its own.
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_REASONS = Path(__file__).with_suffix(".toml")


@dataclass(frozen=True, slots=True)
class Absence:
    """A refusal, and the toolboxes that a prompt must lack for it to be right."""

    plan: str
    boxes: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Need:
    """What tools are needed for, and which toolboxes can serve it in any way.

    A question about mails is also served by `find`, and a table by the tools for files: a prompt with these would make
    the refusal wrong.
    """

    tools: frozenset[str]
    boxes: frozenset[str]


_NEEDS: Mapping[str, _Need] = {
    # Effects come first: that nothing can be sent is what the person must know, whatever else is missing.
    "send": _Need(frozenset({"send_mail"}), frozenset({"mail"})),
    "schedule": _Need(frozenset({"add_event", "change_event", "delete_event"}), frozenset({"calendar"})),
    "write": _Need(
        frozenset({"write_text", "write_lines", "append_text", "write_csv", "write_json"})
        | {"copy_file", "move_file", "delete_file", "make_folder"},
        frozenset({"files", "tables"}),
    ),
    "fetch": _Need(frozenset({"fetch_page", "fetch_json"}), frozenset({"web"})),
    "mail": _Need(frozenset({"search_mail", "read_mail", "save_attachment"}), frozenset({"mail", "find"})),
    "calendar": _Need(frozenset({"list_events", "search_events", "find_free_time"}), frozenset({"calendar", "find"})),
    "table": _Need(frozenset({"read_csv", "read_json"}), frozenset({"tables", "files", "find"})),
    "text": _Need(
        frozenset({"read_text", "read_lines", "list_files", "search_files", "file_exists"}),
        frozenset({"files", "tables", "find"}),
    ),
    "search": _Need(frozenset({"find", "find_person"}), frozenset({"find", "files", "tables", "mail", "calendar"})),
}


@cache
def _reasons() -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads(_REASONS.read_text("utf-8"))


def draw_absence(tools: Collection[str], language: str, picks: random.Random) -> Absence | None:
    """The refusal of a plan with these tools under a prompt that lacks some of them; None if nothing can be missing.

    Args:
        tools: The tools that the plan calls.
        language: The code of the request's language; a refusal speaks it.
        picks: Chooses what is missing.

    Example:
        >>> draw_absence({"send_mail"}, "en", random.Random(1)).boxes
        frozenset({'mail'})
    """
    needed = {key: need for key, need in _NEEDS.items() if need.tools & set(tools)}
    if not needed:
        return None
    boxes = needed[picks.choice(sorted(needed))].boxes
    # Without these toolboxes something else may be impossible as well: the first of all that is missing is the reason.
    missing = next(key for key, need in needed.items() if need.boxes <= boxes)
    reasons = _reasons()
    return Absence(f'cannot("{reasons.get(language, reasons["en"])[missing]}")\n', boxes)
