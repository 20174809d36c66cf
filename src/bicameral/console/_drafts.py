"""Plans that were written here and not run yet: what a person saw is what runs, for the request it was written for.

A plan of a model is checked against its request. If the text alone came back from the page, its constants would count
as the person's own. So the plan itself stays here, and the page has its number; a text that was changed is another
plan, and the person's.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from dataclasses import dataclass

from bicameral.agent import Planned
from bicameral.console._sessions import Session

MAX_DRAFTS = 1_000
MAX_OWN_DRAFTS = 20
"""Drafts of one user; the oldest goes when another comes. So nobody can use up the room of others by many sessions."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A plan of a model, of one session."""

    id: str
    user: str
    session: str
    planned: Planned

    def is_unchanged(self, text: str) -> bool:
        """Whether a text is still that of the plan."""
        return text.strip() == self.planned.source.strip()


class Drafts:
    """The drafts of one server, in memory."""

    def __init__(self) -> None:
        self._drafts: OrderedDict[str, Draft] = OrderedDict()

    def add(self, session: Session, planned: Planned) -> Draft:
        """Keep a plan for a session."""
        own = [each for each in self._drafts.values() if each.user == session.token.user]
        for old in (*own[: max(0, len(own) - MAX_OWN_DRAFTS + 1)], *list(self._drafts.values())[: self._too_many()]):
            self._drafts.pop(old.id, None)
        draft = Draft(secrets.token_hex(8), session.token.user, session.key, planned)
        self._drafts[draft.id] = draft
        return draft

    def forget(self, session: str) -> None:
        """Drop the drafts of a session that has ended."""
        for draft in [each for each in self._drafts.values() if each.session == session]:
            self._drafts.pop(draft.id, None)

    def _too_many(self) -> int:
        return max(0, len(self._drafts) - MAX_DRAFTS + 1)

    def find(self, session: str, id: str) -> Draft | None:
        """A draft of this session; None if there is none, or none any more."""
        draft = self._drafts.get(id)
        return draft if draft is not None and draft.session == session else None
