"""Stacks out of YAML: everything knows its place, and what is wrong is told with it."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from bicameral.catalog.stacks import (
    FACTS,
    STATEMENTS,
    composition_yaml,
    compositions,
    dotted_path,
    parse_stack,
    read_stack,
)
from bicameral.catalog.stacks._reader import MAX_AGENTS, MAX_RECORDS, MAX_USES, SHARED_FACTOR
from bicameral.errors import BicameralError, CatalogError

TRIAGE = """\
name: Mail triage
patterns: [V9, V14, {V5: {at: [input, call, result, output]}}]
facts: {production: true, external_input: true, stakes: high, workers: 3}
declares: {action_gate_map: docs/gates.md, "precedence S5>S3": true}
agents:
  triage:
    patterns:
      - O3
      - R4: {max_steps: 8, task: sort}
    model: small
    owner: ops
    policy: triage
    tools: {count: 12, servers: {mail: 700, files: 200}}
    legs: [private_data, untrusted_content]
    guards: [input, output]
    prompt:
      - {part: S3, stable: global, tokens: 200, breakpoint: true}
      - {part: request, stable: per_call, holds: [timestamp]}
    loops: {main: {steps: 8, money: 0.5, seconds: 120, exit: an answer}}
    sessions: {judge: {model: small, reads: [draft], judges: [draft], tools: [], quarantined: true}}
    actions: {send_mail: {reversible: false, blast_radius: high, novel: false, gate: V1, was: V1, review: minutes}}
    stores: {lessons: {pattern: [H2, K10], readers: [agent], writers: [curator], eraser: true, personal: true}}
    pipeline: [K11.read, R5.plan]
waivers:
  - {rule: CRIT6, at: agents.triage, reason: measured, until: 2027-03-01}
"""


def wrong(text: str) -> CatalogError:
    with pytest.raises(CatalogError) as caught:
        parse_stack(text, file="s.yaml")
    return caught.value


def test_everything_that_is_said_is_there() -> None:
    stack = parse_stack(TRIAGE)
    assert stack.name == "Mail triage"
    assert stack.whole.patterns == {"V9", "V14", "V5"}
    assert stack.whole.facts == {"production": True, "external_input": True, "stakes": "high", "workers": 3}
    assert stack.whole.declares == {"action_gate_map": "docs/gates.md", "precedence S5>S3": True}
    assert stack.whole.uses[2].knobs == {"at": ["input", "call", "result", "output"]}
    (agent,) = stack.agents
    assert (agent.name, agent.model, agent.owner, agent.policy) == ("triage", "small", "ops", "triage")
    assert agent.uses[1].knobs == {"max_steps": 8, "task": "sort"}
    assert agent.tools is not None
    assert (agent.tools.count, agent.tools.schema_tokens) == (12, 900)
    assert agent.legs == ("private_data", "untrusted_content")
    assert agent.guards == ("input", "output")
    assert agent.prompt is not None
    assert [(part.part, part.stable, part.tokens, part.holds, part.breakpoint) for part in agent.prompt] == [
        ("S3", "global", 200, (), True),
        ("request", "per_call", None, ("timestamp",), False),
    ]
    assert agent.loops is not None
    assert (agent.loops[0].steps, agent.loops[0].tokens, agent.loops[0].exit) == (8, None, "an answer")
    assert agent.sessions is not None
    assert agent.sessions[0].tools == ()
    assert agent.sessions[0].quarantined
    assert agent.actions is not None
    assert (agent.actions[0].reversible, agent.actions[0].gate, agent.actions[0].review) == (False, "V1", "minutes")
    assert agent.stores is not None
    assert agent.stores[0].patterns == ("H2", "K10")
    assert agent.pipeline == ("K11.read", "R5.plan")
    (waiver,) = stack.waivers
    assert (waiver.rules, waiver.at, waiver.until) == (("CRIT6",), "agents.triage", date(2027, 3, 1))


def test_what_is_not_said_is_not_empty() -> None:
    whole = parse_stack("patterns: [V9]\nlegs: []\n").whole
    assert whole.legs == ()
    assert whole.guards is None
    assert whole.prompt is None


def test_everything_knows_its_line_and_column() -> None:
    stack = parse_stack(TRIAGE, file="triage.yaml")
    (agent,) = stack.agents
    assert agent.prompt is not None
    assert agent.actions is not None
    for path, line, column in (
        (stack.whole.uses[2].path, 2, 21),
        (agent.path, 6, 3),
        (agent.uses[1].path, 9, 9),
        (agent.prompt[1].path, 18, 9),
        (agent.actions[0].path, 21, 15),
        (stack.waivers[0].path, 25, 5),
    ):
        place = stack.place(path)
        assert (place.file, place.line, place.column) == ("triage.yaml", line, column), dotted_path(path)
    assert dotted_path(agent.uses[1].path) == "agents.triage.patterns[1]"


@pytest.mark.parametrize(
    ("text", "code", "line", "column", "nearest"),
    [
        ("patterns: [V9]\nfact: {}\n", "stack.unknown-key", 2, 1, "facts"),
        ("patterns: [V9]\nagents:\n  a:\n    patern: [R4]\n", "stack.unknown-key", 4, 5, "patterns"),
        ("patterns: [V9]\nloops: {main: {step: 3}}\n", "stack.unknown-key", 2, 16, "steps"),
        ("patterns:\n  - V9\n  - V99\n", "stack.unknown-pattern", 3, 5, "V9"),
        ("patterns: [V9, r4]\n", "stack.unknown-pattern", 1, 16, "R4"),
        ("patterns: [{R44: {}}]\n", "stack.unknown-pattern", 1, 13, "R4"),
        ("patterns: [S7]\n", "stack.unknown-pattern", 1, 12, None),
        ("patterns: [V9]\nfacts:\n  prodction: true\n", "stack.unknown-fact", 3, 3, "production"),
        ("patterns: [V9]\nfacts: {critic_priority: x}\n", "stack.unknown-fact", 2, 9, None),
        ("patterns: [V9]\ndeclares: {action_gate_mapp: x}\n", "stack.unknown-fact", 2, 12, "action_gate_map"),
        ("patterns: [V9]\nfacts: {production: 'yes'}\n", "stack.bad-value", 2, 9, None),
        ("patterns: [V9]\nfacts: {stakes: hihg}\n", "stack.bad-value", 2, 9, None),
        ("patterns: [V9]\nfacts: {workers: true}\n", "stack.bad-value", 2, 9, None),
        ("patterns: [V9]\nfacts: {workers: .nan}\n", "stack.bad-value", 2, 9, None),
        ("patterns: V9\n", "stack.bad-value", 1, 1, None),
        ("patterns: [{V9: {}, V14: {}}]\n", "stack.bad-value", 1, 12, None),
        ("patterns: [3]\n", "stack.bad-value", 1, 12, None),
        ("patterns: [V9]\ntools: {count: -1}\n", "stack.bad-value", 2, 9, None),
        ("patterns: [V9]\nloops: {main: {steps: 0}}\n", "stack.bad-value", 2, 16, None),
        ("patterns: [V9]\nloops: {main: {steps: .inf}}\n", "stack.bad-value", 2, 16, None),
        ("patterns: [V9]\nlegs: [privat_data]\n", "stack.bad-value", 2, 8, "private_data"),
        ("patterns: [V9]\nactions: {pay: {gate: V3}}\n", "stack.bad-value", 2, 17, None),
        ("patterns: [V9]\nprompt: [{part: S3}]\n", "stack.bad-value", 2, 10, None),
        ("patterns: [V9]\nprompt: [{part: S77, stable: global}]\n", "stack.unknown-pattern", 2, 11, None),
        ("patterns: [V9]\nstores: {x: {pattern: H22}}\n", "stack.unknown-pattern", 2, 14, "H2"),
        ("patterns: [V9]\npipeline: [K99.read]\n", "stack.unknown-pattern", 2, 12, "K9"),
        ("patterns: [V9]\nwaivers: [{reason: x}]\n", "stack.bad-value", 2, 11, None),
        ("patterns: [V9]\nwaivers: [{rule: LAW1, until: soon}]\n", "stack.bad-value", 2, 24, None),
        ("patterns: [{H4: {code_skills: maybe}}]\n", "stack.bad-value", 1, 18, None),
        ("patterns: [{V5: {at: [ouput]}}]\n", "stack.bad-value", 1, 23, "output"),
        ("", "stack.empty", 1, None, None),
        ("name: x\nagents: {a: {model: small}}\n", "stack.empty", 1, None, None),
        ("patterns: [V9]\ndefine: {V9: {}}\n", "stack.known-pattern", 2, 10, None),
        ("patterns: [V9]\ndefine: {X: {needs: [Y]}}\n", "stack.unknown-pattern", 2, 22, None),
        ("patterns: [V9]\ndefine: {X: {not_with: [X]}}\n", "stack.bad-value", 2, 14, None),
        (
            "patterns: [X]\ndefine:\n  X: {needs: [Y]}\n  Y: {needs: [Z]}\n  Z: {needs: [X]}\n",
            "stack.circle",
            3,
            3,
            None,
        ),
        ("patterns: [X]\ndefine: {X: {needs: [X]}}\n", "stack.circle", 2, 10, None),
    ],
)
def test_a_mistake_is_told_with_its_place_and_what_was_meant(
    text: str, code: str, line: int, column: int | None, nearest: str | None
) -> None:
    error = wrong(text)
    assert error.code == code
    assert error.place is not None
    assert (error.place.file, error.place.line, error.place.column) == ("s.yaml", line, column), str(error)
    if nearest is not None:
        assert error.nearest == nearest


def test_a_circle_is_told_in_the_order_in_which_they_need_each_other() -> None:
    text = "patterns: [X]\ndefine:\n  X: {needs: [Y]}\n  Y: {needs: [Z]}\n  Z: {needs: [X]}\n"
    assert "X needs Y needs Z needs X" in str(wrong(text))


def test_long_and_wide_definitions_are_no_circle_and_quick() -> None:
    layers = [[f"L{layer}-{number}" for number in range(8)] for layer in range(25)]
    lines = ["patterns: [V9]", "define:"]
    for layer, below in zip(layers, [*layers[1:], ["V9"]], strict=True):
        lines += [f"  {id}: {{needs: [{', '.join(below)}]}}" for id in layer]
    assert len(parse_stack("\n".join(lines)).defined) == 200


@pytest.mark.parametrize(
    "text", ["patterns: [V9\n", "- V9\n", "patterns: !!python/object:x []\n", "agents: {a: {}, a: {}}\n", "a: &x [*x]"]
)
def test_broken_yaml_is_told_with_its_line(text: str) -> None:
    with pytest.raises(BicameralError) as caught:
        parse_stack(text, file="s.yaml")
    assert caught.value.code == "config.bad-yaml"
    assert caught.value.place is not None
    assert caught.value.place.line is not None


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    large = tmp_path / "large.yaml"
    large.write_text("# " + "x" * 600_000)
    for path in (tmp_path, tmp_path / "none.yaml", binary, large, f"{tmp_path}/a\0b"):
        with pytest.raises(CatalogError) as caught:
            read_stack(path)
        assert caught.value.code == "stack.cannot-read"


def test_a_file_may_begin_with_a_mark(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("\ufeffpatterns: [V9]\n", encoding="utf-8")
    assert read_stack(file).whole.patterns == {"V9"}


def test_facts_and_statements_do_not_share_names_and_say_what_they_are() -> None:
    assert not {*FACTS} & {*STATEMENTS}
    for fact in (*FACTS.values(), *STATEMENTS.values()):
        assert fact.what
        assert fact.expected
        assert bool(fact.choices) == (fact.kind == "choice")
        assert fact.to_json()["name"] == fact.name


@given(st.text(alphabet="paternsV9: [,]{}\n-&*!'\"#|>", max_size=80))
def test_no_text_ends_in_anything_but_a_stack_or_an_error(text: str) -> None:
    told: BicameralError | None = None
    try:
        assert parse_stack(text).whole.uses
    except BicameralError as error:
        told = error
    assert told is None or told.place is not None


SECTIONS = ("loops", "sessions", "actions", "stores")
"""The sections with records by name."""


def named_records(count: int, indent: int = 1) -> str:
    return "".join(f"{' ' * indent}n{number}: {{}}\n" for number in range(count))


def many_agents(count: int) -> str:
    return "agents:\n" + "".join(f" a{number}: {{patterns: [R4, V9, V14]}}\n" for number in range(count))


@pytest.mark.parametrize(
    "text",
    [
        "patterns:\n" + "- R4\n" * (MAX_USES + 1),
        "patterns: [R4]\nagents:\n" + "".join(f" a{n}: {{}}\n" for n in range(MAX_AGENTS + 1)),
        "patterns:\n" + "- O2: {inner: [R4, R5, R4, R5]}\n" * (MAX_USES // 4),
        "patterns: [R4]\ndefine:\n" + "".join(f" OWN{n}: {{}}\n" for n in range(MAX_USES + 1)),
        "patterns: [R4]\nwaivers:\n" + "- {rule: L1}\n" * (MAX_RECORDS + 1),
        "patterns: [R4]\nprompt:\n" + "- {part: S3, stable: global}\n" * (MAX_RECORDS + 1),
        f"patterns: [R4]\npipeline: [{'R4, ' * (MAX_RECORDS + 1)}]",
        "patterns:\n- R4:\n" + "".join(f"   k{n}: 1\n" for n in range(MAX_RECORDS + 1)),
        "patterns: [R4]\ntools:\n servers:\n" + "".join(f"  s{n}: 1\n" for n in range(MAX_RECORDS + 1)),
        *(f"patterns: [R4]\n{section}:\n{named_records(MAX_RECORDS + 1)}" for section in SECTIONS),
        *(
            f"agents:\n a: {{patterns: [R4]}}\n b:\n  {section}:\n{named_records(MAX_RECORDS + 1, 3)}"
            for section in SECTIONS
        ),
        # Few records, but each agent has all of them.
        *(f"{many_agents(MAX_AGENTS)}{section}:\n{named_records(MAX_RECORDS // 10)}" for section in SECTIONS),
    ],
)
def test_a_stack_that_nobody_can_have_meant_is_refused(text: str) -> None:
    with pytest.raises(CatalogError) as caught:
        parse_stack(text)
    assert caught.value.code == "stack.too-large"


def test_a_large_stack_is_read() -> None:
    assert len(parse_stack(many_agents(MAX_AGENTS)).agents) == MAX_AGENTS
    for section in SECTIONS:
        stack = parse_stack(f"patterns: [R4]\n{section}:\n{named_records(MAX_RECORDS)}")
        assert len(getattr(stack.whole, section)) == MAX_RECORDS
        # What the whole says counts for each agent, and may be as large as many agents need.
        records = named_records(MAX_RECORDS * SHARED_FACTOR // MAX_AGENTS)
        assert parse_stack(f"{many_agents(MAX_AGENTS)}{section}:\n{records}").agents


def test_every_composition_can_be_begun_with() -> None:
    for id, each in compositions().items():
        assert replace(parse_stack(composition_yaml(id)), file=None, locate=each.stack.locate) == replace(
            each.stack, file=None
        )
