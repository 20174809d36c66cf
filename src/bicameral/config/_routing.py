"""What a configuration says about choosing models, held against itself before anything is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from bicameral.errors import BicameralError, ConfigError, nearest

from ._config import Config
from ._keys import key_names
from ._llm import AliasSettings
from ._mistakes import Keys, Locate

if TYPE_CHECKING:
    from bicameral.models import Chamber
    from bicameral.routing import AliasSpec, Selection

EMBEDDED = "embedded"
"""The alias that is always there: the embedded model of the chamber that asks."""
LOCAL = "local"
_SYNONYMS = {"gemini": "google", "ollama_chat": "ollama", "hosted_vllm": "vllm", "llama.cpp": "llamacpp"}


def is_routed(config: Config) -> bool:
    """Whether anything is said about choosing models."""
    return bool(config.llm.model_fields_set or config.agent.planning_strategy_params.phase_models)


def selection_of(config: Config) -> Selection:
    """The rules, maps and default of a configuration; a condition that is none is told with its place by the check."""
    from bicameral.routing import Rule, Selection

    llm = config.llm
    rules = llm.routing.rules if llm.routing.enabled else ()
    return Selection(
        llm.default_model or EMBEDDED,
        tuple(Rule.of(rule.condition, rule.model) for rule in rules),
        dict(config.agent.planning_strategy_params.phase_models),
        dict(llm.model_roles),
    )


def check_routing(config: Config, locate: Locate) -> list[ConfigError]:
    """Raise the first mistake, with its place. Gives what is worth knowing and changes nothing."""
    from bicameral.routing import mistakes

    for path, error in _wrong_aliases(config):
        raise _placed(error, path, locate)
    for index, rule in enumerate(config.llm.routing.rules):
        _check_condition(rule.condition, ("llm", "routing", "rules", index, "condition"), locate)
    selection, notes = selection_of(config), list[ConfigError]()
    for mistake in mistakes(selection, [*config.llm.models, EMBEDDED]):
        error = _placed(mistake.error, _under(mistake.path), locate)
        if mistake.severe:
            raise error
        notes.append(error)
    for path, error in (*_unservable(config, selection), *_odd_budgets(config)):
        raise _placed(error, path, locate)
    return notes


def family_of(model: str) -> tuple[str, str]:
    """`openai/gpt-4.1` -> the family and the name that it has there."""
    family, _, name = model.partition("/")
    return _SYNONYMS.get(family, family), name


def spec_of(settings: AliasSettings) -> AliasSpec:
    """What is put around the model of an alias."""
    from bicameral.routing import AliasSpec, BreakerSettings, Budget, RetrySettings

    retry, breaker, budget = settings.retry, settings.breaker, settings.budget
    return AliasSpec(
        retry=None if retry is None else RetrySettings(**retry.model_dump()),
        hedge_after=settings.hedge_after,
        hedge_with=settings.hedge_with,
        fallback=settings.fallback,
        breaker=None if breaker is None else BreakerSettings(**breaker.model_dump()),
        cascade=settings.cascade,
        settle=settings.settle,
        cache=settings.cache,
        budget=None if budget is None else Budget(**budget.model_dump()),
    )


def serves(config: Config, alias: str, chamber: Chamber) -> bool:
    """Whether an alias may be used in a chamber: the quarantine has models without a key, or with one of its own."""
    if alias == EMBEDDED:
        return True
    settings = config.llm.models[alias]
    if settings.cascade:
        return any(serves(config, each, chamber) for each in settings.cascade)
    return chamber == "privileged" or not keyed(settings) or any(key_names(settings, "", "quarantined"))


def keyed(settings: AliasSettings) -> bool:
    """Whether a model is asked with a key at all."""
    from bicameral.models import FAMILIES

    family = family_of(settings.model or "")[0]
    if family == LOCAL:
        return False
    known = FAMILIES.get(family)
    return bool(settings.api_key_env or settings.api_key_keyring) or (
        settings.base_url is None and (known is None or known.key)
    )


def reachable(config: Config, chamber: Chamber) -> list[str]:
    """The aliases that calls of a chamber can be led to without naming one, and what those lead to in turn."""
    selection = selection_of(config)
    default = selection.default if serves(config, selection.default, chamber) else EMBEDDED
    roles = [alias for role, alias in selection.roles.items() if (role == "quarantined") == (chamber == "quarantined")]
    named = [*roles, *selection.phases.values(), *(rule.model for rule in selection.rules)]
    # A default that no role is left for is still asked by those who have none.
    waiting = [default if not (chamber == "quarantined" and roles) else roles[0], *named]
    found: dict[str, None] = {}
    while waiting:
        name = waiting.pop()
        if name not in found and serves(config, name, chamber):
            found[name] = None
            if name != EMBEDDED:
                waiting += [other for _, other in spec_of(config.llm.models[name]).names]
    return list(found)


def _check_condition(condition: str, path: Keys, locate: Locate) -> None:
    from bicameral.routing import parse_condition

    try:
        parse_condition(condition)
    except ConfigError as error:
        raise _placed(error, path, locate) from None


def _wrong_aliases(config: Config) -> Iterator[tuple[Keys, BicameralError]]:
    """What is wrong with aliases themselves."""
    aliases = config.llm.models
    for name, settings in aliases.items():
        path: Keys = ("llm", "models", name)
        if name == EMBEDDED:
            message = f"{EMBEDDED!r} is the alias of the embedded models and cannot be another's"
            yield path, ConfigError("routing.bad-alias", message, fix="Use another name.")
        if settings.model is not None and (error := _wrong_model(settings.model)) is not None:
            yield (*path, "model"), error
        if settings.base_url is not None and not _is_address(settings.base_url):
            message = f"{settings.base_url[:60]!r} is no address of a server"
            expected = "an address such as http://localhost:8000/v1, without a password or a query in it"
            yield (*path, "base_url"), ConfigError("routing.bad-model", message, expected=expected)
        for key, other in spec_of(settings).names:
            if other not in aliases and other != EMBEDDED:
                yield (*path, key), _unknown(other, [*aliases, EMBEDDED])
    yield from _cycles(aliases)
    yield from _shared_keys(aliases)


def _wrong_model(model: str) -> BicameralError | None:
    from bicameral.models import FAMILIES, find_weights

    family, name = family_of(model)
    known = [LOCAL, "litellm", *FAMILIES]
    if not name or family not in known:
        return ConfigError(
            "routing.bad-model",
            f"{model!r} names no model",
            expected=f"family/model, where the family is one of {', '.join(known)}",
            nearest=nearest(family, known) if name else None,
            fix="For another server that speaks OpenAI's protocol use openai/MODEL with its base_url.",
        )
    if family != LOCAL:
        return None
    try:
        find_weights(name)
    except BicameralError as error:
        return error
    return None


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return False
    hidden = parts.username or parts.password or parts.query or parts.fragment
    return parts.scheme in ("http", "https") and bool(parts.hostname) and not hidden


def _unknown(alias: str, names: list[str]) -> ConfigError:
    from bicameral.routing import unknown_alias

    return unknown_alias(alias, names)


def _cycles(aliases: Mapping[str, AliasSettings]) -> Iterator[tuple[Keys, ConfigError]]:
    """Aliases that lead back to themselves through fallbacks and cascades."""
    from bicameral.routing import cycle_in

    specs = {name: spec_of(settings) for name, settings in aliases.items()}
    if (found := cycle_in(specs)) is not None:
        way = (*found, found[0])
        key = next(key for key, name in specs[way[0]].names if name == way[1])
        message = f"the aliases lead to each other in a circle: {' → '.join(way)}"
        yield ("llm", "models", way[0], key), ConfigError("routing.cycle", message, fix="Take one of them out.")


def _shared_keys(aliases: Mapping[str, AliasSettings]) -> Iterator[tuple[Keys, ConfigError]]:
    """A key that would serve both chambers, whichever alias names it."""
    privileged: dict[str, str] = {}
    for name, settings in aliases.items():
        if settings.model is not None and keyed(settings):
            for key in key_names(settings, family_of(settings.model)[0], "privileged"):
                privileged.setdefault(key or "", name)
    for name, settings in aliases.items():
        for field in ("quarantined_api_key_env", "quarantined_api_key_keyring"):
            if (key := getattr(settings, field)) and key in privileged:
                yield (
                    ("llm", "models", name, field),
                    ConfigError(
                        "routing.shared-key",
                        f"the key {key!r} would serve both chambers: {privileged[key]!r} has it on the privileged side",
                        fix="Give each chamber a key of its own.",
                    ),
                )


def _unservable(config: Config, selection: Selection) -> Iterator[tuple[Keys, ConfigError]]:
    """Models that the quarantine is told to use and must not."""
    from bicameral.routing import only_quarantined

    wanted = selection.roles.get("quarantined")
    if wanted is not None and not serves(config, wanted, "quarantined"):
        yield ("llm", "model_roles", "quarantined"), _no_key(wanted)
    for index, rule in enumerate(selection.rules):
        if only_quarantined(rule) and not serves(config, rule.model, "quarantined"):
            yield ("llm", "routing", "rules", index, "model"), _no_key(rule.model)


def _odd_budgets(config: Config) -> Iterator[tuple[Keys, ConfigError]]:
    from bicameral.routing import ROLES

    for role in config.llm.role_budgets:
        if role not in ROLES:
            yield (
                ("llm", "role_budgets", role),
                ConfigError(
                    "routing.unknown-role",
                    f"there is no role {role!r}",
                    expected=f"one of {', '.join(ROLES)}",
                    nearest=nearest(role, ROLES),
                ),
            )


def _no_key(alias: str) -> ConfigError:
    return ConfigError(
        "routing.no-quarantined-key",
        f"the alias {alias!r} has no key of the quarantined chamber and cannot serve it",
        fix="Name one with quarantined_api_key_env, or use a model that needs none.",
    )


def _under(path: Keys) -> Keys:
    """Where a key of the selection stands in the configuration."""
    return ("agent", "planning_strategy_params", *path) if path[0] == "phase_models" else ("llm", *path)


def _placed(error: BicameralError, path: Keys, locate: Locate) -> ConfigError:
    found = locate(path)
    if isinstance(error, ConfigError):
        error.place = found or error.place
        return error
    return ConfigError(
        error.code, error.message, place=found, expected=error.expected, nearest=error.nearest, fix=error.fix
    )
