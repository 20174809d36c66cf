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
from pathlib import Path
from typing import Any, ClassVar, Final, TypedDict

from bicameral.errors import ModelError, RunError, ToolError
from bicameral.labels import NOTHING
from bicameral.tools import (
    Folders,
    Tool,
    command_tools,
    command_usage,
    parse_manifest,
)
from bicameral.types import Type, from_annotation

from ..kernel import Answered, Example, Labelled, Part, Pattern, Role, Stage, said, strangers, text
from ._commands import checked, failure, fit_usage, printed_text

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
_UNREAD = strangers("", "command line").label


class _First(TypedDict):
    pipe: list[list[str]]


class _Last(TypedDict):
    answer: str


class _Next(_Last, _First): ...


_FIRST, _NEXT, _LAST = from_annotation(_First), from_annotation(_Next), from_annotation(_Last)


@dataclass(frozen=True)
class CommandLine(Pattern[[Labelled[str]], str]):
    """`commands` are the names of command tools; no other tool can be called while it runs.

    Example:
        >>> outcome = await CommandLine(("grep", "wc")).run(desk, said("How many lines of app.log say ERROR?"))
        >>> [each.tool for each in outcome.called]
        ['grep']
    """

    id: ClassVar[str] = "I4"
    commands: tuple[str, ...]
    seconds: float = 30
    max_output: int = 20_000
    calls: int = 8
    agent: Role = AGENT

    async def on(self, stage: Stage, /, task: Labelled[str]) -> Labelled[str]:
        stage.keep_tools(self.commands)
        usage = stage.give("Commands:\n" + "\n".join(fit_usage(each, self.seconds) for each in stage.registry))
        told: list[Part] = []
        left = self.calls
        while True:
            # At first there is nothing to answer from, and at last no command left to ask for.
            wanted = _FIRST if not told else _NEXT if left else _LAST
            step = await self._step(stage, "Task: ", task, *told, *_urging(left, told), wanted=wanted, stable=[usage])
            if answer := step.get("answer"):
                return stage.give(answer)
            if left == 0:
                raise RunError("pattern.calls-spent", f"there is no answer after {self.calls} commands")
            pipe = step.get("pipe", [])[:left]
            told.append(await self._piped(stage, pipe) if pipe else "\n\n(This reply was not of the form.)")
            left -= max(1, len(pipe))

    async def _step(self, stage: Stage, *parts: Part, wanted: Type, stable: Sequence[Part]) -> dict[str, Any]:
        try:
            return stage.read(await stage.fill(self.agent, *parts, wanted=wanted, stable=stable, retries=0))
        except ModelError as error:
            if error.code != "models.bad-reply":
                raise
            return {}

    async def _piped(self, stage: Stage, pipe: Sequence[Sequence[str]]) -> Labelled[str]:
        """What the commands came to, as the model is told: the first that fails ends the pipe."""
        typed = stage.give(" | ".join(json.dumps(words, ensure_ascii=False) for words in pipe))
        printed: Labelled[Any] | None = None
        came = stage.give("")
        for words in pipe:
            try:
                tool, arguments = checked(stage, words, printed)
            except ToolError as error:
                # It says only what the model itself wrote and what commands there are.
                stage.note("command-refused", code=error.code)
                came = stage.give(f"refused: {error.message}")
                break
            try:
                printed = await stage.call(tool.name, arguments, because=_UNREAD if tool.changes else NOTHING)
            except ToolError as error:
                came = failure(stage, tool, error)
                break
            came = self._shaped(stage, tool, printed)
        return text("\n\n$ {typed}\n{came}", typed=typed, came=came)

    def _shaped(self, stage: Stage, tool: Tool, printed: Labelled[Any]) -> Labelled[str]:
        whole = _ANSI.sub("", printed_text(stage.read(printed)))
        cut = max(len(whole) - self.max_output, 0)
        stage.note("command-ended", command=tool.name, status=0, characters=len(whole), cut=cut)
        head = self.max_output * 2 // 3
        shown = f"{whole[:head]}\n… ({cut:,} characters are left out) …\n{whole[head + cut :]}" if cut else whole
        return stage.give(f"exit status 0\n{shown}" if shown else "exit status 0, nothing was printed")


def _urging(left: int, told: Sequence[Part]) -> tuple[Part, ...]:
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
_READS: dict[str, Any] = {"files": {"type": "list[path]", "default": []}, "text": {"optional": True}}
# The files are the user's own.
_OWN: dict[str, Any] = {
    "effect": "read",
    "outbound": False,
    "origins": {"": {"trust": "user"}},
    "timeout": 10,
    "stdin": "text",
}
_MANIFEST: dict[str, Any] = {
    "manifest": 1,
    "tools": [
        _OWN
        | {
            "name": "grep",
            "argv": ["grep", {"when": "count", "add": ["-c"]}, "-e", "{pattern}", "--", "{files}"],
            "arguments": {"pattern": {}, "count": _FLAG} | _READS,
        },
        _OWN
        | {
            "name": "wc",
            "argv": ["wc", {"when": "lines", "add": ["-l"]}, "--", "{files}"],
            "arguments": {"lines": _FLAG} | _READS,
        },
        _OWN | {"name": "sort", "argv": ["sort", "--", "{files}"], "arguments": _READS},
    ],
}


def _tools(folder: Path) -> Sequence[Tool]:
    (folder / "app.log").write_text(_LOG)
    return command_tools(parse_manifest(_MANIFEST), Folders.of(folder, read=[folder]))


def _good(outcome: Answered[str]) -> bool:
    called = [each.tool for each in outcome.called]
    return bool(re.search(r"\b(3|three)\b", outcome.value.lower())) and "grep" in called


def _sizes(folder: Path) -> dict[str, int | float | str]:
    lines = "\n".join(command_usage(each) for each in _tools(folder))
    setup = f"{AGENT.setup}\n\nCommands:\n{lines}"
    return {"setup": setup, "input": f"Task: {_TASK}", "steps": 2, "item_output": 20, "observation": 12}


EXAMPLE = Example(
    "Lines of a log are counted with grep, confined to one folder.",
    lambda folder: CommandLine(("grep", "wc", "sort")),
    lambda folder: (said(_TASK),),
    _good,
    _sizes,
    _tools,
)
