"""Write a plan in its surface syntax, so that reading it again gives the same plan."""

from __future__ import annotations

from collections.abc import Iterator

from bicameral.tools import Registry

from ._depth import bound_depth
from ._plan import Answer, Ask, Call, Compute, Each, Extract, Plan, Step, Update, When
from ._print_expressions import OR, escaped, show, show_type

_INDENT = "    "


def print_plan(plan: Plan, registry: Registry | None = None) -> str:
    """The plan as Python text; with a registry the required arguments of tools come first, without their names.

    Example:
        >>> print_plan(parse("answer(1 + 1)").plan)
        'answer(1 + 1)\\n'
    """
    bound_depth(plan)
    lines = [f'"""{escaped(plan.goal)}"""'] if plan.goal else []
    lines += _lines(plan.steps, registry, "")
    return "".join(f"{line}\n" for line in lines)


def _lines(steps: tuple[Step, ...], registry: Registry | None, indent: str) -> Iterator[str]:
    for step in steps:
        match step:
            case Each():
                yield f"{indent}for {', '.join(step.names)} in {show(step.over)}:"
                yield from _lines(step.steps, registry, indent + _INDENT)
            case When():
                yield from _when(step, registry, indent, "if")
            case _:
                yield f"{indent}{_line(step, registry)}"


def _when(step: When, registry: Registry | None, indent: str, word: str) -> Iterator[str]:
    yield f"{indent}{word} {show(step.condition)}:"
    yield from _lines(step.steps, registry, indent + _INDENT)
    match step.otherwise:
        case ():
            pass
        case (When() as other,):
            yield from _when(other, registry, indent, "elif")
        case others:
            yield f"{indent}else:"
            yield from _lines(others, registry, indent + _INDENT)


def _line(step: Call | Extract | Compute | Update | Ask | Answer, registry: Registry | None) -> str:
    match step:
        case Call():
            return f"{step.name} = {_call(step, registry)}" if step.name else _call(step, registry)
        case Extract():
            source, instruction = show(step.source), show(step.instruction)
            return f"{step.name} = extract({source}, {instruction}, {show_type(step.wanted)})"
        case Ask():
            type_ = "" if step.type == "str" else f", {show_type(step.wanted)}"
            return f"{step.name} = ask({show(step.question)}{type_})"
        case Compute():
            return f"{step.name} = {show(step.value)}"
        case Update():
            return _update(step)
        case Answer():
            return f"answer({show(step.value)})"


def _update(step: Update) -> str:
    match step.op:
        case "append":
            return f"{step.name}.append({show(step.value)})"
        case "add":
            return f"{step.name} += {show(step.value)}"
        case "put":
            return f"{step.name}[{show(step.key, OR) if step.key is not None else ''}] = {show(step.value)}"


def _call(step: Call, registry: Registry | None) -> str:
    tool = registry.get(step.tool) if registry is not None else None
    arguments = tool.arguments if tool is not None else ()
    shown: list[str] = []
    by_position = True
    for number, (name, value) in enumerate(step.args.items()):
        # Only where the order of the plan is the order of the tool: the order of arguments is part of the plan.
        by_position = (
            by_position and number < len(arguments) and arguments[number].required and arguments[number].name == name
        )
        shown.append(show(value) if by_position else f"{name}={show(value)}")
    return f"{step.tool}({', '.join(shown)})"
