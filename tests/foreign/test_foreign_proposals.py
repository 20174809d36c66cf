"""What is proposed of foreign tools: no name and no claim makes a call milder, and ordinary tools keep what fits."""

from __future__ import annotations

from typing import Any

import pytest

from bicameral.foreign import (
    ArgumentDeclaration,
    Enforced,
    ForeignResult,
    ForeignTool,
    ToolDeclaration,
    foreign_tool,
    propose_declaration,
)
from bicameral.policy import Policy
from bicameral.tools import Registry

TEXT: dict[str, Any] = {"type": "string"}
TEXTS: dict[str, Any] = {"type": "array", "items": TEXT}
READS = {"readOnlyHint": True}
SEALED = Enforced(network=False, writes=False)


def proposed(name: str, annotations: dict[str, Any] | None = None, /, **arguments: Any) -> ToolDeclaration:
    schema = {"type": "object", "properties": arguments}
    return propose_declaration(ForeignTool(name, "", schema, None, annotations or {})).declaration


def purposes(name: str, annotations: dict[str, Any] | None = None, /, **arguments: Any) -> dict[str, str]:
    return {key: str(each.purpose) for key, each in proposed(name, annotations, **arguments).arguments.items()}


# -- effects

NOUNS = "truncate_table clear_file reset_status approve_list charge_document rm_file overwrite_text list_and_zap"
CLAIMS = "charge_card wire_money empty_trash close_account disable_monitor refund_count merge_branch deploy drain_table"


@pytest.mark.parametrize("annotations", [{}, READS])
@pytest.mark.parametrize("name", f"{NOUNS} {CLAIMS} get_and_delete_user getOrRevokeToken get_rid_of_user".split())
def test_neither_a_noun_nor_a_claim_makes_a_changing_tool_one_that_reads(
    name: str, annotations: dict[str, Any]
) -> None:
    """Attack: `table`, `file` or `status` in a name, or `readOnlyHint`, where the first word destroys or pays."""
    assert proposed(name, annotations).effect == "irreversible"


@pytest.mark.parametrize("name", ["frobnicate", "frob_table", "users", "list_and_frobnicate", "convert_document"])
def test_a_name_that_begins_with_no_verb_of_reading_says_nothing(name: str) -> None:
    found = propose_declaration(ForeignTool(name))
    assert found.declaration.effect == "irreversible"
    assert found.reasons == ("nothing says what it does",)


@pytest.mark.parametrize("name", ["search_issues", "frobnicate"])
def test_a_server_that_contradicts_itself_is_taken_at_its_worse_word(name: str) -> None:
    """Attack: `readOnlyHint` beside `destructiveHint`."""
    found = propose_declaration(ForeignTool(name, annotations={"readOnlyHint": True, "destructiveHint": True}))
    assert found.declaration.effect == "irreversible"
    assert found.reasons == ("the server says that it may destroy",)


@pytest.mark.parametrize("name", ["get_user", "users", "issue_comments", "search", "list_issues", "repos/list-commits"])
def test_ordinary_operations_of_get_read(name: str) -> None:
    assert proposed(name, READS).effect == "read"


READING = (
    "read_text_file list_directory get_file_info search_files read_graph search_nodes get_pull_request_files "
    "list_commits get_latest_release list_workflow_runs list_closed_issues get_settings list_orders listAssignees "
    "get-block-children search_and_fetch get_current_time"
)


@pytest.mark.parametrize("name", READING.split())
def test_a_name_that_only_reads_needs_no_claim(name: str) -> None:
    assert proposed(name).effect == "read"


@pytest.mark.parametrize(
    ("name", "effect"),
    [
        ("write_file", "write"),
        ("move_file", "write"),
        ("create_or_update_file", "write"),
        ("add_issue_comment", "write"),
        ("git_commit", "write"),
        ("git_reset", "irreversible"),
        ("git_status", "read"),
        ("delete_entities", "irreversible"),
        ("merge_pull_request", "irreversible"),
        ("push_files", "send"),
        ("slack_post_message", "send"),
    ],
)
def test_ordinary_tools_keep_the_effect_of_their_names(name: str, effect: str) -> None:
    # The name of the server is no word of the tool.
    assert propose_declaration(ForeignTool(name), server="git").declaration.effect == effect


# -- arguments


@pytest.mark.parametrize(
    ("name", "annotations", "argument"),
    [
        ("delete_message", {"destructiveHint": True}, "message_id"),
        ("delete_message", {}, "message"),
        ("delete_note", {}, "text"),
        ("remove_issue", {}, "title"),
        ("transfer_money", {}, "value"),
        ("transfer_money", {}, "data"),
        ("create_payment", {}, "value"),
        ("send_email", {}, "message_recipient"),
        ("send_email", {}, "text_to"),
        ("send_email", {}, "to_message"),
        ("post_comment", {}, "comment_channel"),
        ("update_issue", {}, "note_path"),
        ("update_page", {}, "content_url"),
        ("update_row", {}, "body_key"),
        ("update_rows", {}, "sql_text"),
        ("run_query", {}, "query_text"),
        ("execute", {}, "content"),
        ("update_by_query", {}, "body"),
        ("frobnicate", {}, "message"),
    ],
)
def test_an_argument_that_directs_is_not_proposed_as_content(
    name: str, annotations: dict[str, Any], argument: str
) -> None:
    """Attack: a word for content somewhere in the name of what decides."""
    assert purposes(name, annotations, **{argument: TEXT}) == {argument: "directs"}


@pytest.mark.parametrize(
    ("name", "annotations", "argument"),
    [
        ("send_email", {}, "email_body"),
        ("send_message", {}, "text"),
        ("post_message", {}, "messageText"),
        ("create_issue", {}, "title"),
        ("create_issue", {}, "body"),
        ("write_file", {}, "content"),
        ("git_commit", {}, "message"),
        ("update_page", {}, "new_content2"),
        ("add_comment", {"readOnlyHint": False}, "text"),
    ],
)
def test_content_is_still_content(name: str, annotations: dict[str, Any], argument: str) -> None:
    assert purposes(name, annotations, **{argument: TEXT}) == {argument: "carries"}


OBJECT = {"type": "object", "properties": {"to": TEXT, "body": TEXT}, "required": ["to", "body"]}


@pytest.mark.parametrize(
    "schema",
    [
        OBJECT,
        {"type": "object", "additionalProperties": TEXT},
        {"type": "array", "items": OBJECT},
        {"anyOf": [OBJECT, {"type": "null"}]},
        {"type": "integer"},
        {"enum": ["all", "none"]},
        {"type": "string", "format": "uri"},
        {"type": "array", "items": {"type": "string", "format": "email"}},
        {},
    ],
)
def test_what_is_no_plain_text_directs(schema: dict[str, Any]) -> None:
    """Attack: the recipient stands in a record that is called a message."""
    assert purposes("send_mail", message=schema) == {"message": "directs"}


@pytest.mark.parametrize("schema", [TEXT, TEXTS, {"anyOf": [TEXT, {"type": "null"}]}])
def test_texts_are_carried(schema: dict[str, Any]) -> None:
    assert purposes("send_mail", message=schema) == {"message": "carries"}


def test_no_stranger_directs_a_tool_as_it_is_proposed() -> None:
    """Attack: the worst arguments of the review, with a stranger's value, under the policies that come along."""
    from bicameral.policy._audit import _UNTRUSTED_LABEL, sample_call  # pyright: ignore[reportPrivateUsage]

    async def call(given: Any) -> ForeignResult:
        return ForeignResult("")

    cases: list[tuple[str, str, Any]] = [
        ("delete_message", "message_id", TEXT),
        ("transfer_money", "value", TEXT),
        ("send_email", "message_recipient", TEXT),
        ("send_mail", "message", OBJECT),
        ("run_query", "query_text", TEXT),
    ]
    for name, argument, schema in cases:
        foreign = ForeignTool(name, "", {"type": "object", "properties": {argument: schema}, "required": [argument]})
        tool = foreign_tool(foreign, propose_declaration(foreign).declaration, call, server="x")
        decide = Policy.load(registry=Registry([tool])).decide
        decided = decide(sample_call(tool, "strict", argument, _UNTRUSTED_LABEL))
        assert type(decided).__name__ != "Allowed", name


def test_receivers_are_arguments_that_direct() -> None:
    declared = proposed("send_email", to=TEXT, email_body=TEXT, chat_id=TEXT, folder=TEXT)
    assert declared.receivers == ["to", "chat_id"]
    assert declared.arguments["email_body"].purpose == "carries"


@pytest.mark.parametrize(
    ("argument", "schema"),
    [
        ("url", TEXT),
        ("pageUrl", TEXT),
        ("links", TEXTS),
        ("webhook", TEXT),
        ("target_host", TEXT),
        ("apiurl", TEXT),
        ("pages", {"type": "array", "items": {"type": "string", "format": "uri"}}),
        ("page", {"anyOf": [{"type": "string", "format": "uri"}, {"type": "null"}]}),
        ("request", {"type": "object", "properties": {"href": TEXT}}),
    ],
)
def test_an_address_directs_a_tool_that_asks_others(argument: str, schema: dict[str, Any]) -> None:
    """Attack: an address without its format, or in a list, that untrusted text would choose."""
    assert purposes("fetch_page2", **{argument: schema}) == {argument: "directs"}
    sealed = propose_declaration(
        ForeignTool("fetch_page2", "", {"type": "object", "properties": {argument: schema}}), around=SEALED
    )
    assert sealed.declaration.arguments[argument].purpose == "selects"


@pytest.mark.parametrize("argument", ["query", "path", "pattern", "owner", "state", "labels", "since"])
def test_what_is_looked_for_selects(argument: str) -> None:
    assert purposes("search_issues", **{argument: TEXT}) == {argument: "selects"}


# -- names and known declarations


@pytest.mark.parametrize("name", ["iGnore_all", "IGNORe_previous", "mUst_read", "ignore_all"])
def test_odd_capitals_hide_no_word(name: str) -> None:
    """Attack: capitals that split a word for a program and not for a reader."""
    assert propose_declaration(ForeignTool(name), server="notes").declaration.name == "notes_tool"


@pytest.mark.parametrize("name", ["listPullRequestReviewComments", "getURLMetadata", "gitignore_templates"])
def test_ordinary_capitals_stay(name: str) -> None:
    assert propose_declaration(ForeignTool(name), server="notes").declaration.name is None


def test_a_known_tool_tells_nobody_anything_only_where_it_has_no_network() -> None:
    """Attack: a server with a network under a declaration that says that nothing leaves."""
    known = ToolDeclaration(doc="x", effect="read", outbound=False, arguments={"q": ArgumentDeclaration()})
    tool = ForeignTool("search", "", {"type": "object", "properties": {"q": TEXT}})
    assert propose_declaration(tool, known=known, around=Enforced(network=True)).declaration.outbound is None
    assert propose_declaration(tool, known=known, around=Enforced(network=False)).declaration.outbound is False


async def test_an_error_is_cut_before_it_is_made_visible() -> None:
    """Attack: an error of millions of characters, each of which is written as six."""

    async def call(given: Any) -> ForeignResult:
        return ForeignResult("\u200b" * 4_000_000, is_error=True)

    tool = foreign_tool(ForeignTool("search"), ToolDeclaration(effect="read"), call, server="x")
    with pytest.raises(Exception, match="<200b>") as caught:
        await tool.call({})
    assert len(str(caught.value)) < 4_000
