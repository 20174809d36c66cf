"""Policy: the facts that Cedar is told, the defaults, and the way from its answer to a decision."""

from __future__ import annotations

from scripts.mutants.mutant import Mutant

REQUEST = "policy/_cedar_request.py"
POLICY = "policy/_policy.py"
RULES = "policy/_rules.py"
DEFAULT = "policy/default.cedar"
DEFAULTS = "tests/policy/test_policy_defaults.py"
HOSTILE = "tests/policy/test_policy_hostile.py"
OWN = "tests/policy/test_policy_own.py"
PREVIEW = "tests/policy/test_policy_preview.py"

MUTANTS = (
    Mutant(
        "policy.default-directed",
        DEFAULT,
        "",
        "when { resource.acts && !resource.directs.trusted };",
        "when { resource.outbound && !resource.directs.trusted };",
        "a stranger could choose which file is overwritten",
        (f"{DEFAULTS}::test_a_strangers_value_cannot_direct_what_changes_the_world",),
    ),
    Mutant(
        "policy.default-nobody-receives",
        DEFAULT,
        "",
        "unless { !context.receivers.isEmpty() && resource.leaves.readers",
        "unless { resource.leaves.readers",
        "a secret could leave by a tool that names no receiver",
        (f"{DEFAULTS}::test_a_tool_that_names_no_receiver_carries_no_secret",),
    ),
    Mutant(
        "policy.error-opens",
        POLICY,
        "_RuleSet._evaluate",
        "if answer.errors:",
        "if answer.errors and not answer.allowed:",
        "a policy that fails while it is evaluated would let the call through",
        (f"{HOSTILE}::test_a_forbid_that_fails_stops_what_would_be_allowed_without_it",),
    ),
    Mutant(
        "policy.exception-opens",
        POLICY,
        "Policy._decide",
        'return Denied(f"the policies cannot judge this call: {error}")',
        "return Allowed()",
        "a fault in the facts of a call would let it through",
        (f"{HOSTILE}::test_facts_of_no_known_kind_are_refused",),
    ),
    Mutant(
        "policy.ask-beats-deny",
        POLICY,
        "_verdict",
        "if certain := [rule for rule in final if",
        "if certain := [rule for rule in final if len(ids) == len(final) and",
        "a person could say yes to what a policy forbids for good",
        (f"{OWN}::test_one_policy_without_a_question_is_enough_to_refuse",),
    ),
    Mutant(
        "policy.override-lifts-all",
        POLICY,
        "_RuleSet.stopping_rules",
        "if not (rule.default and rule.id in lifted)",
        "if not rule.default",
        "lifting one default for a tool would lift all of them",
        (f"{OWN}::test_an_override_lifts_the_default_that_it_names_and_no_other",),
    ),
    Mutant(
        "policy.permit-guessed-before",
        POLICY,
        "_decidable_nodes",
        'if rule.effect == "forbid" or len(clauses) == len(rule.node.clauses):',
        "if True:",
        "a proof would rest on an exception that may not hold when the call is made",
        (f"{PREVIEW}::test_an_override_that_may_not_hold_in_the_run_promises_nothing",),
    ),
    Mutant(
        "policy.lures-assumed-away",
        POLICY,
        "Policy._decide",
        "facts.lures is None and any(",
        "facts.lures is not None and any(",
        "a stranger's text of which nothing is known would go out unasked",
        (f"{DEFAULTS}::test_what_could_be_followed_is_assumed_where_nobody_knows",),
    ),
    Mutant(
        "policy.undeclared-directs-nothing",
        REQUEST,
        "_may_direct",
        'or (not declared and purpose != "attaches")',
        "",
        "the arguments of a tool that declares nothing would direct nothing",
        (f"{DEFAULTS}::test_a_tool_that_declares_nothing_is_directed_by_all_that_it_is_given",),
    ),
    Mutant(
        "policy.facts-of-another-tool",
        REQUEST,
        "make_call_profile",
        "!= (toolbox, effect, outbound, declared)",
        "== (toolbox, effect, outbound, not declared)",
        "a tool that sends could be judged as one that reads",
        (f"{DEFAULTS}::test_facts_that_are_not_those_of_the_tool_are_refused",),
    ),
    Mutant(
        "policy.unknown-receivers-are-none",
        REQUEST,
        "call_receivers",
        "return None",
        "continue",
        "a call whose receivers are not known yet would be judged as one without any",
        (f"{PREVIEW}::test_whom_a_call_names_is_not_guessed",),
    ),
    Mutant(
        "policy.readers-of-one-part",
        REQUEST,
        "_common_readers",
        "& each.label.readers",
        "| each.label.readers",
        "content of two secrets could go to whoever may read one",
        (f"{DEFAULTS}::test_what_is_made_of_two_secrets_goes_only_to_who_may_read_both",),
    ),
    Mutant(
        "policy.called-user",
        REQUEST,
        "as_readers",
        """f"'{USER}'" if name == USER else name""",
        "name",
        "a stranger who calls himself `user` would receive what is the user's alone",
        (f"{DEFAULTS}::test_somebody_who_calls_himself_user_is_not_the_user",),
    ),
    Mutant(
        "policy.two-addresses-one-domain",
        REQUEST,
        "address_domain",
        "_ADDRESS.fullmatch(name)",
        "_ADDRESS.match(name)",
        "a second address behind a good one would have the good one's domain",
        (f"{HOSTILE}::test_what_is_not_plainly_one_address_has_no_good_domain",),
    ),
    Mutant(
        "policy.lifted-for-every-tool",
        RULES,
        "_override_errors",
        "if not _names_a_tool(rule.node.resource):",
        "if not rule.overrides:",
        "one line could switch a default off for all tools",
        (f"{OWN}::test_a_default_cannot_be_switched_off_for_every_tool",),
    ),
)
