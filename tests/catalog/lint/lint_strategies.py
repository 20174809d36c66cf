"""Stacks of all kinds, for Hypothesis."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st

from bicameral.catalog import IDS
from bicameral.catalog.stacks import FACTS, STATEMENTS, StackFact

_NAMES = st.sampled_from(["a", "b", "main", "draft", "agent", "log"])


def _values(fact: StackFact) -> st.SearchStrategy[Any]:
    match fact.kind:
        case "truth":
            return st.booleans()
        case "number":
            return st.one_of(st.integers(0, 6000), st.floats(0, 6000, allow_nan=False))
        case "choice":
            return st.sampled_from(fact.choices)
        case _:
            return st.sampled_from(["small", "large"])


FACT_VALUES = {name: _values(fact) for name, fact in FACTS.items()}

_facts = st.fixed_dictionaries({}, optional=dict(list(FACT_VALUES.items())))
_few_facts = st.lists(st.sampled_from([*FACTS]), max_size=12, unique=True).flatmap(
    lambda names: st.fixed_dictionaries({name: FACT_VALUES[name] for name in names})
)
_knobs = st.one_of(
    st.none(),
    st.dictionaries(
        st.sampled_from(["task", "artefact", "session", "max_steps", "k", "mode", "nonsense"]),
        st.one_of(st.integers(-3, 60), st.sampled_from(["a", "b"])),
        max_size=2,
    ),
    _few_facts,
)
_use = st.one_of(
    st.sampled_from([*IDS]), st.tuples(st.sampled_from([*IDS]), _knobs).map(lambda pair: {pair[0]: pair[1]})
)
_amount = st.one_of(st.integers(1, 100_000), st.floats(0.01, 1e6))
_loop = st.fixed_dictionaries(
    {}, optional={"steps": _amount, "tokens": _amount, "money": _amount, "seconds": _amount, "exit": st.just("done")}
)
_part = st.fixed_dictionaries(
    {
        "part": st.sampled_from(["S2.dynamic", "S3", "S9", "H1", "H7.style", "H10.envelope", "tools", "request"]),
        "stable": st.sampled_from(["global", "per_user", "per_call"]),
    },
    optional={
        "tokens": st.integers(0, 9000),
        "breakpoint": st.booleans(),
        "holds": st.lists(st.sampled_from(["timestamp", "uuid"])),
    },
)
_texts = st.lists(_NAMES, max_size=3)
_session = st.fixed_dictionaries(
    {},
    optional={
        "model": _NAMES,
        "reads": _texts,
        "writes": _texts,
        "judges": _texts,
        "tools": _texts,
        "policy": _NAMES,
        "quarantined": st.booleans(),
    },
)
_gate = st.sampled_from(["V1", "V2", "none"])
_action = st.fixed_dictionaries(
    {},
    optional={
        "reversible": st.booleans(),
        "blast_radius": st.sampled_from(["low", "medium", "high"]),
        "novel": st.booleans(),
        "gate": _gate,
        "was": _gate,
        "review": st.just("minutes"),
    },
)
_store = st.fixed_dictionaries(
    {},
    optional={
        "pattern": st.one_of(st.sampled_from([*IDS]), st.lists(st.sampled_from([*IDS]), max_size=3)),
        "readers": _texts,
        "writers": _texts,
        "eraser": st.booleans(),
        "personal": st.booleans(),
    },
)
_sections: dict[str, st.SearchStrategy[Any]] = {
    "facts": _few_facts,
    "declares": st.dictionaries(st.sampled_from([*STATEMENTS]), st.one_of(st.booleans(), st.just("docs")), max_size=4),
    "model": _NAMES,
    "owner": _NAMES,
    "policy": _NAMES,
    "tools": st.fixed_dictionaries({}, optional={"count": st.integers(0, 90), "schema_tokens": st.integers(0, 90_000)}),
    "legs": st.lists(st.sampled_from(["private_data", "untrusted_content", "external_comms"]), unique=True),
    "guards": st.lists(st.sampled_from(["input", "call", "result", "output", "write", "read"]), unique=True),
    "prompt": st.lists(_part, max_size=5),
    "loops": st.dictionaries(_NAMES, _loop, max_size=3),
    "sessions": st.dictionaries(_NAMES, _session, max_size=3),
    "actions": st.dictionaries(_NAMES, _action, max_size=3),
    "stores": st.dictionaries(_NAMES, _store, max_size=3),
    "pipeline": st.lists(st.sampled_from(["K11", "K6", "K11.read", "R5.plan", "H6.consolidate"]), max_size=4),
}


def _member(least: int) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"patterns": st.lists(_use, min_size=least, max_size=10)}, optional=_sections)


@st.composite
def any_stack(draw: st.DrawFn) -> dict[str, Any]:
    """A stack in the shape of the YAML, with up to three agents."""
    described = draw(_member(1))
    agents = draw(st.dictionaries(st.sampled_from(["lead", "worker", "agent"]), _member(0), max_size=3))
    return {**described, "agents": agents} if agents else described


def adding(described: dict[str, Any], wanted: str, data: st.DataObject) -> dict[str, Any]:
    """The same stack with what is wanted, said for the whole and unsaid where an agent says otherwise."""
    mended = copy.deepcopy(described)
    head, _, name = wanted.partition(".")
    if head == "facts":
        mended.setdefault("facts", {})[name] = data.draw(FACT_VALUES[name])
    elif head == "declares":
        mended.setdefault("declares", {})[name] = "docs/design.md"
        for agent in mended.get("agents", {}).values():
            agent.get("declares", {}).pop(name, None)
    else:
        mended["patterns"].append(wanted)
    return mended
