"""The firewall: what a model reads, what counts as a yes, and whose session a name or a question belongs to."""

from __future__ import annotations

from scripts.mutants.mutant import Mutant

RESULTS = "firewall/_results.py"
CALLS = "firewall/_calls.py"
SESSION = "firewall/_session.py"
APPROVALS = "firewall/_approvals.py"
LISTING = "firewall/_listing.py"
SERVER = "firewall/_server.py"
HTTP = "firewall/_http.py"
CLIENTS = "firewall/_client_config.py"
QUESTIONS = "durable/_questions.py"
NAMES = "patterns/_result_names.py"
SHOWN = "tests/firewall/test_firewall_results.py"
ASKED = "tests/firewall/test_firewall_approvals.py"
STATES = "tests/firewall/test_firewall_states.py"
INBOX = "tests/firewall/test_firewall_inbox.py"
SESSIONS = "tests/firewall/test_firewall_sessions.py"
SERVED = "tests/firewall/test_firewall_server.py"
TRANSPORTS = "tests/firewall/test_firewall_transports.py"
CONFIG = "tests/firewall/test_firewall_client_config.py"

MUTANTS = (
    Mutant(
        "firewall.shown-text",
        RESULTS,
        "SessionResults.show",
        "if tree.flat.trusted:",
        "if True:",
        "the client's model would read untrusted text",
        (f"{SHOWN}::test_untrusted_text_reaches_the_model_as_a_name_and_trusted_text_as_it_is",),
    ),
    Mutant(
        "firewall.label-of-an-answer",
        SESSION,
        "FirewallSession._do",
        "self.state.label = join(self.state.label, rename_steps(answer.label, _without_step).flat)",
        "pass",
        "what a model has read would not count in its later calls",
        (f"{SHOWN}::test_a_count_that_was_read_makes_later_calls_untrusted",),
    ),
    Mutant(
        "firewall.label-of-a-misfit",
        CALLS,
        "perform",
        "join(read, state.results.label_of_names(call.arguments))",
        "read",
        "whether a value fits would be learned without its label",
        (f"{SHOWN}::test_a_name_of_the_wrong_type_is_refused_without_a_word_of_the_value",),
    ),
    Mutant(
        "firewall.names-of-other-sessions",
        RESULTS,
        "SessionResults.__init__",
        'ResultNames(tag="".join(secrets.choice(_TAG_LETTERS) for _ in range(4)))',
        'ResultNames(tag="aaaa")',
        "a name of an earlier connection would stand for something else",
        (f"{SHOWN}::test_a_name_of_another_session_is_unknown_also_before_the_first_result",),
    ),
    Mutant(
        "firewall.names-before-results",
        NAMES,
        "ResultNames.fill",
        "if not self.contents and not self.tag:",
        "if not self.contents:",
        "a name would be sent as a text before there is a result",
        (f"{SHOWN}::test_a_name_of_another_session_is_unknown_also_before_the_first_result",),
    ),
    Mutant(
        "firewall.secret-cut-in-two",
        RESULTS,
        "shown_text",
        "redact(render_result(redact_texts(value)))",
        "redact(render_result(value))",
        "the first half of a secret would be shown where a text is cut",
        (f"{SHOWN}::test_a_secret_that_is_cut_off_is_not_shown_in_part",),
    ),
    Mutant(
        "firewall.words-of-a-failure",
        CALLS,
        "_failure",
        "{_fixed_words(error.code)}. What",
        "{error}. What",
        "the message of a tool would bring untrusted text to the client's model",
        (f"{SHOWN}::test_the_message_of_a_failing_tool_is_kept_and_not_shown",),
    ),
    Mutant(
        "firewall.code-of-a-tool",
        CALLS,
        "_failure",
        "if step not in state.started:",
        "if error.code in _NOT_CALLED:",
        "a tool could say that it was not called, and show words of its own",
        (f"{ASKED}::test_a_tool_can_raise_any_code_and_launders_nothing",),
    ),
    Mutant(
        "firewall.accepted-without-a-tick",
        APPROVALS,
        "read_approval",
        'if content["approve"] is True:',
        "if True:",
        "a client that says accept would have asked nobody",
        (f"{ASKED}::test_anything_but_a_ticked_field_is_no",),
    ),
    Mutant(
        "firewall.extra-fields",
        APPROVALS,
        "read_approval",
        'set(content) == {"approve"}',
        '"approve" in content',
        "a form that was not shown would count",
        (f"{ASKED}::test_anything_but_a_ticked_field_is_no",),
    ),
    Mutant(
        "firewall.refusal-forgotten",
        APPROVALS,
        "CallPerson.approve",
        'if reply == "refused":',
        "if False:",
        "a model could ask until somebody gives in",
        (f"{ASKED}::test_a_refused_call_stays_refused_and_is_not_asked_about_again",),
    ),
    Mutant(
        "firewall.ended-fence",
        APPROVALS,
        "fenced",
        "max(3, longest + 1)",
        "3",
        "an argument could end the code block that it is shown in",
        (f"{ASKED}::test_hidden_characters_and_code_fences_are_shown_and_obeyed_by_nobody",),
    ),
    Mutant(
        "firewall.secret-in-a-question",
        APPROVALS,
        "_shown_arguments",
        "redact_texts(value) if name in content else mask_value(value)",
        "value",
        "a client would read a secret in the question about it",
        (f"{ASKED}::test_the_question_shows_every_argument_and_what_others_wrote",),
    ),
    Mutant(
        "firewall.any-response",
        SERVER,
        "_begun_call",
        "if set(responses) == {QUESTION} and isinstance(reply, types.ElicitResult):",
        "if isinstance(reply, types.ElicitResult):",
        "an answer among others would count",
        (f"{STATES}::test_a_state_without_a_clear_answer_is_no",),
    ),
    Mutant(
        "firewall.unlisted-tool",
        LISTING,
        "_is_visible",
        "(allow is None or tool.name in allow) and",
        "",
        "a tool that is not allowed could be called by its name",
        (f"{SERVED}::test_a_tool_that_is_not_listed_cannot_be_called",),
    ),
    Mutant(
        "firewall.unreviewed-tool",
        LISTING,
        "_listing",
        "UNREVIEWED_DOC if tool.self_described else",
        "",
        "the words of a server would stand in the list of tools",
        (f"{SERVED}::test_an_unreviewed_tool_is_shown_only_on_request_and_without_its_servers_words",),
    ),
    Mutant(
        "firewall.unbounded-names",
        RESULTS,
        "SessionResults.check_arguments",
        "if expanded > MAX_EXPANDED:",
        "if False:",
        "a few letters could fill the memory",
        (f"{SESSIONS}::test_a_few_names_do_not_fill_the_memory",),
    ),
    Mutant(
        "firewall.rate-per-session",
        "firewall/_firewall.py",
        "Firewall.count_call",
        "known.count_call()",
        "pass",
        "a server could be called without a limit",
        (f"{SESSIONS}::test_rates_hold_for_all_clients_together_and_for_one_server",),
    ),
    Mutant(
        "firewall.no-token",
        HTTP,
        "FirewallApp.__call__",
        "if token is None:",
        "if False:",
        "anybody could connect over HTTP",
        (f"{TRANSPORTS}::test_without_a_token_that_holds_nothing_is_answered",),
    ),
    Mutant(
        "firewall.session-of-another-token",
        HTTP,
        "FirewallApp._serve",
        'key = token.id, "" if modern else connection',
        'key = "", "" if modern else connection',
        "a session would be found without its token",
        (f"{TRANSPORTS}::test_a_session_id_of_another_token_does_not_exist",),
    ),
    Mutant(
        "firewall.withdrawn-question",
        QUESTIONS,
        "ask_person",
        "await asyncio.shield(dispatch.run(withdraw_question, id))",
        "pass",
        "a person could answer a question that nobody waits for, and think that it counts",
        (f"{INBOX}::test_a_call_that_was_cancelled_withdraws_its_question",),
    ),
    Mutant(
        "firewall.secret-in-the-settings",
        "firewall/_client_secrets.py",
        "is_harmless",
        "if _SECRET_NAME.search(name):",
        "if False:",
        "a secret of a client's file would be written into the configuration",
        (f"{CONFIG}::test_no_secret_is_among_the_settings",),
    ),
    Mutant(
        "firewall.changed-file-overwritten",
        CLIENTS,
        "restore_client_config",
        "if now != rewritten:",
        "if False:",
        "what somebody has changed in a client's file since would be lost",
        (f"{CONFIG}::test_a_file_that_was_changed_since_is_not_overwritten_and_the_change_is_shown",),
    ),
)
