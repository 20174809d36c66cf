"""Tools: what a plan can do to the world, each with typed arguments, a typed result and a declared effect.

Typed Python functions come in by `@tool`, commands by a manifest or by their own `--describe`; toolboxes group
them. Out goes a `Registry`: the only tools that a plan can name. Commands run confined (no shell, only the files
and limits they were given); where the kernel cannot confine they refuse to run.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._attached import ATTACHED, Attaches, argument_of, can_name, named_in
from ._attached_files import AttachedFile, attached_files, bound_to, changes, read_attached
from ._executed import TABLES, FindTarget, Target
from ._folders import Folders
from ._key import call_key, key_of, under_key
from ._origins import Origin, Origins, Participants
from ._protected import Protected, ProtectedPath, database_files
from ._python import tool
from ._registry import Registry
from ._shades import principals
from ._tool import CHANGING, EFFECTS, PURPOSES, REQUIRED, Argument, Effect, Owned, Purpose, Tool
from ._toolbox import Settings, Surroundings, Toolbox

if TYPE_CHECKING:
    from ._command import CommandFailed, command_of, command_tools
    from ._command_line import command_arguments, command_usage, ready_command
    from ._describe import CommandSettings, describe_tool
    from ._loading import installed_toolboxes, load_file, load_toolbox, load_toolboxes
    from ._manifest import Manifest, manifest_schema, parse_manifest, read_manifest
    from ._sandbox import Completed, Confinement, confinement_problem, run_confined

__all__ = [
    "ATTACHED",
    "CHANGING",
    "EFFECTS",
    "PURPOSES",
    "REQUIRED",
    "TABLES",
    "Argument",
    "AttachedFile",
    "Attaches",
    "CommandFailed",
    "CommandSettings",
    "Completed",
    "Confinement",
    "Effect",
    "FindTarget",
    "Folders",
    "Manifest",
    "Origin",
    "Origins",
    "Owned",
    "Participants",
    "Protected",
    "ProtectedPath",
    "Purpose",
    "Registry",
    "Settings",
    "Surroundings",
    "Target",
    "Tool",
    "Toolbox",
    "argument_of",
    "attached_files",
    "bound_to",
    "call_key",
    "can_name",
    "changes",
    "command_arguments",
    "command_of",
    "command_tools",
    "command_usage",
    "confinement_problem",
    "database_files",
    "describe_tool",
    "installed_toolboxes",
    "key_of",
    "load_file",
    "load_toolbox",
    "load_toolboxes",
    "manifest_schema",
    "named_in",
    "parse_manifest",
    "principals",
    "read_attached",
    "read_manifest",
    "ready_command",
    "run_confined",
    "tool",
    "under_key",
]

# Commands, manifests and packages are looked at only where somebody asks for them, so that `import bicameral` is quick.
_LATER = {
    "_command": ("CommandFailed", "command_of", "command_tools"),
    "_command_line": ("command_arguments", "command_usage", "ready_command"),
    "_describe": ("CommandSettings", "describe_tool"),
    "_loading": ("installed_toolboxes", "load_file", "load_toolbox", "load_toolboxes"),
    "_manifest": ("Manifest", "manifest_schema", "parse_manifest", "read_manifest"),
    "_sandbox": ("Completed", "Confinement", "confinement_problem", "run_confined"),
}


def __getattr__(name: str) -> Any:
    for module, names in _LATER.items():
        if name in names:
            return getattr(import_module(f".{module}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
