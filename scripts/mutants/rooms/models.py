"""The router (selection, fallback, the quarantined side), budgets of models, own models, and leases of durable runs."""

from __future__ import annotations

from scripts.mutants.mutant import Mutant

RECOVERY = "routing/_recovery.py"
ROUTER = "routing/_router.py"
ALIASES = "routing/_aliases.py"
WRAPPER = "routing/_wrapper.py"
METER = "limits/_meter.py"
LEASES = "durable/_leases.py"
TEMPLATE = "models/_chat_template.py"
TEMPLATE_PROCESS = "models/_template_process.py"
PROMPTS = "models/_prompts.py"
STORE = "models/_store.py"
OWN_MODELS = "models/_own_models.py"
TEMPLATES = "tests/models/test_models_templates.py"
OWN = "tests/models/test_models_own.py"
FALLBACK = "tests/routing/test_routing_fallback.py"
ROUTING = "tests/routing/test_routing_router.py"
RETRY = "tests/routing/test_routing_retry.py"
BUDGET = "tests/routing/test_routing_budget.py"
LEASE = "tests/durable/test_durable_leases.py"

MUTANTS = (
    Mutant(
        "router.refusal-asked-elsewhere",
        RECOVERY,
        "can_fall_back",
        "error.code in FALLBACK_CODES",
        "error.code in FALLBACK_CODES | {REFUSAL_CODE}",
        "what one model refuses would be asked of the next",
        (f"{FALLBACK}::test_a_refusal_is_final_in_every_part",),
    ),
    Mutant(
        "router.run-budget-falls-back",
        RECOVERY,
        "can_fall_back",
        'return error.scope == "model"',
        'return error.scope != "role"',
        "a run that has spent its budget would go on with another model",
        (f"{BUDGET}::test_a_run_that_is_out_of_budget_falls_back_on_nobody",),
    ),
    Mutant(
        "router.refusal-retried",
        RECOVERY,
        "is_retryable",
        "error.code in RETRYABLE_CODES",
        "error.code in RETRYABLE_CODES | {REFUSAL_CODE}",
        "a refusal would be asked about again until it is none",
        (f"{RETRY}::test_what_is_final_is_never_tried_again",),
    ),
    Mutant(
        "router.one-attempt-too-many",
        RECOVERY,
        "Retry._wait_or_raise",
        "attempt >= self._settings.attempts",
        "attempt > self._settings.attempts",
        "a model would be asked, and paid, once more than is said",
        (f"{RETRY}::test_the_last_failure_is_what_is_told", RETRY),
    ),
    Mutant(
        "router.degraded-is-not-said",
        RECOVERY,
        "_mark_fallback",
        "if not failed:",
        "if len(failed) < 2:",
        "an answer of a lesser model would look like one of the first",
        (f"{FALLBACK}::test_an_answer_of_another_model_says_so",),
    ),
    Mutant(
        "router.half-open-lets-all-in",
        RECOVERY,
        "CircuitBreaker.allows",
        "self._trying = True",
        "pass",
        "all calls at once would hit a model that is just coming back",
        (f"{FALLBACK}::test_in_the_half_open_state_one_call_is_made_and_the_others_go_elsewhere",),
    ),
    Mutant(
        "router.other-chambers-alias",
        ROUTER,
        "Router.choose",
        "if hint in self.aliases.elsewhere:",
        "if hint in self.aliases:",
        "a quarantined call that names a privileged model would be answered by another, and nobody told",
        (f"{ROUTING}::test_a_quarantined_call_cannot_name_its_way_to_a_privileged_model",),
    ),
    Mutant(
        "router.other-chambers-model",
        ALIASES,
        "check_chamber",
        "if side.chamber not in (None, chamber):",
        "if side.chamber is None:",
        "a quarantined alias could lead to a privileged model",
        (f"{ROUTING}::test_a_quarantined_alias_never_leads_to_a_privileged_model",),
    ),
    Mutant(
        "router.other-keys",
        ALIASES,
        "check_chamber",
        "if side.credentials != alias.credentials:",
        "if not side.credentials:",
        "a model could use the key of the other chamber",
        (f"{ROUTING}::test_a_model_with_another_key_than_was_said_is_refused",),
    ),
    Mutant(
        "router.side-read-once",
        WRAPPER,
        "MeteredProvider._checked_provider",
        "declared_side(self._provider) != self._said or (",
        "(",
        "a model that changes its side after it was put together would be asked all the same",
        (f"{FALLBACK}::test_what_a_model_says_of_itself_is_read_again_before_each_call",),
    ),
    Mutant(
        "router.privileged-for-the-quarantine",
        WRAPPER,
        "MeteredProvider._checked_provider",
        "and own != here)",
        "and own == here)",
        "a privileged model would be asked for the quarantine",
        (f"{FALLBACK}::test_a_privileged_model_is_not_asked_for_the_quarantine",),
    ),
    Mutant(
        "budgets.limit-reached",
        METER,
        "Meter.check",
        '(had == limit and bound != "rounds")',
        "(had == limit and self._scope is not BUDGET)",
        "one call more than the budget would be made",
        (f"{BUDGET}::test_no_call_begins_when_something_is_spent",),
    ),
    Mutant(
        "budgets.unknown-price-is-free",
        METER,
        "Meter.check",
        "limits.money is not None and call is not None and not call.has_price:",
        "limits.money == 0 and call is not None and not call.has_price:",
        "a model without a price would be asked without end under a budget of money",
        (f"{BUDGET}::test_a_price_that_nobody_knows_is_not_nothing",),
    ),
    Mutant(
        "budgets.role-without-its-own",
        METER,
        "Meter._limits_of_role",
        "if role in self.roles:",
        "if not role and role in self.roles:",
        "the budget of a role would not hold",
        (f"{BUDGET}::test_a_role_has_a_budget_of_its_own",),
    ),
    Mutant(
        "budgets.side-by-side",
        METER,
        "Meter.begin",
        "taken.calls += 1",
        "pass",
        "calls that are begun at the same time would slip through",
        (f"{BUDGET}::test_side_by_side_calls_do_not_slip_through",),
    ),
    Mutant(
        "budgets.failed-call-is-free",
        WRAPPER,
        "_CountedCall.__exit__",
        "account.end(self.asked, charge)",
        "error is None and account.end(self.asked, charge)",
        "what a failed call cost would not be counted",
        (f"{BUDGET}::test_a_call_that_came_to_nothing_was_paid_for_all_the_same",),
    ),
    Mutant(
        "leases.claimed-twice",
        LEASES,
        "claim_run",
        'sa.and_(runs.c.state == "running", runs.c.worker == lease.worker)',
        'runs.c.state == "running"',
        "two workers could have one run",
        (f"{LEASE}::test_of_many_workers_that_want_a_run_one_has_it",),
    ),
    Mutant(
        "leases.any-attempt",
        LEASES,
        "Lease.held_condition",
        "runs.c.attempt == self.attempt, ",
        "",
        "a worker that came back late could end a later attempt",
        (f"{LEASE}::test_only_who_has_a_run_can_say_how_it_ended",),
    ),
    Mutant(
        "leases.any-worker",
        LEASES,
        "Lease.held_condition",
        ", runs.c.worker == self.worker)",
        ")",
        "a worker could end the run of another",
        (f"{LEASE}::test_only_who_has_a_run_can_say_how_it_ended",),
    ),
    Mutant(
        "leases.reaped-too-soon",
        LEASES,
        "reap_expired_leases",
        "runs.c.lease_until <",
        "runs.c.lease_until >",
        "a run would be taken from a worker that is heard of",
        (f"{LEASE}::test_a_lease_that_is_over_lets_the_run_go_on_once",),
    ),
    Mutant(
        "leases.same-attempt-again",
        LEASES,
        "requeue_runs",
        "attempt=runs.c.attempt + 1,",
        "attempt=runs.c.attempt,",
        "a worker that came back late would take its run for its own",
        (f"{LEASE}::test_a_lease_that_is_over_lets_the_run_go_on_once",),
    ),
    Mutant(
        "leases.renewed-for-others",
        LEASES,
        "send_heartbeat",
        "sa.and_(runs.c.worker ==",
        "sa.or_(runs.c.worker ==",
        "a worker that lost a run would keep it from everybody",
        (f"{LEASE}::test_a_heart_renews_only_what_is_the_workers_and_hears_of_cancels",),
    ),
    Mutant(
        "leases.deaths-not-counted",
        LEASES,
        "reap_expired_leases",
        "deaths=row.deaths + 1",
        "deaths=row.deaths",
        "a run that kills its workers would kill all of them",
        (f"{LEASE}::test_a_lease_that_is_over_lets_the_run_go_on_once",),
    ),
    Mutant(
        "own-models.control-tokens-in-contents",
        PROMPTS,
        "_fill_template",
        "yield from _split_control_tokens(turns[part][1], vocabulary.control)",
        "yield turns[part][1]",
        "a text could end its turn and begin another one",
        (f"{TEMPLATES}::test_no_content_becomes_a_marker_whatever_the_template",),
    ),
    Mutant(
        "own-models.turns-repeated",
        TEMPLATE,
        "_cut",
        'raise TemplateError("a turn is there more than once, or in pieces")',
        "pass",
        "a template could put what was said into its own text, where control tokens count",
        (f"{TEMPLATES}::test_a_template_that_drops_repeats_changes_or_reorders_what_is_said_is_refused",),
    ),
    Mutant(
        "own-models.objects",
        TEMPLATE_PROCESS,
        "render",
        """environment.render_str(f'{values}{{% include "chat" %}}')""",
        """environment.render_template("chat", **names)""",
        "a template of a stranger could reach the attributes of Python's objects",
        (f"{TEMPLATES}::test_a_template_reaches_no_attribute_of_python_and_changes_nothing_that_it_is_given",),
    ),
    Mutant(
        "own-models.set-back-time",
        STORE,
        "_changed_ns",
        "else stat.st_ctime_ns",
        "else stat.st_mtime_ns",
        "a model that was exchanged would be used if its time was set back",
        (f"{OWN}::test_a_file_that_changed_since_it_was_added_is_not_used",),
    ),
    Mutant(
        "own-models.registry-of-others",
        OWN_MODELS,
        "OwnModels.entries",
        "found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)",
        "found.st_mode & stat.S_IWGRP & stat.S_IWOTH",
        "another user could choose the model that plans",
        (f"{OWN}::test_a_registry_that_others_may_write_is_not_used",),
    ),
)
