"""Why a call is stopped, in plain words: which argument, what is wrong with it, and the way its value came."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from bicameral.labels import PUBLIC, Label, Source
from bicameral.tools import ATTACHED

from ._facts import COPIED, Known, Situation, plain_name
from ._rules import Rule

_SHOWN = 3
_USUAL_QUESTION = "Shall it be done?"
_OWN = {
    "request": "the request",
    "ask": "an answer of yours",
    "endorsed": "what you endorsed",
    "unknown": "nobody knows",
}

Receivers = frozenset[str] | None


def question(call: Situation, receivers: Receivers, rules: Sequence[Rule], unsure: Collection[str] = ()) -> str:
    """What a person is asked: everything that is wrong with a call, and the questions of the policies that stop it.

    `unsure` are the policies of which only the call itself will tell whether they stop it.
    """
    asked = dict.fromkeys(rule.ask or _USUAL_QUESTION for rule in rules)
    return f"{reason(call, receivers, rules, unsure)} {' '.join(asked)}"


def reason(call: Situation, receivers: Receivers, rules: Sequence[Rule], unsure: Collection[str] = ()) -> str:
    """Why these policies stop a call."""
    found = dict.fromkeys(each for rule in rules for each in _of(rule, call, receivers, rule.id in unsure))
    return f"{call.tool}: {'; '.join(found)}."


def uncertain(call: Situation, rules: Sequence[Rule]) -> str:
    """What a call depends on that is known only when it is made."""
    named = ", ".join(_written(rule) for rule in rules)
    return f"{call.tool}: it is known only when the call is made whether {named} stops it."


def _of(rule: Rule, call: Situation, receivers: Receivers, unsure: bool) -> Iterable[str]:
    tell = _DEFAULTS.get(rule.id) if rule.default else None
    return tell(call, receivers, unsure) if tell else _own_rule(rule, call)


def _directed(call: Situation, _: Receivers, __: bool) -> Iterable[str]:
    undeclared = "" if call.declared else " (the tool declares nothing, so each argument counts as directing it)"
    for each in call.directing:
        if not each.label.trusted:
            yield f"the argument {each.name!r} comes from {_way(each.label)}{undeclared}"


def _assembled(call: Situation, _: Receivers, __: bool) -> Iterable[str]:
    for name in sorted(call.assembled):
        yield f"the argument {name!r} is put together by the plan: the whole is neither in the request nor in a result"


def _decided(call: Situation, _: Receivers, __: bool) -> Iterable[str]:
    yield f"whether it is called was decided by {_way(call.control)}"


def _leaves(call: Situation, receivers: Receivers, _: bool) -> Iterable[str]:
    if receivers:
        to = f"it would go to {_listed(sorted(map(repr, receivers)))}"
    elif receivers is None:
        to = "whom it would go to is known only when the call is made"
    else:
        to = "it names nobody whom it would go to"
    found = False
    for each in call.leaving:
        if not _readable(each.label, receivers):
            found = True
            yield f"{_leaving(each)} {_may_read(each.label)}, and {to}"
    if not found:
        yield f"the call tells something of what decided it, {_sources(call.control.sources)}, and {to}"


def _leaving(known: Known) -> str:
    if known.purpose == "attaches":
        return f"what the argument {known.name.removesuffix(ATTACHED)!r} names goes along,"
    return f"the argument {known.name!r}, from {_sources(known.label.sources)},"


def _readable(label: Label, receivers: Receivers) -> bool:
    if label.readers is PUBLIC:
        return True
    return bool(receivers) and receivers <= {plain_name(each) for each in label.readers}


def _may_read(label: Label) -> str:
    others = sorted(repr(each) for each in label.readers if each != "user") if label.readers is not PUBLIC else []
    return f"may be read by only you and {_listed(others)}" if others else "may be read by only you"


def _in_your_name(call: Situation, _: Receivers, unsure: bool) -> Iterable[str]:
    lures = "which matters if there is" if unsure else "and there is"
    for each in call.carrying:
        if each.strangers_text:
            yield (
                f"the argument {each.name!r} would carry {_way(each.label)}, "
                f"{lures} more in it than words and short numbers, such as a link, an address or an account"
            )


def _executed(call: Situation, _: Receivers, unsure: bool) -> Iterable[str]:
    where = "a file, which matters if other programs execute or obey it" if unsure else "a file that programs execute"
    for each in call.writing:
        if each.strangers_text:
            what = "what it copies" if each.name == COPIED else f"the argument {each.name!r}"
            yield f"{what} would bring {_way(each.label)}, into {where}"


_DEFAULTS: dict[str, Callable[[Situation, Receivers, bool], Iterable[str]]] = {
    "directed-by-strangers": _directed,
    "decided-by-strangers": _decided,
    "assembled-by-the-plan": _assembled,
    "leaves-its-readers": _leaves,
    "strangers-text-in-your-name": _in_your_name,
    "strangers-text-executed": _executed,
}


def _own_rule(rule: Rule, call: Situation) -> Iterable[str]:
    yield rule.reason or f"{_written(rule)} forbids it"
    for each in call.arguments:
        if not each.label.trusted:
            yield f"the argument {each.name!r} comes from {_way(each.label)}"


def _written(rule: Rule) -> str:
    return f"the policy {rule.id!r} ({rule.where})"


def _way(label: Label) -> str:
    """The way that untrusted text came: which tool, which field, which step, and who read it."""
    strangers = [source for source in label.sources if source.trust == "third_party"]
    read = sorted({source.step for source in strangers if source.tool == "extract"})
    written = [source for source in strangers if source.tool != "extract"]
    steps = _listed([f"step {step}" for step in read]) if any(read) else ""
    model = f"by the quarantined model{f' in {steps}' if steps else ''}" if read else ""
    if not written:
        return f"what was written {model}"
    return f"text that a stranger wrote: {_sources(written)}{f', read {model}' if model else ''}"


def _sources(sources: Iterable[Source]) -> str:
    return _listed([_source(each) for each in sorted(sources)]) or "nowhere"


def _source(source: Source) -> str:
    where = f" (step {source.step})" if source.step else ""
    if source.tool in _OWN:
        return _OWN[source.tool] + where
    return (f"{source.tool}'s {source.part}" if source.part else f"the result of {source.tool}") + where


def _listed(texts: Sequence[str]) -> str:
    """A few of them, and how many more there are."""
    shown = list(texts[:_SHOWN])
    if len(texts) > _SHOWN:
        shown.append(f"{len(texts) - _SHOWN} more")
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)
