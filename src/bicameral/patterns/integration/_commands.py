"""Commands as a pattern may use them: which are fit, what words mean one, and what may be told of a failure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from os.path import basename, realpath
from typing import Any, cast

from bicameral.errors import RunError, ToolError, nearest
from bicameral.reasoner import said_of
from bicameral.strategies import result_text
from bicameral.tools import CommandFailed, Tool, command_arguments, command_usage, ready_command

from ..kernel import Labelled, Stage

_INTERPRETERS = re.compile(
    r"((ba|da|z|k|c|tc|fi|a)?sh|busybox|python|perl|ruby|node|lua|php|tclsh|[gmn]?awk|env|xargs|sudo|doas|su)[\d.]*"
)
_LONGEST_COMPLAINT = 400
_WORDS = {
    "files.outside": "a path leads outside the folders",
    "tools.option-like": "a word begins with '-' and would be taken for an option",
    "tools.command-timeout": "it took too long and was killed",
    "tools.command-killed": "it took too much memory and was killed",
    "tools.output-too-large": "it printed too much and was killed",
}


def fit_usage(tool: Tool, seconds: float) -> str:
    """The command in one line, if it is one that may run here."""
    command = ready_command(tool)
    program = command.start[0]
    if any(_INTERPRETERS.fullmatch(basename(each)) for each in (program, realpath(program))):
        raise _unfit(
            f"{tool.name!r} runs {basename(program)}, which runs whatever it is given",
            "Name the programs that are needed themselves.",
        )
    if command.spec.timeout > seconds:
        raise _unfit(
            f"{tool.name!r} may take {command.spec.timeout:g} seconds, and {seconds:g} are allowed",
            "Set its `timeout` in the manifest, or allow more with `seconds`.",
        )
    if command.spec.ok_exit_codes != [0]:
        raise _unfit(
            f"{tool.name!r} takes several exit codes for success, and nobody could tell which it was",
            "Leave `ok_exit_codes` out of its manifest: any other code is told as it is.",
        )
    return command_usage(tool)


def _unfit(message: str, fix: str) -> RunError:
    return RunError("pattern.unfit-command", message, fix=fix)


def checked(stage: Stage, words: Sequence[str], printed: Labelled[Any] | None) -> tuple[Tool, dict[str, Any]]:
    """The tool and the arguments that the words of a command mean; `printed` is what the command before it printed."""
    name = words[0] if words else ""
    tool = stage.registry.get(name)
    if tool is None:
        raise ToolError(
            "pattern.not-listed",
            f"there is no command {name[:60]!r}; there are {', '.join(stage.registry.names)}",
            nearest=nearest(name[:60], stage.registry.names),
        )
    arguments, spec = command_arguments(tool, words[1:]), ready_command(tool).spec
    piped: dict[str, Any] = {}
    if printed is not None:
        if spec.stdin is None:
            raise ToolError("tools.bad-command-line", f"{name} does not read what another command prints")
        lines = spec.arguments[spec.stdin].type == "list[str]"
        whole = printed.map(printed_text)
        arguments[spec.stdin] = whole.map(str.splitlines) if lines else whole.map(_with_end)
        piped = {spec.stdin: [] if lines else ""}
    tool.bind(arguments | piped)
    return tool, arguments


def failure(stage: Stage, tool: Tool, error: ToolError) -> Labelled[str]:
    """What may be told of a failure. A message may quote whatever the program has read, so it is told to those alone
    who read strangers already; all others hear the exit status, or our own words."""
    if error.code == "tools.cannot-confine":
        raise error
    status = error.exit_code if isinstance(error, CommandFailed) else None
    stage.note("command-failed", command=tool.name, code=error.code, **({} if status is None else {"status": status}))
    what = f"failed: {_WORDS.get(error.code) or said_of(error.code)}" if status is None else f"exit status {status}"
    return stage.give(what if stage.opened.trusted else f"{what}: {error.message[:_LONGEST_COMPLAINT]}")


def _with_end(text: str) -> str:
    """As it was printed: the end of the last line is no part of a result, and the next command counts it."""
    return f"{text}\n" if text and not text.endswith("\n") else text


def printed_text(value: Any) -> str:
    """What a command printed, however its manifest reads it."""
    match value:
        case str():
            return value
        case list() if all(isinstance(each, str) for each in cast("list[Any]", value)):
            return "\n".join(cast("list[str]", value))
        case _:
            return result_text(value)
