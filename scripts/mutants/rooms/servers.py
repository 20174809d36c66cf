"""Servers at the command line: what a person is shown of one, what is written after a yes, and what stays accepted."""

from __future__ import annotations

from scripts.mutants.mutant import Mutant

TABLES = "cli/_mcp_tables.py"
REVIEWS = "cli/_mcp_reviews.py"
CHECKS = "foreign/_checks.py"
SETTINGS = "cli/_mcp_settings.py"
FIREWALL = "firewall/_servers.py"
ADDING = "tests/cli/test_cli_mcp.py"
REVIEWING = "tests/cli/test_cli_mcp_reviews.py"
EDITING = "tests/cli/test_cli_mcp_tables.py"
PROTECTING = "tests/cli/test_cli_mcp_clients.py"

MUTANTS = (
    Mutant(
        "servers.unaccepted-file-accepted",
        TABLES,
        "Acceptance.renew",
        "if self.widening is not None and not",
        "if self.widening is None or not",
        "the folder of a stranger would be accepted with the server that its reader adds",
        (f"{EDITING}::test_a_file_that_was_not_accepted_does_not_become_so",),
    ),
    Mutant(
        "servers.changes-of-others-accepted",
        TABLES,
        "Acceptance._changes_of_others",
        "before.files[name] != now.files[name] for name in named",
        "False for name in named",
        "code that somebody changed during the question would be accepted along",
        (f"{EDITING}::test_a_change_by_somebody_else_meanwhile_is_not_accepted_along",),
    ),
    Mutant(
        "servers.environment-accepts-for-good",
        TABLES,
        "Acceptance.of",
        "find_unaccepted(file, widening, {}) is None",
        "find_unaccepted(file, widening, os.environ) is None",
        "what a variable accepts for one process would be accepted for ever",
        (f"{EDITING}::test_what_the_environment_lists_does_not_become_a_lasting_acceptance",),
    ),
    Mutant(
        "servers.edit-not-verified",
        TABLES,
        "_verified",
        "if found != expected:",
        "if found is None:",
        "a command would change settings that nobody was asked about",
        (f"{EDITING}::test_what_is_no_table_of_its_own_is_not_changed",),
    ),
    Mutant(
        "servers.words-without-bar",
        REVIEWS,
        "untrusted_lines",
        'f"│ {piece}" for piece in pieces',
        "piece for piece in pieces",
        "a server's words would look like the review itself",
        (f"{ADDING}::test_nothing_that_a_server_says_can_pass_for_our_own_text",),
    ),
    Mutant(
        "servers.name-taken-twice",
        REVIEWS,
        "usable_server",
        "if found.tool.name in used:",
        "if found.tool.name in ():",
        "a server could take the name of another tool, and no command would start any more",
        (f"{ADDING}::test_a_name_that_is_taken_is_changed_and_said",),
    ),
    Mutant(
        "servers.nobody-says-yes",
        REVIEWS,
        "confirm_at_terminal",
        "if not out.is_interactive:",
        "if not out.is_interactive and False:",
        "a pipe could say yes to a server",
        (f"{ADDING}::test_without_a_yes_the_review_is_shown_and_nothing_is_written",),
    ),
    Mutant(
        "servers.worse-effect-not-said",
        "mcp/_review.py",
        "_keep_declared",
        "if old.pin != proposal.tool.pin and",
        "if old.pin == proposal.tool.pin and",
        "a tool that became dangerous would keep its harmless declaration without a word",
        (f"{REVIEWING}::test_a_tool_that_would_now_be_taken_for_worse_is_said_so",),
    ),
    Mutant(
        "servers.changed-tool-as-reviewed",
        CHECKS,
        "_compare_tool",
        "if listed.pin == declaration.pin:",
        "if listed.name == name:",
        "the check would not see a rug pull",
        (f"{REVIEWING}::test_a_changed_tool_fails_the_check_with_the_difference_until_it_is_reviewed",),
    ),
    Mutant(
        "servers.waiting-declarations-used",
        SETTINGS,
        "require_new",
        "if replace or (name not in known and not declarations.exists()):",
        "if replace or name not in known:",
        "declarations that a stranger left would be written over, or trusted",
        (f"{ADDING}::test_declarations_that_are_there_already_are_not_replaced_unasked",),
    ),
    Mutant(
        "servers.stopped-server-moved",
        "firewall/_client_config.py",
        "rewrite_client_config",
        "if name not in leave and is_disabled(entry)",
        "if False",
        "a server that the user had switched off would be started",
        (f"{PROTECTING}::test_what_the_client_does_not_start_stays_off",),
    ),
    Mutant(
        "servers.own-tools-offered",
        FIREWALL,
        "_client_tools",
        "tool.name for tool in everything if not tool.toolbox.startswith(FOREIGN_TOOLBOXES)",
        "tool.name for tool in everything if not tool.toolbox",
        "a client would get the files and the mail of its user",
        (f"{PROTECTING}::test_a_server_whose_results_are_to_be_shown_is_shown_marked",),
    ),
    Mutant(
        "servers.unaccepted-review",
        FIREWALL,
        "_take_reviews",
        'if withheld := [each for each in config.withheld if each.startswith("mcp")]:',
        "if withheld := []:",
        "declarations of somebody else would count in a firewall that runs",
        ("tests/cli/test_cli_mcp_followed_reviews.py::test_declarations_that_nobody_accepted_are_not_taken_over",),
    ),
)
