"""Comparison of a plan with its intent: what is missing, and what nobody asked for.

The findings of `check_against_intent` are repaired, and a plan with a severe one is never used.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from bicameral.planning._claim_support import answers_after, unsupported_claims
from bicameral.planning._claims import claims_of
from bicameral.planning._directives import ungrounded_directives
from bicameral.planning._effect_words import has_declared_word
from bicameral.planning._failed_plans import FailedPlan, NoPlanError
from bicameral.planning._intent_document import Intent, IntentStep
from bicameral.planning._language import guess_language
from bicameral.planning._matching import ADDRESS_PATTERN, FILE_PATTERN, LINK_PATTERN
from bicameral.planning._omissions import NUMBER, has_number, plan_literals
from bicameral.planning._rounds import EarlierRounds
from bicameral.plans import (
    Call,
    Each,
    Plan,
    When,
    assigned_names,
    free_names,
    plan_references,
    print_plan,
    step_expressions,
    unbind_cells,
    walk,
)
from bicameral.text import has_any_phrase, lazy_pattern, mentions, mentions_path, text_stems
from bicameral.tools import Effect, Registry, Tool

_MISSING_EFFECT = "plan.missing-effect"


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A difference between a plan and its intent. A plan with a `severe` one is never used."""

    code: Literal[
        "plan.missing-effect",
        "plan.unasked-effect",
        "plan.other-tool",
        "plan.unused-object",
        "plan.unused-input",
        "plan.invented-object",
        "plan.unserved-step",
        "plan.broken-constraint",
        "plan.undelivered-output",
        "plan.unsupported-claim",
        "plan.invented-value",
    ]
    message: str
    severe: bool = False
    path: str | None = None


class UnaskedEffectError(NoPlanError):
    """The only plan that was found has an effect that the request does not ask for in known words.

    Args:
        tools: The tools that have it.
        effects: Their effects. A person may allow them: then the request asks for them.
        failure: The plan that has it.
    """

    def __init__(self, tools: Sequence[str], effects: Sequence[Effect], failure: FailedPlan | None = None) -> None:
        verbs = " and ".join(dict.fromkeys(_EFFECT_VERBS[effect] for effect in effects))
        self.tools = frozenset(tools)
        self.effects = frozenset(effects)
        self.question = f"The request does not clearly ask to {verbs} ({', '.join(tools)}). Shall I do that?"
        super().__init__(
            "plan.unasked-effect",
            f"no plan was found that serves the request: {', '.join(tools)} would {verbs}, and the request does not "
            "ask for that in known words",
            fix="Say it as an order: 'Write … to notes.txt', 'Mail … to Kim', 'Delete …'.",
            failure=failure,
        )


def check_against_intent(
    plan: Plan,
    intent: Intent,
    registry: Registry,
    *,
    earlier: EarlierRounds | None = None,
    looks: bool = False,
    settings: Collection[str] = (),
) -> list[Mismatch]:
    """All differences between a plan and its intent.

    Args:
        earlier: Earlier rounds; their effects and literals count, too.
        looks: Whether the plan only looks at results: then nothing can be missing yet.
        settings: Values of the user's settings that may direct effects, such as the own addresses.
    """
    earlier = earlier or EarlierRounds()
    effects = _effect_mismatches(plan, intent, registry, earlier)
    own = frozenset(map(str.casefold, settings))
    invented = _invented_objects(plan, intent, own | _configured_values(plan, intent, registry))
    return [
        *(each for each in effects if not (looks and each.code == _MISSING_EFFECT)),
        *_other_tool_mismatches(plan, intent, registry),
        *([] if looks else _unused_objects(plan, intent, earlier)),
        *_unused_inputs(plan, earlier),
        *invented,
        *_invented_values(plan, intent, registry, settings, invented, earlier),
        # Steps that are sentences of a model are no contract: their words are not those of tools.
        *(serves_intent(plan, intent, registry, earlier=earlier) if intent.is_structured and not looks else []),
        *([] if looks else _unsupported_claims(plan, intent, registry, earlier)),
    ]


def dropped_mismatches(
    written: Plan, dropped: Collection[str], intent: Intent, registry: Registry, *, looks: bool = False
) -> list[Mismatch]:
    """What may not be said or done after a plan lost calls that nobody asked for.

    An answer that tells of them would be false, so that the plan is not used. A plan that only looks at results is
    followed by another, whose answer could tell of them: it may not lose any.

    Args:
        written: The plan with these calls.
        dropped: The names of their tools.
        looks: Whether the plan only looks at results.
    """
    if not dropped:
        return []
    told = looks or (
        any(claims_of(text) for text in answers_after(written, dropped))
        if _asks_for_answer(intent.request)
        else answers_after(written, dropped)
    )
    if not told:
        return []
    names = ", ".join(dropped)
    verbs = " and ".join(dict.fromkeys(_EFFECT_VERBS[registry[name].effect] for name in dropped))
    message = (
        f"{names} would {verbs}, and the request does not ask for that in known words: remove it, and do not answer "
        "that it was done."
    )
    return [Mismatch("plan.unasked-effect", message, severe=True)]


def _effect_mismatches(plan: Plan, intent: Intent, registry: Registry, earlier: EarlierRounds) -> list[Mismatch]:
    done: dict[Effect, str] = {}
    for _, step in walk(plan.steps):
        if isinstance(step, Call) and (tool := registry.get(step.tool)) is not None and tool.changes:
            done.setdefault(tool.effect, tool.name)
    found: list[Mismatch] = []
    for effect in intent.required:
        if effect not in done and effect not in earlier.effects:
            tools = ", ".join(tool.name for tool in registry if tool.effect == effect)
            message = f"The request asks to {_EFFECT_VERBS[effect]}, and the plan does not: use {tools}."
            found.append(Mismatch(_MISSING_EFFECT, message))
    for effect, name in done.items():
        if effect not in intent.effects:
            message = f"{name} would {_EFFECT_VERBS[effect]}, and the request does not ask for that: remove it."
            found.append(Mismatch("plan.unasked-effect", message, severe=effect != "write"))
    return found


def _has_words(request: str, tool: Tool) -> bool:
    """Whether a request has a word that a tool declares. The words are English: elsewhere only the same form counts."""
    if guess_language(request) == "en":
        # The name of a file is no order: nothing is to be archived in `archive_2025.txt`.
        return has_any_phrase(FILE_PATTERN.sub(" ", request), tool.words)
    return has_declared_word(request, tool.words)


def _other_tool_mismatches(plan: Plan, intent: Intent, registry: Registry) -> list[Mismatch]:
    """Calls with effects for which the words of the request ask for another tool of the same toolbox."""
    found: list[Mismatch] = []
    for path, step in walk(plan.steps):
        tool = registry.get(step.tool) if isinstance(step, Call) else None
        if tool is None or not tool.changes or not tool.words or _has_words(intent.request, tool):
            continue
        meant = [
            other.name
            for other in registry
            if other.toolbox == tool.toolbox and other.effect == tool.effect and _has_words(intent.request, other)
        ]
        if meant:
            message = f"The request does not ask for {tool.name}; what it says is done by {', '.join(meant)}."
            found.append(Mismatch("plan.other-tool", message, path=path))
    return found


_EFFECT_VERBS: dict[Effect, str] = {
    "write": "write something",
    "send": "send something",
    "irreversible": "delete something",
}


def _unused_objects(plan: Plan, intent: Intent, earlier: EarlierRounds) -> list[Mismatch]:
    """Files, addresses, links and numbers that the request names and the plan does not mention."""
    # A file that is named whole may be a literal or a reference.
    words = (each.words for each in plan_references(plan))
    literals = "\n".join((*earlier.literals, *(str(value) for value in plan_literals(plan)), *words))
    found: list[Mismatch] = []
    for kind, pattern in (("file", FILE_PATTERN), ("address", ADDRESS_PATTERN), ("link", LINK_PATTERN)):
        for name in dict.fromkeys(pattern.findall(intent.request)):
            if name.rstrip(".,;:!?)/").lower() not in literals.lower():
                message = f"The request names the {kind} {name!r}; the plan never uses it."
                found.append(Mismatch("plan.unused-object", message))
    return found


def _unused_inputs(plan: Plan, earlier: EarlierRounds) -> list[Mismatch]:
    """Given values that a plan replaces, or that it uses none of: then its answer is about nothing that was given."""
    if not earlier.given:
        return []
    given = ", ".join(f"`{name}`" for name in earlier.variables)
    replaced = [name for name in earlier.variables if name in assigned_names(plan.steps)]
    if replaced:
        names = ", ".join(f"`{name}`" for name in replaced)
        return [Mismatch("plan.unused-input", f"{names} must not be assigned: the value is given.", severe=True)]
    if any(earlier.variables.keys() & free_names(step) for _, step in walk(plan.steps)):
        return []
    return [Mismatch("plan.unused-input", f"The plan must use what is given: {given}.", severe=True)]


def _invented_objects(plan: Plan, intent: Intent, own: Collection[str]) -> list[Mismatch]:
    """Addresses, links and files in the plan that neither the request nor the settings name: they are invented."""
    request = intent.request
    found: list[Mismatch] = []
    for value in plan_literals(plan):
        if not isinstance(value, str) or value.strip().casefold() in own:
            continue
        for kind, pattern in (("address", ADDRESS_PATTERN), ("link", LINK_PATTERN), ("file", FILE_PATTERN)):
            whole = pattern.fullmatch(value.strip())
            if whole and not _is_named(value.strip(), request, kind):
                message = f"Nobody named the {kind} {value!r}: use what the request names or what a tool returns."
                found.append(Mismatch("plan.invented-object", message, severe=kind == "address"))
                break
    return found


def _configured_values(plan: Plan, intent: Intent, registry: Registry) -> frozenset[str]:
    """The values that the settings have for arguments of the plan's calls, where the request names no file."""
    if FILE_PATTERN.search(intent.request):
        return frozenset()
    called = {step.tool for _, step in walk(plan.steps) if isinstance(step, Call)}
    tools = [tool for name in called if (tool := registry.get(name)) is not None]
    return frozenset(value.casefold() for tool in tools for values in tool.configured.values() for value in values)


def _invented_values(
    plan: Plan,
    intent: Intent,
    registry: Registry,
    settings: Collection[str],
    known: list[Mismatch],
    earlier: EarlierRounds,
) -> list[Mismatch]:
    """Literals that direct an effect and that nobody gave. An invented address is severe under its own code already."""
    found: list[Mismatch] = []
    for each in ungrounded_directives(plan, intent, registry, settings, start=earlier.origins):
        if any(other.severe and repr(each.value) in other.message for other in known):
            continue
        message = (
            f"Nobody gave the value {each.value!r} that directs {each.tool} ({each.argument}): "
            "use what the request names or what a tool returns."
        )
        found.append(Mismatch("plan.invented-value", message, severe=True, path=each.path))
    return found


_POLITE_ORDER = lazy_pattern(
    r"\b(?:can|could|would|will)\s+(?:you|u)\b|\b(?:kannst|könntest|würdest|magst)\s+du\b|^\W*(?:kannst|könntest|würdest)\b|"
    r"\b(?:können|könnten|würden)\s+sie\b|\b(?:peux|pourrais|veux)[-\s]tu\b|\btu\s+(?:peux|pourrais|veux)\b|"
    r"\b(?:pouvez|pourriez)[-\s]vous\b|\bvous\s+(?:pouvez|pourriez)\b|^\W*(?:peux|pouvez|pourrais|pourriez)\b|"
    r"\b(?:puedes|podrías|podrias|podés|podría|podria)\b|^\W*(?:me\s+)?puede\b|"
    r"\b(?:please|pls|plz|bitte|stp|svp|s'il\s+(?:te|vous)\s+plaît|por\s+favor|porfa)\b",
    re.IGNORECASE,
)


def _asks_for_answer(request: str) -> bool:
    """Whether a request is a question about how things are, and no order in the form of one (`Can you …?`)."""
    return request.rstrip().endswith("?") and _POLITE_ORDER.search(request) is None


def _unsupported_claims(plan: Plan, intent: Intent, registry: Registry, earlier: EarlierRounds) -> list[Mismatch]:
    """Effects that the answer claims and no call of the plan makes."""
    asks = _asks_for_answer(intent.request)
    found: list[Mismatch] = []
    for each in unsupported_claims(plan, registry, done=earlier.effects):
        # The answer to a question tells what others did: "Yes, it was paid".
        if each.claim.reported and asks:
            continue
        message = (
            f"The answer claims an effect ({each.claim.phrase!r}) that no step makes on every path to it: "
            "make the call, or answer what was done."
        )
        found.append(Mismatch("plan.unsupported-claim", message, severe=True, path=each.path))
    return found


def _is_named(value: str, request: str, kind: str) -> bool:
    """Whether the request names this as a whole; for a file its last part is enough (`report.txt` into a folder)."""
    if kind == "file":
        return mentions_path(request, value) or mentions_path(request, value.rsplit("/", 1)[-1])
    return mentions(request, value)


def serves_intent(
    plan: Plan, intent: Intent, registry: Registry, *, earlier: EarlierRounds | None = None
) -> list[Mismatch]:
    """What a plan leaves undone of its intent: steps, parameters, constraints, the output.

    A step is served by a tool or function whose words it shares, and its parameters by literals of the plan. A
    constraint is kept if the plan has its numbers and one of its words; one that forbids an effect, if nothing has it.

    Args:
        earlier: Earlier rounds; their effects and literals count, too.
    """
    evidence = _PlanEvidence.of(plan, registry, earlier or EarlierRounds())
    return [
        *(found for step in intent.steps if (found := _unserved_step(step, evidence)) is not None),
        *(found for each in intent.constraints if (found := _broken_constraint(each, evidence, intent)) is not None),
        *_undelivered_output(intent, evidence),
    ]


@dataclass(frozen=True, slots=True)
class _PlanEvidence:
    """What a plan is made of: its code, the stems of its words and of its tools, its literals, and its effects."""

    code: str
    stems: frozenset[str]
    literals: tuple[Any, ...]
    said: str
    tools: tuple[Tool, ...]
    effects: frozenset[str]

    @classmethod
    def of(cls, plan: Plan, registry: Registry, earlier: EarlierRounds) -> _PlanEvidence:
        # The notations of columns that binding wrote into the plan are no words of it.
        plan = unbind_cells(plan)
        code = print_plan(plan.model_copy(update={"goal": ""}), registry)
        called = dict.fromkeys(step.tool for _, step in walk(plan.steps) if isinstance(step, Call))
        tools = tuple(tool for name in called if (tool := registry.get(name)) is not None)
        literals = (*earlier.literals, *plan_literals(plan))
        words = [code.replace("_", " "), *(" ".join((tool.doc, *tool.words)) for tool in tools)]
        effects = {tool.effect for tool in tools if tool.changes} | set(earlier.effects)
        said = "\n".join(map(str, literals)).casefold()
        return cls(code, frozenset(text_stems(" ".join(words))), literals, said, tools, frozenset(effects))

    def has_value(self, value: object) -> bool:
        """Whether a literal of the plan is this value, or a text that contains it in some form."""
        if isinstance(value, bool):
            return any(each is value for each in self.literals)
        if isinstance(value, int | float):
            return str(value) in self.said or any(each == value for each in self.literals if type(each) in (int, float))
        text = str(value).casefold().strip()
        return text in self.said or (bool(own := text_stems(text)) and set(own) <= set(text_stems(self.said)))


def _unserved_step(step: IntentStep, evidence: _PlanEvidence) -> Mismatch | None:
    for name, value in step.parameters.items():
        if value is None or value is False:
            continue
        values = value if isinstance(value, tuple) else (value,)
        # A switch may be an argument of the tool, or be served by what the plan does instead.
        is_named = value is True and (f"{name}=" in evidence.code or name.replace("_", "") in evidence.code)
        if not is_named and not all(evidence.has_value(each) for each in values if each is not None):
            message = f"The intent asks for {step.text!r}; the plan never uses its {name} {value!r}."
            return Mismatch("plan.unserved-step", message)
    words = text_stems(step.action.replace("_", " ").replace("-", " "))
    if words and not set(words) & evidence.stems and not any(map(evidence.has_value, _text_values(step))):
        return Mismatch("plan.unserved-step", f"The intent asks for {step.text!r}; nothing in the plan does that.")
    return None


def _text_values(step: IntentStep) -> list[str]:
    return [value for value in step.parameters.values() if isinstance(value, str) and value]


_FORBIDDING = lazy_pattern(
    r"\b(?:no|not|don't|never|without|nothing|nicht|kein|keine|keinen|nichts|ohne|ne|sans|aucun|sin|ningún|nada)\b",
    re.IGNORECASE,
)


def _broken_constraint(constraint: str, evidence: _PlanEvidence, intent: Intent) -> Mismatch | None:
    """A constraint that nothing in the plan keeps. One that forbids what a tool of the plan does is severe."""
    if _FORBIDDING.search(constraint):
        for tool in evidence.tools:
            if tool.changes and has_any_phrase(constraint, tool.words):
                message = f"The intent forbids it ({constraint!r}), and the plan uses {tool.name}: remove it."
                return Mismatch("plan.broken-constraint", message, severe=True)
    rest = constraint
    for named in intent.dates:
        rest = rest.replace(named.phrase, " ")
    missing = [number for number in NUMBER.findall(rest) if not has_number(number, [*evidence.literals], evidence.said)]
    words = set(text_stems(rest))
    kept = not words or words & evidence.stems or words & set(text_stems(evidence.said)) or _FORBIDDING.search(rest)
    if missing or not kept:
        reason = f"the plan does not have {missing[0]}" if missing else "nothing in the plan keeps it"
        return Mismatch("plan.broken-constraint", f"The intent has the constraint {constraint!r}: {reason}.")
    return None


def _undelivered_output(intent: Intent, evidence: _PlanEvidence) -> Iterator[Mismatch]:
    output = intent.output
    wanted: tuple[str, ...] = ()
    match output.kind:
        case "file":
            done, wanted = "write" in evidence.effects, (output.path,) if output.path else ()
        case "mail":
            done, wanted = "send" in evidence.effects, tuple(each for each in output.to if "@" in each)
        case "calendar":
            done = any(tool.changes and _CALENDAR_STEMS & set(text_stems(tool.doc)) for tool in evidence.tools)
        case _:
            return
    if not done:
        message = f"The result should go into {output.text!r}, and the plan does not put it there."
        yield Mismatch("plan.undelivered-output", message)
        return
    for target in wanted:
        if target.casefold() not in evidence.said:
            yield Mismatch("plan.undelivered-output", f"The result should go to {target!r}, which the plan never uses.")


_CALENDAR_STEMS = frozenset(text_stems("calendar event appointment"))


def drop_unasked_steps(plan: Plan, intent: Intent, registry: Registry) -> Plan:
    """The plan without the calls whose effects nobody asked for, where no other step uses their results."""
    read = {name for _, step in walk(plan.steps) for part in step_expressions(step) for name in free_names(part)}

    def without_unasked(steps: tuple[Any, ...]) -> tuple[Any, ...]:
        found: list[Any] = []
        for step in steps:
            match step:
                case Call() if (tool := registry.get(step.tool)) is not None and tool.changes:
                    if tool.effect not in intent.effects and step.name not in read:
                        continue
                case Each() if (inner := without_unasked(step.steps)) != step.steps:
                    step = step.model_copy(update={"steps": inner}) if inner else None
                case When() if (inner := (without_unasked(step.steps), without_unasked(step.otherwise))) != (
                    step.steps,
                    step.otherwise,
                ):
                    step = step.model_copy(update={"steps": inner[0], "otherwise": inner[1]}) if inner[0] else step
                case _:
                    pass
            if step is not None:
                found.append(step)
        return tuple(found)

    return plan.model_copy(update={"steps": without_unasked(plan.steps)})


def dropped_tools(written: Plan, plan: Plan) -> tuple[str, ...]:
    """The tools of the calls that a plan lost, in order."""
    before, after = ([step.tool for _, step in walk(each.steps) if isinstance(step, Call)] for each in (written, plan))
    return tuple(name for name in dict.fromkeys(before) if before.count(name) > after.count(name))
