"""Laws of asking ahead, over random plans: the same is done in the same order, and nobody is asked more often."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings, strategies as st
from runs_boundary import BOB, Compromised, Office, Person, run_office

from bicameral.policy import Policy
from bicameral.runs import Finished, Journal, PendingCall, RunOutcome, replay
from property_examples import examples

MAILS: list[Any] = [{"id": f"m{n}", "sender": f"s{n}@example.org", "body": f"text {n}"} for n in range(3)]
BEGIN = "mails = search_mail('x')\np = 'p'\ni = 'i'\nt = 't'\nb = 0\nxs = []\nm = mails[0]\n"
END = "answer([p, i, t, f'{b}', f'{len(xs)}'])\n"
POLICIES = ["", '@ask("Pay it?") forbid (principal, action, resource in Tool::"pay");']

texts = st.sampled_from(["'hi'", "mails[1].body", "m.body", "p", "i", "t", "f'{b}'", "f'{len(xs)}'"])
people = st.sampled_from([f"'{BOB}'", "mails[1].sender", "m.sender", "t"])
numbers = st.sampled_from(["1", "b", "len(xs)", "len(p)"])
conditions = st.sampled_from(["len(p) > 5", "b > 50", "len(xs) > 1", "len(mails) > 1", "t == 't'"])
lists = st.sampled_from(["mails", "mails[:len(xs)]", "[x for x in mails if x.body != p]"])

calls = st.one_of(
    st.builds("p = fetch({})".format, texts),
    st.builds("i = send({}, {})".format, people, texts),
    st.builds("send({}, {})".format, people, texts),
    st.builds("pay({}, {})".format, people, numbers),
    st.builds("write_text('f', {})".format, texts),
    st.just("b = balance('mine')"),
    st.just("p = read_text('f')"),
)
others = st.one_of(
    st.builds("t = extract({}, 'who', str)".format, texts),
    st.builds("p = shout({})".format, texts),
    st.builds("xs.append({})".format, texts),
    st.builds("p = f'{{{}}}'".format, st.sampled_from(["p", "i", "b"])),
)
simple = st.one_of(calls, calls, others).map(lambda line: [line])


def _indented(blocks: list[list[str]]) -> list[str]:
    return [f"    {line}" for block in blocks for line in block]


def _loop(over: str, body: list[str]) -> list[str]:
    return [f"for m in {over}:", *body]


def _when(test: str, body: list[str], end: list[str]) -> list[str]:
    return [f"if {test}:", *body, *end]


def _either(test: str, one: list[str], two: list[str]) -> list[str]:
    return [f"if {test}:", *one, "else:", *two]


def _compound(inner: st.SearchStrategy[list[str]]) -> st.SearchStrategy[list[str]]:
    body = st.lists(inner, min_size=1, max_size=3).map(_indented)
    no_end: list[str] = []
    ends = st.sampled_from([no_end, no_end, no_end, ["    answer([])"]])
    return st.one_of(
        st.builds(_loop, lists, body),
        st.builds(_when, conditions, body, ends),
        st.builds(_either, conditions, body, body),
    )


steps = st.one_of(simple, simple, _compound(st.one_of(simple, simple, _compound(simple))))
sources = st.lists(steps, min_size=1, max_size=7).map(
    lambda blocks: BEGIN + "\n".join(line for block in blocks for line in block) + "\n" + END
)
Says = Callable[[PendingCall], bool]


def _run(source: str, text: str, says: Says, journal: Journal | None, **options: Any) -> tuple[Any, Person, Office]:
    office, person = Office(list(MAILS)), Person(says)
    office.files["f"] = "mine"
    policy = Policy.parse(text)

    async def run() -> RunOutcome:
        extractor = Compromised("t")
        return await run_office(
            source, office, policy=policy, approver=person, extractor=extractor, journal=journal, **options
        )

    return asyncio.run(run()), person, office


def _ended(outcome: Any) -> tuple[Any, ...]:
    how = getattr(outcome, "error", None)
    failure = None if how is None else (how.code, outcome.step)
    return isinstance(outcome, Finished), getattr(outcome, "answer", None), failure, outcome.effects


def _changes(office: Office) -> list[Any]:
    return [(what, given) for what, given in office.done if what != "fetch"]


def _pages(office: Office) -> list[Any]:
    """Reads that do not hang together are made side by side, in any order."""
    return sorted(given for what, given in office.done if what == "fetch")


@settings(max_examples=examples(150, quick=60))
@given(sources, st.sampled_from(POLICIES), st.booleans())
def test_who_always_says_yes_gets_the_same_effects_in_the_same_order_with_no_more_questions(
    source: str, text: str, proved: bool
) -> None:
    outcome, person, office = _run(source, text, lambda call: True, None, proved=proved)
    without, asked, plain = _run(source, text, lambda call: True, None, ahead=False)
    assert _changes(office) == _changes(plain)
    assert _pages(office) == _pages(plain)
    assert _ended(outcome) == _ended(without)
    assert len(person.asked) <= len(asked.asked)


@settings(max_examples=examples(80, quick=40))
@given(sources, st.sampled_from(POLICIES), st.integers(0, 15), st.booleans())
def test_whatever_is_said_what_was_refused_is_not_done_and_the_record_replays(
    source: str, text: str, seed: int, proved: bool
) -> None:
    # By step: an equal call of another step may be allowed, or be approved with other labels.
    refused: set[str] = set()

    def says(call: PendingCall) -> bool:
        yes = int(call.hash[0], 16) >= seed
        if not yes:
            refused.update(call.steps)
        return yes

    with TemporaryDirectory() as folder, Journal(Path(folder) / "journal.db") as journal:
        outcome, person, office = _run(source, text, says, journal, proved=proved)
        again = asyncio.run(replay(journal, outcome.run, Office().registry))
        assert again.identical, again.differences
        assert again.outcome.effects == outcome.effects
        started = {
            event.step: event.body["tool"]
            for event in journal.events(outcome.run)
            if event.kind == "step-started" and "tool" in event.body
        }
    # The record tells of every call that was made.
    made = Counter(what for what, _ in office.done)
    assert made == Counter({tool: count for tool, count in Counter(started.values()).items() if tool in made})
    assert not refused & started.keys()
    _, asked, plain = _run(source, text, says, None, ahead=False)
    assert len(person.asked) <= len(asked.asked)
    # A no may come sooner than it would have, and then less is done; never more, nor anything else.
    assert all(each in plain.done for each in office.done)
