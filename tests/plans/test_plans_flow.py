"""How labels go through expressions: every way in which a stranger's word could shed its label."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from bicameral.labels import (
    NOTHING,
    PUBLIC,
    TRUSTED_USER,
    UNKNOWN,
    Label,
    LabelTree,
    ListLabels,
    RecordLabels,
    Source,
    as_record,
    join,
    join_trees,
    taint,
)
from bicameral.plans import FUNCTIONS, Apply, Compute, Const, Expr, Get, Lambda, Not, Ref, parse
from bicameral.plans.labels._transfer import compile_labels, labels_of
from bicameral.policy import Mode
from bicameral.tools import Registry

BANK = Label({Source("system", "bank", "", "0")})
BODY = Label({Source("third_party", "mail", "[].body", "1")}, {"ada"})
SUBJECT = Label({Source("third_party", "mail", "[].subject", "1")}, {"ada", "bob"})
COUNT = Label({Source("system", "mail", "", "1")})
MAIL = RecordLabels(BANK, {"id": BANK, "body": BODY, "subject": SUBJECT}, BODY)
ENV: dict[str, LabelTree] = {
    "body": BODY,
    "subject": SUBJECT,
    "id": BANK,
    "mail": MAIL,
    "mails": ListLabels(COUNT, MAIL),
    "ids": ListLabels(COUNT, BANK),
    "words": ListLabels(COUNT, BODY),
    "spam": ListLabels(BODY, BANK),
    "book": RecordLabels(BANK, {}, BANK),
    "tags": RecordLabels(BODY, {}, BANK),
    "none": TRUSTED_USER,
}


def expr_of(text: str) -> Expr:
    """The expression that a plan writes so."""
    lines = [f"{name} = ask('?')" for name in ENV]
    step = parse("\n".join([*lines, f"it = {text}", "answer(it)"]), Registry()).plan.steps[len(ENV)]
    assert isinstance(step, Compute)
    return step.value


def shade(text: str, mode: Mode = "strict") -> LabelTree:
    return labels_of(expr_of(text), ENV, mode=mode)


def shown(label: LabelTree) -> set[str]:
    """The sources of everything in a shade, without those of literals."""
    return {f"{source.tool}{source.part}" for source in label.flat.sources if source.tool != "request"}


BODY_ONLY, SUBJECT_ONLY, BANK_ONLY = {"mail[].body"}, {"mail[].subject"}, {"bank"}

CARRIED: dict[str, set[str]] = {
    # Every way to make something of a value carries where it came from.
    "body": BODY_ONLY,
    "body + 'x'": BODY_ONLY,
    "f'{body}'": BODY_ONLY,
    "f'{len(body)}'": BODY_ONLY,
    "body.upper().strip()": BODY_ONLY,
    "body[0]": BODY_ONLY,
    "body[1:3]": BODY_ONLY,
    "'abc'[:len(body)]": BODY_ONLY,
    "['ada', 'eve'][len(body)]": BODY_ONLY,
    "{'a': 'ada', 'b': 'eve'}[body]": BODY_ONLY,
    "{'a': 'ada'}.get(body, 'eve')": BODY_ONLY,
    "-len(body)": BODY_ONLY,
    "not body": BODY_ONLY,
    "body == 'x'": BODY_ONLY,
    "[body] == ['x']": BODY_ONLY,
    "{'k': body} != {'k': 'x'}": BODY_ONLY,
    "'x' in body": BODY_ONLY,
    "body in ['x']": BODY_ONLY,
    "1 < len(body) < 3": BODY_ONLY,
    "body or 'x'": BODY_ONLY,
    "body and 'x'": BODY_ONLY,
    "'eve' if body else 'ada'": BODY_ONLY,
    "int(body)": BODY_ONLY,
    "date(body)": BODY_ONLY,
    "str(mail)": BANK_ONLY | BODY_ONLY | SUBJECT_ONLY,
    "body.split(',')": BODY_ONLY,
    "','.join([body])": BODY_ONLY,
    "body.join(['x', 'y'])": BODY_ONLY,
    "range(len(body))": BODY_ONLY,
    "'x' * len(body)": BODY_ONLY,
    "[0] * len(body)": BODY_ONLY,
    "'x'.replace('x', body)": BODY_ONLY,
    "sum([len(body), 1])": BODY_ONLY,
    "max(1, len(body))": BODY_ONLY,
    "count_by([body])": BODY_ONLY,
    "count_by(mails, 'subject')": {"mail"} | SUBJECT_ONLY,
    "count_by(mails, lambda m: m.body)": {"mail"} | BODY_ONLY,
    "any([body])": BODY_ONLY,
    "dict([('k', body)])": BODY_ONLY,
    "dict([(body, 'v')])": BODY_ONLY,
    "list({body: 1})": BODY_ONLY,
    "[k for k in {body: 1}]": BODY_ONLY,
    "len({body: 1})": BODY_ONLY,
    "'a' in {body: 1}": BODY_ONLY,
    "tags.keys()": BODY_ONLY,
    "tags.keys()[0]": BODY_ONLY,
    "list(tags)[0]": BODY_ONLY,
    "[k for k in tags][0]": BODY_ONLY,
    "[k for k, v in tags.items()][0]": BODY_ONLY,
    "f'{tags.items()[0]}'": BODY_ONLY | BANK_ONLY,
    "'a' in tags": BODY_ONLY,
    "body in book": BODY_ONLY | BANK_ONLY,
    "any(words)": {"mail"} | BODY_ONLY,
    "len(zip(spam, ids))": {"mail"} | BODY_ONLY,
    "len(flatten([spam, ids]))": {"mail"} | BODY_ONLY,
    "len(ids + spam)": {"mail"} | BODY_ONLY,
    "len(spam + ids)": {"mail"} | BODY_ONLY,
    "(ids + words)[0]": {"mail"} | BODY_ONLY | BANK_ONLY,
    "{'k': id, body: subject}.k": BANK_ONLY | SUBJECT_ONLY | BODY_ONLY,
    "[v for k, v in {'k': body}.items()]": BODY_ONLY,
    "[k for k, v in {body: 'v'}.items()]": BODY_ONLY,
    # A part carries its own labels and not those beside it.
    "mail.id": BANK_ONLY,
    "mail['id']": BANK_ONLY,
    "mail.get('id')": BANK_ONLY,
    "mail.subject": SUBJECT_ONLY,
    "mail.more": BODY_ONLY,
    "mails[0].id": {"mail"} | BANK_ONLY,
    "[m.id for m in mails][0]": {"mail"} | BANK_ONLY,
    "first(mails).id": {"mail"} | BANK_ONLY,
    "mails[1:][0].id": {"mail"} | BANK_ONLY,
    "reversed(mails)[0].subject": {"mail"} | SUBJECT_ONLY,
    "(mails + mails)[0].id": {"mail"} | BANK_ONLY,
    "len(mails)": {"mail"},
    "bool(mails)": {"mail"},
    "not mails": {"mail"},
    "mail == None": BANK_ONLY,
    "mails != None": {"mail"},
    "{'to': id, 'text': body}.to": BANK_ONLY,
    "[id, body][0]": BANK_ONLY,
    "[id, body][-1]": BODY_ONLY,
    "(id, body)[1]": BODY_ONLY,
    "flatten([[id], [id]])[0]": BANK_ONLY,
    "[a for a, b in zip(ids, words)][0]": {"mail"} | BANK_ONLY,
    "[i for i, w in enumerate(words)][0]": {"mail"},
    "[v for k, v in book.items()]": BANK_ONLY,
    "book['x']": BANK_ONLY,
    "tags['x']": BANK_ONLY,
    "len(group_by(mails, 'id')['x'])": {"mail"} | BANK_ONLY,
    "group_by(mails, lambda m: m.id)['x'][0].id": {"mail"} | BANK_ONLY,
    "(mail if id else mail).id": BANK_ONLY,
    "(mail or None).id": BANK_ONLY,
    "max(mails, key=lambda m: m.id).id": {"mail"} | BANK_ONLY,
    "sorted(mails, key=lambda m: m.id)[0].id": {"mail"} | BANK_ONLY,
}

DECIDED: dict[str, set[str]] = {
    # What decides which and how many counts where control flow counts.
    "[m.id for m in mails if 'x' in m.body]": {"mail"} | BANK_ONLY | BODY_ONLY,
    "[m.id for m in mails if 'x' in m.body][0]": {"mail"} | BANK_ONLY | BODY_ONLY,
    "len([m for m in mails if m.subject])": {"mail"} | SUBJECT_ONLY,
    "sorted(mails, key=lambda m: m.subject)[0].id": {"mail"} | BANK_ONLY | SUBJECT_ONLY,
    "sorted(words)[0]": {"mail"} | BODY_ONLY,
    "sorted(ids, reverse=body == 'x')[0]": {"mail"} | BANK_ONLY | BODY_ONLY,
    "max(mails, key=lambda m: m.subject).id": {"mail"} | BANK_ONLY | SUBJECT_ONLY,
    "spam[0]": BANK_ONLY | BODY_ONLY,
    "first(spam)": BANK_ONLY | BODY_ONLY,
    "max(spam)": BANK_ONLY | BODY_ONLY,
    "[x for x in spam][0]": BANK_ONLY | BODY_ONLY,
    "tags.get('x', '')": BANK_ONLY | BODY_ONLY,
    "{body: id}['x']": BANK_ONLY | BODY_ONLY,
    "{m.subject: m.id for m in mails}['x']": {"mail"} | BANK_ONLY | SUBJECT_ONLY,
    "group_by(mails, 'subject')['x'][0].id": {"mail"} | BANK_ONLY | SUBJECT_ONLY,
    "len(unique(words))": {"mail"} | BODY_ONLY,
}


@pytest.mark.parametrize("text", CARRIED)
def test_what_a_value_is_made_of_counts_in_both_modes(text: str) -> None:
    assert shown(shade(text)) == CARRIED[text]
    assert shown(shade(text, "normal")) <= CARRIED[text]


MADE_OF = [text for text, found in CARRIED.items() if found & (BODY_ONLY | SUBJECT_ONLY)]


@pytest.mark.parametrize("text", MADE_OF)
def test_what_is_made_of_a_strangers_word_is_untrusted_in_both_modes(text: str) -> None:
    assert not shade(text).flat.trusted
    assert not shade(text, "normal").flat.trusted


@pytest.mark.parametrize("text", DECIDED)
def test_what_decides_counts_in_strict_mode(text: str) -> None:
    assert shown(shade(text)) == DECIDED[text]


@pytest.mark.parametrize(
    "text", [text for text in DECIDED if not text.startswith(("sorted(words)", "len(unique", "[m.id", "tags", "{body"))]
)
def test_what_only_decides_does_not_count_in_normal_mode(text: str) -> None:
    assert shade(text, "normal").flat.trusted


def test_readers_are_those_of_everything_that_was_used() -> None:
    assert shade("f'{mail.subject}'").flat.readers == {"ada", "bob", "user"}
    assert shade("f'{mail.subject}{mail.body}'").flat.readers == {"ada", "user"}
    assert shade("'hello'").flat.readers is PUBLIC


def test_control_flow_is_joined_into_every_part() -> None:
    assert labels_of(Ref(name="mail"), ENV, SUBJECT) is taint(MAIL, SUBJECT)
    assert labels_of(Const(value=1), ENV, NOTHING) is TRUSTED_USER


def test_a_value_of_any_kind_stays_of_any_kind() -> None:
    found = shade("mail if id else none")
    assert as_record(found) is not None
    assert found is taint(join_trees(MAIL, TRUSTED_USER), BANK)


def _calls() -> Iterator[tuple[str, Apply]]:
    """A call of every function in every way, with a stranger's word in one place at a time."""
    for name, function in FUNCTIONS.items():
        for signature in function.signatures:
            for strange in signature.parameters:
                given: list[tuple[str, Expr]] = []
                for each in signature.parameters:
                    if each.lambda_arity:
                        given.append((each.name, Lambda(names=("v",), body=Ref(name="v"))))
                    elif each.required or each is strange:
                        given.append((each.name, Ref(name="body" if each is strange else "id")))
                by_place = tuple(expr for _, expr in given) if signature.parameters[-1].variadic else ()
                yield f"{name}({strange})", Apply(function=name, args=by_place, named=() if by_place else tuple(given))


def test_every_function_of_the_library_carries_what_it_is_given() -> None:
    """Whatever a function does with a stranger's word, in whichever place: what it gives is untrusted."""
    tried: set[str] = set()
    for shown_as, expr in _calls():
        if "lambda" in shown_as:
            continue
        tried.add(expr.function)
        found = labels_of(expr, ENV)
        assert BODY.sources <= found.flat.sources, shown_as
        assert UNKNOWN.sources.isdisjoint(found.flat.sources), shown_as
        # The order of a list is all that a flag decides, and in normal mode what only decides does not count.
        assert BODY.sources <= labels_of(expr, ENV, mode="normal").flat.sources or "reverse" in shown_as, shown_as
    assert tried == FUNCTIONS.keys()


# What is not as it should be ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "expr",
    [
        Ref(name="nobody"),
        Apply(function="nothing", args=(Const(value=1),)),
        Apply(function="upper"),
        Apply(function="sorted", args=(Const(value=1), Const(value=2), Const(value=3))),
        Lambda(names=("x",), body=Const(value=1)),
    ],
)
def test_of_what_has_no_value_the_worst_is_assumed(expr: Expr) -> None:
    assert labels_of(expr, ENV) is UNKNOWN
    assert not UNKNOWN.trusted


def test_what_is_asked_of_the_wrong_kind_of_value_gets_everything_in_it() -> None:
    assert labels_of(Get(value=Ref(name="mails"), field="id"), ENV) is ENV["mails"].flat
    assert not shade("mail[0]").flat.trusted


def test_an_expression_nested_beyond_all_bounds_has_the_worst_label() -> None:
    expr: Expr = Ref(name="id")
    for _ in range(5_000):
        expr = Not.model_construct(value=expr)
    assert labels_of(expr, ENV) is UNKNOWN


def test_names_of_a_comprehension_do_not_leak_and_hide_those_outside() -> None:
    assert shown(shade("[id for id in words]")) == {"mail"} | BODY_ONLY
    assert shown(shade("[[id for id in words], id]")) == {"mail"} | BODY_ONLY | BANK_ONLY
    assert shade("[[id for id in words], id][1]") is join(BANK, TRUSTED_USER)


def test_the_same_expression_is_compiled_once() -> None:
    expr = expr_of("[m.id for m in mails if m.subject]")
    assert compile_labels(expr) is compile_labels(expr)
    assert compile_labels(expr) is not compile_labels(expr, "normal")


def test_asking_with_ever_new_labels_does_not_fill_memory() -> None:
    code = compile_labels(expr_of("f'{body}{subject}'"))
    for number in range(2_000):
        label = Label({Source("system", "clock", "", str(number))})
        assert join(label, SUBJECT).sources < code({"body": label, "subject": SUBJECT}).flat.sources


@pytest.mark.parametrize(
    "nested", ["({} or 'x') or 'y'", "1 < ({} < 2 < 3) < 4", "['a', 'b'][{} + 1]", "max([{}], key=lambda v: v)"]
)
def test_nothing_is_looked_at_twice(nested: str) -> None:
    text = "len(body)"
    for _ in range(20):
        text = nested.format(text)
    expr = expr_of(text)
    started = time.thread_time()
    assert not labels_of(expr, ENV).flat.trusted
    assert time.thread_time() - started < 2


def test_a_value_that_holds_itself_many_times_over_is_looked_at_in_no_time() -> None:
    text = "x"
    for number in range(20):
        inner = f"v{number}"
        text = f"[{{'a': {inner}, 'b': [{inner}, {inner}]}} for {inner} in [{text}]]"
    expr = expr_of(text.replace("[x]", "[mail]"))
    started = time.thread_time()
    assert not labels_of(expr, ENV).flat.trusted
    assert time.thread_time() - started < 5
