"""Tools: everything a plan can do, each with typed arguments, a typed result and a declared effect.

Typed Python functions become tools with `@tool`, commands with a manifest or their own `--describe`; toolboxes group
them. The result is a `Registry`: a plan can name no other tools. Commands run confined (no shell, only the files and
limits they were given); where the kernel cannot confine them they refuse to run.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bicameral.tools._call_identity import (
    AttachedFile,
    attached_files,
    bind_attached_files,
    call_key,
    derive_call_key,
    describe_changes,
    read_attached,
    use_call_key,
)
from bicameral.tools._call_labels import ATTACHED_SUFFIX, AttachedOrigins, can_name, names_at, part_argument, principals
from bicameral.tools._declaration import Registry, Settings, Surroundings, Toolbox, tool
from bicameral.tools._folders import Folders
from bicameral.tools._origins import Origin, Origins, Participants
from bicameral.tools._path_rules import (
    TABLE_SUFFIXES,
    FindTarget,
    ProtectedPath,
    ProtectedPaths,
    WriteTarget,
    protected_database_files,
)
from bicameral.tools._tool import CHANGING, EFFECTS, PURPOSES, REQUIRED, Argument, Effect, OwnershipTest, Purpose, Tool

if TYPE_CHECKING:
    from bicameral.tools._command import CommandFailed, command_tools, find_command
    from bicameral.tools._command_interface import (
        CommandSettings,
        command_arguments,
        command_usage,
        describe_tool,
        require_command,
    )
    from bicameral.tools._loading import (
        LoadedToolbox,
        installed_toolboxes,
        load_file,
        load_installed_toolbox,
        load_toolbox,
        load_toolboxes,
    )
    from bicameral.tools._manifest import Manifest, manifest_schema, parse_manifest, read_manifest
    from bicameral.tools._sandbox import CommandResult, Confinement, confinement_problem, run_confined

__all__ = [
    "ATTACHED_SUFFIX",
    "CHANGING",
    "EFFECTS",
    "PURPOSES",
    "REQUIRED",
    "TABLE_SUFFIXES",
    "Argument",
    "AttachedFile",
    "AttachedOrigins",
    "CommandFailed",
    "CommandResult",
    "CommandSettings",
    "Confinement",
    "Effect",
    "FindTarget",
    "Folders",
    "LoadedToolbox",
    "Manifest",
    "Origin",
    "Origins",
    "OwnershipTest",
    "Participants",
    "ProtectedPath",
    "ProtectedPaths",
    "Purpose",
    "Registry",
    "Settings",
    "Surroundings",
    "Tool",
    "Toolbox",
    "WriteTarget",
    "attached_files",
    "bind_attached_files",
    "call_key",
    "can_name",
    "command_arguments",
    "command_tools",
    "command_usage",
    "confinement_problem",
    "derive_call_key",
    "describe_changes",
    "describe_tool",
    "find_command",
    "installed_toolboxes",
    "load_file",
    "load_installed_toolbox",
    "load_toolbox",
    "load_toolboxes",
    "manifest_schema",
    "names_at",
    "parse_manifest",
    "part_argument",
    "principals",
    "protected_database_files",
    "read_attached",
    "read_manifest",
    "require_command",
    "run_confined",
    "tool",
    "use_call_key",
]

# Modules for commands, manifests and packages are loaded at first use, so that `import bicameral` stays fast.
_LATER = {
    "_command": ("CommandFailed", "find_command", "command_tools"),
    "_command_interface": ("CommandSettings", "command_arguments", "command_usage", "describe_tool", "require_command"),
    "_loading": (
        "LoadedToolbox",
        "installed_toolboxes",
        "load_file",
        "load_installed_toolbox",
        "load_toolbox",
        "load_toolboxes",
    ),
    "_manifest": ("Manifest", "manifest_schema", "parse_manifest", "read_manifest"),
    "_sandbox": ("CommandResult", "Confinement", "confinement_problem", "run_confined"),
}


def __getattr__(name: str) -> Any:
    for module, names in _LATER.items():
        if name in names:
            return getattr(import_module(f".{module}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
