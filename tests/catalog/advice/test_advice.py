"""The advisor: each fact flips what it should, nothing is there for nothing, and the linter finds no error."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from bicameral.catalog import IDS, catalog
from bicameral.catalog.advice import (
    Advice,
    FactQuestion,
    TaskFacts,
    advise,
    broken_rules,
    facts_from_mapping,
    questions,
    rulebook,
)
from bicameral.catalog.advice._facts import describe_tests
from bicameral.catalog.lint import lint, rules as lint_rules
from bicameral.catalog.stacks import parse_stack
from bicameral.errors import CatalogError
from property_examples import examples

GAP = {"quality_gap": 0.1}
LEGS = {"private_data": True, "untrusted_content": True, "external_comms": True}
MANY = {"multi_session": True}
CORPUS = {"corpus_tokens": 500_000}


def test_with_nothing_known_one_plain_call_is_enough_and_nothing_is_settled() -> None:
    advice = advise({})
    assert set(advice.patterns) == {"S1", "V9", "V14"}
    assert not advice.settled
    assert advice.next_question is not None
    assert advice.next_question.safety


@pytest.mark.parametrize(
    ("before", "name", "value", "comes"),
    [
        ({}, "external_input", True, {"V5"}),
        ({}, "untrusted_content", True, {"V5"}),
        ({}, "safety_critical", True, {"S9", "V7"}),
        ({}, "production", True, {"V5", "V16"}),
        ({}, "irreversible_actions", ["send_mail"], {"V1", "V10", "V12"}),
        ({}, "blast_radius", 4, {"V1"}),
        ({"reversible_actions": ["label"]}, "blast_radius", 3, {"V2", "V17", "V15"}),
        ({"production": True}, "reversible_actions", ["label"], {"V2"}),
        ({"private_data": True, "external_comms": True}, "untrusted_content", True, {"V3", "V4", "V6"}),
        ({"untrusted_content": True}, "tools", 1, {"V6"}),
        ({}, "code_execution", True, {"V8"}),
        ({}, "host_tools", True, {"V8"}),
        ({"prohibitions": 1}, "must_hold", True, {"V7"}),
        ({}, "prohibitions", 3, {"S5"}),
        ({}, "judgement_rules", True, {"S9"}),
        ({}, "tools", 3, {"I2", "R4", "O1"}),
        ({"tools": 3}, "calls_independent", True, {"R5"}),
        ({"tools": 3}, "acts_by_code", True, {"R13", "V8"}),
        ({"tools": 3}, "action_known", True, {"I1"}),
        ({"tools": 3}, "cli_exists", True, {"I4", "V8", "V6", "V11"}),
        ({"tools": 6, "shared_tools": 5}, "agents", 3, {"I3", "V13"}),
        ({"tools": 3}, "credential_isolation", True, {"I3", "V13"}),
        ({"tools": 10}, "tools", 11, {"V13"}),
        ({"schema_tokens": 8000}, "window_tokens", 100_000, {"V13"}),
        ({"tools": 25}, "untrusted_content", True, {"V6", "V8"}),
        ({"subtasks_independent": True}, "subtasks", 2, {"O4", "V12"}),
        ({"subtasks": 5}, "subtasks_vary", True, {"O6", "O17", "O4", "V12"}),
        ({"subtasks_vary": True}, "subtasks", 11, {"O7", "O17"}),
        ({"subtasks_independent": True, "subtasks": 4}, "shared_prefix_tokens", 1024, {"O18", "O17"}),
        ({"steps_known": True}, "checks_between_steps", True, {"O2"}),
        ({"steps_known": True, "steps": 4}, "skip_rate", 0.2, {"S4"}),
        ({}, "input_types", 2, {"O3"}),
        ({}, "other_vendors", True, {"I5", "I6"}),
        ({}, "conversation_moves", True, {"O15", "V10"}),
        ({}, "plan_reviewed", True, {"R3"}),
        (GAP, "numeric_work", True, {"R14", "V8"}),
        (GAP, "reasoning_lift", 0.05, {"R1"}),
        (GAP, "question_hops", 3, {"R6"}),
        (GAP, "external_success_signal", True, {"R7"}),
        (GAP | {"external_success_signal": False, "one_right_answer": True}, "errors_scattered", True, {"R17"}),
        (GAP | {"stakes": "high"}, "evaluator_accuracy", 0.75, {"R9"}),
        (GAP | {"evaluator_accuracy": 0.7}, "self_accepts_bad", 0.3, {"O5", "V15"}),
        (GAP, "refine_preferred", 0.6, {"R8"}),
        (GAP | {"corpus_tokens": 0}, "invented_facts", 0.1, {"R20"}),
        (GAP | {"stakes": "high"}, "recurring_shapes", 0.5, {"R11"}),
        ({"latency_budget_s": 10, "sections_independent": True}, "output_tokens", 400, {"R12"}),
        ({"latency_budget_s": 1}, "deliberation_share", 0.2, {"R16"}),
        ({}, "machine_reads_output", True, {"S6"}),
        ({"machine_reads_output": True}, "parse_failures", 0.02, {"V20"}),
        ({}, "few_shot_lift", 0.2, {"S2"}),
        ({"machine_reads_output": False}, "format_consistency", 0.8, {"S2"}),
        ({"turns": 6}, "persona_gain", 0.3, {"S3"}),
        ({}, "turns", 20, {"K11"}),
        ({}, "corpus_tokens", 100_000, {"K1"}),
        (CORPUS | {"queries_per_session": 8}, "window_tokens", 1_000_000, {"K9"}),
        (CORPUS, "question_levels", 2, {"K4"}),
        (CORPUS, "multi_hop_share", 0.2, {"K3"}),
        (CORPUS, "retrieval_recall", 0.8, {"K2"}),
        (CORPUS, "ungrounded_rate", 0.06, {"K5"}),
        (CORPUS, "safety_critical", True, {"K5"}),
        ({"same_fields": True}, "assembly_share", 0.4, {"K13"}),
        ({"peak_context_share": 0.6}, "spent_context_share", 0.3, {"K7"}),
        ({"peak_context_share": 0.6}, "spent_context_share", 0.1, {"K6"}),
        ({"calls_independent": False}, "steps", 5, {"K8"}),
        (MANY, "remembers_facts", True, {"K10"}),
        (MANY, "reads_per_write", 10, {"K12"}),
        (MANY, "same_agent", True, {"H1", "V6"}),
        (MANY | {"external_success_signal": True}, "failure_recurrence", 0.2, {"H2", "R7", "V1"}),
        (MANY, "task_recurrence", 0.2, {"H4", "K10"}),
        (MANY | {"core_written": "docs/core.md"}, "style_corrections", 0.1, {"H7", "H1"}),
        (MANY | {"consent": True}, "returning_users", 0.2, {"H10", "V5"}),
        (MANY | {"stalls": True}, "open_ended", True, {"H3"}),
        (MANY | {"idle_seconds": 30}, "reflection_lift", 0.1, {"H6"}),
        (MANY, "success_spread", 0.3, {"H9", "K11"}),
        (MANY | {"governance_staffed": True}, "principle_gap", 0.1, {"H5", "V7", "S9"}),
        (
            MANY | {"governance_staffed": True, "requests_per_day": 1000, "labelled_cases": 5},
            "config_drift",
            0.2,
            {"H8", "V16"},
        ),
        ({"answer_owed": True}, "failure_modes", 3, {"V19"}),
        ({}, "must_resume", True, {"V10", "V12"}),
        ({}, "error_share", 0.2, {"V11"}),
        ({"production": True}, "requests_per_day", 1000, {"V17", "V15"}),
        ({"production": True, "stakes": "high", "tools": 2}, "turns", 3, {"V18"}),
        (
            {"prompt_tuning_stalled": True, "requests_per_day": 400, "labelled_cases": 20},
            "evaluator_accuracy",
            0.7,
            {"S8"},
        ),
    ],
)
def test_a_fact_brings_what_it_should(before: dict[str, Any], name: str, value: Any, comes: set[str]) -> None:
    without, with_it = set(advise(before).patterns), set(advise({**before, name: value}).patterns)
    assert comes - without, "the fact changes nothing"
    assert comes <= with_it


@pytest.mark.parametrize(
    ("before", "name", "value", "goes"),
    [
        ({"tools": 3}, "calls_independent", True, "R4"),
        ({"tools": 3}, "action_known", True, "R4"),
        ({"tools": 3, "calls_independent": None}, "steps_known", True, "R4"),
        ({"tools": 3, "cli_exists": True}, "typed_output", True, "I4"),
        ({"input_types": 3}, "router_agreement", 0.8, "O3"),
        (LEGS, "stakes", "low", "V4"),
        ({"few_shot_lift": 0.2}, "few_shot_lift", 0.02, "S2"),
        ({"format_consistency": 0.8, "machine_reads_output": False}, "few_shot_lift", 0.02, "S2"),
        ({"persona_gain": 0.3, "turns": 6, **MANY}, "same_agent", True, "S3"),
        (GAP | {"external_success_signal": True}, "quality_gap", 0.0, "R7"),
        (CORPUS | {"queries_per_session": 8, "window_tokens": 1_000_000}, "citations_needed", True, "K9"),
        (MANY | {"style_corrections": 0.1, "core_written": True}, "core_written", False, "H7"),
        (MANY | {"returning_users": 0.5, "consent": True}, "consent", False, "H10"),
        (MANY | {"same_agent": True}, "multi_session", False, "H1"),
        ({"conversation_moves": True}, "other_vendors", True, "O15"),
        ({}, "tools", 1, "S1"),
    ],
)
def test_a_fact_takes_away_what_it_should(before: dict[str, Any], name: str, value: Any, goes: str) -> None:
    before = {key: each for key, each in before.items() if each is not None}
    assert goes in advise(before).choices
    assert goes not in advise({**before, name: value}).choices


def test_of_two_that_exclude_each_other_one_is_chosen_and_the_other_is_named() -> None:
    voted = GAP | {"external_success_signal": False, "one_right_answer": True, "errors_scattered": True}
    advice = advise(voted | MANY | {"stalls": True, "open_ended": True})
    assert "R17" in advice.choices
    assert "H3" not in advice.choices
    # H1 comes with H9; the role that was measured to help goes, by the rule that says so.
    advice = advise(MANY | {"success_spread": 0.3, "persona_gain": 0.3, "turns": 6})
    assert "H1" in advice.choices
    assert advice.ruled_out["S3"].rule == "HUM8"


def test_every_choice_names_its_rule_and_the_facts_that_decided() -> None:
    advice = advise({"tools": 4, "calls_independent": True, "irreversible_actions": ["pay"]})
    assert (advice.choices["R5"].rule, advice.choices["R5"].by) == ("reasoning.one-plan", ("D1", "CRIT1"))
    assert dict(advice.choices["R5"].facts) == {"tools": 4, "calls_independent": True}
    assert advice.choices["V1"].rule == "LAW2"
    assert advice.choices["V10"].rule == "REQ-V1-V10"
    assert advice.choices["V10"].needed_by == ("V1",)
    assert "R4" in advice.ruled_out
    assert advice.ruled_out["R4"].rule == "reasoning.one-plan"


def test_what_was_ruled_out_names_the_fact_that_did_it() -> None:
    out = advise({"tools": 4, "schema_tokens": 100, "window_tokens": 100_000}).ruled_out["V13"]
    assert (out.rule, dict(out.facts)) == (
        "reliability.tool-budget",
        {"tools": 4, "schema_tokens": 100, "window_tokens": 100_000},
    )


def test_an_open_question_says_what_its_answer_would_change() -> None:
    waiting = {each.fact: each for each in advise({"tools": 4}).open}
    direct = [change for change in waiting["untrusted_content"].changes if not change.also]
    assert {id for change in direct for id in change.patterns} == {"V5", "V6"}
    assert [change.also for change in waiting["private_data"].changes] == [("untrusted_content", "external_comms")] * 2
    # The question that takes something away says that too.
    assert any(change.goes and "R4" in change.patterns for change in waiting["action_known"].changes)
    # Whoever answers a direct question gets what was promised.
    told = set(advise({"tools": 4, "untrusted_content": True}).patterns)
    assert {"V5", "V6"} <= told


def test_a_question_that_waits_for_another_comes_after_it() -> None:
    waiting = {each.fact: each for each in advise({}).open}
    assert not waiting["consent"].first
    assert waiting["multi_session"].first
    order = [each.fact for each in advise({}).open]
    assert order.index("multi_session") < order.index("consent")
    assert all(each.first for each in advise({}).open[:10])


def test_answering_everything_settles_the_advice() -> None:
    plain: dict[str, Any] = {"yes": False, "count": 0, "number": 0.0, "share": 0.0, "names": [], "where": False}
    said = {name: plain.get(each.kind, "low") for name, each in questions().items()}
    advice = advise({**said, "blast_radius": 1})
    assert advice.open == ()
    assert advice.settled
    assert set(advice.patterns) == {"S1", "V9", "V14"}


def test_what_others_need_is_built_first() -> None:
    advice = advise(MANY | {"same_agent": True, "failure_recurrence": 0.3, "external_success_signal": True})
    place = {id: number for number, stage in enumerate(advice.order) for id in stage}
    assert place["V9"] == place["V14"] == 0
    assert place["R7"] < place["H2"]
    assert place["H1"] < place["H2"]
    assert place["V6"] < place["H1"]
    assert sorted(advice.patterns) == sorted(advice.choices)


def test_an_audit_comes_before_what_it_finds_necessary() -> None:
    place = {id: number for number, stage in enumerate(advise(LEGS).order) for id in stage}
    assert place["V3"] < place["V4"]


def test_a_budget_that_is_too_small_is_told_with_what_would_be_smaller() -> None:
    over = advise({"tools": 3, "latency_budget_s": 0.5}).over_budget
    assert len(over) == 1
    assert over[0].startswith("seconds: ")
    assert "R4 takes most" in over[0]
    assert advise({"tools": 3, "latency_budget_s": 1e6}).over_budget == ()


def test_the_stack_can_be_written_and_read_again() -> None:
    advice = advise({"tools": 12, "subtasks": 3, "subtasks_vary": True, **LEGS}, name='Mail: "triage" #1')
    stack = parse_stack(advice.yaml())
    assert stack.name == 'Mail: "triage" #1'
    used = {use.id for member in stack.members for use in member.uses}
    assert used == set(advice.choices)
    assert stack.agents[0].tools is not None
    assert stack.agents[0].tools.count == 12


def test_actions_get_the_gate_that_their_reach_asks_for() -> None:
    described = advise({"irreversible_actions": ["pay"], "reversible_actions": ["label"], "production": True}).described
    assert described["actions"] == {
        "pay": {"reversible": False, "gate": "V1"},
        "label": {"reversible": True, "gate": "V2"},
    }


def _value(question: FactQuestion) -> st.SearchStrategy[Any]:
    match question.kind:
        case "yes":
            return st.booleans()
        case "share":
            return st.sampled_from([0, 0.03, 0.07, 0.15, 0.25, 0.5, 0.65, 0.8, 0.93, 1.0])
        case "choice":
            return st.sampled_from(question.choices)
        case "names":
            return st.lists(st.sampled_from(["send", "pay", "label"]), unique=True)
        case "where":
            return st.sampled_from([False, True, "docs/core.md"])
        case "count" if question.most:
            return st.integers(1, int(question.most))
        case _:
            return st.sampled_from([0, 1, 2, 3, 4, 5, 8, 12, 25, 500, 2000, 100_000])


FACTS = st.fixed_dictionaries({}, optional={name: _value(each) for name, each in questions().items()})


@settings(max_examples=examples(150, quick=50))
@given(FACTS)
def test_the_linter_finds_no_error_in_what_is_advised(told: dict[str, Any]) -> None:
    report = lint(advise(told).stack)
    assert [finding for finding in report.findings if finding.severity == "error"] == []


@settings(max_examples=examples(150, quick=50))
@given(FACTS)
def test_no_pattern_can_be_left_out_without_breaking_a_rule(told: dict[str, Any]) -> None:
    advice = advise(told)
    assert broken_rules(list(advice.choices), advice.facts) == []
    known = {*rulebook().rules, *catalog().requirements}
    for pattern, choice in advice.choices.items():
        broken = broken_rules([id for id in advice.choices if id != pattern], advice.facts)
        assert broken, f"{pattern} is there for nothing"
        assert set(broken) <= known
        assert choice.rule in known


@settings(max_examples=examples(100, quick=50))
@given(FACTS)
def test_advice_is_whole(told: dict[str, Any]) -> None:
    advice = advise(told)
    assert not set(advice.choices) & set(advice.ruled_out)
    assert sorted(advice.patterns) == sorted(advice.choices)
    assert not any(each.fact in told for each in advice.open)
    assert advice.estimate.worst.calls >= advice.estimate.expected.calls
    again = advise(advice.facts)
    assert (again.patterns, again.open) == (advice.patterns, advice.open)


def test_the_facts_are_those_that_can_be_asked_for() -> None:
    assert {name: getattr(TaskFacts(), name) for name in questions()} == dict.fromkeys(questions())
    with pytest.raises(CatalogError, match=r"there is no fact 'tolls'.*tools"):
        TaskFacts(tolls=3)
    with pytest.raises(AttributeError, match="tolls"):
        TaskFacts().value("tolls")
    used = {fact for rule in rulebook().rules.values() for fact in questions() if describe_tests(rule.condition, fact)}
    told = {"money_budget", "structured_output", "window_tokens", "schema_tokens"}
    assert set(questions()) - used <= told
    for question in questions().values():
        assert question.ask.endswith("?")
        assert question.why


def test_rules_rest_on_what_there_is() -> None:
    known = {*lint_rules(), *rulebook().decisions}
    for rule in rulebook().rules.values():
        assert set(rule.by) <= known, rule.id
        assert rule.id.startswith("LAW") is (rule.id in lint_rules())
    for decision in rulebook().decisions.values():
        assert set(decision.between) <= set(IDS)


@pytest.mark.parametrize(
    ("told", "code", "said"),
    [
        ({"tols": 3}, "catalog.unknown-fact", "Did you mean 'tools'?"),
        ({"tools": -1}, "catalog.bad-fact", "a whole number"),
        ({"tools": 2.5}, "catalog.bad-fact", "a whole number"),
        ({"tools": True}, "catalog.bad-fact", "a whole number"),
        ({"tools": float("inf")}, "catalog.bad-fact", "a whole number"),
        ({"tools": 10**12 + 1}, "catalog.bad-fact", "at most 1,000,000,000,000"),
        ({"schema_tokens": 1e308}, "catalog.bad-fact", "at most 1,000,000,000,000"),
        ({"quality_gap": 3}, "catalog.bad-fact", "a share from 0 to 1"),
        ({"quality_gap": float("nan")}, "catalog.bad-fact", "a share from 0 to 1"),
        ({"external_input": "yes"}, "catalog.bad-fact", "yes or no"),
        ({"stakes": "hihg"}, "catalog.bad-fact", "Did you mean 'high'?"),
        ({"blast_radius": 6}, "catalog.bad-fact", "from 1 to 5"),
        ({"irreversible_actions": "pay"}, "catalog.bad-fact", "names"),
        ({"irreversible_actions": ["pay", ""]}, "catalog.bad-fact", "names"),
    ],
)
def test_a_wrong_fact_is_told_with_what_was_meant(told: dict[str, Any], code: str, said: str) -> None:
    with pytest.raises(CatalogError) as raised:
        facts_from_mapping(told)
    assert raised.value.code == code
    assert said in str(raised.value)


def test_an_advice_is_json_all_the_way_down() -> None:
    told: Advice = advise({"tools": 4, "irreversible_actions": ["pay"], **LEGS})
    found = json.loads(json.dumps(told.to_json()))
    assert found["patterns"] == list(told.patterns)
    assert found["facts"]["irreversible_actions"] == ["pay"]
    assert found["settled"] is False


def test_a_pattern_that_must_not_be_there_is_replaced_by_another_that_meets_the_need() -> None:
    # S8 needs R17 or V15, and R17 does not go with H3.
    advice = advise(
        {
            "prompt_tuning_stalled": True,
            "external_success_signal": True,
            "requests_per_day": 2000,
            "stalls": True,
            "evaluator_accuracy": 0.93,
            "open_ended": True,
            "multi_session": True,
            "labelled_cases": 25,
        }
    )
    assert {"S8", "V15", "H3"} <= set(advice.patterns)
    assert advice.ruled_out["R17"].rule == "CRIT4"


def test_of_patterns_that_exclude_each_other_one_can_always_go() -> None:
    """The choice would not end otherwise: a pattern that another needs without a choice comes back."""
    required = {id for need in rulebook().needs if need.strength == "hard" for id in need.all_of}
    for exclusion in rulebook().exclusions:
        assert len(set(exclusion.patterns) - required) >= 1, exclusion.id
