"""Who judges what, and who wrote it."""

from __future__ import annotations

from collections.abc import Iterator

from ...stacks import Session, dotted
from .._rules import Check
from .._scope import Scope
from .._trouble import Trouble, undeclared

_JUDGED = ("V15", "O5")
"""Patterns in which one session judges what another wrote."""


def authors_judge(scope: Scope, check: Check) -> Iterator[Trouble]:
    """No session judges what it wrote."""
    if scope.sessions is None:
        for id in _JUDGED:
            if id in scope.present:
                yield undeclared("sessions", scope.where(id))
    for session in scope.sessions or ():
        if own := sorted({*session.judges} & {*session.writes}):
            message = f"the session {session.name!r} judges what it wrote itself: {', '.join(own)}"
            yield Trouble(("own judge", dotted(session.path)), message, session.path, patterns=("V15",))


def judges_share_model(scope: Scope, check: Check) -> Iterator[Trouble]:
    """Who judges has another model than who wrote."""
    for judge in scope.sessions or ():
        for author in _authors(scope, judge):
            if judge.model is None or author.model is None:
                yield undeclared("sessions", judge.path)
            elif judge.model == author.model:
                message = f"the session {judge.name!r} judges what {author.name!r} wrote with the same model"
                yield Trouble(("same model", dotted(judge.path)), message, judge.path, patterns=("V15",))


def _authors(scope: Scope, judge: Session) -> Iterator[Session]:
    for author in scope.sessions or ():
        if author is not judge and {*judge.judges} & {*author.writes}:
            yield author
