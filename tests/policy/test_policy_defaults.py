"""The policies that hold without a line written by hand, each with the attack it stops."""

from __future__ import annotations

from dataclasses import replace

import pytest
from policy_calls import BALANCE, BODY, CONTACT, PAGE, READ, REGISTRY, USER, arg, call, decided, mail, rules, said, why

from bicameral.labels import Label, Source
from bicameral.policy import Allowed, ArgumentFacts, CallFacts, Effect, Policy
from bicameral.tools import Registry, tool

POLICY = Policy.load()


@pytest.mark.parametrize("effect", ["write", "send", "irreversible"])
def test_a_strangers_value_cannot_direct_what_changes_the_world(effect: Effect) -> None:
    facts = call(arg("path", "directs", READ, bounded=True), effect=effect, outbound=False)
    assert decided(facts) == ("ask", ("directed-by-strangers",))


def test_a_strangers_value_cannot_direct_what_reaches_out() -> None:
    facts = call(arg("url", "directs", READ), tool="fetch", effect="read", outbound=True)
    assert decided(facts)[0] == "ask"
    assert "directed-by-strangers" in decided(facts)[1]


@pytest.mark.parametrize("effect", ["pure", "read"])
def test_what_neither_changes_the_world_nor_reaches_out_may_take_anything(effect: Effect) -> None:
    arguments = (arg("a", "directs", READ), arg("b", "carries", READ), arg("c", "selects", READ))
    assert decided(call(*arguments, effect=effect, outbound=False, control=READ)) == ("allowed", ())


def test_a_strangers_text_cannot_decide_that_something_is_done() -> None:
    nothing_to_direct = call(tool="delete_all", effect="irreversible", outbound=False, control=READ)
    assert decided(nothing_to_direct) == ("ask", ("decided-by-strangers",))
    assert decided(mail(control=PAGE)) == ("ask", ("decided-by-strangers",))


def test_the_weaker_mode_does_not_count_control_flow() -> None:
    assert decided(mail(control=READ, mode="normal")) == ("allowed", ())


def test_a_secret_does_not_go_to_those_who_may_not_read_it() -> None:
    assert decided(mail(to=CONTACT, body=BALANCE)) == ("ask", ("leaves-its-readers",))


def test_what_a_receiver_may_read_may_go_to_him() -> None:
    letter = Label({Source("system", "read_note", "", "1")}, {"bob@example.com", "cyd@example.com"})
    assert decided(mail(to=CONTACT, body=letter)) == ("allowed", ())
    assert decided(mail(to=CONTACT, body=letter, names=["bob@example.com", "eve@example.com"]))[0] == "ask"


def test_what_is_made_of_two_secrets_goes_only_to_who_may_read_both() -> None:
    ann, both = (Label(CONTACT.sources, {"user", *names}) for names in (("ann@example.com",), ("ann@example.com", "b")))
    other = Label(CONTACT.sources, {"user", "b"})
    to = arg("to", "directs", CONTACT, names=["ann@example.com"])
    assert said(POLICY.decide(call(to, arg("body", "carries", ann), arg("note", "carries", both)))) == "allowed"
    assert said(POLICY.decide(call(to, arg("body", "carries", ann), arg("note", "carries", other)))) == "ask"


def test_what_everyone_may_read_may_go_to_anyone() -> None:
    assert decided(mail(to=CONTACT, body=Label({Source("system", "clock", "", "1")}))) == ("allowed", ())


def test_the_user_may_send_his_own_secrets_to_whom_he_names() -> None:
    assert decided(mail(to=USER, body=BALANCE)) == ("allowed", ())


def test_a_receiver_whom_nobody_can_make_out_may_read_nothing() -> None:
    assert decided(mail(to=CONTACT, body=BALANCE, names=()))[0] == "ask"
    assert decided(mail(to=CONTACT, body=BALANCE, names=None))[0] == "ask"


def test_a_tool_that_names_no_receiver_carries_no_secret() -> None:
    assert decided(call(arg("text", "carries", BALANCE), tool="post")) == ("ask", ("leaves-its-readers",))


def test_a_question_to_others_carries_no_secret() -> None:
    asked = call(arg("query", "selects", BALANCE), tool="search_web", effect="read", outbound=True)
    assert decided(asked) == ("ask", ("leaves-its-readers",))


def test_that_a_call_is_made_tells_what_decided_it() -> None:
    told = mail(to=CONTACT, control=BALANCE)
    assert decided(told) == ("ask", ("leaves-its-readers",))
    assert "tells something of what decided it" in why(POLICY.decide(told))
    assert decided(mail(to=CONTACT, control=BALANCE, mode="normal")) == ("allowed", ())


def test_a_strangers_text_does_not_go_out_in_the_users_name() -> None:
    assert decided(mail(body=BODY)) == ("ask", ("strangers-text-in-your-name",))


def test_a_strangers_number_may_go_out() -> None:
    total = call(arg("to", "directs", names=["bob@example.com"]), arg("total", "carries", PAGE, bounded=True))
    assert decided(total) == ("allowed", ())


def test_anything_may_go_to_the_user_himself() -> None:
    policy = Policy.load(me=["Skipper@Example.com"])
    assert isinstance(policy.decide(mail(to=CONTACT, body=BODY, names=["skipper@example.com"])), Allowed)
    assert isinstance(policy.decide(mail(to=CONTACT, body=BALANCE, names=["SKIPPER@example.com"])), Allowed)
    assert said(policy.decide(mail(body=BODY, names=["skipper@example.com", "eve@example.com"]))) == "ask"
    assert said(policy.decide(mail(to=CONTACT, body=BALANCE, names=["eve@example.com"]))) == "ask"


@pytest.mark.parametrize("name", ["user", "USER", " user ", "'user'"])
def test_somebody_who_calls_himself_user_is_not_the_user(name: str) -> None:
    assert decided(mail(body=BODY, names=[name]))[0] == "ask"
    assert decided(mail(to=CONTACT, body=BALANCE, names=[name])) == ("ask", ("leaves-its-readers",))


def test_a_tool_that_declares_nothing_is_directed_by_all_that_it_is_given() -> None:
    undeclared = call(arg("x", "selects", PAGE), tool="do", declared=False)
    assert decided(undeclared)[0] == "ask"
    assert "the tool declares nothing" in why(POLICY.decide(undeclared))
    assert decided(call(arg("x", "selects", BALANCE), tool="do", declared=False)) == ("ask", ("leaves-its-readers",))


def test_what_only_the_user_may_read_is_no_address_of_a_tool_that_declares_nothing() -> None:
    diary = Label({Source("user", "read_text", "", "1")}, {"user"})
    private = call(arg("x", "selects", diary), tool="do", declared=False)
    assert decided(private) == ("ask", ("leaves-its-readers",))
    # His request is his word, also where nothing else is known; and where an argument is declared to be an address,
    # one from his own notes is.
    assert decided(call(arg("x", "selects", USER), tool="do", declared=False)) == ("allowed", ())
    assert decided(mail(to=diary, body=diary)) == ("allowed", ())


def test_everything_that_is_wrong_is_in_one_question() -> None:
    found = POLICY.decide(mail(to=READ, body=BODY, control=READ))
    assert said(found) == "ask"
    assert why(found).count("send_mail:") == 1
    for part in ("whether it is called", "the argument 'to'", "the argument 'body'", "Shall it be done at all?"):
        assert part in why(found)


def test_the_explanation_tells_which_argument_and_the_way_its_value_came() -> None:
    assert why(POLICY.decide(mail(to=READ))) == (
        "send_mail: the argument 'to' comes from text that a stranger wrote: search_mail's [].body (step 2), "
        "read by the quarantined model in step 3. Shall it be done with these values?"
    )


def test_the_explanation_tells_who_may_read_it_and_who_would() -> None:
    letter = Label({Source("system", "read_note", "", "1")}, {"ann@example.com"})
    assert why(POLICY.decide(mail(to=CONTACT, body=letter))) == (
        "send_mail: the argument 'body', from the result of read_note (step 1), may be read by only you and "
        "'ann@example.com', and it would go to 'bob@example.com'. May they see it?"
    )


# With the declarations at hand


def test_only_those_arguments_name_receivers_that_the_tool_says() -> None:
    policy = Policy.load(registry=REGISTRY)
    later = Label({Source("system", "clock", "", "0")})
    facts = call(
        arg("to", "directs", names=["bob@example.com"]), arg("body", "carries", BALANCE), arg("when", "directs", later)
    )
    assert isinstance(policy.decide(facts), Allowed)
    assert decided(facts) == ("ask", ("leaves-its-readers",))


def test_where_receivers_are_left_out_the_tool_names_them() -> None:
    policy = Policy.load(registry=REGISTRY)
    assert isinstance(policy.decide(call(arg("text", "carries", BALANCE), tool="post", toolbox="chat")), Allowed)


def test_an_event_without_guests_tells_nobody() -> None:
    policy = Policy.load(registry=REGISTRY)
    event = arg("title", "carries", BODY)
    alone = call(event, tool="create_event", toolbox="calendar")
    assert isinstance(policy.decide(alone), Allowed)
    decided_by_a_stranger = call(event, tool="create_event", toolbox="calendar", control=READ)
    assert rules(policy.decide(decided_by_a_stranger)) == ("decided-by-strangers",)
    directed = call(event, arg("room", "directs", READ, names=["x"]), tool="create_event", toolbox="calendar")
    assert rules(policy.decide(directed)) == ("directed-by-strangers",)


@pytest.mark.parametrize("names", [(), ("bob@example.com",), None])
def test_guests_that_only_turn_out_to_be_none_are_not_left_out(names: tuple[str, ...] | None) -> None:
    policy = Policy.load(registry=REGISTRY)
    guests = arg("guests", "directs", CONTACT, names=names)
    event = call(arg("title", "carries", BODY), guests, tool="create_event", toolbox="calendar")
    assert "strangers-text-in-your-name" in rules(policy.decide(event))


def test_what_names_no_list_of_receivers_may_mean_everyone() -> None:
    policy = Policy.load(registry=REGISTRY)
    everyone = call(arg("text", "carries", BODY), tool="post", toolbox="chat")
    assert rules(policy.decide(everyone)) == ("strangers-text-in-your-name",)


def test_a_tool_that_is_not_there_is_refused() -> None:
    found = Policy.load(registry=REGISTRY).decide(call(tool="send_mial"))
    assert (said(found), "there is no tool 'send_mial'" in why(found)) == ("denied", True)
    assert said(POLICY.decide(call(known=False))) == "denied"


@pytest.mark.parametrize(
    "facts",
    [
        call(effect="read"),
        call(outbound=False),
        call(declared=False),
        call(toolbox="letters"),
    ],
)
def test_facts_that_are_not_those_of_the_tool_are_refused(facts: CallFacts) -> None:
    found = Policy.load(registry=REGISTRY).decide(facts)
    assert said(found) == "denied"
    assert "not the facts of the tool" in why(found)


def test_strangers_text_with_nothing_to_follow_goes_out_unasked() -> None:
    assert decided(mail(body=PAGE, lures=())) == ("allowed", ())
    assert decided(mail(body=PAGE)) == ("ask", ("strangers-text-in-your-name",))
    assert "and there is more in it than words and short numbers" in why(POLICY.decide(mail(body=PAGE)))


def test_what_could_be_followed_is_assumed_where_nobody_knows() -> None:
    unknown = mail(body=PAGE, lures=None)
    assert decided(unknown) == ("ask", ("strangers-text-in-your-name",))
    assert "which matters if there is more in it than words" in why(POLICY.decide(unknown))
    assert said(POLICY.preview(mail(body=PAGE, lures=()))) == "ask"


def test_nothing_to_follow_lifts_no_other_rule() -> None:
    assert decided(mail(to=READ, body=PAGE, lures=())) == ("ask", ("directed-by-strangers",))
    assert decided(mail(to=CONTACT, body=BODY, lures=())) == ("ask", ("leaves-its-readers",))
    assert decided(mail(body=PAGE, control=READ, lures=()))[0] == "ask"


def test_a_policy_can_ask_about_all_strangers_text() -> None:
    always = """@ask("Shall it go out?")
    forbid (principal, action, resource) when { resource.outbound && resource.carries.strangers_text };"""
    assert decided(mail(body=PAGE, lures=()), always)[0] == "ask"


@tool(effect="send", purpose={"file": "directs", "to": "directs"}, receivers=("to",), attaches=("file",))
def share(file: str, to: str) -> None:
    """Let somebody read a file."""


KEPT = Label({Source("third_party", "share", "file")}, {"user"})


def shared(*along: ArgumentFacts, to: Label = CONTACT, declared: bool = True) -> CallFacts:
    arguments = arg("file", "directs", names=["f1"]), arg("to", "directs", to, names=["bob@example.com"])
    return call(*arguments, *along, tool="share", toolbox="", declared=declared)


def test_what_goes_along_must_be_for_whom_it_goes_to() -> None:
    policy = Policy.load(registry=Registry([share]))
    along = ArgumentFacts("file (what it names)", "attaches", KEPT)
    asked = policy.decide(shared(along))
    assert (said(asked), rules(asked)) == ("ask", ("leaves-its-readers",))
    assert "what the argument 'file' names goes along, may be read by only you" in why(asked)
    assert isinstance(policy.decide(shared(along, to=USER)), Allowed)
    for_bob = replace(along, label=Label(KEPT.sources, {"user", "bob@example.com"}))
    assert isinstance(policy.decide(shared(for_bob)), Allowed)
    mine = Policy.load(registry=Registry([share]), me=["bob@example.com"])
    assert isinstance(mine.decide(shared(along)), Allowed)


def test_a_call_of_which_nobody_says_what_goes_along_is_refused() -> None:
    policy = Policy.load(registry=Registry([share]))
    assert said(policy.decide(shared(to=USER))) == "denied"


def test_what_an_argument_of_a_silent_tool_names_does_not_direct_it() -> None:
    along = ArgumentFacts("file (what it names)", "attaches", KEPT)
    assert isinstance(POLICY.decide(shared(along, to=USER, declared=False)), Allowed)
    assert decided(shared(along, declared=False)) == ("ask", ("leaves-its-readers",))
