"""What one plan is written from: the session with the planner, the request as it is told, and the tools it may use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from bicameral.planning._decode import GREEDY, PlanDraft, Sampling, decode_freely, decode_typed, next_openings
from bicameral.planning._intent_document import Intent
from bicameral.planning._matching import named_objects
from bicameral.planning._neutral_names import NeutralNames
from bicameral.planning._rounds import EarlierRounds
from bicameral.planning._statement_grammar import statement_grammar
from bicameral.sessions import Session
from bicameral.tools import Registry


@dataclass(frozen=True)
class PlanningJob:
    """The inputs of one plan. `registry` and `earlier` are as the planner sees them.

    `real_registry` has the chosen tools under their real names. `begin` are the first statements of the plan.
    """

    session: Session
    request: str
    intent: Intent
    registry: Registry
    real_registry: Registry
    watch: Callable[[str], None] | None
    earlier: EarlierRounds | None
    real_earlier: EarlierRounds | None
    names: NeutralNames
    confidence: bool = False
    sampling: Sampling = GREEDY
    begin: str = ""

    async def write_typed(
        self, *, after: str = "", avoid: frozenset[str] = frozenset(), may_refuse: bool = True
    ) -> PlanDraft:
        """The next plan, statement by statement, in the grammar of the registry.

        Args:
            after: The statements before; without any, those with which the plan begins.
        """
        return await decode_typed(
            self.session,
            self.request,
            self.registry,
            self._readable_watch,
            named=self._named_objects,
            after=after or self.begin,
            avoid=avoid,
            earlier=self.earlier,
            confidence=self.confidence,
            sampling=self.sampling,
            may_refuse=may_refuse,
        )

    async def write_freely(self) -> PlanDraft:
        """The next plan in one reply, for a provider without grammars."""
        return await decode_freely(
            self.session, self.request, self._readable_watch, confidence=self.confidence, sampling=self.sampling
        )

    @cached_property
    def first_grammar(self) -> str | None:
        """The grammar of the first statement, if the provider supports grammars."""
        if not self.session.provider.grammars:
            return None
        openings = next_openings("", self.registry, self.earlier)
        given = frozenset[str]() if self.earlier is None else self.earlier.fixed_names
        return statement_grammar(self.registry, openings, self._named_objects, given)

    @property
    def is_influenced(self) -> bool:
        """Whether untrusted text influenced what the planner reads."""
        return self.names.influenced or (self.earlier is not None and not self.earlier.read_label.trusted)

    @property
    def _named_objects(self) -> dict[str, list[str]]:
        return named_objects(self.intent.request)

    @property
    def _readable_watch(self) -> Callable[[str], None] | None:
        watch = self.watch
        return None if watch is None else lambda statement: watch(self.names.to_readable(statement))
