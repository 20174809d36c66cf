"""Model aliases, routing rules and API keys of a configuration, checked against each other before any request.

Each chamber has a key of its own, from the environment or the keyring. Keys are never stored.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from bicameral.config._config import Config
from bicameral.config._llm_settings import USUAL_KEY_VARIABLES, AliasSettings
from bicameral.config._sources import Locate, SettingKeys
from bicameral.errors import BicameralError, ConfigError, ModelError, nearest_name
from bicameral.secrets import read_keyring_entry

if TYPE_CHECKING:
    from bicameral.models import Chamber, HubFile, Key, Weights
    from bicameral.routing import AliasSpec, Selection


def key_names(settings: AliasSettings, family: str, chamber: Chamber) -> tuple[str | None, str | None]:
    """The environment variable and the keyring entry of a chamber's key; None for each that is not used.

    A server that is not the family's own does not get the family's usual key.
    """
    if chamber == "quarantined":
        return settings.quarantined_api_key_env, settings.quarantined_api_key_keyring
    if settings.api_key_env is None and settings.api_key_keyring is None and settings.base_url is None:
        return USUAL_KEY_VARIABLES.get(family), None
    return settings.api_key_env, settings.api_key_keyring


def find_key(variable: str | None, entry: str | None, environment: Mapping[str, str] | None = None) -> Key | None:
    """The key from the keyring entry, if one is named, otherwise from the environment; None if there is none."""
    from bicameral.models import Key

    if entry is not None:
        return _read_keyring(entry)
    found = (os.environ if environment is None else environment).get(variable or "", "").strip()
    return Key(found, variable or "key") if found else None


def missing_key_error(alias: str, chamber: Chamber, variable: str | None, entry: str | None) -> ModelError:
    """The error for a key that is not set."""
    where = f"the keyring entry {entry!r}" if entry else f"the environment variable {variable}" if variable else "a key"
    return ModelError(
        "models.missing-key",
        f"the alias {alias!r} needs {where} for the {chamber} chamber, and it is not set",
        fix=f"Set {variable}." if variable and not entry else "Name it with api_key_env or api_key_keyring.",
    )


def _read_keyring(entry: str) -> Key | None:
    from bicameral.models import Key

    try:
        found = read_keyring_entry(entry)
    except ImportError:
        raise ModelError(
            "models.missing-package",
            "keys from the keyring need the package 'keyring', which is not installed",
            fix="Install it with `pip install 'bicameral[keyring]'`.",
        ) from None
    except Exception as error:
        # The message of a keyring may contain a secret, so only the class of the error is reported.
        raise ModelError(
            "models.missing-key",
            f"the keyring gives no entry {entry!r}: {type(error).__name__}",
            fix="Unlock it, or use api_key_env.",
        ) from None
    return Key(found, entry) if found else None


EMBEDDED_ALIAS = "embedded"
"""The alias that always exists: the embedded model of the chamber."""
LOCAL_FAMILY = "local"
_FAMILY_SYNONYMS = {"gemini": "google", "ollama_chat": "ollama", "hosted_vllm": "vllm", "llama.cpp": "llamacpp"}


def model_selection(config: Config) -> Selection:
    """The routing rules, the aliases of phases and roles, and the default alias of a configuration."""
    from bicameral.routing import RoutingRule, Selection

    llm = config.llm
    rules = llm.routing.rules if llm.routing.enabled else ()
    params = config.agent.planning_strategy_params
    return Selection(
        llm.default_model or EMBEDDED_ALIAS,
        tuple(RoutingRule.of(rule.condition, rule.model) for rule in rules),
        dict(params.phase_models),
        dict(llm.model_roles),
        {strategy: dict(phases) for strategy, phases in params.strategy_phase_models.items()},
    )


_STEP_HINT = re.compile(r"[a-z][a-z0-9_-]{0,39}")


def step_hints(config: Config) -> tuple[str, ...]:
    """The hints that a step of a plan may have: roles of the user's own, and words that the rules test."""
    from bicameral.routing import PHASES, ROLES

    words = model_selection(config).hints.difference(PHASES, ROLES)
    return tuple(sorted(word for word in words if _STEP_HINT.fullmatch(word)))


def check_routing(config: Config, locate: Locate) -> list[ConfigError]:
    """Raise the first mistake, with its place; return the remarks that are no errors."""
    from bicameral.routing import find_mistakes, parse_condition

    for path, error in _alias_mistakes(config):
        raise _with_place(error, path, locate)
    for index, rule in enumerate(config.llm.routing.rules):
        try:
            parse_condition(rule.condition)
        except ConfigError as error:
            raise _with_place(error, ("llm", "routing", "rules", index, "condition"), locate) from None
    selection, notes = model_selection(config), list[ConfigError]()
    for mistake in find_mistakes(selection, [*config.llm.models, EMBEDDED_ALIAS]):
        error = _with_place(mistake.error, _setting_keys(mistake.path), locate)
        if mistake.is_severe:
            raise error
        notes.append(error)
    unknown = (*_unknown_role_budgets(config), *_unknown_classifier(config))
    for path, error in (*_unservable_models(config, selection), *unknown):
        raise _with_place(error, path, locate)
    return notes


def _setting_keys(path: tuple[str | int, ...]) -> SettingKeys:
    """The keys of a setting of the selection in the configuration."""
    is_phase = path[0] in ("phase_models", "strategy_phase_models")
    return (*(("agent", "planning_strategy_params") if is_phase else ("llm",)), *path)


def split_model_name(model: str) -> tuple[str, str]:
    """The family and the model of a name such as `openai/gpt-4.1`.

    A GGUF file needs no family: `models/x.gguf` and `hub:owner/repo/x.gguf` are local. A server may serve a model of
    such a name, so what begins with its family is not a path; `./openai/x.gguf` is one.
    """
    from bicameral.models import FAMILIES, is_model_reference

    family, _, name = model.partition("/")
    if is_model_reference(model) and family not in (LOCAL_FAMILY, *FAMILIES, *_FAMILY_SYNONYMS):
        return LOCAL_FAMILY, model
    return _FAMILY_SYNONYMS.get(family, family), name


def alias_spec(settings: AliasSettings) -> AliasSpec:
    """The retries, fallbacks, cascade, cache and budget of an alias."""
    from bicameral.limits import Limits
    from bicameral.routing import AliasSpec, BreakerSettings, RetrySettings

    retry, breaker, budget = settings.retry, settings.breaker, settings.budget
    same = ("hedge_after", "hedge_with", "fallback", "cascade", "settle", "cache")
    return AliasSpec(
        retry=None if retry is None else RetrySettings(**retry.model_dump()),
        breaker=None if breaker is None else BreakerSettings(**breaker.model_dump()),
        budget=None if budget is None else Limits(**budget.model_dump()),
        **{name: getattr(settings, name) for name in same},
    )


def can_serve(config: Config, alias: str, chamber: Chamber) -> bool:
    """Whether a chamber may use an alias: in the quarantine it needs no key, or has one for the quarantine alone."""
    if alias == EMBEDDED_ALIAS:
        return True
    settings = config.llm.models[alias]
    if settings.cascade:
        return any(can_serve(config, each, chamber) for each in settings.cascade)
    return chamber == "privileged" or not is_keyed(settings) or any(key_names(settings, "", "quarantined"))


def is_keyed(settings: AliasSettings) -> bool:
    """Whether requests to a model need a key."""
    from bicameral.models import FAMILIES

    family = split_model_name(settings.model or "")[0]
    if family == LOCAL_FAMILY:
        return False
    known = FAMILIES.get(family)
    return bool(settings.api_key_env or settings.api_key_keyring) or (
        settings.base_url is None and (known is None or known.key)
    )


def reachable_aliases(config: Config, chamber: Chamber) -> list[str]:
    """The aliases that calls of a chamber can reach without naming one, with their fallbacks and cascades."""
    from bicameral.limits import QUARANTINED_ROLES

    selection = model_selection(config)
    default = selection.default if can_serve(config, selection.default, chamber) else EMBEDDED_ALIAS
    roles = [
        alias for role, alias in selection.roles.items() if (role in QUARANTINED_ROLES) == (chamber == "quarantined")
    ]
    phases = [alias for each in (selection.phases, *selection.strategy_phases.values()) for alias in each.values()]
    named = [*roles, *phases, *(rule.model for rule in selection.rules)]
    if config.agent.classifier_model is not None and chamber == "privileged":
        # It reads the user's own words only, so the quarantine has no use for it.
        named.append(config.agent.classifier_model)
    # The default serves calls without a role. Where plans are compiled, the privileged chamber has none.
    compiled = config.agent.planning_strategy in (None, "compiled")
    planned = compiled and all(role in selection.roles for role in ("echo", "delta"))
    has_role = "quarantined" in selection.roles if chamber == "quarantined" else planned
    waiting = [roles[0] if has_role else default, *named]
    found: dict[str, None] = {}
    while waiting:
        name = waiting.pop()
        if name not in found and can_serve(config, name, chamber):
            found[name] = None
            if name != EMBEDDED_ALIAS:
                waiting += [other for _, other in alias_spec(config.llm.models[name]).named_aliases]
    return list(found)


def _alias_mistakes(config: Config) -> Iterator[tuple[SettingKeys, BicameralError]]:
    """Mistakes in the aliases themselves."""
    from bicameral.routing import unknown_alias_error

    aliases = config.llm.models
    for name, settings in aliases.items():
        path: SettingKeys = ("llm", "models", name)
        if name == EMBEDDED_ALIAS:
            message = f"{EMBEDDED_ALIAS!r} is the alias of the embedded models and cannot be another's"
            yield path, ConfigError("routing.bad-alias", message, fix="Use another name.")
        if settings.model is not None and (error := _model_mistake(config, settings.model)) is not None:
            yield (*path, "model"), error
        if settings.base_url is not None and not _is_address(settings.base_url):
            message = f"{settings.base_url[:60]!r} is no address of a server"
            expected = "an address such as http://localhost:8000/v1, without a password or a query in it"
            yield (*path, "base_url"), ConfigError("routing.bad-model", message, expected=expected)
        for key, other in alias_spec(settings).named_aliases:
            if other not in aliases and other != EMBEDDED_ALIAS:
                yield (*path, key), unknown_alias_error(other, [*aliases, EMBEDDED_ALIAS])
    yield from _alias_cycles(aliases)
    yield from _shared_keys(aliases)


def find_model_weights(config: Config, name: str) -> Weights:
    """The weights that a configuration means by a name: known or own ones, or a file.

    The path of a file starts at the configuration that names it, like those of all files that it names.
    """
    from bicameral.models import ModelStore

    return ModelStore(config.models_folder).find(str(_find_reference(config, name) or name))


def _find_reference(config: Config, name: str) -> HubFile | Path | None:
    """The file of the hub or of this machine that a name means; None if it is the name of weights."""
    from bicameral.models import is_model_reference, parse_reference

    if not is_model_reference(name):
        return None
    reference = parse_reference(name)
    start = config.source.parent if config.source else config.base
    return start / reference if isinstance(reference, Path) else reference


def _model_mistake(config: Config, model: str) -> BicameralError | None:
    from bicameral.models import FAMILIES
    from bicameral.models.remote import LITELLM_FIX

    family, name = split_model_name(model)
    known = [LOCAL_FAMILY, *FAMILIES]
    if family == "litellm" and name:
        own = name if split_model_name(name)[0] in FAMILIES else None
        return ConfigError("routing.bad-model", f"{model!r} names no model", nearest=own, fix=LITELLM_FIX)
    if not name or family not in known:
        return ConfigError(
            "routing.bad-model",
            f"{model!r} names no model",
            expected=f"family/model, where the family is one of {', '.join(known)}",
            nearest=nearest_name(family, known) if name else None,
            fix="For another server that speaks OpenAI's protocol use openai/MODEL with its base_url.",
        )
    if family != LOCAL_FAMILY:
        return None
    try:
        match _find_reference(config, name):
            case None:
                find_model_weights(config, name)
            case Path() as path if not path.is_file():
                # What is in it is looked at when it is used: hashing it takes seconds, and a command may not need it.
                return ModelError("models.file-missing", f"the weights file {str(path)!r} is not there")
            case _:
                # Of the hub's files nothing is known before they are added, which is no mistake of the configuration.
                return None
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


def _alias_cycles(aliases: Mapping[str, AliasSettings]) -> Iterator[tuple[SettingKeys, ConfigError]]:
    """The first cycle of aliases through fallbacks and cascades, if there is one."""
    from bicameral.routing import find_alias_cycle

    specs = {name: alias_spec(settings) for name, settings in aliases.items()}
    if (found := find_alias_cycle(specs)) is not None:
        way = (*found, found[0])
        key = next(key for key, name in specs[way[0]].named_aliases if name == way[1])
        message = f"the aliases lead to each other in a circle: {' → '.join(way)}"
        yield ("llm", "models", way[0], key), ConfigError("routing.cycle", message, fix="Take one of them out.")


def _shared_keys(aliases: Mapping[str, AliasSettings]) -> Iterator[tuple[SettingKeys, ConfigError]]:
    """Keys that would serve both chambers, whichever aliases name them."""
    privileged: dict[str, str] = {}
    for name, settings in aliases.items():
        if settings.model is not None and is_keyed(settings):
            for key in key_names(settings, split_model_name(settings.model)[0], "privileged"):
                privileged.setdefault(key or "", name)
    for name, settings in aliases.items():
        for field in ("quarantined_api_key_env", "quarantined_api_key_keyring"):
            if (key := getattr(settings, field)) and key in privileged:
                side = f"{privileged[key]!r} has it on the privileged side"
                message = f"the key {key!r} would serve both chambers: {side}"
                error = ConfigError("routing.shared-key", message, fix="Give each chamber a key of its own.")
                yield ("llm", "models", name, field), error


def _unservable_models(config: Config, selection: Selection) -> Iterator[tuple[SettingKeys, ConfigError]]:
    """Models that the configuration gives to the quarantine and that have no key for it."""
    from bicameral.limits import QUARANTINED_ROLES
    from bicameral.routing import is_quarantined_only

    for role in sorted(QUARANTINED_ROLES):
        wanted = selection.roles.get(role)
        if wanted is not None and not can_serve(config, wanted, "quarantined"):
            yield ("llm", "model_roles", role), no_key_error(wanted)
    for index, rule in enumerate(selection.rules):
        if is_quarantined_only(rule) and not can_serve(config, rule.model, "quarantined"):
            yield ("llm", "routing", "rules", index, "model"), no_key_error(rule.model)


def unknown_role_error(role: str, known: Sequence[str]) -> ConfigError:
    """The error for a name that is no role, where these are."""
    expected = f"one of {', '.join(known)}"
    message, nearest = f"there is no role {role!r}", nearest_name(role, known)
    return ConfigError("routing.unknown-role", message, expected=expected, nearest=nearest)


def _unknown_role_budgets(config: Config) -> Iterator[tuple[SettingKeys, ConfigError]]:
    from bicameral.routing import ROLES

    # A hint chooses a model and leaves the call its role, so a role of the user's own is never charged.
    for role in config.llm.role_budgets:
        if role not in ROLES:
            yield ("llm", "role_budgets", role), unknown_role_error(role, ROLES)


def _unknown_classifier(config: Config) -> Iterator[tuple[SettingKeys, BicameralError]]:
    from bicameral.routing import unknown_alias_error

    alias, known = config.agent.classifier_model, [*config.llm.models, EMBEDDED_ALIAS]
    if alias is not None and alias not in known:
        yield ("agent", "classifier_model"), unknown_alias_error(alias, known)


def no_key_error(alias: str) -> ConfigError:
    """The error for an alias that the quarantine may not use."""
    return ConfigError(
        "routing.no-quarantined-key",
        f"the alias {alias!r} has no key of the quarantined chamber and cannot serve it",
        fix="Name one with quarantined_api_key_env, or use a model that needs none.",
    )


def _with_place(error: BicameralError, path: SettingKeys, locate: Locate) -> ConfigError:
    found = locate(path)
    if isinstance(error, ConfigError):
        error.place = found or error.place
        return error
    return ConfigError(
        error.code, error.message, place=found, expected=error.expected, nearest=error.nearest, fix=error.fix
    )
