"""Foreign tools and MCP servers: pins, declarations, confinement, bounds on what a server sends, and its questions."""

from __future__ import annotations

from scripts.mutants.mutant import Mutant

LISTING = "foreign/_listing.py"
FOREIGN = "foreign/_tools.py"
PROPOSALS = "foreign/_proposals.py"
SERVER = "mcp/_server_tools.py"
LISTINGS = "mcp/_listings.py"
TRANSPORT = "mcp/_transport.py"
QUESTIONS = "mcp/_questions.py"
TOOLS = "tests/mcp/test_mcp_server_tools.py"
CONNECTIONS = "tests/mcp/test_mcp_connection.py"
HTTP = "tests/mcp/test_mcp_http.py"
DECLARATIONS = "tests/foreign/test_foreign_declarations.py"

MUTANTS = (
    Mutant(
        "foreign.changed-tool-called",
        SERVER,
        "ServerTools.call",
        "if current is None or current.pin != reviewed.pin:",
        "if current is None:",
        "a server could become another one after it was reviewed",
        (f"{TOOLS}::test_a_tool_that_changes_after_the_review_is_not_called_any_more",),
    ),
    Mutant(
        "foreign.changed-review-used",
        SERVER,
        "ServerTools.call_tools",
        "if foreign is None or foreign.pin != declaration.pin:",
        "if foreign is None:",
        "whoever changes the file of reviewed listings would change the tools",
        (f"{TOOLS}::test_a_reviewed_listing_that_somebody_changed_makes_no_tools",),
    ),
    Mutant(
        "foreign.list-not-compared-again",
        SERVER,
        "ServerTools.list_current",
        "if generation == self.connection.generation and time.monotonic() - when < _RELIST_SECONDS:",
        "if time.monotonic() - when < _RELIST_SECONDS:",
        "a server that says that it changed would still be called",
        (f"{TOOLS}::test_a_server_that_says_that_it_changed_is_looked_at_before_the_next_call",),
    ),
    Mutant(
        "foreign.pin-without-description",
        LISTING,
        "ForeignTool.to_json",
        '"description": self.description,',
        '"description": "",',
        "a description could change unnoticed",
        (f"{TOOLS}::test_whatever_changes_in_a_tool_changes_its_pin",),
    ),
    Mutant(
        "foreign.two-tools-of-one-name",
        LISTING,
        "read_listing",
        "if tool.name in tools:",
        "if tool.name == tools:",
        "which of two tools a call reaches would be up to the server",
        (f"{CONNECTIONS}::test_a_listing_that_cannot_be_used_is_refused",),
    ),
    Mutant(
        "foreign.choices-with-sentences",
        FOREIGN,
        "_plain_choices",
        "return type_ if plain else STR",
        "return type_",
        "a sentence of a server would stand in the prompt as a choice of an argument",
        (f"{TOOLS}::test_nothing_that_a_server_says_reaches_a_tool",),
    ),
    Mutant(
        "foreign.unreviewed-not-asked",
        FOREIGN,
        "foreign_tool",
        "unreviewed=declaration is None or not declared.reviewed,",
        "unreviewed=False,",
        "a tool that nobody has reviewed would be called without a question",
        (f"{TOOLS}::test_an_undeclared_tool_is_worth_nothing_and_every_call_asks",),
    ),
    Mutant(
        "foreign.private-words-as-receiver",
        FOREIGN,
        "foreign_tool",
        'unaddressed=outbound and effect != "read" and declared.receivers is None,',
        "unaddressed=False,",
        "a tool could ask for the conversation in an argument whose name says nothing",
        (f"{TOOLS}::test_what_only_the_user_may_read_is_no_receiver_of_a_tool_that_names_none",),
    ),
    Mutant(
        "foreign.arguments-unchecked",
        FOREIGN,
        "_ForeignRunner.run",
        "if problem := self._arguments_validator.problem(given):",
        "if problem := None:",
        "a server would get what its schema forbids",
        (f"{TOOLS}::test_arguments_are_held_to_the_schema_before_they_leave",),
    ),
    Mutant(
        "foreign.annotations-lower",
        PROPOSALS,
        "_proposed_effect",
        'worst = worst_effect(claims) if claims else "irreversible"',
        'worst = claims[0] if claims else "irreversible"',
        "a server could say that its `delete_file` only reads",
        (f"{DECLARATIONS}::test_no_annotation_makes_a_tool_milder_than_its_name",),
    ),
    Mutant(
        "mcp.message-without-limit",
        TRANSPORT,
        "_ProgramPipes.open",
        "asyncio.StreamReader(limit=self._max_message)",
        "asyncio.StreamReader(limit=2**40)",
        "a server could fill the memory with one line",
        (f"{CONNECTIONS}::test_a_result_beyond_the_limit_is_never_in_memory",),
    ),
    Mutant(
        "mcp.flood-of-messages",
        TRANSPORT,
        "_ProgramPipes.read_messages",
        "if problem := self._inflow.problem(1, len(line)):",
        "if problem := None:",
        "a server could keep this process busy without end",
        (f"{CONNECTIONS}::test_what_is_no_server_ends_in_a_clear_error",),
    ),
    Mutant(
        "mcp.inherited-keys",
        "tools/_confined_process.py",
        "start_unconfined",
        "**inherited, **environment, _MARK: mark}",
        "**os.environ, **environment, _MARK: mark}",
        "a server out of the sandbox would see the keys of others",
        (f"{CONNECTIONS}::test_a_server_sees_no_keys_but_those_it_was_given",),
    ),
    Mutant(
        "mcp.answer-without-a-yes",
        QUESTIONS,
        "ServerQuestions._ask_form",
        "BOOL) is not True:",
        "BOOL) is False:",
        "a server would get an answer that nobody gave",
        (f"{CONNECTIONS}::test_only_a_yes_is_a_yes_to_a_server",),
    ),
    Mutant(
        "mcp.questions-without-end",
        QUESTIONS,
        "ServerQuestions._request_of_question",
        "if request is None or request.person is None or request.asked >= MOST_QUESTIONS:",
        "if request is None or request.person is None:",
        "a server could ask until nobody reads its questions any more",
        (f"{CONNECTIONS}::test_nobody_is_asked_again_and_again_by_one_call",),
    ),
    Mutant(
        "mcp.body-without-limit",
        TRANSPORT,
        "_limited_transport",
        "if read > self._most:",
        "if read < 0:",
        "a server could fill the memory with one answer",
        (f"{HTTP}::test_what_a_server_sends_over_http_has_bounds",),
    ),
    Mutant(
        "mcp.endless-list",
        LISTINGS,
        "_pages",
        "for _ in range(_MAX_PAGES):",
        "for _ in iter(int, 1):",
        "a list could have a next page for ever",
        (f"{CONNECTIONS}::test_a_listing_without_end_is_cut_off",),
    ),
    Mutant(
        "mcp.any-python",
        "mcp/_program_folders.py",
        "_base_python",
        "if not programs or not libraries:",
        "if False:",
        "a pyvenv.cfg of somebody else could open any folder to a server",
        ("tests/mcp/test_mcp_program_folders.py",),
    ),
    Mutant(
        "mcp.granted-state",
        "mcp/_grants.py",
        "_GrantedEntries._add",
        'if self.closed.is_one(child, info) or (path == self._home and child.name.startswith(".")):',
        "if False:",
        "a server with the home folder could answer its own questions",
        ("tests/mcp/test_mcp_grants.py",),
    ),
    Mutant(
        "mcp.old-listing-for-a-change",
        SERVER,
        "ServerTools.call",
        "fresh=not reads",
        "fresh=False",
        "within a minute a tool could become another one and be called",
        (f"{TOOLS}::test_the_list_is_asked_for_anew_before_a_call_that_could_not_be_undone",),
    ),
)
