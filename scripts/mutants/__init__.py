"""Mutants of load-bearing functions: one small, wrong change each, which the tests of `make test` must notice.

`python -m scripts.mutants` applies them one by one to a copy of `src` and runs the tests that must fail.
"""

from __future__ import annotations

from scripts.mutants.mutant import Mutant, StaleMutant, apply_mutant
from scripts.mutants.rooms import MUTANTS, ROOMS

__all__ = ["MUTANTS", "ROOMS", "Mutant", "StaleMutant", "apply_mutant"]
