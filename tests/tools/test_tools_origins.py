"""Where results come from: what can be declared, what fails closed, and what no result can change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from bicameral.errors import ToolError
from bicameral.labels import NOTHING, PUBLIC, Label, LabelTree, ListLabels, RecordLabels, Source, covers
from bicameral.tools import Origin, Participants, Registry, Tool, principals, tool
from bicameral.types import STR, AnyType, DictType, Field, RecordType, Type

STRANGER, SERVICE = Origin("third_party"), Origin("system")


@dataclass(frozen=True)
class Letter:
    id: str
    status: str
    sender: str
    to: list[str]
    body: str


SEEN_BY = Participants(("sender", "to"))


@tool(effect="read", origins={"": STRANGER, "[]": Origin("third_party", SEEN_BY), "[].id": SERVICE})
def letters(about: str = "") -> list[Letter]:
    """Letters."""
    return []


def letter(**facts: Any) -> dict[str, Any]:
    return {"id": "1", "status": "new", "sender": "ann@example.com", "to": ["me@example.com"], "body": "x"} | facts


def made(result: Type, origins: Mapping[str, Origin], **facts: Any) -> Tool:
    async def run(arguments: Mapping[str, Any]) -> object:
        return None

    return Tool("made", "", (), result, "read", run, origins=origins, **facts)


def label(trust: Any, part: str, readers: Any = ("user",), name: str = "letters") -> Label:
    return Label({Source(trust, name, part, "0")}, readers)


def flat(shade: LabelTree) -> Label:
    return shade.flat


# What counts for a part


def test_each_part_has_the_origin_that_is_declared_nearest_around_it() -> None:
    shade = letters.result_labels(None, "0")
    assert isinstance(shade, ListLabels)
    assert shade.own is label("third_party", "")
    assert isinstance(shade.item, RecordLabels)
    assert shade.item.field("id") is label("system", "[].id")
    assert shade.item.field("body") is label("third_party", "[].body")
    assert shade.item.field("no such field") is label("third_party", "[]")


def test_readers_are_those_whom_every_item_names() -> None:
    both = [letter(), letter(sender="Bob@Example.com", to=["me@example.com", "ann@example.com"])]
    shade = letters.result_labels(both, "0")
    assert shade.item.field("body") is label("third_party", "[].body", ("ann@example.com", "me@example.com"))
    # What is not said to be the participants' is not theirs.
    assert shade.item.field("id").flat.readers == {"user"}
    assert shade.own.readers == {"user"}


@pytest.mark.parametrize("value", [None, [], [letter(sender="", to=[])], [letter(to=["x" * 400], sender=" ")]])
def test_where_nobody_is_named_the_user_alone_may_read(value: Any) -> None:
    assert flat(letters.result_labels(value, "0").item.field("body")).readers == {"user"}


def test_the_keys_of_a_dict_can_name_readers_and_what_stands_under_them_cannot() -> None:
    document = RecordType((Field("owner", STR), Field("shared_with", DictType(STR)), Field("text", STR)))
    reads = made(document, {"text": Origin("third_party", Participants(("owner", "shared_with")))})
    value = {"owner": "me@example.com", "shared_with": {"Ann@example.com": "eve@example.com"}, "text": "x"}
    assert reads.result_labels(value, "0").field("text").flat.readers == {"ann@example.com", "me@example.com", "user"}
    assert reads.result_labels(None, "0").field("text").flat.readers == {"user"}
    # An argument that is a dict names nobody: nothing is sent to the keys of one.
    assert principals({"ann@example.com": "r"}) == frozenset()


def test_a_record_that_names_a_whole_crowd_names_nobody() -> None:
    crowd = letter(to=[f"{number}@example.com" for number in range(1001)])
    assert flat(letters.result_labels([crowd], "0").item.field("body")).readers == {"user"}


def test_a_result_can_be_the_users_own_by_the_word_of_the_service() -> None:
    sent = Origin("third_party", SEEN_BY, own_when=("status", "sent"))
    declared = replace(letters, origins={"": STRANGER, "[].body": sent, "[].status": SERVICE})
    mine = declared.result_labels([letter(status="sent"), letter(status="sent")], "0")
    assert mine.item.field("body").flat.sources == {Source("user", "letters", "[].body", "0")}
    mixed = declared.result_labels([letter(status="sent"), letter()], "0")
    assert not mixed.item.field("body").flat.trusted
    assert not declared.result_labels(None, "0").item.field("body").flat.trusted
    assert not declared.result_labels([], "0").item.field("body").flat.trusted


def test_a_dict_tells_its_values_from_its_keys() -> None:
    shade = made(DictType(STR), {"": SERVICE, "*": STRANGER, "total": SERVICE}).result_labels({"a": "b"}, "0")
    assert isinstance(shade, RecordLabels)
    assert shade.own is label("system", "", name="made")
    assert shade.field("a") is label("third_party", "*", name="made")
    assert shade.field("total") is label("system", "total", name="made")


def test_public_is_public() -> None:
    assert flat(made(STR, {"": Origin("system", "public")}).result_labels("x", "0")).readers is PUBLIC


# Failing closed


def test_a_tool_that_declares_nothing_is_taken_for_the_worst() -> None:
    @tool
    def silent(where: str, what: str = "") -> dict[str, str]:
        return {}

    assert (silent.declared, silent.outbound, silent.receivers) == (False, True, ("where", "what"))
    assert {each.purpose for each in silent.arguments} == {"directs"}
    assert silent.result_labels({"user": "system"}, "0") is Label(
        {Source("third_party", "silent", "", "0")}, frozenset({"user"})
    )


def test_what_a_tool_declares_counts_for_nothing_where_it_is_not_to_be_believed() -> None:
    known = made(STR, {"": Origin("user", "public")})
    assert known.result_labels("x", "0").flat.trusted
    assert replace(known, declared=False).result_labels("x", "0") is label("third_party", "", name="made")


def test_a_read_that_declares_nothing_may_reach_out_so_its_arguments_direct_it() -> None:
    @tool(effect="read")
    def lookup(word: str) -> str:
        return word

    assert (lookup.declared, lookup.outbound, lookup.arguments[0].purpose) == (False, True, "directs")

    @tool(effect="read", origins=SERVICE)
    def known(word: str) -> str:
        return word

    assert (known.declared, known.outbound, known.arguments[0].purpose) == (True, False, "selects")


def test_what_a_tool_leaves_out_is_taken_for_the_worst_though_it_says_something() -> None:
    @tool(effect="send", purpose={"body": "carries"})
    def post(to: str, body: str) -> str:
        return ""

    assert (post.declared, post.outbound, post.receivers) == (True, True, ("to",))
    assert not post.result_labels("ok", "0").flat.trusted

    @tool(effect="read", origins={"name": SERVICE})
    def person() -> dict[str, str]:
        return {}

    assert not person.result_labels({}, "0").field("born").flat.trusted
    assert person.result_labels({}, "0").field("name").flat.trusted


def test_an_outbound_read_is_directed_by_what_it_is_asked() -> None:
    @tool(effect="read", outbound=True, origins=STRANGER)
    def fetch(url: str) -> str:
        return ""

    assert fetch.arguments[0].purpose == "directs"


def test_a_pure_tool_has_no_origin_of_its_own() -> None:
    @tool(effect="pure")
    def shout(text: str) -> str:
        return text

    assert (shout.declared, shout.outbound) == (True, False)
    assert shout.result_labels("x", "0") is NOTHING
    secret = label("third_party", "[].body", ("ann@example.com",))
    assert shout.call_labels({"text": secret}, "X", "1") is secret


def test_what_a_call_is_given_counts_for_what_it_gives() -> None:
    @tool(effect="read", origins=Origin("system", "public"))
    def balance(account: str) -> int:
        return 0

    asked = label("third_party", "[].body", ("ann@example.com",))
    given = balance.call_labels({"account": asked}, 5, "3").flat
    assert given.sources == {*asked.sources, Source("system", "balance", "", "3")}
    assert given.readers == {"ann@example.com", "user"}


def test_a_tool_that_keeps_items_keeps_their_parts() -> None:
    @tool(effect="pure", keeps="rows")
    def some(rows: list[Letter], word: str) -> list[Letter]:
        return rows

    rows = letters.result_labels([letter()], "0")
    word = label("third_party", "", name="web")
    kept = some.call_labels({"rows": rows, "word": word}, [letter()], "1")
    assert isinstance(kept, ListLabels)
    assert kept.item is rows.item
    assert kept.own.sources >= rows.flat.sources | word.sources


def test_a_tool_with_another_effect_or_origins_cannot_keep_items() -> None:
    for options in ({"effect": "read"}, {"effect": "pure", "origins": SERVICE}):

        def some(rows: list[str]) -> list[str]:
            return rows

        with pytest.raises(ToolError) as caught:
            tool(keeps="rows", **options)(some)  # pyright: ignore
        assert caught.value.code == "tools.bad-origins"


# Bad declarations

BAD: list[tuple[Any, str, str | None]] = [
    ({"[].sendr": SERVICE}, "has no part 'sendr'", "sender"),
    ({"sender": SERVICE}, "the result has no part 'sender'", None),
    ({"[].sender.name": SERVICE}, "is str and has no parts", None),
    ({"[].to[].name": SERVICE}, "is str and has no parts", None),
    ({"*": SERVICE}, "has no part '*'", None),
    ({".sender": SERVICE}, "is not a part", None),
    ({"[]sender": SERVICE}, "is not a part", None),
    ({"[": SERVICE}, "is not a part", None),
    ({5: SERVICE}, "is not text", None),
    ({"": "system"}, "is not an Origin", None),
    ({"": Origin("sytem")}, "is no trust", "system"),  # pyright: ignore
    ({"": Origin("system", "everyone")}, "are no readers", None),  # pyright: ignore
    ({"[].body": Origin("system", Participants(("sendr",)))}, "no field 'sendr' beside it", "sender"),
    ({"[].body": Origin("system", Participants(()))}, "names no participants", None),
    ({"[].body": Origin("system", Participants("sender"))}, "names no participants", None),  # pyright: ignore
    ({"": Origin("system", Participants(("sendr",)))}, "no field 'sendr' beside it", "sender"),
    ({"[].id": Origin("third_party", fresh=True)}, "is fresh", None),
    ({"[]": Origin("system", fresh=True)}, "is fresh", None),
    ({"[].body": Origin("third_party", own_when=("stats", "sent"))}, "no field 'stats'", "status"),
    ({"[].body": Origin("third_party", own_when=("status", "sent"))}, "a stranger's word", None),
    ([STRANGER], "is not a mapping", None),
]


@pytest.mark.parametrize(("origins", "says", "meant"), BAD)
def test_a_bad_declaration_is_refused_and_explained(origins: Any, says: str, meant: str | None) -> None:
    def listing() -> list[Letter]:
        return []

    with pytest.raises(ToolError) as caught:
        tool(effect="read", origins=origins)(listing)
    error = caught.value
    assert error.code == "tools.bad-origins"
    assert says in error.message
    assert "listing" in error.message
    assert error.nearest == meant
    assert error.expected


def test_nothing_can_be_said_of_what_is_inside_anything() -> None:
    with pytest.raises(ToolError, match="nothing is known of what is inside the result"):
        made(AnyType(), {"[].x": SERVICE})
    with pytest.raises(ToolError, match="names nobody"):
        made(RecordType((Field("n", RecordType(())), Field("x", STR))), {"x": Origin("system", Participants(("n",)))})


def test_a_receiver_or_kept_argument_that_is_not_there_is_refused() -> None:
    def post(to: str) -> None: ...

    for options in ({"receivers": ("too",)}, {"keeps": "too"}):
        with pytest.raises(ToolError) as caught:
            tool(effect="send", **options)(post)  # pyright: ignore
        assert (caught.value.code, caught.value.nearest) == ("tools.unknown-argument", "to")


@pytest.mark.parametrize("name", ["request", "extract", "endorsed", "ask", "unknown"])
def test_no_tool_can_be_named_like_what_the_runtime_brings_in(name: str) -> None:
    with pytest.raises(ToolError, match="runtime"):
        Registry([replace(letters, name=name)])


# What is declared is part of the tool


def test_declarations_are_described_and_fingerprinted() -> None:
    told = letters.describe()
    assert told["declared"] is True
    assert told["outbound"] is False
    assert told["origins"]["[]"] == {"trust": "third_party", "readers": ["sender", "to"]}
    others = [
        replace(letters, origins={**letters.origins, "[].id": STRANGER}),
        replace(letters, outbound=True),
        replace(letters, receivers=("about",)),
        replace(letters, hosts=("example.com",)),
        replace(letters, declared=False),
    ]
    assert len({each.fingerprint for each in (letters, *others)}) == len(others) + 1


def test_declarations_cannot_be_changed_afterwards() -> None:
    origins = {"": STRANGER}
    declared = made(STR, origins)
    origins[""] = SERVICE
    assert declared.origins[""] is STRANGER
    with pytest.raises(TypeError):
        declared.origins[""] = SERVICE  # pyright: ignore


# The user's own


def test_a_result_is_the_users_own_only_where_the_tool_is_sure() -> None:
    def listing(answer: Any) -> Tool:
        def owned(arguments: Mapping[str, Any]) -> bool:
            return answer(arguments["path"])

        return made(STR, {"": STRANGER}, owned=owned)

    def only_mine(path: str) -> bool:
        return path == "mine"

    sure = listing(only_mine)
    assert sure.result_labels("x", "0", arguments={"path": "mine"}).flat.trusted
    assert sure.result_labels(None, "0", arguments={"path": "mine"}).flat.trusted
    for arguments in ({"path": "theirs"}, {}, None):
        assert not sure.result_labels("x", "0", arguments=arguments).flat.trusted
    for answer in (len, str.upper, str.isdigit, int):
        assert not listing(answer).result_labels("x", "0", arguments={"path": "mine"}).flat.trusted


# Hostile results


class Liar(str):
    """A text that says of itself whatever is asked."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash("sent")

    def lower(self) -> str:
        return "eve@example.com"

    def strip(self, chars: str | None = None) -> str:
        return "eve@example.com"


def test_no_result_can_say_of_itself_that_the_user_wrote_it_or_that_others_may_read_it() -> None:
    sent = Origin("third_party", SEEN_BY, own_when=("status", "sent"))
    declared = replace(letters, origins={"": STRANGER, "[].body": sent, "[].status": SERVICE})
    forged = letter(status=Liar("new"), sender=Liar("ann@example.com"), to=[Liar("x")])
    assert declared.result_labels([forged], "0").item.field("body") is label("third_party", "[].body")
    # Nor by spelling a label.
    spelled = letter(body='Label({Source("user", "request")}, PUBLIC)', sender="PUBLIC", to=["public", "*"])
    assert declared.result_labels([spelled], "0").item.field("body").flat.readers == {"public", "*", "user"}


def deep(levels: int) -> Any:
    return [deep(levels - 1)] if levels else []


@pytest.mark.parametrize(
    "value", [5, "x", {"x": deep(60)}, [deep(60)], [None], [5, "x"], [{}], [{"to": {"a": 1}}], True]
)
def test_a_value_of_another_shape_is_shaded_as_if_nothing_was_known_of_it(value: Any) -> None:
    assert covers(letters.result_labels(None, "0"), letters.result_labels(value, "0"))
    assert flat(letters.result_labels(value, "0").item.field("body")).readers == {"user"}


@given(st.text() | st.integers() | st.lists(st.text() | st.none() | st.floats()) | st.none())
def test_principals_are_found_in_whatever_comes(value: Any) -> None:
    found = principals(value)
    assert all(type(name) is str and name == name.strip() and len(name) <= 320 for name in found)
    assert principals(sorted(found)) == found


def test_two_names_that_differ_only_in_plain_capitals_are_one() -> None:
    assert principals([" Ann@Example.COM ", "ann@example.com"]) == {"ann@example.com"}
    # The Kelvin sign is no K, though its small letter is a k.
    assert principals("\u212aate@example.com") != principals("kate@example.com")
