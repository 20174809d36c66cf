"""I4, command line: the model writes the words of commands it knows; code checks them, and a sandbox runs them.

Use it where a mature program does the work and the model knows how to call it: one line a command is all it is told.
A command is a list of words and never a line for a shell. Only commands that are named run, only with options that
their manifests write, only confined; what changes something waits for a person, whoever asked for it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from os.path import basename, realpath
from pathlib import Path
from typing import Any, ClassVar, Final, TypedDict, cast

from bicameral.errors import RunError, ToolError, nearest_name
from bicameral.labels import NOTHING
from bicameral.patterns.kernel import (
    Answered,
    Context,
    Labelled,
    Pattern,
    PatternExample,
    PromptText,
    Role,
    format_text,
    untrusted_value,
)
from bicameral.patterns.reasoner import describe_failure
from bicameral.patterns.strategies import render_result
from bicameral.tools import (
    CommandFailed,
    Folders,
    Tool,
    command_arguments,
    command_tools,
    command_usage,
    parse_manifest,
    require_command,
)
from bicameral.types import type_from_annotation

_INTERPRETERS = re.compile(
    r"((ba|da|z|k|c|tc|fi|a)?sh|busybox|python|perl|ruby|node|lua|php|tclsh|[gmn]?awk|env|xargs|sudo|doas|su)[\d.]*"
)
_LONGEST_COMPLAINT = 400
_FAILURE_WORDS = {
    "files.outside": "a path leads outside the folders",
    "tools.option-like": "a word begins with '-' and would be taken for an option",
    "tools.command-timeout": "it took too long and was killed",
    "tools.command-killed": "it took too much memory and was killed",
    "tools.output-too-large": "it printed too much and was killed",
}


def checked_usage(tool: Tool, seconds: float) -> str:
    """The command in one line, if it is one that may run here."""
    command = require_command(tool)
    program = command.start[0]
    if any(_INTERPRETERS.fullmatch(basename(each)) for each in (program, realpath(program))):
        raise _unfit_command_error(
            f"{tool.name!r} runs {basename(program)}, which runs whatever it is given",
            "Name the programs that are needed themselves.",
        )
    if command.spec.timeout > seconds:
        raise _unfit_command_error(
            f"{tool.name!r} may take {command.spec.timeout:g} seconds, and {seconds:g} are allowed",
            "Set its `timeout` in the manifest, or allow more with `seconds`.",
        )
    if command.spec.ok_exit_codes != [0]:
        raise _unfit_command_error(
            f"{tool.name!r} takes several exit codes for success, and nobody could tell which it was",
            "Leave `ok_exit_codes` out of its manifest: any other code is told as it is.",
        )
    return command_usage(tool)


def _unfit_command_error(message: str, fix: str) -> RunError:
    return RunError("pattern.unfit-command", message, fix=fix)


def parse_command(stage: Context, words: Sequence[str], printed: Labelled[Any] | None) -> tuple[Tool, dict[str, Any]]:
    """The tool and the arguments that the words of a command mean; `printed` is what the command before it printed."""
    name = words[0] if words else ""
    tool = stage.registry.get(name)
    if tool is None:
        raise ToolError(
            "pattern.not-listed",
            f"there is no command {name[:60]!r}; there are {', '.join(stage.registry.names)}",
            nearest=nearest_name(name[:60], stage.registry.names),
        )
    arguments, spec = command_arguments(tool, words[1:]), require_command(tool).spec
    piped: dict[str, Any] = {}
    if printed is not None:
        if spec.stdin is None:
            raise ToolError("tools.bad-command-line", f"{name} does not read what another command prints")
        lines = spec.arguments[spec.stdin].type == "list[str]"
        whole = printed.map(printed_text)
        arguments[spec.stdin] = whole.map(str.splitlines) if lines else whole.map(_end_with_newline)
        piped = {spec.stdin: [] if lines else ""}
    tool.bind(arguments | piped)
    return tool, arguments


def describe_command_failure(stage: Context, tool: Tool, error: ToolError) -> Labelled[str]:
    """What may be told of a failure. A message may quote whatever the program has read, so it is told to those alone
    who read strangers already; all others hear the exit status, or our own words."""
    if error.code == "tools.cannot-confine":
        raise error
    status = error.exit_code if isinstance(error, CommandFailed) else None
    stage.note("command-failed", command=tool.name, code=error.code, **({} if status is None else {"status": status}))
    what = (
        f"failed: {_FAILURE_WORDS.get(error.code) or describe_failure(error.code)}"
        if status is None
        else f"exit status {status}"
    )
    return stage.derive(what if stage.read_label.trusted else f"{what}: {error.message[:_LONGEST_COMPLAINT]}")


def _end_with_newline(text: str) -> str:
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
            return render_result(value)


AGENT = Role(
    "Agent",
    "Do the task with commands. A command is the list of its words, and `pipe` a list of commands of which each reads "
    'what the one before it printed: [["wc", "-l", "notes.txt"]]. There is no shell. As soon as what was printed says '
    "enough, give the `answer`; leave it empty as long as another command is needed.",
    tier="large",
    job="acting",
    phase="act",
    max_tokens=256,
)
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
# Of a command that changes something nobody has read the words before: they count as nobody's whom the user knows.
_UNREAD_LABEL = untrusted_value("", "command line").label


class _First(TypedDict):
    pipe: list[list[str]]


class _Last(TypedDict):
    answer: str


class _Next(_Last, _First): ...


_FIRST, _NEXT, _LAST = type_from_annotation(_First), type_from_annotation(_Next), type_from_annotation(_Last)


@dataclass(frozen=True)
class CommandLine(Pattern[[Labelled[str]], str]):
    """`commands` are the names of command tools; no other tool can be called while it runs.

    Example:
        >>> outcome = await CommandLine(("grep", "wc")).run(desk, program_text("How many lines of app.log say ERROR?"))
        >>> [each.tool for each in outcome.called]
        ['grep']
    """

    id: ClassVar[str] = "I4"
    commands: tuple[str, ...]
    seconds: float = 30
    max_output: int = 20_000
    calls: int = 8
    agent: Role = AGENT

    async def execute(self, stage: Context, /, task: Labelled[str]) -> Labelled[str]:
        stage.restrict_tools(self.commands)
        usage = stage.derive("Commands:\n" + "\n".join(checked_usage(each, self.seconds) for each in stage.registry))
        told: list[PromptText] = []
        left = self.calls
        while True:
            # At first there is nothing to answer from, and at last no command left to ask for.
            wanted = _FIRST if not told else _NEXT if left else _LAST
            parts = ("Task: ", task, *told, *_next_step_prompt(left, told))
            step: dict[str, Any] = await stage.read_form(self.agent, *parts, wanted=wanted, stable=[usage]) or {}
            if answer := step.get("answer"):
                return stage.derive(answer)
            if left == 0:
                raise RunError("pattern.calls-spent", f"there is no answer after {self.calls} commands")
            pipe = step.get("pipe", [])[:left]
            told.append(await self._run_pipe(stage, pipe) if pipe else "\n\n(This reply was not of the form.)")
            left -= max(1, len(pipe))

    async def _run_pipe(self, stage: Context, pipe: Sequence[Sequence[str]]) -> Labelled[str]:
        """What the commands came to, as the model is told: the first that fails ends the pipe."""
        typed = stage.derive(" | ".join(json.dumps(words, ensure_ascii=False) for words in pipe))
        printed: Labelled[Any] | None = None
        came = stage.derive("")
        for words in pipe:
            try:
                tool, arguments = parse_command(stage, words, printed)
            except ToolError as error:
                # It says only what the model itself wrote and what commands there are.
                stage.note("command-refused", code=error.code)
                came = stage.derive(f"refused: {error.message}")
                break
            try:
                printed = await stage.call(tool.name, arguments, because=_UNREAD_LABEL if tool.changes else NOTHING)
            except ToolError as error:
                came = describe_command_failure(stage, tool, error)
                break
            came = self._shape_output(stage, tool, printed)
        return format_text("\n\n$ {typed}\n{came}", typed=typed, came=came)

    def _shape_output(self, stage: Context, tool: Tool, printed: Labelled[Any]) -> Labelled[str]:
        whole = _ANSI.sub("", printed_text(stage.read(printed)))
        cut = max(len(whole) - self.max_output, 0)
        stage.note("command-ended", command=tool.name, status=0, characters=len(whole), cut=cut)
        head = self.max_output * 2 // 3
        shown = f"{whole[:head]}\n… ({cut:,} characters are left out) …\n{whole[head + cut :]}" if cut else whole
        return stage.derive(f"exit status 0\n{shown}" if shown else "exit status 0, nothing was printed")


def _next_step_prompt(left: int, told: Sequence[PromptText]) -> tuple[PromptText, ...]:
    if left == 0:
        return ("\n\nNo more commands: answer now.",)
    return ("\n\nThe answer, or the next command?",) if told else ()


# An example ---------------------------------------------------------------------------------------------------------

_TASK: Final = "How many lines of app.log contain ERROR?"
_LOG = """\
09:00 INFO started
09:01 ERROR no disk
09:02 INFO retry
09:03 ERROR no disk
09:04 WARN slow
09:05 ERROR gave up
"""
_FLAG: dict[str, Any] = {"type": "bool", "default": False}
_READ_ARGUMENTS: dict[str, Any] = {"files": {"type": "list[path]", "default": []}, "text": {"optional": True}}
# The files are the user's own.
_OWN_FILES: dict[str, Any] = {
    "effect": "read",
    "outbound": False,
    "origins": {"": {"trust": "user"}},
    "timeout": 10,
    "stdin": "text",
}
_MANIFEST: dict[str, Any] = {
    "manifest": 1,
    "tools": [
        _OWN_FILES
        | {
            "name": "grep",
            "argv": ["grep", {"when": "count", "add": ["-c"]}, "-e", "{pattern}", "--", "{files}"],
            "arguments": {"pattern": {}, "count": _FLAG} | _READ_ARGUMENTS,
        },
        _OWN_FILES
        | {
            "name": "wc",
            "argv": ["wc", {"when": "lines", "add": ["-l"]}, "--", "{files}"],
            "arguments": {"lines": _FLAG} | _READ_ARGUMENTS,
        },
        _OWN_FILES | {"name": "sort", "argv": ["sort", "--", "{files}"], "arguments": _READ_ARGUMENTS},
    ],
}


def _tools(folder: Path) -> Sequence[Tool]:
    (folder / "app.log").write_text(_LOG)
    return command_tools(parse_manifest(_MANIFEST), Folders.of(folder, read=[folder]))


def _is_correct(outcome: Answered[str]) -> bool:
    called = [each.tool for each in outcome.tool_calls]
    return bool(re.search(r"\b(3|three)\b", outcome.value.lower())) and "grep" in called


def _sizes(folder: Path) -> dict[str, int | float | str]:
    lines = "\n".join(command_usage(each) for each in _tools(folder))
    setup = f"{AGENT.setup}\n\nCommands:\n{lines}"
    return {"setup": setup, "input": f"Task: {_TASK}", "steps": 2, "item_output": 20, "observation": 12}


EXAMPLE = PatternExample(
    "Lines of a log are counted with grep, confined to one folder.",
    lambda folder: CommandLine(("grep", "wc", "sort")),
    _TASK,
    _is_correct,
    _sizes,
    _tools,
)
