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
    pattern_invariants,
    patterns,
    plan_choice,
    planning,
    plans,
    policy,
    quarantine,
    records,
    routing,
    runs,
    strategies,
    tables,
    tasks,
    tools,
    trials,
)

MUTANTS: tuple[Mutant, ...] = (
    *labels.MUTANTS,
    *policy.MUTANTS,
    *planning.MUTANTS,
    *plan_choice.MUTANTS,
    *plans.MUTANTS,
    *routing.MUTANTS,
    *runs.MUTANTS,
    *strategies.MUTANTS,
    *patterns.MUTANTS,
    *pattern_invariants.MUTANTS,
    *doubts.MUTANTS,
    *find.MUTANTS,
    *boundary.MUTANTS,
    *quarantine.MUTANTS,
    *binding.MUTANTS,
    *journal.MUTANTS,
    *records.MUTANTS,
    *models.MUTANTS,
    *tools.MUTANTS,
    *tables.MUTANTS,
    *configuration.MUTANTS,
    *conversations.MUTANTS,
    *trials.MUTANTS,
    *tasks.MUTANTS,
)
ROOMS = tuple(dict.fromkeys(mutant.room for mutant in MUTANTS))
