"""The mutants, by what they are about."""

from __future__ import annotations

from scripts.mutants.mutant import Mutant
from scripts.mutants.rooms import (
    binding,
    boundary,
    configuration,
    conversations,
    doubts,
    find,
    journal,
    labels,
    models,
    plan_choice,
    planning,
    plans,
    policy,
    runs,
    tables,
    tools,
)

MUTANTS: tuple[Mutant, ...] = (
    *labels.MUTANTS,
    *policy.MUTANTS,
    *planning.MUTANTS,
    *plan_choice.MUTANTS,
    *plans.MUTANTS,
    *runs.MUTANTS,
    *doubts.MUTANTS,
    *find.MUTANTS,
    *boundary.MUTANTS,
    *binding.MUTANTS,
    *journal.MUTANTS,
    *models.MUTANTS,
    *tools.MUTANTS,
    *tables.MUTANTS,
    *configuration.MUTANTS,
    *conversations.MUTANTS,
)
ROOMS = tuple(dict.fromkeys(mutant.room for mutant in MUTANTS))
