"""The MCP server: who says yes, what a sealed state is good for, and what the client's model gets to read."""

from __future__ import annotations

from scripts.mutants.mutant import Mutant

CALLS = "server/_mcp_calls.py"
QUESTIONS = "server/_mcp_questions.py"
RESULTS = "server/_mcp_results.py"
SERVER = "server/_mcp_server.py"
SERVE = "server/_mcp_serve.py"
PEOPLE = "tests/server/test_server_mcp_people.py"
STATES = "tests/server/test_server_mcp_states.py"
HTTP = "tests/server/test_server_mcp_http.py"
TOLD = "tests/server/test_server_mcp.py"

MUTANTS = (
    Mutant(
        "mcp-serve.requests-always-trusted",
        CALLS,
        "ToolCall._own_words",
        'self.options.requests == "trusted"',
        'self.options.requests != ""',
        "what a client's model writes would be the user's own words",
        (f"{PEOPLE}::test_a_client_that_cannot_ask_plans_nothing_and_may_check",),
    ),
    Mutant(
        "mcp-serve.any-form-is-a-yes",
        CALLS,
        "ToolCall._own_words",
        'case Filled(values={"yes": True}):',
        "case Filled():",
        "a form with the tick left out would endorse a request",
        (f"{PEOPLE}::test_a_request_without_a_clear_yes_is_not_planned",),
    ),
    Mutant(
        "mcp-serve.unshown-text-planned",
        CALLS,
        "ToolCall._own_words",
        "return shown.text",
        "return text",
        "a text would be planned from that was not what the person saw",
        (f"{PEOPLE}::test_what_is_endorsed_is_what_a_screen_shows",),
    ),
    Mutant(
        "mcp-serve.answer-after-the-token",
        CALLS,
        "ToolCall._put_to_person",
        "self.check_token()",
        "pass",
        "whoever holds a removed token could still say yes",
        (f"{HTTP}::test_an_answer_after_the_end_of_its_token_is_not_stored",),
    ),
    Mutant(
        "mcp-serve.invented-fields-count",
        QUESTIONS,
        "read_reply",
        "values.keys() != form.fields.keys()",
        "not values.keys() >= form.fields.keys()",
        "a form that nobody was shown would count as filled in",
        (f"{PEOPLE}::test_a_form_that_comes_back_otherwise_decides_nothing",),
    ),
    Mutant(
        "mcp-serve.truthy-is-a-yes",
        QUESTIONS,
        "_fits",
        "return isinstance(value, bool)",
        "return True",
        "a text or a number in the place of the tick would count",
        (f"{PEOPLE}::test_a_form_that_comes_back_otherwise_decides_nothing",),
    ),
    Mutant(
        "mcp-serve.state-used-again",
        QUESTIONS,
        "OpenStates.redeem",
        'del mine[facts["nonce"]]',
        "pass",
        "one yes would be good for any number of runs",
        (f"{STATES}::test_open_states_are_single_use_and_bounded",),
    ),
    Mutant(
        "mcp-serve.yes-to-another-question",
        QUESTIONS,
        "ReturningPerson.ask",
        "reply is None or self.state.about != form.key",
        "reply is None",
        "the yes to one question would answer the next one",
        (f"{STATES}::test_a_reply_without_a_state_answers_nothing",),
    ),
    Mutant(
        "mcp-serve.default-user",
        SERVER,
        "McpProtocol.caller",
        "if not isinstance(token, AccessToken):",
        "if token is not None and not isinstance(token, AccessToken):",
        "a request around the guard would be somebody's",
        (f"{HTTP}::test_a_call_around_the_guard_is_nobodys",),
    ),
    Mutant(
        "mcp-serve.untrusted-text-shown",
        RESULTS,
        "_is_shown",
        "label.trusted or",
        "not label.trusted or",
        "text of strangers would stand where the client's model takes it for the program's",
        (f"{TOLD}::test_an_answer_of_strangers_is_material_between_marks_and_a_number_crosses",),
    ),
    Mutant(
        "mcp-serve.errors-as-they-are",
        RESULTS,
        "_error_json",
        "own or _is_shown(",
        "own or not _is_shown(",
        "the error of a tool, which anybody may have written, would stand unmarked",
        (f"{TOLD}::test_an_error_of_the_world_is_material_too",),
    ),
    Mutant(
        "mcp-serve.any-name",
        SERVE,
        "allowed_names",
        "if address.is_unspecified and not given:",
        "if False:",
        "a server on every address would check the names of requests against nothing",
        (f"{HTTP}::test_names_are_known_before_it_listens",),
    ),
)
