"""The mutants, by what they are about."""

from __future__ import annotations

from scripts.mutants.mutant import Mutant
from scripts.mutants.rooms import boundary, configuration, journal, labels, models, plans, policy, runs, tools

MUTANTS: tuple[Mutant, ...] = (
    *labels.MUTANTS,
    *policy.MUTANTS,
    *plans.MUTANTS,
    *runs.MUTANTS,
    *boundary.MUTANTS,
    *journal.MUTANTS,
    *models.MUTANTS,
    *tools.MUTANTS,
    *configuration.MUTANTS,
)
ROOMS = tuple(dict.fromkeys(mutant.room for mutant in MUTANTS))
