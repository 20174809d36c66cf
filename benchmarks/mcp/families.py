"""All types of attacks: every module of `benchmarks.mcp.attacks` is one."""

from __future__ import annotations

import pkgutil
from collections.abc import Sequence
from importlib import import_module

from . import attacks
from .scenario import Attack, AttackType

TYPES: tuple[str, ...] = tuple(sorted(each.name.replace("_", "-") for each in pkgutil.iter_modules(attacks.__path__)))


def all_attacks(types: Sequence[str] = TYPES) -> list[Attack]:
    """Every attack of these types."""
    found: list[Attack] = []
    for name in types:
        type_ = import_module(f"{attacks.__name__}.{name.replace('-', '_')}").attacks
        if not isinstance(type_, AttackType) or type_.name != name:
            raise TypeError(f"{name}.attacks is no AttackType of that name")
        found += type_.attacks
    return found
