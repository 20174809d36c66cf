"""The variants of the quarantine: what the read-only executor may look up, validators, and whose word counts."""

from __future__ import annotations

from scripts.mutants.mutant import Mutant

TOOL = "tools/_tool.py"
VARIANTS = "boundary/_variants.py"
LOOKUPS = "runs/_lookups.py"
LOOKED_UP = "tests/runs/test_runs_lookups.py"
CONFIGURED = "tests/config/test_config_quarantine.py"
VALIDATED = "tests/boundary/test_boundary_variants.py"

MUTANTS = (
    Mutant(
        "quarantine.lookup-by-a-tool-that-reaches-out",
        TOOL,
        "executor_fault",
        "if tool.outbound or tool.hosts:",
        "if False:",
        "a stranger's text could have a secret sent as a part of a web address",
        (f"{LOOKED_UP}::test_a_tool_that_tells_somebody_something_by_asking_cannot_be_given_to_it",),
    ),
    Mutant(
        "quarantine.lookup-by-a-tool-that-acts",
        TOOL,
        "executor_fault",
        'if tool.effect != "read":',
        "if False:",
        "a stranger's text could have a file written",
        (f"{LOOKED_UP}::test_a_tool_that_acts_cannot_be_given_to_the_executor",),
    ),
    Mutant(
        "quarantine.lookup-unseen-by-the-proof",
        "plans/labels/_walker.py",
        "LabelWalker._walk_step",
        "for tool in self._registry.executor_tools:",
        "for tool in ():",
        "a step would be proved that sends out what a stranger had looked up",
        (f"{LOOKED_UP}::test_the_check_knows_that_something_may_be_looked_up",),
    ),
    Mutant(
        "quarantine.lookup-without-a-label",
        LOOKUPS,
        "Lookups.add",
        "self.labels.add_lookup(found)",
        "pass",
        "a file that a stranger had looked up would go out as public",
        (f"{LOOKED_UP}::test_a_secret_that_a_stranger_had_looked_up_goes_to_nobody_without_a_question",),
    ),
    Mutant(
        "quarantine.lookup-whatever-policy-says",
        LOOKUPS,
        "RunDesk.read",
        "if not isinstance(decided.decision, Allowed):",
        "if False:",
        "a policy of the user's own would not hold for what the executor looks up",
        (f"{LOOKED_UP}::test_a_policy_of_the_users_own_holds_for_lookups_and_nobody_is_asked",),
    ),
    Mutant(
        "quarantine.lookup-to-whom-the-user-named",
        "policy/default.cedar",
        "",
        'resource.leaves.sources.contains("lookup")',
        "false",
        "somebody whom the user named for something else would get what a stranger had looked up",
        (f"{LOOKED_UP}::test_a_secret_that_a_stranger_had_looked_up_goes_to_nobody_without_a_question",),
    ),
    Mutant(
        "quarantine.lookup-with-invented-arguments",
        VARIANTS,
        "ReadOnlyExecutor._choose_call",
        "or not _stands_in(filled.value, wanted, shown)",
        "",
        "a model could ask for a file that nothing it has read names",
        (f"{LOOKED_UP}::test_an_argument_that_stands_nowhere_in_what_was_read_is_not_used",),
    ),
    Mutant(
        "quarantine.validators-by-majority",
        VARIANTS,
        "ValidatedExecutor.extract",
        "if not refused:",
        "if 2 * len(refused) < len(doubts):",
        "validators that an attacker has won over would outvote the honest one",
        (f"{VALIDATED}::test_two_of_three_that_were_won_over_do_not_outvote_the_third",),
    ),
    Mutant(
        "quarantine.weakened-by-a-folder",
        "config/_load.py",
        "load_config",
        'if own and "quarantine" not in settings:',
        "if False:",
        "a folder's file would take away the validators that the user's own file asks for",
        (f"{CONFIGURED}::test_a_folder_cannot_weaken_what_the_users_own_file_says",),
    ),
    Mutant(
        "quarantine.offered-by-a-toolbox",
        "config/_quarantine.py",
        "mark_executor_tools",
        "return registry.with_executor_tools(names)",
        "return registry.with_executor_tools(names) if names else registry",
        "a toolbox could offer its own tools to the executor",
        (f"{CONFIGURED}::test_a_toolbox_file_cannot_offer_its_own_tool_to_the_executor",),
    ),
)
