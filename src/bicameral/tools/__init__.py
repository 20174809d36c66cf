"""Tools: everything a plan can do, each with typed arguments, a typed result and a declared effect.

Typed Python functions become tools with `@tool`, commands with a manifest or their own `--describe`; toolboxes group
them. The result is a `Registry`: a plan can name no other tools. Commands run confined (no shell, only the files and
limits they were given); where the kernel cannot confine them they refuse to run.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bicameral.tools._argument import (
    CHANGING as CHANGING,
    EFFECTS as EFFECTS,
    PURPOSES as PURPOSES,
    REFERENCE_KINDS as REFERENCE_KINDS,
    REQUIRED as REQUIRED,
    UNDECLARED as UNDECLARED,
    Argument as Argument,
    Effect as Effect,
    Purpose as Purpose,
    ReferenceKind as ReferenceKind,
)
from bicameral.tools._call_identity import (
    AttachedFile as AttachedFile,
    attached_files as attached_files,
    bind_attached_files as bind_attached_files,
    call_key as call_key,
    derive_call_key as derive_call_key,
    describe_changes as describe_changes,
    function_code_hash as function_code_hash,
    read_attached as read_attached,
    use_call_key as use_call_key,
)
from bicameral.tools._call_labels import (
    ATTACHED_SUFFIX as ATTACHED_SUFFIX,
    AttachedOrigins as AttachedOrigins,
    can_name as can_name,
    names_at as names_at,
    part_argument as part_argument,
    principals as principals,
)
from bicameral.tools._changes import (
    MAX_KEPT_FILE as MAX_KEPT_FILE,
    ChangeLog as ChangeLog,
    FileChange as FileChange,
    FileState as FileState,
    Rehearsal as Rehearsal,
    report_changes as report_changes,
)
from bicameral.tools._declaration import (
    Registry as Registry,
    Settings as Settings,
    Surroundings as Surroundings,
    Toolbox as Toolbox,
    has_running_calls as has_running_calls,
    tool as tool,
)
from bicameral.tools._folders import Folders as Folders
from bicameral.tools._media import (
    DOCUMENT_MEDIA as DOCUMENT_MEDIA,
    TABLE_MEDIA as TABLE_MEDIA,
    media_matches as media_matches,
    media_of_request as media_of_request,
)
from bicameral.tools._missing_settings import (
    AbsentTool as AbsentTool,
    MissingSetting as MissingSetting,
    missing_extra as missing_extra,
)
from bicameral.tools._origins import Origin as Origin, Origins as Origins, Participants as Participants
from bicameral.tools._passage_notes import (
    PassageNote as PassageNote,
    collect_passages as collect_passages,
    note_passages as note_passages,
)
from bicameral.tools._path_rules import (
    SHEET_SUFFIXES as SHEET_SUFFIXES,
    TABLE_SUFFIXES as TABLE_SUFFIXES,
    FindTarget as FindTarget,
    ProtectedPath as ProtectedPath,
    ProtectedPaths as ProtectedPaths,
    WriteTarget as WriteTarget,
    process_protected_paths as process_protected_paths,
    protected_database_files as protected_database_files,
)
from bicameral.tools._restoring import (
    move_back as move_back,
    read_exact as read_exact,
    remove_exact as remove_exact,
    restore_exact as restore_exact,
)
from bicameral.tools._selections import (
    Selection as Selection,
    collect_selections as collect_selections,
    note_selection as note_selection,
    shown_text as shown_text,
)
from bicameral.tools._tool import (
    CellLookup as CellLookup,
    OwnershipTest as OwnershipTest,
    Tool as Tool,
    executor_fault as executor_fault,
)
from bicameral.tools._tool_questions import (
    AskPerson as AskPerson,
    current_person as current_person,
    use_person as use_person,
)

if TYPE_CHECKING:
    from bicameral.tools._command import (
        CommandFailed as CommandFailed,
        command_tools as command_tools,
        find_command as find_command,
        program_path as program_path,
    )
    from bicameral.tools._command_interface import CommandSettings as CommandSettings, describe_tool as describe_tool
    from bicameral.tools._command_words import (
        command_arguments as command_arguments,
        command_usage as command_usage,
        command_words as command_words,
        require_command as require_command,
        stdin_argument as stdin_argument,
    )
    from bicameral.tools._confined_process import (
        RunningProgram as RunningProgram,
        start_confined as start_confined,
        start_unconfined as start_unconfined,
    )
    from bicameral.tools._confirmed_effects import (
        DescribedEffect as DescribedEffect,
        EffectState as EffectState,
        LapsedEffectWarning as LapsedEffectWarning,
        confirm_effect as confirm_effect,
        effects_file as effects_file,
        forget_effect as forget_effect,
        record_problem as record_problem,
    )
    from bicameral.tools._effect_proposals import (
        EffectProposal as EffectProposal,
        effect_of_words as effect_of_words,
        worst_effect as worst_effect,
    )
    from bicameral.tools._interpreter import (
        Interpreter as Interpreter,
        ProgramResult as ProgramResult,
        ProgramRights as ProgramRights,
        find_interpreter as find_interpreter,
        interpreter_tool as interpreter_tool,
    )
    from bicameral.tools._loading import (
        LoadedToolbox as LoadedToolbox,
        installed_toolboxes as installed_toolboxes,
        load_file as load_file,
        load_installed_toolbox as load_installed_toolbox,
        load_toolboxes as load_toolboxes,
    )
    from bicameral.tools._lookup import (
        LookupResult as LookupResult,
        ToolChain as ToolChain,
        find_tools as find_tools,
        lookup_names as lookup_names,
    )
    from bicameral.tools._manifest import (
        Manifest as Manifest,
        OriginSpec as OriginSpec,
        manifest_schema as manifest_schema,
        parse_manifest as parse_manifest,
        read_manifest as read_manifest,
    )
    from bicameral.tools._manifest_rules import spec_attached as spec_attached, spec_origins as spec_origins
    from bicameral.tools._sandbox import (
        MIB as MIB,
        PATH as PATH,
        CommandResult as CommandResult,
        Confinement as Confinement,
        confinement_problem as confinement_problem,
        run_confined as run_confined,
    )


# Modules for commands, manifests and packages are loaded at first use, so that `import bicameral` stays fast.
_LATER = {
    "_command": ("CommandFailed", "command_tools", "find_command", "program_path"),
    "_command_interface": ("CommandSettings", "describe_tool"),
    "_command_words": "command_arguments command_usage command_words require_command stdin_argument".split(),
    "_confined_process": ("RunningProgram", "start_confined", "start_unconfined"),
    "_confirmed_effects": "DescribedEffect EffectState LapsedEffectWarning confirm_effect effects_file forget_effect "
    "record_problem".split(),
    "_effect_proposals": ("EffectProposal", "effect_of_words", "worst_effect"),
    "_interpreter": "Interpreter ProgramResult ProgramRights find_interpreter interpreter_tool".split(),
    "_lookup": ("LookupResult", "ToolChain", "find_tools", "lookup_names"),
    "_loading": "LoadedToolbox installed_toolboxes load_file load_installed_toolbox load_toolboxes".split(),
    "_manifest": ("Manifest", "OriginSpec", "manifest_schema", "parse_manifest", "read_manifest"),
    "_manifest_rules": ("spec_attached", "spec_origins"),
    "_sandbox": ("MIB", "PATH", "CommandResult", "Confinement", "confinement_problem", "run_confined"),
}


def __getattr__(name: str) -> Any:
    for module, names in _LATER.items():
        if name in names:
            return getattr(import_module(f".{module}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
