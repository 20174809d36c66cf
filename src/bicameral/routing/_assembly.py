"""Assembly of providers: the settings of an alias besides its model, and the provider that is built from them.

models:
  main:
    model: openai:gpt-4.1
    retry: { attempts: 4 }
    hedge_after: 5
    hedge_with: fast
    fallback: [fast, local]
    cache: true
    budget: { money: 2.00 }
  planner:
    cascade: [fast, powerful]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from bicameral.errors import ConfigError
from bicameral.limits import Limits
from bicameral.models import Provider
from bicameral.routing._aliases import DeferredProvider
from bicameral.routing._combinators import Accept, BudgetedProvider, Cascade, Hedged, check_finished
from bicameral.routing._recovery import BreakerSettings, Fallback, Retry, RetrySettings
from bicameral.routing._reply_cache import CachedProvider


@dataclass(frozen=True, slots=True)
class AliasSpec:
    """The wrappers around the model of an alias. A `cascade` replaces the model: aliases, the cheapest first."""

    retry: RetrySettings | None = None
    hedge_after: float | None = None
    hedge_with: str | None = None
    fallback: tuple[str, ...] = ()
    breaker: BreakerSettings | None = None
    cascade: tuple[str, ...] = ()
    settle: bool = False
    cache: bool = False
    budget: Limits | None = None

    @property
    def named_aliases(self) -> Iterator[tuple[str, str]]:
        """The other aliases that these settings name, each with the key."""
        if self.hedge_with is not None:
            yield "hedge_with", self.hedge_with
        yield from (("fallback", name) for name in self.fallback)
        yield from (("cascade", name) for name in self.cascade)

    @property
    def is_plain(self) -> bool:
        """Whether there are no wrappers around the model."""
        return self == AliasSpec()


PLAIN_SPEC = AliasSpec()


def find_alias_cycle(specs: Mapping[str, AliasSpec]) -> tuple[str, ...] | None:
    """Aliases that lead to each other in a cycle, or None."""
    try:
        TopologicalSorter({name: [each for _, each in spec.named_aliases] for name, spec in specs.items()}).prepare()
    except CycleError as error:
        # The sorter goes from what is led to, to what leads there, and names the first again at the end.
        cycle: list[str] = error.args[1][:0:-1]
        start = cycle.index(next(name for name in specs if name in cycle))
        return (*cycle[start:], *cycle[:start])
    return None


class ProviderAssembly:
    """Builds the providers of one chamber from the settings of its aliases, each once.

    An alias that others lead to is the same object there, so its budget and its circuit breaker are shared.

    Args:
        model: Returns the bare model of an alias, which must be of this chamber.
        cache: Where replies are stored for aliases with `cache`.
        accept: Judges the replies of cascades.
    """

    def __init__(
        self,
        specs: Mapping[str, AliasSpec],
        model: Callable[[str], Provider],
        *,
        cache: MutableMapping[str, str] | None = None,
        accept: Accept = check_finished,
    ) -> None:
        cycle = find_alias_cycle(specs)
        if cycle is not None:
            raise ConfigError(
                "routing.cycle",
                f"these aliases lead to each other in a circle: {' → '.join((*cycle, cycle[0]))}",
                fix="Take one of them out.",
            )
        self._specs, self._model, self._cache, self._accept = specs, model, cache, accept
        self._made: dict[str, Provider] = {}

    def provider(self, name: str) -> Provider:
        """The provider of an alias with its wrappers."""
        if name not in self._made:
            self._made[name] = self._wrap_provider(name, self._specs.get(name, PLAIN_SPEC))
        return self._made[name]

    def _wrap_provider(self, name: str, spec: AliasSpec) -> Provider:
        """The wrappers from the inside out: cache, retry, hedge, budget, fallback."""
        if spec.cascade:
            stages = [self.provider(each) for each in spec.cascade]
            provider: Provider = Cascade(*stages, accept=self._accept, settle=spec.settle)
        else:
            provider = self._model(name)
        if spec.cache and self._cache is not None:
            given = {"given": provider.prepare_request} if isinstance(provider, DeferredProvider) else {}
            provider = CachedProvider(provider, self._cache, **given)
        if spec.retry is not None:
            provider = Retry(provider, spec.retry)
        if spec.hedge_after is not None:
            second = None if spec.hedge_with is None else self.provider(spec.hedge_with)
            provider = Hedged(provider, after=spec.hedge_after, second=second)
        if spec.budget is not None:
            provider = BudgetedProvider(provider, spec.budget, name=name)
        if spec.fallback:
            others = [self.provider(each) for each in spec.fallback]
            provider = Fallback([provider, *others], breaker=spec.breaker)
        return provider
