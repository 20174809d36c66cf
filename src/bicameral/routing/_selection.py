"""What chooses a model: rules, the phase map, the role map, and a default; and what can be wrong with them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from bicameral.errors import ConfigError, nearest

from ._conditions import Is, Tree, atoms
from ._logic import possible
from ._parsing import parse_condition

ROLES = ("echo", "delta", "quarantined", "planning", "reasoning", "acting", "reflecting", "summarizing")
"""What calls are for. `delta` writes whole plans: without an entry of its own it takes that of `planning`."""
PHASES = ("sense", "plan", "act", "reflect", "final_answer")
"""The steps of strategies."""
STANDS_FOR = {"delta": "planning"}

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """Calls for which the condition holds go to the model with this alias.

    Example:
        >>> Rule.of("has_tools and message_count > 10", "powerful")
    """

    condition: str
    model: str
    tree: Tree

    @classmethod
    def of(cls, condition: str, model: str) -> Rule:
        """A rule as it is written; a condition that is none is a `ConfigError` with its column."""
        return cls(condition, model, parse_condition(condition))


@dataclass(frozen=True, slots=True)
class Selection:
    """Everything that chooses among aliases. The first of these that has an answer gives it:

    the alias that a call names, the first rule that matches, the phase map, the role map, the default.
    """

    default: str
    rules: tuple[Rule, ...] = ()
    phases: Mapping[str, str] = field(default_factory=dict[str, str])
    roles: Mapping[str, str] = field(default_factory=dict[str, str])

    def of_role(self, role: str) -> str | None:
        """The alias that the role map has for a role."""
        return self.roles.get(role) or self.roles.get(STANDS_FOR.get(role, ""))

    @property
    def named(self) -> Iterator[tuple[Path, str]]:
        """Every alias that is named somewhere, with where."""
        yield ("default_model",), self.default
        for role, alias in self.roles.items():
            yield ("model_roles", role), alias
        for phase, alias in self.phases.items():
            yield ("phase_models", phase), alias
        for index, rule in enumerate(self.rules):
            yield ("routing", "rules", index, "model"), rule.model


@dataclass(frozen=True, slots=True)
class Mistake:
    """Something wrong with a selection, and the key where it stands. What is not severe is told and changes nothing."""

    path: Path
    error: ConfigError
    severe: bool = True


def mistakes(selection: Selection, aliases: Collection[str]) -> Iterator[Mistake]:
    """Everything that is wrong: unknown names, rules that can never match, and rules that are never reached."""
    for path, alias in selection.named:
        if alias not in aliases:
            yield Mistake(path, unknown_alias(alias, aliases))
    for role in selection.roles:
        if role not in ROLES:
            yield Mistake(("model_roles", role), _unknown("role", role, ROLES))
    for phase in selection.phases:
        if phase not in PHASES:
            yield Mistake(("phase_models", phase), _unknown("phase", phase, PHASES))
    for index, rule in enumerate(selection.rules):
        path: Path = ("routing", "rules", index, "condition")
        yield from (Mistake(path, error) for error in _odd_words(rule, aliases))
    yield from _unreachable(selection.rules)


def unknown_alias(alias: str, aliases: Collection[str]) -> ConfigError:
    names = sorted(aliases)
    return ConfigError(
        "routing.unknown-alias",
        f"there is no model alias {alias!r}",
        expected=f"one of {', '.join(names)}" if names else None,
        nearest=nearest(alias, names),
        fix="Give it a model under `models`." if not names else None,
    )


def _unknown(kind: str, name: str, known: tuple[str, ...]) -> ConfigError:
    return ConfigError(
        f"routing.unknown-{kind}",
        f"there is no {kind} {name!r}",
        expected=f"one of {', '.join(known)}",
        nearest=nearest(name, known),
    )


def _odd_words(rule: Rule, aliases: Collection[str]) -> Iterator[ConfigError]:
    for atom in atoms(rule.tree):
        match atom:
            case Is(field="role", word=word) if word not in ROLES:
                yield _unknown("role", word, ROLES)
            case Is(field="phase", word=word) if word not in PHASES:
                yield _unknown("phase", word, PHASES)
            case Is(field="hint", word=word) if word in aliases:
                yield ConfigError(
                    "routing.never-matches",
                    f"'hint:{word}' can never match: {word!r} is an alias, and a call that names it gets that model",
                    fix="Use another word for the hint.",
                )
            case _:
                continue


def _unreachable(rules: tuple[Rule, ...]) -> Iterator[Mistake]:
    """Rules that no call can ever reach, each with the reason."""
    live: list[tuple[int, Rule]] = []
    for index, rule in enumerate(rules):
        path: Path = ("routing", "rules", index, "condition")
        if possible([rule.tree]) is False:
            yield Mistake(path, _never(rule))
            continue
        over = next((at for at, before in live if possible([rule.tree], [before.tree]) is False), None)
        if over is not None:
            yield Mistake(path, _shadowed(rule, over, rules[over]))
        elif live and possible([rule.tree], [before.tree for _, before in live]) is False:
            yield Mistake(path, _covered(rule), severe=False)
        live.append((index, rule))


def _never(rule: Rule) -> ConfigError:
    return ConfigError(
        "routing.never-matches",
        f"the rule {rule.condition!r} can never match: its parts contradict each other",
        fix="Mend the condition, or remove the rule.",
    )


def _shadowed(rule: Rule, over: int, before: Rule) -> ConfigError:
    return ConfigError(
        "routing.shadowed",
        f"the rule {rule.condition!r} is never reached: rule {over} ({before.condition!r}) matches all that it would",
        fix="Put it before that rule, or remove it.",
    )


def _covered(rule: Rule) -> ConfigError:
    return ConfigError(
        "routing.covered",
        f"the rule {rule.condition!r} is never reached: the rules before it together match all that it would",
        fix="Put it before them, or remove it.",
    )


def only_quarantined(rule: Rule) -> bool:
    """Whether a rule is for calls of the quarantined chamber and no others."""
    return any(
        possible([rule.tree], [atom]) is False for atom in (Is("chamber", "quarantined"), Is("role", "quarantined"))
    )
