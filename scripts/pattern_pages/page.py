"""The text of a pattern's page, from the catalogue, the tests and the results that are checked in."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bicameral.catalog import catalog
from bicameral.catalog.facts import ENFORCEMENT_WORDS, Knob, PatternAlternative, PatternFacts
from bicameral.catalog.stacks import runtime_guarantees
from bicameral.patterns import IMPLEMENTED, PRODUCT
from scripts.invariants import Claim, pattern_invariants
from scripts.pattern_pages.example import example_code

ROOT = Path(__file__).parents[2]
EXAMPLES, EVIDENCE = "benchmarks/patterns/results.json", "benchmarks/evidence/results.json"
"""Where the last lines of `benchmarks.patterns` and `benchmarks.evidence` are kept."""
ARMS: Mapping[str, tuple[str, str]] = {
    "V13": ("all tools", "chosen tools"),
    "V6": ("plain", "delimit"),
    "V16": ("mean", "gate"),
}
"""The two sides of each comparison, without the pattern and with it."""


@dataclass(frozen=True, slots=True)
class Results:
    """What the benchmarks of patterns have printed, as far as it is checked in."""

    examples: Mapping[str, Mapping[str, Any]]
    evidence: Mapping[str, Mapping[str, Any]]

    @classmethod
    def read(cls, root: Path = ROOT) -> Results:
        """Those below a folder; nothing where a file is not there."""
        rows: Sequence[Mapping[str, Any]] = _read_object(root / EXAMPLES).get("rows", ())
        return cls({row["pattern"]: row for row in rows}, _read_object(root / EVIDENCE))


def _read_object(file: Path) -> Mapping[str, Any]:
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def render_page(facts: PatternFacts, tests: Mapping[str, Sequence[Claim]], results: Results) -> str:
    """The page of a pattern."""
    parts = [
        f"# {facts.id}: {facts.name}",
        facts.what,
        "\n\n".join(_status(facts.id)),
        f"![The steps of {facts.id}, and its participants by kind]({facts.id}.svg)",
        _section("When to use it", _list(facts.when), "Not when", _list(map(_alternative, facts.not_when))),
        _section("Participants", _participants(facts)),
        _section("Knobs", _knobs(facts)),
        _section("Invariants", _invariants(facts, tests)),
        _section("Cost", _cost(facts)),
        _section("What goes wrong", _list(f"{_plain(each.what)}: {_plain(each.mend)}" for each in facts.failures)),
        _section("Related patterns", _list(_relations(facts))),
        _section("Measured", "\n\n".join(_measured(facts.id, results))),
        _section("Code", "\n\n".join(_code(facts.id))),
        _section("Sources", _list(map(_plain, facts.sources))),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def render_index() -> str:
    """The page that lists all patterns."""
    known = catalog().patterns
    parts = [
        "# All patterns",
        f"The {len(known)} patterns of the [catalogue](../catalog.md), a page each. A name in bold can be"
        f" [run](../patterns.md): {len(IMPLEMENTED)} are implemented.",
    ]
    for category in dict.fromkeys(each.category for each in known.values()):
        rows = [(each.id, _named_link(each), _plain(each.what)) for each in known.values() if each.category == category]
        parts.append(f"## {category.capitalize()}\n\n{_table(('id', 'pattern', 'what it is'), rows)}")
    return "\n\n".join(parts) + "\n"


def _named_link(facts: PatternFacts) -> str:
    link = f"[{facts.name}]({facts.id}.md)"
    return f"**{link}**" if facts.id in IMPLEMENTED or facts.id in PRODUCT else link


def _section(heading: str, text: str, then: str = "", more: str = "") -> str:
    """A section; nothing if it has no text."""
    found = "\n\n".join(filter(None, (text, f"{then}:\n\n{more}" if more else "")))
    return f"## {heading}\n\n{found}" if found else ""


def _status(id: str) -> Iterator[str]:
    if id in IMPLEMENTED:
        module, _, name = IMPLEMENTED[id].partition(":")
        yield f"Implemented: `{name}` in `bicameral.patterns.{module}`. [Patterns](../patterns.md) says how to run it."
    elif id in PRODUCT:
        yield f"The runtime itself is this pattern: `bicameral.{PRODUCT[id]}`."
    else:
        yield (
            "Not implemented: the [catalogue](../catalog.md) describes it, the [linter](../lint.md), the"
            " [advisor](../advise.md) and the [cost model](../estimate.md) know it, and there is no code for it yet."
        )
    brought = runtime_guarantees().get(id)
    if brought is not None:
        stacks = f"stacks with {_links(brought.with_any)}" if brought.with_any else "every stack"
        yield f"The runtime brings it to {stacks}: {_plain(brought.why)}."


def _participants(facts: PatternFacts) -> str:
    rows = [(_plain(each.name), each.kind, _plain(each.does), _plain(each.must_not)) for each in facts.participants]
    return _table(("participant", "kind", "what it does", "what it must not do"), rows)


def _knobs(facts: PatternFacts) -> str:
    if not facts.knobs:
        return "It has none."
    rows = [
        (f"`{name}`", _code_span(_value(knob.default)), _range(knob), _plain(knob.what))
        for name, knob in facts.knobs.items()
    ]
    return _table(("knob", "default", "values", "what it is"), rows)


def _range(knob: Knob) -> str:
    if knob.choices:
        return ", ".join(knob.choices)
    match knob.least, knob.most:
        case None, None:
            return ""
        case least, None:
            return f"from {_value(least)}"
        case None, most:
            return f"up to {_value(most)}"
        case least, most:
            return f"{_value(least)} to {_value(most)}"


def _value(value: object) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return str(value).lower()
        case float():
            return f"{value:g}"
        case _:
            return str(value)


def _invariants(facts: PatternFacts, tests: Mapping[str, Sequence[Claim]]) -> str:
    rows = [
        (id, _plain(each.rule), ENFORCEMENT_WORDS[each.held], "<br>".join(f"`{claim}`" for claim in tests.get(id, ())))
        for id, each in pattern_invariants(facts.id).items()
    ]
    return _table(("id", "what always holds", "held by", "tests"), rows)


def _cost(facts: PatternFacts) -> str:
    rows = [
        (_plain(each.role), *(_code_span(str(part)) for part in (each.calls, each.most, each.prompt, each.output)))
        for each in facts.cost.sessions
    ]
    if not rows:
        return "It asks no model."
    return _table(("model", "calls", "most calls", "tokens of its prompt", "tokens of its reply"), rows)


def _relations(facts: PatternFacts) -> Iterator[str]:
    for need in catalog().requirements_of(facts.id):
        wanted = _links(need.all_of) or f"one of {_links(need.any_of)}"
        yield f"needs {wanted} ({need.strength}): {_plain(need.why)}"
    for told, ids in (
        ("goes with", facts.goes_with),
        ("grows to", facts.grows_to),
        ("shrinks to", facts.shrinks_to),
    ):
        if ids:
            yield f"{told} {_links(ids)}"


def _measured(id: str, results: Results) -> Iterator[str]:
    row = results.examples.get(id)
    compared = results.evidence.get(id)
    if row is not None:
        yield "Its example, run once with a local model (`python -m benchmarks.patterns`):"
        yield _table(
            ("", "measured", "foreseen"),
            [
                ("comes out right", _value(row["ok"]), ""),
                ("model calls", _value(row["calls"]), _value(float(row["calls_expected"]))),
                ("tokens", f"{row['tokens']:,}", f"{row['tokens_expected']:,}"),
                ("its replay gives the same", _value(row["replayed"]), ""),
            ],
        )
    if compared is not None:
        yield "The same cases without it and with it (`python -m benchmarks.evidence`):"
        yield _table(
            ("model", "cases", *ARMS[id], "gain", "95 % interval"),
            [_compared_row(model, found, ARMS[id]) for model, found in _by_model(compared)],
        )
        if "false_alarms" in compared:
            alarms = ", ".join(f"{arm} {_value(compared['false_alarms'][arm])}" for arm in ARMS[id])
            yield f"Stopped though nothing had changed: {alarms}."
    if row is None and compared is None:
        yield "Not measured yet."
    else:
        yield "[Figures](../figures.md#patterns) says how this is measured."


def _compared_row(model: str, found: Mapping[str, Any], arms: tuple[str, str]) -> tuple[str, ...]:
    shown = (_value(found[name]) for name in ("cases", *arms, "gain"))
    interval = f"{_value(found['low'])} to {_value(found['high'])}"
    # A null result is published as one.
    return (model, *shown, f"{interval}, a null result" if _is_null(found) else interval)


def _by_model(compared: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The figures of a comparison by the model that was asked; `none` where it asks none."""
    return iter([("none", compared)] if "gain" in compared else compared.items())


def _is_null(found: Mapping[str, float]) -> bool:
    return found["low"] <= 0 <= found["high"]


def _code(id: str) -> Iterator[str]:
    if id not in IMPLEMENTED:
        return
    module = IMPLEMENTED[id].partition(":")[0]
    yield f"```sh\nbicameral patterns run {id}\n```"
    yield f"runs this example, which is part of `src/bicameral/patterns/{module.replace('.', '/')}.py`:"
    yield f"```python\n{example_code(f'bicameral.patterns.{module}')}\n```"


def _alternative(each: PatternAlternative) -> str:
    instead = f": {_links(each.use)}" if each.use else ""
    return f"{_plain(each.condition)}{instead}"


def _links(ids: Iterable[str]) -> str:
    known = catalog().patterns
    return ", ".join(f"[{id}]({id}.md)" if id in known else id for id in ids)


def _list(items: Iterable[str]) -> str:
    return "\n".join(f"- {each}" for each in items)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _plain(text: str) -> str:
    """Text of the catalogue as it stands, also where Markdown would take a character for markup."""
    for character in "\\|*_[]`":
        text = text.replace(character, f"\\{character}")
    return text.replace("<", "&lt;")


def _code_span(text: str) -> str:
    return f"<code>{text.replace('|', '&#124;')}</code>" if "|" in text else f"`{text}`"
