"""The sections of a description: patterns, facts, prompt, loops and the others, each read into its values."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, get_args

from bicameral.errors import nearest

from ..facts import IDS
from ._stack import (
    Action,
    Gate,
    Guard,
    Holds,
    Leg,
    Loop,
    PromptPart,
    Reach,
    Session,
    Stable,
    Store,
    Tools,
    Use,
    Varies,
)
from ._values import At
from ._vocabulary import FACTS, STATEMENTS


def pattern_id(at: At, known: Collection[str], name: str | None = None) -> str:
    """The id of a pattern that there is."""
    id = name if name is not None else at.text()
    if id not in known:
        meant = nearest(id.upper(), known)
        raise at.wrong(
            "stack.unknown-pattern",
            f"there is no pattern {id[:60]!r}",
            nearest=meant,
            fix="`bicameral patterns list` shows them all; your own go under `define`.",
        )
    return id


def read_uses(at: At, known: Collection[str]) -> tuple[Use, ...]:
    return tuple(_use(each, known) for each in at.items("a list of patterns"))


def _use(at: At, known: Collection[str]) -> Use:
    if not isinstance(at.value, Mapping):
        return Use(pattern_id(at, known), at.path)
    found = list(at.mapping("a pattern with its knobs"))
    if len(found) != 1:
        raise at.bad("one pattern with its knobs, as in {R4: {max_steps: 8}}")
    id, inner = found[0]
    pattern_id(inner, known, id)
    if inner.value is None:
        return Use(id, at.path)
    knobs = {name: _knob(id, name, each) for name, each in inner.mapping("knobs, as in {max_steps: 8}")}
    return Use(id, at.path, knobs)


def _knob(id: str, name: str, at: At) -> Any:
    if (id, name) == ("V5", "at"):
        return list(read_guards(at))
    fact = FACTS.get(name)
    if fact is not None and not fact.accepts(at.value):
        raise at.bad(fact.expected)
    return at.value


def read_facts(at: At) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, each in at.mapping("facts with their values"):
        if name not in FACTS:
            where = "declares" if name in STATEMENTS else "facts"
            raise each.wrong(
                "stack.unknown-fact",
                f"there is no fact {name[:60]!r}",
                nearest=None if where == "declares" else nearest(name, FACTS),
                fix="It goes under `declares`." if where == "declares" else "`bicameral lint --facts` lists them.",
            )
        if not FACTS[name].accepts(each.value):
            raise each.bad(FACTS[name].expected)
        found[name] = each.value
    return found


def read_declares(at: At) -> dict[str, str | bool]:
    found: dict[str, str | bool] = {}
    for name, each in at.mapping("statements, each with where it is written down"):
        if name not in STATEMENTS:
            raise each.wrong(
                "stack.unknown-fact",
                f"there is nothing to declare by the name of {name[:60]!r}",
                nearest=nearest(name, STATEMENTS),
                fix="It goes under `facts`." if name in FACTS else "`bicameral lint --facts` lists them.",
            )
        if not STATEMENTS[name].accepts(each.value):
            raise each.bad(STATEMENTS[name].expected)
        found[name] = each.value
    return found


def read_tools(at: At) -> Tools:
    found = at.keys(("count", "schema_tokens", "servers"), "the tools")
    tokens = found["schema_tokens"].count() if "schema_tokens" in found else None
    if tokens is None and "servers" in found:
        tokens = sum(each.count() for _, each in found["servers"].mapping("servers with their schema tokens"))
    return Tools(at.path, found["count"].count() if "count" in found else None, tokens)


def read_legs(at: At) -> tuple[Leg, ...]:
    return at.several_of(get_args(Leg))


def read_guards(at: At) -> tuple[Guard, ...]:
    return at.several_of(get_args(Guard))


def read_prompt(at: At, known: Collection[str]) -> tuple[PromptPart, ...]:
    return tuple(_prompt_part(each, known) for each in at.items("a list of parts"))


def _prompt_part(at: At, known: Collection[str]) -> PromptPart:
    found = at.keys(("part", "stable", "tokens", "holds", "breakpoint"), "a part of the prompt")
    for needed in ("part", "stable"):
        if needed not in found:
            raise at.wrong("stack.bad-value", f"a part of the prompt has no {needed!r}", expected="part and stable")
    name = found["part"].text()
    owner = name.partition(".")[0]
    if owner[:1].isupper() and owner[1:].isdigit():
        pattern_id(found["part"], known, owner)
    return PromptPart(
        name,
        found["stable"].one_of(get_args(Stable)),
        at.path,
        found["tokens"].count() if "tokens" in found else None,
        found["holds"].several_of(get_args(Varies)) if "holds" in found else (),
        found["breakpoint"].truth() if "breakpoint" in found else False,
    )


def read_loops(at: At) -> tuple[Loop, ...]:
    return tuple(_loop(name, each) for name, each in at.mapping("loops by their names"))


def _loop(name: str, at: At) -> Loop:
    caps = ("steps", "tokens", "money", "seconds")
    found = at.keys((*caps, "exit"), "a loop") if at.value is not None else {}
    amounts = {cap: found[cap].amount() for cap in caps if cap in found}
    return Loop(name, at.path, **amounts, exit=found["exit"].text() if "exit" in found else None)


def read_sessions(at: At) -> tuple[Session, ...]:
    return tuple(_session(name, each) for name, each in at.mapping("sessions by their names"))


def _session(name: str, at: At) -> Session:
    keys = ("model", "reads", "writes", "judges", "tools", "policy", "quarantined")
    found = at.keys(keys, "a session") if at.value is not None else {}
    return Session(
        name,
        at.path,
        found["model"].text() if "model" in found else None,
        found["reads"].texts() if "reads" in found else (),
        found["writes"].texts() if "writes" in found else (),
        found["judges"].texts() if "judges" in found else (),
        found["tools"].texts() if "tools" in found else None,
        found["policy"].text() if "policy" in found else None,
        found["quarantined"].truth() if "quarantined" in found else False,
    )


def read_actions(at: At) -> tuple[Action, ...]:
    return tuple(_action(name, each) for name, each in at.mapping("actions by their names"))


def _action(name: str, at: At) -> Action:
    gates = get_args(Gate)
    keys = ("reversible", "blast_radius", "novel", "gate", "was", "review")
    found = at.keys(keys, "an action") if at.value is not None else {}
    return Action(
        name,
        at.path,
        found["reversible"].truth() if "reversible" in found else None,
        found["blast_radius"].one_of(get_args(Reach)) if "blast_radius" in found else None,
        found["novel"].truth() if "novel" in found else None,
        found["gate"].one_of(gates) if "gate" in found else None,
        found["was"].one_of(gates) if "was" in found else None,
        found["review"].text() if "review" in found else None,
    )


def read_stores(at: At, known: Collection[str]) -> tuple[Store, ...]:
    return tuple(_store(name, each, known) for name, each in at.mapping("stores by their names"))


def _store(name: str, at: At, known: Collection[str]) -> Store:
    keys = ("pattern", "readers", "writers", "eraser", "personal", "holds")
    found = at.keys(keys, "a store") if at.value is not None else {}
    return Store(
        name,
        at.path,
        _owners(found["pattern"], known) if "pattern" in found else (),
        found["readers"].texts() if "readers" in found else (),
        found["writers"].texts() if "writers" in found else (),
        found["eraser"].truth() if "eraser" in found else None,
        found["personal"].truth() if "personal" in found else False,
        found["holds"].one_of(get_args(Holds)) if "holds" in found else "content",
    )


def _owners(at: At, known: Collection[str]) -> tuple[str, ...]:
    if isinstance(at.value, str):
        return (pattern_id(at, known),)
    return tuple(pattern_id(each, known) for each in at.items("a pattern or a list of patterns"))


def read_pipeline(at: At, known: Collection[str]) -> tuple[str, ...]:
    """What comes after what: patterns, or parts of them such as `R5.plan`."""
    found: list[str] = []
    for each in at.items("a list such as [K11.read, R5.plan, R5.execute]"):
        pattern_id(each, known, each.text().partition(".")[0])
        found.append(each.text())
    return tuple(found)


CATALOGUE = frozenset(IDS)
