"""What words of a request may refer to in a suite: the lists that the suite's own tools give.

A planner names a file, a mail, an event or a person in the words of the request, and these are bound to the ids and
addresses that the services give, outside every privileged model. A suite without such a list has no references: its
declarations name none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from bicameral.binding import Candidate, Kind
from bicameral.labels import Label, join_all
from bicameral.tools import Registry

_STEP = "bind"
"""The step in the labels of candidates: they are read before the first step of the plan."""


@dataclass(frozen=True, slots=True)
class Listing:
    """One list of a suite: the tool that gives it, and what of its items is a value, a name and a description."""

    tool: str
    arguments: Mapping[str, Any]
    value: str
    names: tuple[str, ...]
    context: tuple[str, ...] = ()
    modified: str | None = None


LISTINGS: Mapping[Kind, tuple[Listing, ...]] = {
    "person": (Listing("search_contacts_by_name", {"query": ""}, "email", ("name",)),),
    "file": (Listing("list_files", {}, "id_", ("filename",), modified="last_modified"),),
    "event": (
        Listing("search_calendar_events", {"query": ""}, "id_", ("title",), ("location", "participants"), "start_time"),
    ),
    "mail": (
        # Not those that are unread: that tool marks them as read.
        Listing("get_received_emails", {}, "id_", ("subject",), ("sender",), "timestamp"),
        Listing("get_sent_emails", {}, "id_", ("subject",), ("recipients",), "timestamp"),
    ),
}
"""The lists by what they hold; a suite has those whose tools it has."""


@dataclass(frozen=True, slots=True)
class SuiteSource:
    """The candidates for references in a suite, read with its tools and labelled as their results are.

    Args:
        registry: The tools, acting on the world of a run.

    Example:
        >>> await SuiteSource(world.registry).candidates("event", ())
    """

    registry: Registry

    async def candidates(self, kind: Kind, within: tuple[str, ...]) -> Sequence[Candidate]:
        """Everything of a kind that the suite lists; nothing where it has no such list."""
        return [each for listing in LISTINGS.get(kind, ()) for each in await self._list(kind, listing)]

    async def describe(self, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
        return candidates

    async def _list(self, kind: Kind, listing: Listing) -> list[Candidate]:
        tool = self.registry.get(listing.tool)
        if tool is None:
            return []
        bound = tool.bind(dict(listing.arguments))
        items: list[dict[str, Any]] = await tool.call(bound)
        labels = tool.result_labels(items, _STEP, arguments=bound)
        # Whoever wrote a name or a description may have written it so that it is chosen, and what is chosen is an id.
        parts = (listing.value, *listing.names, *listing.context, *filter(None, [listing.modified]))
        label = join_all((labels.own, labels.item.own, *(labels.item.field(part).flat for part in parts)))
        return [_candidate(kind, listing, item, label) for item in items]


def _candidate(kind: Kind, listing: Listing, item: Mapping[str, Any], label: Label) -> Candidate:
    changed = item[listing.modified] if listing.modified else None
    moment = changed if isinstance(changed, datetime) else None
    names, context = _texts(item, listing.names), _texts(item, listing.context)
    return Candidate(kind, item[listing.value], names, context, label, moment)


def _texts(item: Mapping[str, Any], fields: tuple[str, ...]) -> tuple[str, ...]:
    """The texts of some fields; one that is empty describes nothing."""
    values: list[Any] = [item[name] for name in fields]
    listed = [each for value in values for each in (cast("list[Any]", value) if isinstance(value, list) else [value])]
    return tuple(str(each) for each in listed if each)
