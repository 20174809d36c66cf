"""Explanations of a decision in plain words: which argument, what is wrong with it, and where its value came from."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from bicameral.labels import PUBLIC, Label, Source
from bicameral.policy._cedar_request import COPIED_CONTENT, ArgumentProfile, CallProfile, normalize_principal
from bicameral.policy._rules import PolicyRule
from bicameral.tools import ATTACHED_SUFFIX

_MAX_LISTED = 3
_USUAL_QUESTION = "Shall it be done?"
_RUNTIME_SOURCES = {
    "request": "the request",
    "ask": "an answer of yours",
    "endorsed": "what you endorsed",
    "unknown": "nobody knows",
}

KnownReceivers = frozenset[str] | None


def render_question(
    call: CallProfile, receivers: KnownReceivers, rules: Sequence[PolicyRule], unsure: Collection[str] = ()
) -> str:
    """What a person is asked: everything that is wrong with a call, and the questions of the policies that stop it.

    `unsure` are the policies of which only the call itself will tell whether they stop it.
    """
    asked = dict.fromkeys(rule.ask or _USUAL_QUESTION for rule in rules)
    return f"{render_reason(call, receivers, rules, unsure)} {' '.join(asked)}"


def render_reason(
    call: CallProfile, receivers: KnownReceivers, rules: Sequence[PolicyRule], unsure: Collection[str] = ()
) -> str:
    """Why these policies stop a call."""
    found = dict.fromkeys(each for rule in rules for each in _rule_reasons(rule, call, receivers, rule.id in unsure))
    return f"{call.tool}: {'; '.join(found)}."


def render_uncertainty(call: CallProfile, rules: Sequence[PolicyRule]) -> str:
    """What a call depends on that is known only when it is made."""
    named = ", ".join(_rule_text(rule) for rule in rules)
    return f"{call.tool}: it is known only when the call is made whether {named} stops it."


def _rule_reasons(rule: PolicyRule, call: CallProfile, receivers: KnownReceivers, unsure: bool) -> Iterable[str]:
    tell = _DEFAULT_REASONS.get(rule.id) if rule.default else None
    return tell(call, receivers, unsure) if tell else _user_rule_reasons(rule, call)


def _directed_reasons(call: CallProfile, _: KnownReceivers, __: bool) -> Iterable[str]:
    undeclared = "" if call.declared else " (the tool declares nothing, so each argument counts as directing it)"
    for each in call.directing_arguments:
        if not each.label.trusted:
            yield f"the argument {each.name!r} comes from {_provenance_text(each.label)}{undeclared}"


def _assembled_reasons(call: CallProfile, _: KnownReceivers, __: bool) -> Iterable[str]:
    for name in sorted(call.assembled_names):
        yield f"the argument {name!r} is put together by the plan: the whole is neither in the request nor in a result"


def _control_reasons(call: CallProfile, _: KnownReceivers, __: bool) -> Iterable[str]:
    yield f"whether it is called was decided by {_provenance_text(call.control)}"


def _leaving_reasons(call: CallProfile, receivers: KnownReceivers, _: bool) -> Iterable[str]:
    if receivers:
        to = f"it would go to {_short_list(sorted(map(repr, receivers)))}"
    elif receivers is None:
        to = "whom it would go to is known only when the call is made"
    else:
        to = "it names nobody whom it would go to"
    found = False
    for each in call.outgoing_content:
        if not _is_readable_by(each.label, receivers):
            found = True
            yield f"{_leaving_text(each)} {_readers_text(each.label)}, and {to}"
    if not found:
        yield f"the call tells something of what decided it, {_sources_text(call.control.sources)}, and {to}"


def _leaving_text(known: ArgumentProfile) -> str:
    if known.purpose == "attaches":
        return f"what the argument {known.name.removesuffix(ATTACHED_SUFFIX)!r} names goes along,"
    return f"the argument {known.name!r}, from {_sources_text(known.label.sources)},"


def _is_readable_by(label: Label, receivers: KnownReceivers) -> bool:
    if label.readers is PUBLIC:
        return True
    return bool(receivers) and receivers <= {normalize_principal(each) for each in label.readers}


def _readers_text(label: Label) -> str:
    others = sorted(repr(each) for each in label.readers if each != "user") if label.readers is not PUBLIC else []
    return f"may be read by only you and {_short_list(others)}" if others else "may be read by only you"


def _lure_reasons(call: CallProfile, _: KnownReceivers, unsure: bool) -> Iterable[str]:
    lures = "which matters if there is" if unsure else "and there is"
    for each in call.carried_arguments:
        if each.is_untrusted_text:
            yield (
                f"the argument {each.name!r} would carry {_provenance_text(each.label)}, "
                f"{lures} more in it than words and short numbers, such as a link, an address or an account"
            )


def _executed_reasons(call: CallProfile, _: KnownReceivers, unsure: bool) -> Iterable[str]:
    where = "a file, which matters if other programs execute or obey it" if unsure else "a file that programs execute"
    for each in call.written_content:
        if each.is_untrusted_text:
            what = "what it copies" if each.name == COPIED_CONTENT else f"the argument {each.name!r}"
            yield f"{what} would bring {_provenance_text(each.label)}, into {where}"


_DEFAULT_REASONS: dict[str, Callable[[CallProfile, KnownReceivers, bool], Iterable[str]]] = {
    "directed-by-strangers": _directed_reasons,
    "decided-by-strangers": _control_reasons,
    "assembled-by-the-plan": _assembled_reasons,
    "leaves-its-readers": _leaving_reasons,
    "strangers-text-in-your-name": _lure_reasons,
    "strangers-text-executed": _executed_reasons,
}


def _user_rule_reasons(rule: PolicyRule, call: CallProfile) -> Iterable[str]:
    yield rule.reason or f"{_rule_text(rule)} forbids it"
    for each in call.arguments:
        if not each.label.trusted:
            yield f"the argument {each.name!r} comes from {_provenance_text(each.label)}"


def _rule_text(rule: PolicyRule) -> str:
    return f"the policy {rule.id!r} ({rule.where})"


def _provenance_text(label: Label) -> str:
    """The way that untrusted text came: which tool, which field, which step, and who read it."""
    strangers = [source for source in label.sources if source.trust == "third_party"]
    read = sorted({source.step for source in strangers if source.tool == "extract"})
    written = [source for source in strangers if source.tool != "extract"]
    steps = _short_list([f"step {step}" for step in read]) if any(read) else ""
    model = f"by the quarantined model{f' in {steps}' if steps else ''}" if read else ""
    if not written:
        return f"what was written {model}"
    return f"text that a stranger wrote: {_sources_text(written)}{f', read {model}' if model else ''}"


def _sources_text(sources: Iterable[Source]) -> str:
    return _short_list([_source_text(each) for each in sorted(sources)]) or "nowhere"


def _source_text(source: Source) -> str:
    where = f" (step {source.step})" if source.step else ""
    if source.tool in _RUNTIME_SOURCES:
        return _RUNTIME_SOURCES[source.tool] + where
    return (f"{source.tool}'s {source.part}" if source.part else f"the result of {source.tool}") + where


def _short_list(texts: Sequence[str]) -> str:
    """A few of them, and how many more there are."""
    shown = list(texts[:_MAX_LISTED])
    if len(texts) > _MAX_LISTED:
        shown.append(f"{len(texts) - _MAX_LISTED} more")
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)
