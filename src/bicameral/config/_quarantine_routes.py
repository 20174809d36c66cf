"""What answers after untrusted text, where a role or a phase has a model that the quarantined chamber may not use.

The quarantined chamber has the aliases that need no key and those with a key of its own. A role or phase that names
another one is no mistake, since that alias answers until untrusted text comes in. From then on another one does, or the
call is refused; the person who wrote the profile should know. What answers is asked of the router itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bicameral.config._config import Config
from bicameral.config._models import open_router
from bicameral.config._routing import find_key, is_keyed, key_names, model_selection, split_model_name
from bicameral.errors import ConfigError

if TYPE_CHECKING:
    from bicameral.routing import CallContext, Router, Selection

NEVER_UNTRUSTED = ("echo", "delta")
"""The roles that never read untrusted text: they see the request of the person and nothing else."""


@dataclass(frozen=True, slots=True)
class QuarantineGap:
    """Roles and phases with an alias that does not answer after untrusted text.

    Args:
        subjects: Such as `role planning`, `phase plan`, and `phase plan of spar`.
        instead: The alias that answers then; None if the call is refused.
        model: The model of that alias.
        lacking: The environment variable or keyring entry that is named for the quarantine and not set.
    """

    alias: str
    subjects: tuple[str, ...]
    instead: str | None
    model: str = ""
    lacking: str = ""

    @property
    def consequence(self) -> str:
        """What happens after untrusted text."""
        if self.instead is None:
            return f"after untrusted text the call is refused, since {self.lacking} is not set"
        return f"after untrusted text {self.instead!r} ({self.model}) answers instead"

    @property
    def fix(self) -> str:
        if self.instead is None:
            return f"Set {self.lacking} to a key that only the quarantined chamber has."
        return (
            f"Give {self.alias!r} a key of its own there with quarantined_api_key_env, or name a model without a key."
        )

    def to_error(self) -> ConfigError:
        """The gap as a note."""
        why = "has no key for the quarantined chamber" if self.instead is not None else "has no key there yet"
        return ConfigError(
            "routing.not-in-quarantine",
            f"{', '.join(self.subjects)}: the alias {self.alias!r} {why}: {self.consequence}",
            fix=self.fix,
        )


def quarantine_gaps(config: Config) -> list[QuarantineGap]:
    """The roles and phases of a configuration that have another model after untrusted text, or none, by alias."""
    router = open_router(config, "quarantined")
    found: dict[tuple[str, str | None, str], list[str]] = {}
    for subject, alias, here in _mapped_calls(model_selection(config)):
        if alias not in router.aliases:
            found.setdefault((alias, _chosen_alias(router, here), ""), []).append(subject)
        elif (lacking := _missing_key(config, alias)) is not None:
            found.setdefault((alias, None, lacking), []).append(subject)
    return [
        QuarantineGap(alias, tuple(subjects), instead, router.aliases[instead].identity if instead else "", lacking)
        for (alias, instead, lacking), subjects in found.items()
    ]


def quarantine_notes(config: Config) -> list[ConfigError]:
    """The gaps as notes."""
    return [gap.to_error() for gap in quarantine_gaps(config)]


def _mapped_calls(selection: Selection) -> Iterator[tuple[str, str, CallContext]]:
    """Each entry of the role map and the phase maps, and the context of a call of it that has read untrusted text."""
    from bicameral.patterns.strategies import phase_role
    from bicameral.routing import CallContext

    untrusted = CallContext(chamber="quarantined", trusted=False)
    for role, alias in selection.roles.items():
        if role not in NEVER_UNTRUSTED:
            # A role of the user's own is reached by the hint of a step.
            hinted = replace(untrusted, role="acting", phase="act", hint=role)
            is_own = role in selection.custom_roles
            yield f"role {role}", alias, hinted if is_own else replace(untrusted, role=role)
    for phase, alias in selection.phases.items():
        yield f"phase {phase}", alias, replace(untrusted, phase=phase, role=phase_role(phase))
    for strategy, phases in selection.strategy_phases.items():
        for phase, alias in phases.items():
            here = replace(untrusted, phase=phase, strategy=strategy, role=phase_role(phase, strategy))
            yield f"phase {phase} of {strategy}", alias, here


def _chosen_alias(router: Router, here: CallContext) -> str:
    from bicameral.models import ModelRequest

    return router.choose(ModelRequest(()), here).alias


def _missing_key(config: Config, alias: str) -> str | None:
    """The name of the quarantine's key of an alias, if it is not set."""
    settings = config.llm.models.get(alias)
    if settings is None or settings.model is None or not is_keyed(settings):
        return None
    variable, entry = key_names(settings, split_model_name(settings.model)[0], "quarantined")
    if find_key(variable, entry) is not None:
        return None
    return f"the keyring entry {entry}" if entry else f"the environment variable {variable}"
