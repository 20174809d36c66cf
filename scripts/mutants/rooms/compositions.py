"""Patterns made of patterns and calls: gates, fields, contracts, breakers, exits and fallbacks."""

from __future__ import annotations

from scripts.mutants.mutant import Mutant

CHAIN = "patterns/orchestration/chain.py"
ISOLATION = "patterns/orchestration/isolation.py"
SINGLE = "patterns/orchestration/single_agent.py"
DIRECT = "patterns/integration/direct_call.py"
FALLBACK = "patterns/reliability/degradation.py"
TESTS = "tests/patterns/test_patterns_"

MUTANTS = (
    Mutant(
        "compositions.gate-words",
        CHAIN,
        "Chain._pass_step",
        "complaint if value.label.trusted else",
        "complaint if True else",
        "an error would quote an untrusted value",
        (f"{TESTS}chain.py::test_words_of_a_gate_about_untrusted_text_reach_no_error_and_no_privileged_prompt",),
    ),
    Mutant(
        "compositions.silent-gate",
        CHAIN,
        "_ask_gate",
        "if fault:",
        "if False:",
        "a gate that failed would let the value pass",
        (f"{TESTS}chain.py::test_a_gate_without_a_verdict_lets_nothing_pass_and_is_on_record",),
    ),
    Mutant(
        "compositions.child-tools",
        ISOLATION,
        "AgentIsolation._run_child",
        "part.restrict_tools(self.tools)",
        "pass",
        "a child would have all tools of its parent",
        (f"{TESTS}isolation.py::test_a_child_has_no_tools_by_default_and_a_role_never_has",),
    ),
    Mutant(
        "compositions.contract",
        ISOLATION,
        "AgentIsolation._run_child",
        "if mismatch(part.read(result), self.wanted):",
        "if False:",
        "a child would return whatever it wants",
        (f"{TESTS}isolation.py::test_a_pattern_that_gives_more_than_the_contract_gives_nothing",),
    ),
    Mutant(
        "compositions.seventh-child",
        ISOLATION,
        "AgentIsolation.execute",
        "started >= self.max_children or",
        "False or",
        "a run would start children without end",
        (f"{TESTS}isolation.py::test_the_seventh_child_of_a_run_is_not_started",),
    ),
    Mutant(
        "compositions.second-model",
        SINGLE,
        "SingleAgent._work",
        "if reply.model != first:",
        "if False:",
        "another model could act in the session of an agent",
        (f"{TESTS}single_agent.py::test_a_second_model_ends_the_run_before_its_calls_are_made",),
    ),
    Mutant(
        "compositions.model-in-path",
        DIRECT,
        "DirectCall._call",
        "with budget_scope(_NO_MODELS):",
        "if True:",
        "a tool of a direct call could ask a model",
        (f"{TESTS}direct_call.py::test_a_tool_that_asks_a_model_is_stopped_before_the_model_is_asked",),
    ),
    Mutant(
        "compositions.check-unread",
        DIRECT,
        "DirectCall.check_request",
        "problem if label.trusted else",
        "problem if True else",
        "an error would quote an untrusted parameter",
        (f"{TESTS}direct_call.py::test_words_of_a_check_about_untrusted_values_reach_no_error",),
    ),
    Mutant(
        "compositions.unapproved",
        DIRECT,
        "DirectCall._work",
        "if self.privileged and",
        "if False and",
        "a privileged request would be sent without an approval",
        (f"{TESTS}direct_call.py::test_a_privileged_request_is_sent_only_with_an_approval",),
    ),
    Mutant(
        "compositions.breaker",
        DIRECT,
        "DirectCall._require_closed",
        "if not allowed:",
        "if False:",
        "requests would be sent to a service that has failed again and again",
        (f"{TESTS}direct_call.py::test_after_failures_in_a_row_nothing_is_sent_and_the_refusal_is_on_record",),
    ),
    Mutant(
        "compositions.refusal-passed",
        FALLBACK,
        "GracefulDegradation._serve_instead",
        "or _is_refusal(cause)",
        "",
        "what a guard refused would be answered by a weaker path",
        (f"{TESTS}degradation.py::test_a_guard_cannot_be_passed_by_failing_over",),
    ),
    Mutant(
        "compositions.effect-twice",
        FALLBACK,
        "GracefulDegradation._serve_instead",
        "declared is None or changed or",
        "declared is None or",
        "a fallback could do again what the main path has done",
        (f"{TESTS}degradation.py::test_after_an_effect_only_the_template_answers",),
    ),
    Mutant(
        "compositions.stale-answer",
        FALLBACK,
        "AnswerCache.find",
        "0 <= age <= most_seconds",
        "0 <= age",
        "an expired answer would be served",
        (f"{TESTS}degradation.py::test_an_expired_answer_is_a_miss",),
    ),
)
