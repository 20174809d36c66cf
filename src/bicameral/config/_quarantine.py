"""The variant of the executor that a configuration chooses, and the only place where one is put together.

Every way into the runtime (command line, server, workers, `Agent`) opens its executor here. Names are checked when the
configuration is loaded: a model that the quarantine may not use, or a tool that does more than read, is an error and is
never replaced by a weaker variant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from bicameral.config._config import Config, QuarantineSettings, QuarantineVariant
from bicameral.config._models import EmbeddedProvider, open_router
from bicameral.config._planning_model import planning_models
from bicameral.config._routing import EMBEDDED_ALIAS, can_serve, find_model_weights, no_key_error
from bicameral.config._sources import Locate, SettingKeys
from bicameral.errors import ConfigError, ModelError, nearest_name
from bicameral.tools import Registry, executor_fault

if TYPE_CHECKING:
    from bicameral.boundary import Executor, ExecutorFacts
    from bicameral.models import Provider
    from bicameral.sessions import Listener, Quarantined

_SETTINGS_OF: Mapping[QuarantineVariant, frozenset[str]] = {
    "extract": frozenset(),
    "read-only": frozenset({"reads", "lookups"}),
    "triple": frozenset({"validators", "validator_models"}),
}
"""The settings that only one variant uses."""


def check_quarantine(config: Config, locate: Locate) -> None:
    """Raise the first mistake in `[quarantine]`, with its place; the tools are checked when they are opened."""
    settings = config.quarantine
    usual = QuarantineSettings()
    for variant, names in _SETTINGS_OF.items():
        for name in sorted(names & settings.model_fields_set):
            # Not a note: whoever names validators must not go on without them because of another word.
            if variant != settings.variant and getattr(settings, name) != getattr(usual, name):
                raise ConfigError(
                    "config.other-variant",
                    f"'quarantine.{name}' is for the variant {variant!r}, and the variant is {settings.variant!r}",
                    place=locate(("quarantine", name)),
                    fix=f'Set variant = "{variant}", or take it out.',
                )
    if settings.model is not None:
        _check_model(config, settings.model, ("quarantine", "model"), locate)
    for name in settings.validator_models:
        _check_model(config, name, ("quarantine", "validator_models"), locate)
    _check_validators(settings, locate)


def _check_model(config: Config, name: str, path: SettingKeys, locate: Locate) -> None:
    if name in config.llm.models or name == EMBEDDED_ALIAS:
        if can_serve(config, name, "quarantined"):
            return
        error = no_key_error(name)
    else:
        try:
            find_model_weights(config, name)
            return
        except ModelError as unknown:
            # Of the hub's files nothing is known before they are added, which is no mistake of the configuration.
            if unknown.code == "models.not-added":
                return
        known = [*planning_models(config), EMBEDDED_ALIAS]
        error = ConfigError(
            "config.unknown-model",
            f"there is no model {name!r} for the quarantine",
            expected=f"an alias, or weights: {', '.join(known)}",
            nearest=nearest_name(name, known),
        )
    error.place = locate(path)
    raise error


def _check_validators(settings: QuarantineSettings, locate: Locate) -> None:
    named, wanted = settings.validator_models, settings.validators
    if len(set(named)) < len(named):
        twice = next(name for name in named if named.count(name) > 1)
        raise ConfigError(
            "config.same-validators",
            f"'quarantine.validator_models' has {twice!r} twice",
            place=locate(("quarantine", "validator_models")),
            fix="A model gives the same answer twice: name each once.",
        )
    if named and wanted not in (1, len(named)):
        raise ConfigError(
            "config.same-validators",
            f"'quarantine.validators' is {wanted}, and 'quarantine.validator_models' names {len(named)}",
            place=locate(("quarantine", "validators")),
            fix="Leave out the number.",
        )
    if wanted > 1 and not named:
        raise ConfigError(
            "config.same-validators",
            f"{wanted} validators of the same model would all give the same answer",
            place=locate(("quarantine", "validators")),
            fix="Name as many different models in 'quarantine.validator_models'.",
        )


def with_quarantine_variant(config: Config, variant: QuarantineVariant) -> Config:
    """The configuration with another variant; settings that only other variants use are left out."""
    others = frozenset[str]().union(*(names for each, names in _SETTINGS_OF.items() if each != variant))
    kept = config.quarantine.model_dump(exclude_unset=True, exclude=set(others)) | {"variant": variant}
    return config.model_copy(update={"quarantine": QuarantineSettings.model_validate(kept)})


def mark_executor_tools(config: Config, registry: Registry, locate: Locate) -> Registry:
    """The registry in which the read-only executor may call the tools of `[quarantine] reads`, and no others.

    A toolbox cannot offer its own tools to the executor: only the user's configuration does.
    """
    settings = config.quarantine
    names = settings.reads if settings.variant == "read-only" else ()
    for name in names:
        tool = registry.get(name)
        fault = None if tool is None else executor_fault(tool)
        if tool is not None and fault is None:
            continue
        fit = [each.name for each in registry if executor_fault(each) is None]
        place = locate(("quarantine", "reads"))
        expected = f"a tool that only reads: {', '.join(fit) or 'there is none'}"
        if tool is None:
            raise ConfigError(
                "config.unknown-tool",
                f"there is no tool {name!r} for the executor to read with",
                place=place,
                expected=expected,
                nearest=nearest_name(name, registry.names),
            )
        raise ConfigError(
            "config.not-for-executor",
            f"the executor may not call {name!r} by itself: it {fault}",
            place=place,
            expected=expected,
            fix="Untrusted text decides what the executor asks for. Call this tool in the plan instead.",
        )
    return registry.with_executor_tools(names)


@dataclass(frozen=True, slots=True)
class OpenedExecutor:
    """An executor, and the models that it has for itself: they are closed with it."""

    executor: Executor
    models: tuple[Quarantined, ...] = ()

    @property
    def facts(self) -> ExecutorFacts:
        from bicameral.boundary import executor_facts

        return executor_facts(self.executor)

    async def aclose(self) -> None:
        for model in self.models:
            await model.aclose()


def open_executor(
    config: Config,
    quarantined: Provider | Quarantined,
    *,
    privileged: Provider | None = None,
    now: Callable[[], datetime] | None = None,
    timeout: float | None = None,
    listener: Listener | None = None,
) -> OpenedExecutor:
    """The executor that a configuration describes.

    Args:
        config: The configuration.
        quarantined: The quarantined model, which reads unless `[quarantine] model` names another.
        privileged: The model of the other chamber, with which none of these may share a key.
        now: The clock of the executor.
        timeout: Seconds for one model call.
        listener: Is called with every model call.
    """
    from bicameral.boundary import Extractor, ModelValidator, ReadOnlyExecutor, RuleValidator, ValidatedExecutor
    from bicameral.sessions import Chambers, Quarantined

    settings = config.quarantine
    calls: dict[str, Any] = {"timeout": timeout, "listener": listener}
    own: list[Quarantined] = []

    def open_model(name: str) -> Quarantined:
        found = Quarantined(_open_provider(config, name))
        if privileged is not None:
            # Raises if a key would serve both chambers.
            Chambers(privileged, found)
        own.append(found)
        return found

    reader = Quarantined(quarantined) if settings.model is None else open_model(settings.model)
    executor: Executor = Extractor(reader, now=now, **calls)
    match settings.variant:
        case "extract":
            pass
        case "read-only":
            executor = ReadOnlyExecutor(executor, reads=settings.lookups, tools=settings.reads)
        case "triple":
            models = [open_model(name) for name in settings.validator_models] or [reader]
            validators = [ModelValidator(model, **calls) for model in models]
            executor = ValidatedExecutor(executor, [RuleValidator(), *validators])
    return OpenedExecutor(executor, tuple(own))


def _open_provider(config: Config, name: str) -> Provider:
    if name in config.llm.models or name == EMBEDDED_ALIAS:
        return open_router(config, "quarantined", only=name)
    return EmbeddedProvider(config, "quarantined", name)


def configured_executor(config: Config) -> ExecutorFacts:
    """What a run of this configuration would report of its executor. Nothing is loaded."""
    return open_executor(config, open_router(config, "quarantined")).facts


def executor_notes(config: Config) -> Iterator[str]:
    """Remarks on a valid configuration of the quarantine."""
    from bicameral.models import known_weights

    facts = configured_executor(config)
    models = facts.validators[1:]
    if facts.model in models:
        yield "the model that reads also validates: what wins it over once may do so twice"
    if any(weights.id in name for weights in known_weights() for name in models):
        # Tried: asked about a plain order, both answer that it is data.
        yield "the embedded weights are too small to tell orders from facts: the fixed rules are all that helps"
