"""What a planner is told of the rounds before: the newest whole, and of the oldest a line each once it gets long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bicameral.types import Type

from ._outcome import Round

MOST = 4_000
"""Characters beyond which the oldest rounds are told in a line. The newest is never shortened."""
_LONGEST_TYPE = 120


def told(rounds: Sequence[Round], variables: Mapping[str, Type], *, most: int = MOST) -> str:
    """The rounds so far and the variables that they left; nothing before the first round."""
    if not rounds:
        return ""
    parts = [_whole(each) for each in rounds]
    for at, each in enumerate(rounds[:-1]):
        if sum(map(len, parts)) <= most:
            break
        parts[at] = _line(each)
    return "\n".join(("Done so far:", *parts, *_variables(variables), "Write the plan for what is left to do."))


def _whole(each: Round) -> str:
    lines = [f"plan {each.number}:"]
    lines += [f"  {line}" for line in each.draft.splitlines() if not line.startswith('"""')]
    lines += [f"  # {line}" for line in _came(each)]
    return "\n".join(lines)


def _line(each: Round) -> str:
    done = ", ".join(dict.fromkeys(effect.tool for effect in each.effects))
    if each.failure is not None:
        return f"plan {each.number}: {each.failure}" + (f"; done before that: {done}" if done else "")
    left = ", ".join(each.left) or "nothing"
    return f"plan {each.number}: left {left}" + (f"; done: {done}" if done else "")


def _came(each: Round) -> list[str]:
    """What came of a round: what was told of its results, or where it failed, and what it has done to the world."""
    lines = list(each.told)
    if each.failure is not None:
        lines.append(str(each.failure))
    done = dict.fromkeys(effect.tool for effect in each.effects)
    return lines + ([f"done, do not do it again: {', '.join(done)}"] if done else [])


def _variables(variables: Mapping[str, Type]) -> list[str]:
    shown = [f"{name} ({_short(type_)})" for name, type_ in variables.items()]
    return [f"You can use: {', '.join(shown)}."] if shown else []


def _short(type_: Type) -> str:
    text = str(type_)
    return text if len(text) <= _LONGEST_TYPE else f"{text[: _LONGEST_TYPE - 1]}…"
