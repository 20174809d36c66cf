"""A plan held against its intent: what was asked and is missing, what was not asked and is there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from bicameral.intent import Intent, mentions, mentions_path, says
from bicameral.plans import Call, Const, Each, Plan, When, children, free_names, walk
from bicameral.tools import Effect, Registry

from ._named import ADDRESS, FILE, LINK
from ._rounds import Earlier

_MISSING = "plan.missing-effect"


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Where a plan and its intent part. A `severe` one is never let through."""

    code: Literal[
        "plan.missing-effect", "plan.unasked-effect", "plan.other-tool", "plan.unused-object", "plan.invented-object"
    ]
    message: str
    severe: bool = False
    path: str | None = None


def against_intent(
    plan: Plan, intent: Intent, registry: Registry, *, earlier: Earlier | None = None, looks: bool = False
) -> list[Mismatch]:
    """Everything in which the plan does not do what was asked, or does what was not.

    What `earlier` plans did and said counts too, and of a plan that only `looks` nothing can be missing yet.
    """
    earlier = earlier or Earlier()
    return [
        *(each for each in _effects(plan, intent, registry, earlier) if not (looks and each.code == _MISSING)),
        *_other_tools(plan, intent, registry),
        *([] if looks else _unused(plan, intent, earlier)),
        *_invented(plan, intent),
    ]


def _effects(plan: Plan, intent: Intent, registry: Registry, earlier: Earlier) -> list[Mismatch]:
    done: dict[Effect, str] = {}
    for _, step in walk(plan.steps):
        if isinstance(step, Call) and (tool := registry.get(step.tool)) is not None and tool.changes:
            done.setdefault(tool.effect, tool.name)
    found: list[Mismatch] = []
    for effect in intent.required:
        if effect not in done and effect not in earlier.effects:
            tools = ", ".join(tool.name for tool in registry if tool.effect == effect)
            found.append(
                Mismatch(_MISSING, f"The request asks to {_VERB[effect]}, and the plan does not: use {tools}.")
            )
    for effect, name in done.items():
        if effect not in intent.effects:
            message = f"{name} would {_VERB[effect]}, and the request does not ask for that: remove it."
            found.append(Mismatch("plan.unasked-effect", message, severe=effect != "write"))
    return found


def _other_tools(plan: Plan, intent: Intent, registry: Registry) -> list[Mismatch]:
    """Tools that change the world where the request's own words ask for another tool of the same toolbox."""
    found: list[Mismatch] = []
    for path, step in walk(plan.steps):
        tool = registry.get(step.tool) if isinstance(step, Call) else None
        if tool is None or not tool.changes or not tool.words or says(intent.request, tool.words):
            continue
        meant = [
            other.name
            for other in registry
            if other.toolbox == tool.toolbox and other.effect == tool.effect and says(intent.request, other.words)
        ]
        if meant:
            message = f"The request does not ask for {tool.name}; what it says is done by {', '.join(meant)}."
            found.append(Mismatch("plan.other-tool", message, path=path))
    return found


_VERB: dict[Effect, str] = {
    "write": "write something",
    "send": "send something",
    "irreversible": "delete something",
}


def _unused(plan: Plan, intent: Intent, earlier: Earlier) -> list[Mismatch]:
    """Files, addresses, links and numbers that the request names and the plan does not mention."""
    said = "\n".join((*earlier.said, *(str(value) for value in literals(plan))))
    found: list[Mismatch] = []
    for kind, pattern in (("file", FILE), ("address", ADDRESS), ("link", LINK)):
        for name in dict.fromkeys(pattern.findall(intent.request)):
            if name.rstrip(".,;:!?)/").lower() not in said.lower():
                found.append(
                    Mismatch("plan.unused-object", f"The request names the {kind} {name!r}; the plan never uses it.")
                )
    return found


def _invented(plan: Plan, intent: Intent) -> list[Mismatch]:
    """Addresses, links and files in the plan that nobody named: a model made them up."""
    request = intent.request
    found: list[Mismatch] = []
    for value in literals(plan):
        if not isinstance(value, str):
            continue
        for kind, pattern in (("address", ADDRESS), ("link", LINK), ("file", FILE)):
            whole = pattern.fullmatch(value.strip())
            if whole and not _named(value.strip(), request, kind):
                message = f"Nobody named the {kind} {value!r}: use what the request names or what a tool returns."
                found.append(Mismatch("plan.invented-object", message, severe=kind == "address"))
                break
    return found


def _named(value: str, request: str, kind: str) -> bool:
    """Whether the request names this as a whole; a file is named by its last part too (`report.txt` into a folder)."""
    if kind == "file":
        return mentions_path(request, value) or mentions_path(request, value.rsplit("/", 1)[-1])
    return mentions(request, value)


def without_unasked(plan: Plan, intent: Intent, registry: Registry) -> Plan:
    """The plan without the steps that change the world in a way nobody asked for, where nothing depends on them."""
    read = {name for _, step in walk(plan.steps) for name in _reads(step)}

    def kept(steps: tuple[Any, ...]) -> tuple[Any, ...]:
        found: list[Any] = []
        for step in steps:
            match step:
                case Call() if (tool := registry.get(step.tool)) is not None and tool.changes:
                    if tool.effect not in intent.effects and step.name not in read:
                        continue
                case Each() if (inner := kept(step.steps)) != step.steps:
                    step = step.model_copy(update={"steps": inner}) if inner else None
                case When() if (inner := (kept(step.steps), kept(step.otherwise))) != (step.steps, step.otherwise):
                    step = step.model_copy(update={"steps": inner[0], "otherwise": inner[1]}) if inner[0] else step
                case _:
                    pass
            if step is not None:
                found.append(step)
        return tuple(found)

    return plan.model_copy(update={"steps": kept(plan.steps)})


def _reads(step: Any) -> frozenset[str]:
    return frozenset[str]().union(*(free_names(part) for part in _expressions(step)))


def _expressions(step: Any) -> list[Any]:
    """The expressions that stand in a step itself, not in the steps inside it."""
    names = ("value", "key", "source", "instruction", "over", "condition", "question")
    own = [getattr(step, name, None) for name in names]
    return [part for part in (*own, *getattr(step, "args", {}).values()) if part is not None]


def literals(plan: Plan) -> list[Any]:
    """Every literal in a plan, in order."""
    found: list[Any] = []

    def collect(node: Any) -> None:
        if isinstance(node, Const):
            found.append(node.value)
        elif hasattr(node, "parts"):
            found.extend(part for part in node.parts if isinstance(part, str))
        for child in children(node):
            collect(child)

    for _, step in walk(plan.steps):
        for part in _expressions(step):
            collect(part)
    return found
