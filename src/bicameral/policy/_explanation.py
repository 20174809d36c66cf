"""Explanations of a decision for a person: which argument is the problem, why, and where its value came from."""

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
    """The question to a person: everything that is wrong with a call, and the questions of the policies that stop it.

    `unsure` are the policies of which only the call itself shows whether they stop it.
    """
    asked = dict.fromkeys(rule.ask or _USUAL_QUESTION for rule in rules)
    return f"{render_reason(call, receivers, rules, unsure)} {' '.join(asked)}"


def render_reason(
    call: CallProfile, receivers: KnownReceivers, rules: Sequence[PolicyRule], unsure: Collection[str] = ()
) -> str:
    """Why these policies stop a call."""
    reasons = dict.fromkeys(each for rule in rules for each in _rule_reasons(rule, call, receivers, rule.id in unsure))
    return f"{call.tool}: {'; '.join(reasons)}."


def render_uncertainty(call: CallProfile, rules: Sequence[PolicyRule]) -> str:
    """Which policies depend on facts that are known only when the call is made."""
    named = ", ".join(_rule_text(rule) for rule in rules)
    return f"{call.tool}: it is known only when the call is made whether {named} stops it."


def _rule_reasons(rule: PolicyRule, call: CallProfile, receivers: KnownReceivers, unsure: bool) -> Iterable[str]:
    explain = _DEFAULT_REASONS.get(rule.id) if rule.default else None
    return explain(call, receivers, unsure) if explain else _user_rule_reasons(rule, call)


def _directed_reasons(call: CallProfile, _: KnownReceivers, __: bool) -> Iterable[str]:
    undeclared = "" if call.declared else " (the tool declares nothing, so each argument counts as directing it)"
    for each in call.directing_arguments:
        if not each.label.trusted:
            yield f"the argument {each.name!r} comes from {_provenance_text(each.label)}{undeclared}"


def _unreviewed_reasons(call: CallProfile, _: KnownReceivers, __: bool) -> Iterable[str]:
    yield "nobody has reviewed this tool, and what it does is not known"


def _assembled_reasons(call: CallProfile, _: KnownReceivers, __: bool) -> Iterable[str]:
    for name in sorted(call.assembled_names):
        yield f"the argument {name!r} is put together by the plan: the whole is neither in the request nor in a result"


def _control_reasons(call: CallProfile, _: KnownReceivers, __: bool) -> Iterable[str]:
    yield f"whether it is called was decided by {_provenance_text(call.control)}"


def _leaving_reasons(call: CallProfile, receivers: KnownReceivers, _: bool) -> Iterable[str]:
    if receivers:
        destination = f"it would go to {_short_list(sorted(map(repr, receivers)))}"
    elif receivers is None:
        destination = "whom it would go to is known only when the call is made"
    else:
        destination = "it names nobody whom it would go to"
    explained = False
    for each in call.outgoing_content:
        if not _is_readable_by(each.label, receivers):
            explained = True
            yield f"{_leaving_text(each)} {_readers_text(each.label)}, and {destination}"
    if not explained:
        yield f"the call tells something of what decided it, {_sources_text(call.control.sources)}, and {destination}"


def _leaving_text(argument: ArgumentProfile) -> str:
    if argument.purpose == "attaches":
        return f"what the argument {argument.name.removesuffix(ATTACHED_SUFFIX)!r} names goes along,"
    return f"the argument {argument.name!r}, from {_sources_text(argument.label.sources)},"


def _is_readable_by(label: Label, receivers: KnownReceivers) -> bool:
    if label.readers is PUBLIC:
        return True
    return bool(receivers) and receivers <= {normalize_principal(each) for each in label.readers}


def _readers_text(label: Label) -> str:
    others = sorted(repr(each) for each in label.readers if each != "user") if label.readers is not PUBLIC else []
    return f"may be read by only you and {_short_list(others)}" if others else "may be read by only you"


def _lure_reasons(call: CallProfile, _: KnownReceivers, unsure: bool) -> Iterable[str]:
    clause = "which matters if there is" if unsure else "and there is"
    for each in call.carried_arguments:
        if each.is_untrusted_text:
            yield (
                f"the argument {each.name!r} would carry {_provenance_text(each.label)}, "
                f"{clause} more in it than words and short numbers, such as a link, an address or an account"
            )


def _executed_reasons(call: CallProfile, _: KnownReceivers, unsure: bool) -> Iterable[str]:
    target = "a file, which matters if other programs execute or obey it" if unsure else "a file that programs execute"
    for each in call.written_content:
        if each.is_untrusted_text:
            content = "what it copies" if each.name == COPIED_CONTENT else f"the argument {each.name!r}"
            yield f"{content} would bring {_provenance_text(each.label)}, into {target}"


_DEFAULT_REASONS: dict[str, Callable[[CallProfile, KnownReceivers, bool], Iterable[str]]] = {
    "never-reviewed": _unreviewed_reasons,
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
    """Where untrusted text came from: tool, field, step, and whether the quarantined model read it."""
    untrusted = label.third_parties
    extract_steps = sorted({source.step for source in untrusted if source.tool == "extract"})
    others = [source for source in untrusted if source.tool != "extract"]
    steps = _short_list([f"step {step}" for step in extract_steps]) if any(extract_steps) else ""
    model = f"by the quarantined model{f' in {steps}' if steps else ''}" if extract_steps else ""
    if not others:
        return f"what was written {model}"
    return f"text that a stranger wrote: {_sources_text(others)}{f', read {model}' if model else ''}"


def _sources_text(sources: Iterable[Source]) -> str:
    return _short_list([_source_text(each) for each in sorted(sources)]) or "nowhere"


def _source_text(source: Source) -> str:
    where = f" (step {source.step})" if source.step else ""
    if source.tool in _RUNTIME_SOURCES:
        return _RUNTIME_SOURCES[source.tool] + where
    return (f"{source.tool}'s {source.part}" if source.part else f"the result of {source.tool}") + where


def _short_list(texts: Sequence[str]) -> str:
    """The first few texts, and how many more there are."""
    listed = list(texts[:_MAX_LISTED])
    if len(texts) > _MAX_LISTED:
        listed.append(f"{len(texts) - _MAX_LISTED} more")
    return " and ".join([", ".join(listed[:-1]), listed[-1]]) if len(listed) > 1 else "".join(listed)
