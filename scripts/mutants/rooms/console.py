"""The console: who gets in, what a form is good for, what a person is shown, and whose runs they see."""

from __future__ import annotations

from scripts.mutants.mutant import Mutant

ADMISSION = "console/_admission.py"
SESSIONS = "console/_sessions.py"
SIGN_IN = "console/_sign_in.py"
APPROVALS = "console/_approval_pages.py"
ACTIONS = "console/_run_actions.py"
RECORDS = "console/_records.py"
STREAM = "console/_run_stream.py"
VALUES = "console/_values.py"
PAGES = "console/_pages.py"
ASK = "console/_ask_pages.py"
DRAFTS = "console/_drafts.py"
ASKING = "console/_operations_asking.py"
SERVERS = "console/_operations_servers.py"
WHO = "tests/console/test_console_sign_in.py"
RUNS = "tests/console/test_console_runs.py"
INBOX = "tests/console/test_console_approvals.py"
WRITE = "tests/console/test_console_ask.py"
SHOWN = "tests/console/test_console_values.py"
OPERATE = "tests/console/test_console_operations.py"

MUTANTS = (
    Mutant(
        "console.any-origin",
        ADMISSION,
        "SessionAdmission.find_holder",
        "not _is_same_origin(scope)",
        "False",
        "a page of another site could send forms",
        (f"{WHO}::test_a_form_of_another_site_does_nothing",),
    ),
    Mutant(
        "console.site-not-read",
        ADMISSION,
        "_is_same_origin",
        'not origin or (site and site != "same-origin")',
        "not origin",
        "what the browser says of the page that sent a form would not count",
        (f"{WHO}::test_a_form_of_another_site_does_nothing",),
    ),
    Mutant(
        "console.no-secret-in-forms",
        ADMISSION,
        "SessionAdmission.check_body",
        "session is not None and not session.accepts(",
        "session is not None and session.accepts(",
        "a form would need no secret of the session",
        (f"{WHO}::test_a_form_without_the_secret_of_the_session_does_nothing",),
    ),
    Mutant(
        "console.any-host",
        ADMISSION,
        "SessionAdmission._is_own_name",
        "except ValueError:\n            return False\n        return True",
        "except ValueError:\n            return True\n        return True",
        "a name of a stranger that points here would reach the pages",
        (f"{WHO}::test_a_name_that_is_not_this_servers_reaches_nothing",),
    ),
    Mutant(
        "console.sign-ins-without-limit",
        ADMISSION,
        "SessionAdmission.find_holder",
        "self._sign_ins.count_request(client_name(scope))",
        "pass",
        "tokens could be tried without end",
        (f"{WHO}::test_attempts_to_sign_in_are_limited_by_address",),
    ),
    Mutant(
        "console.session-outlives-its-token",
        SESSIONS,
        "Sessions.is_open",
        "self._is_over(session) or not self._tokens.is_valid(session.token)",
        "self._is_over(session)",
        "a removed token would still open the console",
        (f"{WHO}::test_a_session_of_a_token_that_has_ended_is_none",),
    ),
    Mutant(
        "console.session-without-end",
        SESSIONS,
        "Sessions.is_open",
        "self._is_over(session) or not",
        "not",
        "a session would last as long as the server",
        (f"{WHO}::test_sessions_end_in_time_and_are_bounded",),
    ),
    Mutant(
        "console.cookie-for-scripts",
        SIGN_IN,
        "sign_in",
        "httponly=True",
        "httponly=False",
        "a script could read the id of the session",
        (f"{WHO}::test_the_cookie_is_out_of_the_reach_of_scripts_and_of_other_sites",),
    ),
    Mutant(
        "console.way-back-anywhere",
        SIGN_IN,
        "own_address",
        'address[1:2] not in ("/", "\\\\") and ',
        "",
        "a link could lead to another site after signing in",
        (f"{WHO}::test_the_way_back_leads_to_no_other_site",),
    ),
    Mutant(
        "console.roles-open-everything",
        PAGES,
        "page_route",
        "require_role(request.state.token, *roles)",
        "pass",
        "a token that only sees could run and approve",
        (f"{WHO}::test_roles_open_only_their_pages",),
    ),
    Mutant(
        "console.answer-to-anything",
        APPROVALS,
        "answer_question",
        'call.field("shown") != question_hash(asked)',
        "False",
        "an answer would count for another question than the one that was shown",
        (f"{INBOX}::test_an_answer_to_something_else_than_was_shown_does_not_count",),
    ),
    Mutant(
        "console.hash-without-the-calls",
        APPROVALS,
        "question_hash",
        "[dict(each) for each in asked.calls]",
        "len(asked.calls)",
        "the hash of a question would not change with what its calls do",
        (f"{INBOX}::test_the_hash_of_a_question_covers_everything_that_is_shown",),
    ),
    Mutant(
        "console.everything-ticked",
        APPROVALS,
        "_answer_calls",
        'approved = call.fields("approve")',
        'approved = [str(each["hash"]) for each in asked.calls]',
        "calls that were not ticked would be approved",
        (f"{INBOX}::test_of_several_calls_only_those_that_are_ticked",),
    ),
    Mutant(
        "console.offers-taken-unasked",
        APPROVALS,
        "_answer_calls",
        'accepted = [each for each in call.fields("for_run") if each in approved]',
        'accepted = [str(each["hash"]) for each in asked.calls if "offer" in each and each["hash"] in approved]',
        "a yes would hold for later calls too",
        (f"{INBOX}::test_what_is_offered_for_later_calls_counts_only_if_it_is_ticked",),
    ),
    Mutant(
        "console.decided-on-a-cut",
        APPROVALS,
        "shown_call",
        "whole=True",
        "whole=False",
        "a person would decide on a call of which the end is not shown",
        (f"{INBOX}::test_nothing_that_a_person_decides_on_is_cut",),
    ),
    Mutant(
        "console.undo-of-anything",
        ACTIONS,
        "undo_run",
        'call.field("shown") != undo_hash(undo)',
        "False",
        "other files would be put back than those that were shown",
        (f"{RUNS}::test_changes_are_taken_back_as_they_were_shown",),
    ),
    Mutant(
        "console.recorded-runs-for-everybody",
        RECORDS,
        "_find",
        "error.code not in UNKNOWN_CODES or not call.token.all_users",
        "error.code not in UNKNOWN_CODES",
        "a user would see runs of the journal that belong to others",
        (f"{RUNS}::test_nobody_sees_the_runs_of_others",),
    ),
    Mutant(
        "console.any-part",
        RECORDS,
        "_part_of",
        "part not in known",
        "False",
        "a part in the address would open the run of somebody else",
        (f"{RUNS}::test_nobody_sees_the_runs_of_others",),
    ),
    Mutant(
        "console.stream-outlives-the-session",
        STREAM,
        "is_signed_in",
        "call.request.app.state.sessions.is_open(call.session)",
        "True",
        "a page would be kept up to date for whoever has signed out",
        (f"{RUNS}::test_a_stream_ends_with_the_session",),
    ),
    Mutant(
        "console.message-of-a-text",
        STREAM,
        "stream_message",
        '.replace("\\r", "\\n")',
        "",
        "a carriage return in a text would begin another field of the stream",
        (f"{SHOWN}::test_no_text_ends_a_message_of_a_stream_or_begins_a_field",),
    ),
    Mutant(
        "console.unknown-labels-trusted",
        VALUES,
        "read_labels",
        "except LabelError:\n        return UNKNOWN",
        "except LabelError:\n        return Label()",
        "a value with broken labels would be shown as the plan's own",
        (f"{SHOWN}::test_a_value_without_a_label_that_can_be_read_counts_as_untrusted",),
    ),
    Mutant(
        "console.changed-draft-runs",
        DRAFTS,
        "Draft.is_unchanged",
        "text.strip() == self.planned.source.strip()",
        "bool(text)",
        "a plan would run that is not the one on the screen",
        (f"{WRITE}::test_a_changed_plan_never_runs_as_that_of_the_model",),
    ),
    Mutant(
        "console.drafts-of-others",
        DRAFTS,
        "Drafts.find",
        "draft is not None and draft.session == session",
        "draft is not None",
        "a draft would run for somebody who never saw it",
        (f"{WRITE}::test_drafts_belong_to_their_session_and_are_bounded",),
    ),
    Mutant(
        "console.draft-without-its-request",
        ASK,
        "run_plan",
        "Submission(planned=_own_draft(call).planned, user=user)",
        "Submission(plan=_own_draft(call).planned.plan, user=user)",
        "the constants of a model's plan would count as the person's own",
        (f"{WRITE}::test_a_plan_runs_as_it_was_shown_and_for_its_request",),
    ),
    Mutant(
        "console.whoever-sees-starts-servers",
        ASKING,
        "",
        'ask_servers, "run", method="POST"',
        'ask_servers, "see", method="POST"',
        "a token that only sees would start programs",
        (f"{OPERATE}::test_only_a_token_for_all_users_that_may_run_asks_servers",),
    ),
    Mutant(
        "console.one-user-starts-servers",
        ASKING,
        "ask_servers",
        "require_all_users(call)",
        "pass",
        "a token for one user would start the servers of all",
        (f"{OPERATE}::test_only_a_token_for_all_users_that_may_run_asks_servers",),
    ),
    Mutant(
        "console.servers-asked-side-by-side",
        ASKING,
        "ask_servers",
        "operations.round is not None and operations.round.ended is None",
        "False",
        "each click would start all servers once more",
        (f"{OPERATE}::test_servers_are_asked_once_at_a_time_and_not_beyond_the_end_of_this_one",),
    ),
    Mutant(
        "console.not-asked-as-reviewed",
        SERVERS,
        "ShownServer.is_compared",
        'self.kind == "openapi" or (',
        "True or (",
        "a server that nobody has asked would be said to be as it was reviewed",
        (f"{OPERATE}::test_what_a_server_has_changed_is_shown_once_it_was_asked",),
    ),
)
