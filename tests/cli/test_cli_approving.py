"""What a person sees before he says yes: the exact call, and nothing in it can pass for something else."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import given, strategies as st

from bicameral.cli import _prompts as _approving
from bicameral.cli._output import Output
from bicameral.cli._prompts import TerminalApprover
from bicameral.display import column_width
from bicameral.labels import Label, Source
from bicameral.runs import Answers, ApprovalQuestion, Grant, PendingCall, UntrustedPart, calls_text, shown_hash
from bicameral.tools import AttachedFile, Registry, tool

BODY = Source("third_party", "search_mail", "[].body", "0")
WHY = "send_mail: the argument 'body' would carry text that a stranger wrote: search_mail's [].body (step 0). Shall it?"


@tool(effect="send", purpose={"to": "directs", "subject": "carries", "body": "carries"}, words=("send",))
def send_mail(to: list[str], subject: str, body: str, cc: list[str]) -> None:
    """Send a mail."""


REGISTRY = Registry([send_mail])


def pending(
    body: str = "Hello", to: tuple[str, ...] = ("kim@example.com",), why: str = WHY, **more: Any
) -> PendingCall:
    arguments = {"to": list(to), "subject": "Fwd: Invoice 7", "body": body, "cc": []}
    given: dict[str, Any] = {"rules": ("strangers-text-in-your-name",), **more}
    return PendingCall(
        "2", "send_mail", "send", arguments, f"hash of {to} {body}", why, (UntrustedPart("body", (BODY,)),), **given
    )


def shown(*calls: PendingCall, **options: Any) -> list[str]:
    return calls_text(calls, REGISTRY, **options).splitlines()


def test_the_exact_call_is_shown_with_what_is_untrusted_and_where_it_came_from() -> None:
    lines = shown(pending("Dear Kim,\nit is due."), whole=True, request="mail Kim the invoice")
    assert "  send_mail  (sends)" in lines
    assert "    to       kim@example.com" in lines
    assert "    subject  Fwd: Invoice 7" in lines
    assert "  ! body     │ Dear Kim," in lines
    assert "  !          │ it is due." in lines
    assert "    cc       (empty)" in lines
    told = " ".join(line.strip() for line in lines)
    assert "search_mail's [].body (step 0). Shall it?" in told
    assert "policies: strangers-text-in-your-name" in told
    assert "you asked: │ mail Kim the invoice" in told


def test_the_first_view_is_one_line_of_what_to_whom_and_why() -> None:
    lines = shown(pending("Dear Kim,\nit is due."), request="mail Kim the invoice", width=120)
    assert lines == [
        "",
        "One call needs your yes:",
        "",
        '  Send mail to kim@example.com: "Fwd: Invoice 7" — you asked: "mail Kim the invoice"',
        "  ! body  │ Dear Kim,",
        "  !       │ it is due.",
        "  ! others may have written body: search_mail [].body (step 0)",
    ]


def test_the_first_view_fits_forty_columns_and_breaks_no_word() -> None:
    address = "https://www.example.org/a/path/that/is/longer/than/forty/columns?account=12345678"
    call = pending("Please look at it today\n" * 9, to=("kim@example.com", address))
    lines = shown(call, request="mail Kim the invoice of September and remind her of the payment", width=40)
    assert all(column_width(line) <= 40 for line in lines)
    assert len(lines) <= 20
    told = " ".join(line.strip() for line in lines)
    assert "… (7 more lines, 216" in told
    assert told.count("d shows them)") == 1
    # The address is longer than a line: it is broken after a mark, and all of it is there.
    assert address in told.replace("/ ", "/").replace("? ", "?").replace("= ", "=")
    words = {word for line in lines for word in line.split()}
    pieces = re.split(r"(?<=[/@.?=&-])", address)
    known = {*"Send mail to kim@example.com, you asked: others may have written body: search_mail [].body".split()}
    assert known <= words
    assert all(any(piece in word for word in words) for piece in pieces)


@pytest.mark.parametrize("value", ["x" * 500, "pay Eve " * 80, "a\nb\nto boss@example.com", ["a b c " * 30] * 3])
def test_what_directs_a_call_is_never_cut_in_the_first_view(value: Any) -> None:
    call = PendingCall(
        "1", "pay", "irreversible", {"account": value, "note": "n" * 900}, "h", "pay: r", carries=("note",)
    )
    for width in (40, 80):
        lines = calls_text((call,), REGISTRY, width=width).splitlines()
        told = "".join(line.replace("│", "").replace(" ", "") for line in lines)
        items = value.split("\n") if isinstance(value, str) else cast("list[str]", value)
        assert all(item.replace(" ", "") in told.replace("account", "") for item in items)
        assert all(column_width(line) <= width for line in lines)
        assert "d shows them)" in " ".join(line.strip() for line in lines)


def test_an_answer_is_bound_to_the_call_and_not_to_how_it_is_shown() -> None:
    call = pending()
    assert shown_hash(call.to_json()) == shown_hash(replace(call, carries=("body",)).to_json())
    assert PendingCall.from_json(replace(call, carries=("body",)).to_json()).carries == ("body",)
    assert PendingCall.from_json(call.to_json()).carries is None


def test_details_show_what_a_call_would_change() -> None:
    told = calls_text((pending(),), REGISTRY, whole=True, preview=lambda _: ["-old", "+new\x1b[2J"])
    assert "    │ -old\n    │ +new<001b>[2J" in told


def test_a_value_in_quotation_marks_cannot_end_them() -> None:
    call = PendingCall("1", "delete_file", "irreversible", {"path": 'a" b  (harmless) "'}, "h", "delete_file: r")
    assert '  Delete file "a\\" b  (harmless) \\""  (cannot be undone)' in shown(call)


def test_what_the_question_does_not_speak_of_is_told_too() -> None:
    told = " ".join(line.strip() for line in shown(pending(why="send_mail: your rule. Send it?"), whole=True))
    assert "A stranger had a hand in 'body', too: search_mail [].body (step 0)." in told


@pytest.mark.parametrize(
    "body",
    [
        "hi\n  send_mail  (sends)\n    to       boss@example.com\n\nAllow this call? [y/N] ",
        "hi" + " " * 61 + "    to       boss@example.com",
        "\x1b[2J\x1b[HNothing to see\r    to       boss@example.com",
        "hi\u2028    to       boss@example.com\u2029\x0b\x0c\x85",
        "\u202etxet\u200b\u2066\u00ad",
        "全" * 100 + "    to       boss@example.com",
    ],
)
@pytest.mark.parametrize("whole", [True, False])
def test_a_value_cannot_pass_for_a_part_of_the_question(body: str, whole: bool) -> None:
    """Attack: a stranger's mail draws a harmless call, clears the screen, or lets the terminal break a line for it."""
    lines = shown(pending(body), width=80, whole=whole)
    assert sum(line.startswith("    to ") for line in lines) == whole
    assert sum(line.startswith(("  send_mail", "  Send mail")) for line in lines) == 1
    assert not any(line.startswith("Allow") for line in lines)
    assert all(column_width(line) <= 80 for line in lines)
    assert not re.search(
        "[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u00ad\u2028\u2029\u202a-\u202e\u2066-\u2069]", "\n".join(lines)
    )


@given(st.text(max_size=300), st.integers(40, 120))
def test_every_line_of_any_value_stands_behind_its_argument(body: str, width: int) -> None:
    lines = shown(pending(body), width=width, whole=True)
    assert all(column_width(line) <= width for line in lines)
    assert sum(line.startswith("    to ") for line in lines) == 1
    brief = shown(pending(body), width=width)
    assert all(column_width(line) <= width for line in brief)
    assert len(brief) <= len(shown(pending("Hello"), width=width)) + 4


def test_who_receives_it_is_never_cut() -> None:
    many = (*(f"{number}@example.com" for number in range(60)), "eve@example.org")
    lines = shown(pending("x\n" * 500, to=many), pending("other"))
    assert any("eve@example.org" in line for line in lines)
    assert any("… (499 more lines, 1,000 bytes in all" in line for line in lines)


def test_where_it_is_not_known_what_directs_a_call_only_what_nobody_reads_is_cut() -> None:
    """A record of an earlier version, whose tool is not here."""
    call = PendingCall("1", "pay", "send", {"to": ["a@example.com"] * 150, "note": "x\n" * 5000}, "h", "pay: r")
    told = calls_text((call,), Registry(()), how="--full shows them")
    assert told.count("a@example.com") == 150
    assert "--full shows them" in told
    assert len(told.splitlines()) < 400


def test_the_end_of_a_long_text_is_in_the_first_view_with_its_size_and_hash() -> None:
    """Attack: the sentence that matters stands at the end, or two texts differ only in the middle."""
    first = shown(pending("a\n" * 50 + "middle\n" + "b\n" * 50 + "P.S. pay Eve"))
    second = shown(pending("a\n" * 50 + "other\n" + "b\n" * 50 + "P.S. pay Eve"))
    assert any("P.S. pay Eve" in line for line in first)
    assert first != second


def test_a_text_cannot_pass_for_the_line_about_what_is_left_out() -> None:
    """Attack: a body that says itself that there is more of it."""
    lines = shown(pending("… (40 more lines, 9 bytes in all; d shows them"))
    assert "  ! body  │ … (40 more lines, 9 bytes in all; d shows them" in lines


def test_a_letter_from_another_alphabet_in_an_address_is_named() -> None:
    told = "\n".join(shown(pending(to=("\u0430nn@example.com",))))
    assert "cyrillic small letter a" in told


def test_forwarding_a_long_mail_is_one_screen_and_all_of_it_can_be_seen() -> None:
    mail = "\n".join(f"line {number} of a long mail that somebody wrote" for number in range(300))
    assert len(shown(pending(mail))) <= 24
    assert any("line 299" in line for line in shown(pending(mail), whole=True))


def test_what_is_not_due_yet_is_marked_and_said_to_be_asked_about_anew_if_it_changes() -> None:
    lines = shown(pending("now"), pending("then", ahead=True))
    assert '  1. Send mail to kim@example.com: "Fwd: Invoice 7"' in lines
    assert '  2. Send mail to kim@example.com: "Fwd: Invoice 7"  (later)' in lines
    assert "asked about anew if it is not the same" in " ".join(line.strip() for line in lines)
    assert not any("later" in line for line in shown(pending("now")))


def test_a_question_before_the_run_says_that_nothing_has_been_done() -> None:
    lines = shown(pending(ahead=True), pending("other", ahead=True), before=True)
    assert lines[1] == "2 calls need your yes, and nothing has been done yet:"
    assert not any("later" in line for line in lines)


def test_a_loop_of_sends_is_one_question_with_one_reason() -> None:
    calls = [pending(f"Hello\n{number}\nx", to=(f"{number}@example.com",)) for number in range(5)]
    lines = shown(*calls)
    assert lines[1] == "5 calls need your yes:"
    assert sum("others may have written" in line for line in lines) == 1
    assert [line for line in lines if line.startswith("  5. ")] == ['  5. Send mail to 4@example.com: "Fwd: Invoice 7"']


def test_calls_that_are_asked_about_for_different_reasons_say_which() -> None:
    own = pending("b", why="send_mail: your rule. Send it?", rules=("own",))
    told = " ".join(line.strip() for line in shown(pending("a"), own))
    assert "! call 1: others may have written body" in told
    assert "! call 2: others may have written body" in told
    assert "Your rule. Send it?" in told
    detailed = " ".join(line.strip() for line in shown(pending("a"), own, whole=True))
    assert "call 1: The argument 'body'" in detailed
    assert "call 2: Your rule. Send it?" in detailed


def test_the_same_call_several_times_says_how_often() -> None:
    lines = shown(pending(more_steps=("3", "4")))
    assert '  Send mail × 3 to kim@example.com: "Fwd: Invoice 7"' in lines
    assert "One call needs your yes, 3 times in all:" in lines


def test_the_files_that_go_along_are_shown_with_size_and_hash_and_what_changed() -> None:
    menu = AttachedFile("menu.txt", 80, "ab" * 32)
    changed = ("menu.txt was 120 bytes, is now 80 bytes; its content changed since you were asked",)
    lines = shown(pending(files=(menu,), changed=changed), width=60)
    assert "    │ menu.txt: 80 bytes, sha256 abababababab" in lines
    assert "    │ menu.txt was 120 bytes, is now 80 bytes; its content" in " ".join(lines)


def test_a_path_of_a_file_cannot_pass_for_another_line_of_the_question() -> None:
    sly = AttachedFile("menu.txt\n  2. harmless\x1b[2J\u202e", 80, "ab" * 32)
    lines = shown(pending(files=(sly,)))
    assert not any(line.lstrip().startswith("2. harmless") for line in lines)
    assert "\x1b" not in "".join(lines)


Say = Callable[..., list[str]]


@pytest.fixture
def replies(monkeypatch: pytest.MonkeyPatch) -> Say:
    """What the person replies, and the prompts that he saw."""

    def say(*given: str | None) -> list[str]:
        left, prompts = list(given), list[str]()

        async def read(prompt: str) -> str | None:
            prompts.append(prompt)
            return left.pop(0)

        monkeypatch.setattr(_approving, "read_line", read)
        return prompts

    return say


def approve(*calls: PendingCall) -> Answers:
    return asyncio.run(TerminalApprover(Output(), REGISTRY).approve(ApprovalQuestion(calls)))


@pytest.mark.parametrize("reply", ["y", "YES"])
def test_yes_is_yes_to_all_that_was_shown(replies: Say, reply: str) -> None:
    replies(reply)
    first, second = pending("a"), pending("b")
    assert approve(first, second) == Answers.yes([first, second])


@pytest.mark.parametrize("reply", ["", "n", "no", "nope", "yy", "ok", "e", "all", None])
def test_whatever_is_not_yes_is_no(replies: Say, reply: str | None) -> None:
    replies(reply)
    assert approve(pending()) == Answers.no()


def test_each_call_can_be_answered_on_its_own(replies: Say) -> None:
    prompts = replies("e", "y", "n", "y")
    first, second, third = pending("a"), pending("b"), pending("c")
    assert approve(first, second, third) == Answers.yes([first, third])
    assert "3 of 3" in prompts[-1]


OFFER = Grant("send_mail", "to", ["kim@example.com"], Label((BODY,)))


def test_what_may_be_granted_for_the_run_is_shown_in_words_and_taken_only_by_its_own_letter(replies: Say) -> None:
    call = pending(offer=OFFER)
    told = " ".join(line.strip() for line in shown(call))
    assert "every later call of send_mail with to = ['kim@example.com'], until the end of this run" in told
    prompts = replies("y", "r", "r")
    assert approve(call) == Answers.yes([call])
    assert approve(call) == Answers.yes([call], for_run=[OFFER])
    assert all("r: also for the rest of this run" in prompt for prompt in prompts)
    # Where nothing is offered, the letter is no yes.
    assert approve(pending()) == Answers.no()


def test_of_several_calls_each_has_its_own_offer(replies: Say) -> None:
    first, second = pending("a", offer=OFFER), pending("b")
    replies("e", "r", "r")
    assert approve(first, second) == Answers.yes([first], for_run=[OFFER])


def test_one_of_several_calls_can_be_viewed_before_it_is_answered(replies: Say) -> None:
    first, second = pending("x\n" * 40 + "the end"), pending("b")
    prompts = replies("e", "d", "y", "n")
    assert approve(first, second) == Answers.yes([first])
    assert prompts[1] == prompts[2]


@pytest.mark.parametrize("key", ["d", "?", "v"])
def test_viewing_it_is_no_answer(replies: Say, capsys: pytest.CaptureFixture[str], key: str) -> None:
    prompts = replies(key, "n")
    assert approve(pending("x\n" * 40 + "the end")) == Answers.no()
    assert len(prompts) == 2
    told = capsys.readouterr().err
    assert "more lines" in told
    assert "the end" in told
