"""Python for stacks: what is built describes itself as the same stack, is typed, and holds no code of the stack's."""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from patterns_world import answered, table

from benchmarks.patterns.compositions import COMPOSITIONS, ComposedCase
from bicameral.catalog.costs import estimate
from bicameral.catalog.lint import lint
from bicameral.catalog.stacks import Stack, parse_stack, stack_of, stack_yaml
from bicameral.errors import CatalogError
from bicameral.labels import program_text
from bicameral.patterns import (
    Guardrails,
    OrchestratorWorkers,
    OutputTemplate,
    Parallelization,
    Pattern,
    ReAct,
    ReWOO,
    Role,
    ToolCalling,
)
from bicameral.patterns.orchestration.chain import Chain
from bicameral.patterns.orchestration.orchestrator_workers import WorkerSpec
from bicameral.patterns.reliability.guardrails import length_guard
from bicameral.patterns.stack_code import stack_to_python
from bicameral.types import STR, Field, RecordType

FORM = RecordType((Field("city", STR),))
GUARDS = (length_guard("input", 500), length_guard("output", 500))
WORKER = Role("Worker", "Reply with one word.")


def load(source: str) -> ModuleType:
    module = ModuleType("built")
    exec(compile(source, "built.py", "exec"), vars(module))
    return module


def build(source: str) -> Pattern[..., Any]:
    """The pattern of a module: each parameter gets the value for its kind, by the beginning of its name."""
    function = load(source).build
    parameters = inspect.signature(function).parameters.values()
    needed = [each for each in parameters if each.default is inspect.Parameter.empty]
    return function(**{each.name: _value_for(each.name, each.annotation) for each in needed})


def _value_for(name: str, annotation: str) -> Any:
    values: Mapping[str, Any] = {"Type": FORM, "Role": WORKER, "tuple[Guard, ...]": GUARDS, "str": f"does {name}"}
    return values[annotation]


# Compositions that Hypothesis makes ---------------------------------------------------------------------------------

NAMES = st.sampled_from(["law", "papers", "from", "Größe", 'a "b"', "x'y", "1st"])


AnyPattern = Pattern[..., Any]


def _chain(first: AnyPattern, second: AnyPattern) -> AnyPattern:
    return Chain.of(first, second)


def _retried_chain(first: AnyPattern, second: AnyPattern, retries: int) -> AnyPattern:
    return Chain((first, second), max_retries=retries)


def _parts(parts: Mapping[str, Role | AnyPattern], width: int) -> AnyPattern:
    return Parallelization.sections(parts, width=width)


def _guarded(inner: AnyPattern) -> AnyPattern:
    return Guardrails(inner, GUARDS)


def _workers(by: list[Role | AnyPattern], most: int) -> AnyPattern:
    listed = [WorkerSpec(f"worker_{n}", f"does worker_{n}_can", each) for n, each in enumerate(by, 1)]
    return OrchestratorWorkers(listed, max_workers=most, max_depth=3)


def _formed(inner: AnyPattern) -> AnyPattern:
    return inner | OutputTemplate(FORM, retries=2)


def _texts(inner: st.SearchStrategy[AnyPattern]) -> st.SearchStrategy[AnyPattern]:
    """Patterns that take a text and give one, around others of the kind."""
    responders = st.one_of(inner, st.just(WORKER))
    named = st.dictionaries(NAMES, responders, min_size=1, max_size=3)
    return st.one_of(
        st.builds(_chain, inner, inner),
        st.builds(_retried_chain, inner, inner, st.integers(0, 3)),
        st.builds(_parts, named, st.integers(1, 9)),
        st.builds(_guarded, inner),
        st.builds(_workers, st.lists(responders, min_size=1, max_size=3), st.integers(1, 6)),
    )


LEAVES: st.SearchStrategy[AnyPattern] = st.one_of(
    st.builds(ReAct, max_steps=st.integers(1, 20), repeats=st.integers(2, 4)),
    st.builds(ReWOO, max_calls=st.integers(1, 20)),
)
TEXTS = st.recursive(LEAVES, _texts, max_leaves=5)
COMPOSED = st.one_of(TEXTS, st.builds(_formed, TEXTS))


@settings(deadline=None)
@given(COMPOSED)
def test_object_yaml_and_built_object_are_one_stack(pattern: Pattern[..., Any]) -> None:
    described = stack_of(pattern)
    written = parse_stack(stack_yaml(pattern))
    assert content(written) == content(described)
    assert estimate(written).to_json() == estimate(described).to_json()
    assert [each.to_json() | {"place": None} for each in lint(written).findings] == [
        each.to_json() | {"place": None} for each in lint(described).findings
    ]
    built = build(stack_to_python(written))
    assert shape(stack_of(built)) == shape(described)
    assert {each.rule for each in lint(stack_of(built)).findings} == {each.rule for each in lint(described).findings}


def content(stack: Stack) -> Any:
    return stack.whole, stack.runtime


def shape(stack: Stack) -> list[tuple[str, Any]]:
    """The uses with their knobs in order; a chain in a chain is one chain."""
    return [(use.id, dict(use.knobs)) for use in stack.whole.all_uses]


# What is refused ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("patterns: [R13]", "stack.refused", "V8"),
        ("patterns: [V9, V14]", "stack.no-place", "brings"),
        ("patterns: [R4, {R5: {task: other}}, V9, V14]\nfacts: {calls_independent: true}", "stack", ""),
        ("patterns: [R8]", "catalog.not-implemented", "R8"),
        ("patterns: [{R4: {inner: S6}}]", "stack.no-place", "runs no other"),
        ("patterns: [V5]", "stack.no-place", "around another"),
        ("patterns: [{V5: {inner: [R4, R5]}}]", "stack.no-place", "around one"),
        ("patterns: [{O2: {inner: {'steps[0]': R4, 'steps[1].ways.a': S2}}}]", "stack.no-place", "one way"),
        ("patterns: [{O2: {inner: [S6, R4]}}]", "stack.types-differ", "reads a text"),
        ("patterns: [R4]\nagents: {a: {patterns: [R5]}, b: {patterns: [R5]}}", "stack", ""),
    ],
)
def test_what_cannot_be_built_is_refused_with_its_reason(text: str, code: str, said: str) -> None:
    with pytest.raises(CatalogError) as caught:
        stack_to_python(parse_stack(f"name: X\n{text}\n"))
    assert caught.value.code.startswith(code)
    assert said in str(caught.value)


def test_a_name_in_a_stack_never_becomes_code() -> None:
    """Names of stacks and parts are texts of somebody's file, and stand in the source as such."""
    hostile = 'x"""\nimport os; os.system("touch owned")\n"""\u202e'
    inner = {f"parts.{hostile}": "S1", "parts.b": {"R4": {"task": hostile}}}
    described = {
        "name": hostile,
        "patterns": [{"O4": {"mode": hostile, "inner": inner}}],
        "runtime": "bicameral",
    }
    source = stack_to_python(stack_of(described))
    assert source.isascii()
    tree = ast.parse(source)
    imported = [node for node in ast.walk(tree) if isinstance(node, ast.Import)]
    assert imported == []
    calls = [ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)]
    assert sorted(calls) == ["Parallelization", "ReAct"]


# What is arranged ---------------------------------------------------------------------------------------------------


def test_a_plain_list_is_arranged_and_the_runtime_need_not_be_built() -> None:
    text = "name: Guarded\npatterns: [V9, V14, {V5: {at: [input, call, result, output]}}, I2, {R5: {max_calls: 3}}, S6]"
    source = stack_to_python(parse_stack(text))
    assert "The runtime brings V9, V14." in source
    assert "I2 is part of" in source
    built = build(source)
    assert isinstance(built, Guardrails)
    assert [each.id for _, each in built.walk()] == ["V5", "O2", "R5", "S6"]


def test_agents_become_the_workers_of_the_pattern_around_them() -> None:
    text = "name: X\npatterns: [O6, V9]\nagents: {papers: {patterns: [R4, V9]}, law: {patterns: [R5]}}"
    source = stack_to_python(parse_stack(text))
    built = build(source)
    assert isinstance(built, OrchestratorWorkers)
    assert [(each.name, type(each.by)) for each in built.workers] == [("papers", ReAct), ("law", ReWOO)]


def test_a_pattern_that_the_runtime_brings_can_be_the_work_itself() -> None:
    assert "return SchemaValidation(" in stack_to_python(parse_stack("name: X\npatterns: [V20, V9]"))


def test_what_is_built_runs() -> None:
    plan = {"calls": [{"tool": "population", "arguments": [{"name": "city", "value": "Ghent"}]}]}
    source = stack_to_python(parse_stack("name: X\nruntime: bicameral\npatterns: [{O2: {inner: [R5, S6]}}]"))
    there = table([json.dumps(plan), "Ghent has 270473 people.", '{"city": "Ghent"}'])
    outcome = answered(asyncio.run(build(source).run(there.desk, program_text("How many people live in Ghent?"))))
    assert outcome.value == {"city": "Ghent"}


@pytest.mark.parametrize("case", COMPOSITIONS, ids=lambda case: case.name)
def test_every_measured_composition_can_be_built(case: ComposedCase) -> None:
    compile(stack_to_python(stack_of(case.make())), "built.py", "exec")


def test_built_modules_pass_the_type_checker(tmp_path: Path) -> None:
    checker = Path(sys.executable).with_name("basedpyright")
    if not checker.exists():
        pytest.skip("the type checker is not installed")
    for number, case in enumerate(COMPOSITIONS):
        (tmp_path / f"built_{number}.py").write_text(stack_to_python(stack_of(case.make())), encoding="utf-8")
    single = stack_to_python(stack_of(ToolCalling()))
    (tmp_path / "built_single.py").write_text(single, encoding="utf-8")
    package = Path(__file__).parents[2] / "src"
    settings = {"typeCheckingMode": "strict", "extraPaths": [str(package)]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    run = subprocess.run([str(checker), "-p", str(tmp_path)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-3_000:]
