"""Bicameral: a dual-model agent runtime. Say it, see the plan, check it, run it.

    from bicameral import Agent, tool

Names are loaded when they are first used, so importing the package costs almost nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bicameral.errors import BicameralError

    from .agent import Agent, Checked, Planned, SyncAgent
    from .config import Config
    from .models import LocalProvider, ModelStore, ScriptedProvider
    from .planning import Intent
    from .plans import Plan, Report, check, parse, print_plan
    from .policy import Policy
    from .routing import ModelSelector
    from .runs import Failed, Finished, Journal, Stopped
    from .tools import Registry, Tool, Toolbox, tool

__version__ = "0.1.0"

_HOMES = {
    "agent": ("Agent", "Checked", "Planned", "SyncAgent"),
    "config": ("Config",),
    "errors": ("BicameralError",),
    "planning": ("Intent",),
    "models": ("LocalProvider", "ModelStore", "ScriptedProvider"),
    "plans": ("Plan", "Report", "check", "parse", "print_plan"),
    "policy": ("Policy",),
    "routing": ("ModelSelector",),
    "runs": ("Failed", "Finished", "Journal", "Stopped"),
    "tools": ("Registry", "Tool", "Toolbox", "tool"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Agent",
    "BicameralError",
    "Checked",
    "Config",
    "Failed",
    "Finished",
    "Intent",
    "Journal",
    "LocalProvider",
    "ModelSelector",
    "ModelStore",
    "Plan",
    "Planned",
    "Policy",
    "Registry",
    "Report",
    "ScriptedProvider",
    "Stopped",
    "SyncAgent",
    "Tool",
    "Toolbox",
    "check",
    "parse",
    "print_plan",
    "tool",
]


def __getattr__(name: str) -> Any:
    if home := _HOME.get(name):
        return getattr(import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
