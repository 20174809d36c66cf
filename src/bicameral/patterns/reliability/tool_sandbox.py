"""V8, tool sandboxing: a program runs in a fresh, closed environment with only the rights that it was handed.

Use it wherever code that a model wrote is run. The rights belong to the tool and are fixed when it is made; the pattern
has the most that any of them may be. Each run has a process and a folder of its own, which are gone afterwards. What a
program prints is cut, and never trusted. On a machine that cannot confine, nothing runs (`tools.cannot-confine`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from bicameral.errors import RunError
from bicameral.patterns.kernel import (
    Answered,
    Context,
    Labelled,
    Pattern,
    PatternExample,
    program_text,
    untrusted_value,
)
from bicameral.tools import Interpreter, ProgramResult, ProgramRights, Tool, find_interpreter, interpreter_tool

_PRINTED_LABEL = untrusted_value("", "sandbox").label
"""What a program prints, whoever wrote it: it may have computed anything."""


@dataclass(frozen=True)
class ToolSandbox(Pattern[[Labelled[str]], ProgramResult]):
    """Run one program, confined.

    Args:
        tool: The name of an interpreter tool (`bicameral.tools.interpreter_tool`); no other tool runs programs here.
        wall_seconds: The most time that its rights may allow.
        memory_mb: The most memory.
        cpu_seconds: The most processor time.
        max_output: The most characters of output.
        network: Whether its rights may name endpoints.

    Example:
        >>> outcome = await ToolSandbox("run_python").run(runtime, program_text("print(6 * 7)"))
        >>> outcome.value["output"]
        '42'
    """

    id: ClassVar[str] = "V8"
    tool: str
    wall_seconds: float = 30
    memory_mb: int = 512
    cpu_seconds: int = 5
    max_output: int = 10_000
    network: bool = False

    async def execute(self, context: Context, /, program: Labelled[str]) -> Labelled[ProgramResult]:
        async def confined(part: Context) -> Labelled[ProgramResult]:
            self._require_rights(self._require_interpreter(part).rights)
            part.restrict_tools([self.tool])
            result = (await part.call(self.tool, {"program": program})).with_label(_PRINTED_LABEL)
            ended = part.read(result)
            part.note("program-ended", how=ended["ended"], status=ended["status"], cut=ended["cut"])
            return result

        return await context.run_part("sandbox", confined)

    def _require_interpreter(self, part: Context) -> Interpreter:
        found = find_interpreter(part.find_tool(self.tool))
        if found is None:
            raise RunError(
                "pattern.not-confined",
                f"{self.tool!r} does not run programs in a sandbox",
                expected="a tool of `bicameral.tools.interpreter_tool`",
            )
        return found

    def _require_rights(self, rights: ProgramRights) -> None:
        """Refuse a tool whose rights are wider than this pattern allows."""
        for name in ("wall_seconds", "memory_mb", "cpu_seconds", "max_output"):
            given, most = getattr(rights, name), getattr(self, name)
            if given > most:
                raise _wide_rights_error(self.tool, f"{name} of {given:g}", f"at most {most:g}")
        if rights.endpoints and not self.network:
            raise _wide_rights_error(self.tool, "endpoints", "none, or network=True")


def _wide_rights_error(tool: str, given: str, expected: str) -> RunError:
    return RunError(
        "pattern.wide-rights",
        f"the rights of {tool!r} are wider than allowed here: it has {given}",
        expected=expected,
        fix="Make the tool with narrower `ProgramRights`, or allow more with the knob of the same name.",
    )


# An example ---------------------------------------------------------------------------------------------------------

_PROGRAM: Final = "total = sum(n for n in range(1000) if n % 3 == 0 or n % 5 == 0)\nprint(total)"


def _tools(folder: Path) -> Sequence[Tool]:
    return (interpreter_tool("run_python"),)


def _is_correct(outcome: Answered[ProgramResult]) -> bool:
    return outcome.value["output"] == "233168" and not outcome.label.trusted and not outcome.model_calls


EXAMPLE = PatternExample(
    "A program computes a sum in a sandbox, and what it prints is not trusted.",
    lambda folder: ToolSandbox("run_python"),
    lambda folder: (program_text(_PROGRAM),),
    _is_correct,
    lambda folder: {},
    _tools,
)
