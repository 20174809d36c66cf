"""I4, command line: the model writes commands as lists of words; code checks them, and a sandbox runs them.

Use it where a mature program does the work and the model knows how to call it: each command costs one line of prompt.
A command is a list of words and never a line for a shell. Only named commands run, only with options from their
manifests, and only confined. A command that changes something needs a person's approval, whoever asked for it.
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
    CallFailed,
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

# Programs that run other programs or code: their arguments could not be checked.
_INTERPRETERS = re.compile(
    r"((ba|da|z|k|c|tc|fi|a)?sh|busybox|python|perl|ruby|node|lua|php|tclsh|[gmn]?awk|env|xargs|sudo|doas|su)[\d.]*"
)
_LONGEST_COMPLAINT = 400
_NEWLINE = "\n"
_FAILURE_WORDS = {
    "files.outside": "a path leads outside the folders",
    "tools.option-like": "a word begins with '-' and would be taken for an option",
    "tools.command-timeout": "it took too long and was killed",
    "tools.command-killed": "it took too much memory and was killed",
    "tools.output-too-large": "it printed too much and was killed",
}


def checked_usage(tool: Tool, seconds: float) -> str:
    """The usage of a command in one line; refused if it must not run here."""
    command = require_command(tool)
    program = command.start[0]
    # A link to an interpreter is one, whatever it is called.
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


def parse_command(context: Context, words: Sequence[str], printed: Labelled[Any] | None) -> tuple[Tool, dict[str, Any]]:
    """The tool and the arguments of a command; `printed` is the output of the command before it in a pipe."""
    name = words[0] if words else ""
    tool = context.registry.get(name)
    if tool is None:
        raise ToolError(
            "pattern.not-listed",
            f"there is no command {name[:60]!r}; there are {', '.join(context.registry.names)}",
            nearest=nearest_name(name[:60], context.registry.names),
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
    # Checked with an empty text in place of the output, which stays closed: its label must not be opened for a check.
    tool.bind(arguments | piped)
    return tool, arguments


def describe_command_failure(context: Context, tool: Tool, error: ToolError) -> Labelled[str]:
    """What a model reads of a failure: the exit status or fixed words.

    The message may quote whatever the program has read, so it is added only where the call is untrusted anyway.
    """
    # Without a sandbox no other command can run either.
    if error.code == "tools.cannot-confine":
        raise error
    status = error.exit_code if isinstance(error, CommandFailed | CallFailed) else None
    context.note("command-failed", command=tool.name, code=error.code, **({} if status is None else {"status": status}))
    what = (
        f"failed: {_FAILURE_WORDS.get(error.code) or describe_failure(error.code)}"
        if status is None
        else f"exit status {status}"
    )
    if not isinstance(error, CallFailed):
        return context.derive(what)
    report = error.report.map(lambda text: text[:_LONGEST_COMPLAINT])
    return format_text("{what}: {report}", what=context.derive(what), report=report)


def _end_with_newline(text: str) -> str:
    """The text as it was printed. Results lack the last newline, and commands such as `wc -l` count it."""
    return f"{text}\n" if text and not text.endswith("\n") else text


def printed_text(value: Any) -> str:
    """The output of a command as text, whatever type its manifest gives it."""
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
# A model wrote the words of a command and no person has read them: a command that changes something is judged as
# untrusted, so that policy asks for approval.
_UNREAD_LABEL = untrusted_value("", "command line").label


class _First(TypedDict):
    pipe: list[list[str]]


class _Last(TypedDict):
    answer: str


class _Next(_Last, _First): ...


_FIRST, _NEXT, _LAST = type_from_annotation(_First), type_from_annotation(_Next), type_from_annotation(_Last)


@dataclass(frozen=True)
class CommandLine(Pattern[[Labelled[str]], str]):
    """Do a task with commands.

    Args:
        commands: The names of command tools; no other tool can be called meanwhile.
        seconds: The longest time-out that a command may have.
        max_output: How many characters of a command's output the model reads.
        calls: How many commands may run.

    Example:
        >>> outcome = await CommandLine(("grep", "wc")).run(runtime, program_text("Which lines of app.log say ERROR?"))
        >>> [each.tool for each in outcome.tool_calls]
        ['grep']
    """

    id: ClassVar[str] = "I4"
    commands: tuple[str, ...]
    seconds: float = 30
    max_output: int = 20_000
    calls: int = 8
    agent: Role = AGENT

    async def execute(self, context: Context, /, task: Labelled[str]) -> Labelled[str]:
        context.restrict_tools(self.commands)
        usage = context.derive(
            "Commands:\n" + "\n".join(checked_usage(each, self.seconds) for each in context.registry)
        )
        outputs: list[PromptText] = []
        left = self.calls
        while True:
            # The first reply must have a command, since there is nothing to answer from; the last must have the answer.
            wanted = _FIRST if not outputs else _NEXT if left else _LAST
            ask = "\n\nNo more commands: answer now." if left == 0 else "\n\nThe answer, or the next command?"
            parts: list[PromptText] = ["Task: ", task, *outputs, *([ask] if outputs or left == 0 else [])]
            step: dict[str, Any] = await context.read_form(self.agent, *parts, wanted=wanted, stable=[usage]) or {}
            if answer := step.get("answer"):
                return context.derive(answer)
            if left == 0:
                raise RunError("pattern.calls-spent", f"there is no answer after {self.calls} commands")
            pipe = step.get("pipe", [])[:left]
            outputs.append(await self._run_pipe(context, pipe) if pipe else "\n\n(This reply was not of the form.)")
            left -= max(1, len(pipe))

    async def _run_pipe(self, context: Context, pipe: Sequence[Sequence[str]]) -> Labelled[str]:
        """The commands and their outcome as the model reads them; the first command that fails ends the pipe."""
        typed = context.derive(" | ".join(json.dumps(words, ensure_ascii=False) for words in pipe))
        printed: Labelled[Any] | None = None
        shown = context.derive("")
        for words in pipe:
            try:
                tool, arguments = parse_command(context, words, printed)
            except ToolError as error:
                # The message quotes only what the model itself wrote and the names of the commands.
                context.note("command-refused", code=error.code)
                shown = context.derive(f"refused: {error.message}")
                break
            try:
                printed = await context.call(tool.name, arguments, because=_UNREAD_LABEL if tool.changes else NOTHING)
            except ToolError as error:
                shown = describe_command_failure(context, tool, error)
                break
            shown = self._shape_output(context, tool, printed)
        return format_text("\n\n$ {typed}\n{came}", typed=typed, came=shown)

    def _shape_output(self, context: Context, tool: Tool, printed: Labelled[Any]) -> Labelled[str]:
        whole = _ANSI.sub("", printed_text(context.read(printed)))
        head, tail = _split_output(whole, self.max_output)
        cut = len(whole) - len(head) - len(tail)
        lines = whole[len(head) : len(whole) - len(tail)].count("\n")
        context.note("command-ended", command=tool.name, status=0, characters=len(whole), cut=cut, lines_cut=lines)
        left_out = f"… (left out: {cut:,} characters, {lines:,} lines) …\n"
        # Within one long line the mark stands in a line of its own.
        shown = f"{head}{'' if head.endswith(_NEWLINE) else _NEWLINE}{left_out}{tail}" if cut else whole
        return context.derive(f"exit status 0\n{shown}" if shown else "exit status 0, nothing was printed")


def _split_output(text: str, most: int) -> tuple[str, str]:
    """The beginning and the end of an output that are shown, in whole lines where there are any."""
    if len(text) <= most:
        return text, ""
    room = most * 2 // 3
    head, tail = text[:room], text[len(text) - (most - room) :]
    # Half a line would be read as a whole one: half of a number, of a path.
    head = head[: head.rfind(_NEWLINE) + 1] or head
    if text[len(text) - len(tail) - 1] != _NEWLINE:
        tail = tail[tail.find(_NEWLINE) + 1 :] if _NEWLINE in tail[:-1] else tail
    return head, tail


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
# The files are the user's own, so their content is trusted.
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
