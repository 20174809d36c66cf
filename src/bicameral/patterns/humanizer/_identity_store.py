"""The versions of an identity on disk: founded once, changed only with an owner's yes, between sessions."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast, get_args

from bicameral.errors import LabelError, Place, RunError
from bicameral.labels import TRUSTED_USER, Label, own_value, shade_from_json, shade_to_json

from ._chained import ChainedFile, Entry
from ._endorsed import endorsed, strangers_in
from ._identity_document import Change, Identity, identity_of

Kind = Literal["founded", "changed", "rolled-back"]
_KINDS: tuple[Kind, ...] = get_args(Kind)
_KEYS = {"kind", "identity", "author", "reason", "approval", "sources", "label"}
_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Version:
    """One version of an identity: whose doing it was, when, why, and what the owner said yes to."""

    number: int
    at: float
    kind: Kind
    identity: Identity
    author: str
    reason: str
    approval: str
    """The fingerprint of the proposal that was approved; of the first version that of its founding."""
    sources: tuple[str, ...]
    """Whatever strangers' text had a hand in it, as it was shown to the owner."""
    label: Label
    seal: str


@dataclass(frozen=True, slots=True)
class Proposal:
    """What an owner is asked: exactly what will be written, and where it comes from."""

    base: Version
    identity: Identity
    changes: tuple[Change, ...]
    author: str
    reason: str
    label: Label
    kind: Kind = "changed"

    @property
    def sources(self) -> tuple[str, ...]:
        """The strangers' texts that had a hand in it; empty if there are none."""
        return strangers_in(self.label)

    @property
    def fingerprint(self) -> str:
        facts = {
            "base": self.base.seal,
            "identity": self.identity.to_json(),
            "reason": self.reason,
            "sources": self.sources,
        }
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


Owner = Callable[[Proposal], Awaitable[bool]]
"""Whoever may change an identity. Nothing but True is a yes; where there is no owner, the answer is no."""


class IdentityStore:
    """An identity and its history in one file.

    While a session is open nothing can be written, by whatever process. `known` is the seal of a version that is
    remembered elsewhere: a file that does not have it is refused.

    Example:
        >>> store = IdentityStore(folder / "identity.jsonl")
        >>> store.found(Identity("Iris", values=("Never guess a figure.",)), author="Ada", reason="a new assistant")
        >>> store.current().number
        0
    """

    def __init__(self, path: Path, *, known: str | None = None) -> None:
        self._file = ChainedFile(path, "bicameral identity 1", known)

    def found(self, identity: Identity, *, author: str, reason: str) -> Version:
        """Write the first version. Its invariants hold for good; an identity is founded only once.

        It is the author's own: a text that an outcome handed out, and a stranger had a hand in, is refused.
        """
        own_value(identity)
        approval = hashlib.sha256(json.dumps(identity.to_json(), sort_keys=True).encode()).hexdigest()
        body = _body("founded", identity, author, reason, approval, (), TRUSTED_USER)
        return self._version(self._file.append(body, after=""))

    def history(self) -> tuple[Version, ...]:
        """All versions, the oldest first; refused if one of them is not as it was written."""
        found = tuple(self._version(entry) for entry in self._file.entries())
        for number, version in enumerate(found):
            if (version.kind == "founded") is not (number == 0):
                raise self._damaged(number, "an identity is founded once, and first")
            if not version.identity.keeps(found[0].identity):
                raise self._damaged(number, "what can never change was changed")
        return found

    def current(self, *, wait_days: float = 0.0, now: float | None = None) -> Version:
        """The newest version; changes are left out until they are `wait_days` old. A rollback does not wait."""
        until = (time.time() if now is None else now) - wait_days * _DAY
        for version in reversed(self.history()):
            if version.kind != "changed" or version.at <= until:
                return version
        raise RunError(
            "pattern.no-identity",
            "there is no identity yet",
            place=Place(file=str(self._file.path)),
            fix="`found` writes the first version.",
        )

    @contextmanager
    def session(self, *, wait_days: float = 0.0) -> Generator[Version]:
        """The version that a session goes by; until it ends nobody can write another."""
        with self._file.held():
            yield self.current(wait_days=wait_days)

    def proposed(self, changes: tuple[Change, ...], *, author: str, reason: str, label: Label) -> Proposal:
        """A change of the newest version; refused if it touches what can never change."""
        base = self.history()[-1]
        return Proposal(base, base.identity.changed(changes), changes, author, reason, label)

    async def change(self, proposal: Proposal, owner: Owner | None) -> Version:
        """Write what was proposed, if the owner says yes and nothing was written since."""
        newest = self.history()[-1]
        if proposal.base != newest:
            raise RunError("pattern.store-changed", "this was proposed for a version that is not the newest any more")
        if not proposal.identity.keeps(newest.identity):
            raise RunError("pattern.invariant", "what can never change would be changed")
        if owner is None or await owner(proposal) is not True:
            raise RunError(
                "pattern.not-approved",
                "nobody who may do so has approved this change of identity",
                expected="an owner who says yes to exactly this",
            )
        body = _body(
            proposal.kind,
            proposal.identity,
            proposal.author,
            proposal.reason,
            proposal.fingerprint,
            proposal.sources,
            endorsed(proposal.label, *([newest.label] if proposal.kind == "changed" else [])),
        )
        return self._version(self._file.append(body, after=newest.seal))

    async def roll_back(self, to: int, owner: Owner | None, *, author: str, reason: str) -> Version:
        """Make an earlier version the newest again, as one more version: history is never taken back."""
        history = self.history()
        if not 0 <= to < len(history):
            raise RunError("pattern.no-identity", f"there is no version {to}", expected=f"0 to {len(history) - 1}")
        old = history[to]
        return await self.change(
            Proposal(history[-1], old.identity, (), author, reason, old.label, "rolled-back"), owner
        )

    def _version(self, entry: Entry) -> Version:
        body = entry.body
        if set(body) != _KEYS:
            raise self._damaged(entry.number, "it has other fields than a version")
        texts = [body[name] for name in ("kind", "author", "reason", "approval")]
        sources = cast("list[Any]", body["sources"] if isinstance(body["sources"], list) else [None])
        if any(type(each) is not str for each in (*texts, *sources)) or body["kind"] not in _KINDS:
            raise self._damaged(entry.number, "its facts are not texts")
        try:
            identity, label = identity_of(body["identity"]), shade_from_json(body["label"]).flat
        except (ValueError, LabelError) as error:
            raise self._damaged(entry.number, str(error)) from None
        kind, author, reason, approval = texts
        return Version(
            entry.number, entry.at, kind, identity, author, reason, approval, tuple(sources), label, entry.seal
        )

    def _damaged(self, number: int, why: str) -> RunError:
        return RunError(
            "pattern.store-damaged",
            f"this file is not as it was written: {why}",
            place=Place(file=str(self._file.path), line=number + 1),
            fix="Nothing in it is used. Put a copy in its place that nobody has changed.",
        )


def _body(
    kind: Kind, identity: Identity, author: str, reason: str, approval: str, sources: tuple[str, ...], label: Label
) -> dict[str, Any]:
    return {
        "kind": kind,
        "identity": identity.to_json(),
        "author": author,
        "reason": reason,
        "approval": approval,
        "sources": list(sources),
        "label": shade_to_json(label),
    }
