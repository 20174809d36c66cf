"""Calls to decide on, and tools they are calls of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bicameral.labels import PUBLIC, TRUSTED_USER, Label, Readers, Source
from bicameral.policy import Allowed, ArgumentFacts, CallFacts, Decision, Denied, Effect, Mode, Policy, Purpose
from bicameral.tools import Registry, tool

USER = TRUSTED_USER
CONTACT = Label({Source("system", "find_contact", "address", "0")}, {"user"})
BALANCE = Label({Source("system", "get_balance", "", "1")}, {"user"})
BODY = Label({Source("third_party", "search_mail", "[].body", "2")}, {"user", "ann@example.com"})
READ = Label({*BODY.sources, Source("third_party", "extract", "", "3")}, BODY.readers)
"""What the quarantined model found in a mail."""
PAGE = Label({Source("third_party", "fetch", "", "4")})
"""What everyone may read and anyone may have written."""


def arg(
    name: str,
    purpose: Purpose,
    label: Label = USER,
    *,
    bounded: bool = False,
    names: Iterable[str] | None = (),
) -> ArgumentFacts:
    return ArgumentFacts(name, purpose, label, bounded, None if names is None else frozenset(names))


def call(
    *arguments: ArgumentFacts,
    tool: str = "send_mail",
    toolbox: str = "mail",
    effect: Effect = "send",
    outbound: bool = True,
    declared: bool = True,
    control: Label = USER,
    mode: Mode = "strict",
    lures: Iterable[str] | None = ("www.example.net",),
    **more: Any,
) -> CallFacts:
    found = None if lures is None else frozenset(lures)
    return CallFacts(tool, toolbox, effect, outbound, declared, arguments, control, mode, "5", lures=found, **more)


def mail(
    to: Label = USER,
    body: Label = USER,
    *,
    names: Iterable[str] | None = ("bob@example.com",),
    control: Label = USER,
    mode: Mode = "strict",
    lures: Iterable[str] | None = ("www.example.net",),
) -> CallFacts:
    arguments = arg("to", "directs", to, names=names), arg("body", "carries", body)
    return call(*arguments, control=control, mode=mode, lures=lures)


def said(decision: Decision) -> str:
    match decision:
        case Allowed():
            return "allowed"
        case Denied():
            return "denied"
        case _:
            return "ask"


def rules(decision: Decision) -> tuple[str, ...]:
    return () if isinstance(decision, Allowed) else decision.rules


def why(decision: Decision) -> str:
    match decision:
        case Allowed():
            return ""
        case Denied(reason=reason):
            return reason
        case asked:
            return asked.question


def readers(*names: str) -> Readers:
    return frozenset(names) if names else PUBLIC


def decided(facts: CallFacts, text: str = "") -> tuple[str, tuple[str, ...]]:
    """What is said of a call, and by which policies."""
    found = Policy.parse(text).decide(facts)
    return said(found), rules(found)


@tool(
    effect="send",
    purpose={"to": "directs", "subject": "carries", "body": "carries", "when": "directs"},
    receivers=("to", "cc"),
    attaches=(),
    toolbox="mail",
)
def send_mail(to: list[str], subject: str = "", body: str = "", when: str = "", cc: tuple[str, ...] = ()) -> bool:
    """Send a mail."""
    return bool(to and subject and body and when and cc)


@tool(effect="read", purpose={"sender": "selects"}, outbound=False, toolbox="mail")
def search_mail(sender: str) -> list[str]:
    """Find mails."""
    return [sender]


@tool(
    effect="send",
    purpose={"title": "carries", "guests": "directs", "room": "directs"},
    receivers=("guests",),
    attaches=(),
    toolbox="calendar",
)
def create_event(title: str, guests: list[str] | None = None, room: str = "") -> str:
    """Put an event into the calendar and invite guests."""
    return f"{title}{guests}{room}"


@tool(effect="send", purpose={"text": "carries", "channel": "directs"}, receivers=("channel",), toolbox="chat")
def post(text: str, channel: str | None = None) -> str:
    """Post to a channel; without one, to everybody."""
    return f"{text}{channel}"


REGISTRY = Registry([send_mail, search_mail, create_event, post])
