"""Large stacks: the time of the linter does not grow with their square, and it finds what it always found."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from itertools import product
from typing import Any

import pytest
from hypothesis import given, strategies as st

from bicameral.catalog.frameworks import lint_recovered
from bicameral.catalog.frameworks._recovery import ArchitectureDraft
from bicameral.catalog.lint import lint, rules
from bicameral.catalog.lint._linter import apply_waivers, find_clash, run_check, waiver_problems
from bicameral.catalog.lint._problems import ReportedProblem
from bicameral.catalog.lint._scope import AgentScope, agent_scopes
from bicameral.catalog.lint._section_checks import find_overlap
from bicameral.catalog.stacks import INNER_KEY, PatternUse, StackSession, Waiver, dotted_path, stack_of
from bicameral.errors import Place

FEW, TIMES, MOST_GROWTH = 500, 4, 8
"""A check that compares each with each takes 16 times as long for four times as many, one that looks up takes 4."""
ALL = ["V15", "O5", "R4", "V9", "V14", "O16", "H7", "H10", "V1", "V2", "V5", "O18", "S2", "S3", "S5", "K1", "O6"]
WAIVER = {"rule": "L1", "reason": "it is known", "until": "2999-01-01"}
Described = dict[str, Any]


def named(record: Callable[[int], Described]) -> Callable[[int], Described]:
    return lambda count: {f"n{number}": record(number) for number in range(count)}


def uses(*records: Callable[[int], Any]) -> Callable[[int], list[Any]]:
    return lambda count: [record(number) for record in records for number in range(count)]


ACTION = {"gate": "none", "reversible": False, "was": "V1"}
LARGE: dict[str, Callable[[int], Described]] = {
    "sessions that have nothing to do with each other": lambda n: {"sessions": named(lambda _: {})(n)},
    "sessions that judge the next one": lambda n: {
        "sessions": named(lambda i: {"writes": [f"w{i}"], "judges": [f"w{i + 1}"], "model": "m"})(n)
    },
    "sessions that judge each other": lambda n: {
        "sessions": named(lambda _: {"writes": ["w"], "judges": ["w"], "model": "m"})(n)
    },
    "sessions of unknown models that judge each other": lambda n: {
        "sessions": named(lambda _: {"writes": ["w"], "judges": ["w"]})(n)
    },
    "a prompt of parts of one user": lambda n: {"prompt": [{"part": "S2.dynamic", "stable": "per_user"}] * n},
    "waivers of other places": lambda n: {
        "waivers": [{**WAIVER, "at": f"actions.other{number}"} for number in range(n)],
        "actions": named(lambda _: ACTION)(n),
    },
    "waivers of every place": lambda n: {
        "waivers": [{**WAIVER, "at": f"actions.n{number}"} for number in range(n)],
        "actions": named(lambda _: ACTION)(n),
    },
    "surfaces": lambda n: {
        "patterns": [{id: {"surface": [f"{id}.x{i}" for i in range(n)]}} for id in ("H5", "H8")],
    },
    "patterns with a task each": lambda n: {
        "patterns": uses(lambda i: {"R4": {"task": f"a{i}"}}, lambda i: {"R5": {"task": f"b{i}"}})(n // 5)
    },
    "parts of one composition": lambda n: {"patterns": [{"O2": {"inner": ["R4", "R5"] * (n // 5)}}]},
    "loops": lambda n: {"loops": named(lambda _: {})(n)},
    "actions": lambda n: {"actions": named(lambda _: ACTION)(n), "legs": ["untrusted_content"]},
    "stores": lambda n: {"stores": named(lambda _: {"pattern": ["H7", "H10"], "writers": ["agent"]})(n)},
    "knobs": lambda n: {"patterns": [*ALL, {"R4": {f"k{number}": 1 for number in range(n)}}]},
    "patterns of its own": lambda n: {
        "define": {f"OWN{i}": {"needs": ["V9"], "not_with": ["R3"]} for i in range(n // 2)}
    },
    "one of its own that needs the same again and again": lambda n: {
        "define": {"OWN": {"needs": ["V9"] * n}},
        "patterns": ["V9", *["OWN"] * (n // 4)],
    },
}


@pytest.mark.parametrize("name", LARGE)
def test_four_times_as_much_of_anything_takes_about_four_times_as_long(name: str) -> None:
    described = LARGE[name]
    few, many = ({"patterns": ALL, **described(count)} for count in (FEW, FEW * TIMES))
    _lint_seconds(few)
    growth = min(_lint_seconds(many) for _ in range(3)) / min(_lint_seconds(few) for _ in range(3))
    assert growth < MOST_GROWTH, f"{growth:.1f} times as long"


def _lint_seconds(described: Described) -> float:
    began = time.thread_time()
    assert lint(stack_of(described)).findings
    return time.thread_time() - began


def test_four_times_as_many_actions_of_a_trace_take_about_four_times_as_long() -> None:
    growth = min(_recovered_seconds(FEW * TIMES) for _ in range(3)) / min(_recovered_seconds(FEW) for _ in range(3))
    assert growth < MOST_GROWTH, f"{growth:.1f} times as long"


def _recovered_seconds(actions: int) -> float:
    draft, place = ArchitectureDraft("agents", "trace.json", "trace"), Place("trace.json", 1)
    agent = draft.agent("a", place, "seen")
    agent.add_leg("untrusted_content", place, "seen")
    for number in range(actions):
        agent.add_action(f"send_{number}", place, f"tool {number}", certain=True, reversible=False, gate="none")
    recovered = draft.build()
    began = time.thread_time()
    assert lint_recovered(recovered).findings
    return time.thread_time() - began


# What is looked up is what comparing each with each would find -------------------------------------------------------

TEXTS = st.lists(st.sampled_from("abc"), max_size=3)
SESSIONS = st.lists(
    st.fixed_dictionaries({}, optional={"model": st.sampled_from(["m", "n"]), "writes": TEXTS, "judges": TEXTS}),
    min_size=1,
    max_size=6,
)


@given(SESSIONS)
def test_a_judge_is_held_against_every_session_that_wrote_what_it_judges(given_sessions: list[Described]) -> None:
    stack = stack_of({"patterns": ["V15"], "sessions": {f"s{n}": each for n, each in enumerate(given_sessions)}})
    sessions = stack.whole.sessions or ()
    findings = [each for each in lint(stack).findings if "with the same model" in each.message]
    assert {each.path: each.message for each in findings} == dict(_same_model(sessions))
    undecided = [each for each in lint(stack).findings if each.wants == ("sessions",)]
    assert bool(undecided) == any(
        judge.model is None or author.model is None for judge, author in _judged_pairs(sessions)
    )


def _judged_pairs(sessions: Sequence[StackSession]) -> Iterator[tuple[StackSession, StackSession]]:
    for judge, author in product(sessions, sessions):
        if judge is not author and {*judge.judges} & {*author.writes}:
            yield judge, author


def _same_model(sessions: Sequence[StackSession]) -> dict[str, str]:
    """By the path of each judge, what is said of the first author that it shares its model with."""
    found: dict[str, str] = {}
    for judge, author in _judged_pairs(sessions):
        if judge.model is not None and judge.model == author.model:
            message = f"the session {judge.name!r} judges what {author.name!r} wrote with the same model"
            found.setdefault(dotted_path(judge.path), message)
    return found


SURFACES = st.lists(st.text("ab./", max_size=6), max_size=6)


@given(SURFACES, SURFACES)
def test_surfaces_overlap_where_one_is_inside_of_the_other(one: list[str], other: list[str]) -> None:
    pairs = ((a, b) for a, b in product(one, other) if _is_inside(a, b) or _is_inside(b, a))
    assert find_overlap(one, other) == next(pairs, None)


def _is_inside(inner: str, outer: str) -> bool:
    return inner == outer or inner.startswith((f"{outer}.", f"{outer}/"))


STEPS = st.sampled_from(["patterns", 0, 1, INNER_KEY, "R4"])
USES = st.lists(
    st.builds(
        PatternUse,
        st.just("R4"),
        st.lists(STEPS, min_size=1, max_size=5).map(tuple),
        st.fixed_dictionaries({}, optional={"task": st.sampled_from(["a", "b", 1, "1"])}),
    ),
    max_size=5,
)


@given(USES, USES)
def test_uses_clash_unless_they_are_apart(one: list[PatternUse], other: list[PatternUse]) -> None:
    # Two uses are never at one place.
    other = [use for use in other if use.path not in {each.path for each in one}]
    clashes = (b.path for a, b in product(one, other) if not _is_apart(a, b))
    assert find_clash(one, other, "task") == next(clashes, None)


def _is_apart(one: PatternUse, other: PatternUse) -> bool:
    purposes = [use.knobs.get("task") for use in (one, other)]
    if None not in purposes:
        return str(purposes[0]) != str(purposes[1])
    shared = next((n for n, (a, b) in enumerate(zip(one.path, other.path, strict=False)) if a != b), None)
    return shared is not None and INNER_KEY in one.path[:shared]


PLACES = ["actions", "actions.send", "actions.send.mail", "actions.se", "agents", "agents.a", "agents.a.actions[0]"]
WAIVERS = st.lists(
    st.fixed_dictionaries(
        {"rule": st.lists(st.sampled_from(["LAW1", "LAW2", "NA2", "A2"]), min_size=1, max_size=3)},
        optional={"at": st.sampled_from(PLACES)},
    ),
    max_size=5,
)
TODAY = date(2026, 11, 16)


@given(WAIVERS)
def test_a_waiver_covers_its_place_and_everything_inside_of_it(waivers: list[Described]) -> None:
    actions = {"send.mail": ACTION, "send": ACTION, "sent": ACTION}
    described = {"agents": {"a": {"patterns": ["R4"], "actions": actions}, "b": {}}, "actions": actions}
    stack = stack_of({**described, "waivers": [{**WAIVER, **each} for each in waivers]})
    scopes = agent_scopes(stack)
    problems = [each for scope in scopes for each in _problems_of(scope)]
    remaining, waived = apply_waivers(stack, problems, TODAY)
    covered = [each for each in problems if any(_covers(waiver, each) for waiver in stack.waivers)]
    assert [each.problem for each in waived] == [each.problem for each in covered]
    assert remaining == [each for each in problems if each not in covered]
    useless = [
        (waiver.path, rule)
        for waiver in stack.waivers
        for rule in waiver.rules
        if not any(each.rule.id == rule and _covers(waiver, each) for each in problems)
    ]
    found = waiver_problems(stack, rules(), waived, TODAY, scopes[0])
    said = {each.problem.path: each.problem.message for each in found}
    assert said.keys() == {path for path, _ in useless}
    assert all(rule in said[path] for path, rule in useless)


def _problems_of(scope: AgentScope) -> Iterator[ReportedProblem]:
    for id in ("LAW1", "LAW2", "NA2", "A2"):
        for check in rules()[id].checks:
            for problem in run_check(check, scope):
                yield ReportedProblem(rules()[id], problem, scope, rules()[id].severity)


def _covers(waiver: Waiver, reported: ReportedProblem) -> bool:
    paths = [dotted_path(each) for each in (reported.problem.path, reported.scope.path)]
    return reported.rule.id in waiver.rules and (
        waiver.at is None
        or any(each == waiver.at or each.startswith((f"{waiver.at}.", f"{waiver.at}[")) for each in paths)
    )
