"""All families of attacks: every module of `benchmarks.redteam.attacks` is one."""

from __future__ import annotations

import pkgutil
from collections.abc import Sequence
from importlib import import_module

from . import attacks
from .case import Case, Family

FAMILIES: tuple[str, ...] = tuple(sorted(each.name for each in pkgutil.iter_modules(attacks.__path__)))


def all_cases(families: Sequence[str] = FAMILIES) -> list[Case]:
    """Every case of these families."""
    found: list[Case] = []
    for name in families:
        family = import_module(f"{attacks.__name__}.{name}").attacks
        if not isinstance(family, Family) or family.name != name:
            raise TypeError(f"{name}.attacks is no Family of that name")
        found += family.cases
    return found
