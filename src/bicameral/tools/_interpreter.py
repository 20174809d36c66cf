"""Programs as arguments: each runs in a fresh process and a fresh folder, with only the rights that the tool was given.

The rights are fixed when the tool is made; neither a call nor the program can change them. Processes, files, network,
variables and time that are not granted are denied, limits are watched from outside, and the folder is removed however
the program ends. Where the kernel cannot confine, nothing runs (`tools.cannot-confine`).
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import stat
import sys
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypedDict

from bicameral.errors import ToolError
from bicameral.tools._argument import Argument
from bicameral.tools._origins import Origin
from bicameral.tools._sandbox import (
    MIB,
    CommandResult,
    Confinement,
    ConfinementProbe,
    EndReason,
    confinement_problem,
    require_confinement,
    run_confined,
)
from bicameral.tools._tool import Tool
from bicameral.types import STR, type_from_annotation

PROGRAM: Final = "program"
"""The argument of an interpreter tool."""
_PRINTED_BYTES = 1 * MIB
_ERROR_CHARACTERS = 2_000
_CLEANUP_SECONDS = 10.0
_ENDPOINT = re.compile(r"[a-z0-9][a-z0-9.-]*:[1-9]\d{0,4}", re.ASCII)

ProgramEnd = Literal["exited", "time", "cpu", "memory", "output", "disk"]
"""How a program ended: by itself, or killed at this limit."""
_ENDS: Mapping[EndReason, ProgramEnd] = {
    "exited": "exited",
    "timeout": "time",
    "cpu": "cpu",
    "killed": "memory",
    "output": "output",
    "disk": "disk",
}


class ProgramResult(TypedDict):
    """What a program did: how it ended, its exit status (negative for a signal), and what it printed, cut."""

    ended: ProgramEnd
    status: int
    output: str
    errors: str
    cut: int


@dataclass(frozen=True, slots=True)
class ProgramRights:
    """What a program may use; what is not named here is denied.

    Args:
        wall_seconds: The time it may take.
        cpu_seconds: The processor time it may take.
        memory_mb: The memory it may reserve.
        disk_mb: What it may write into its folder, in all.
        max_output: The characters of its output that are passed on; the rest is cut.
        processes: The processes it may be at once; 1 means that it starts no others.
        endpoints: What it may reach, as `host:port`. Exact names alone: a wildcard would be a way out.
    """

    wall_seconds: float = 30.0
    cpu_seconds: int = 5
    memory_mb: int = 512
    disk_mb: int = 16
    max_output: int = 10_000
    processes: int = 1
    endpoints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        least = {"wall_seconds": 1, "cpu_seconds": 1, "memory_mb": 16, "disk_mb": 0, "max_output": 100, "processes": 1}
        for name, low in least.items():
            if getattr(self, name) < low:
                raise _bad_rights_error(f"{name} is {getattr(self, name)}", f"{low} or more")
        for endpoint in self.endpoints:
            if not _ENDPOINT.fullmatch(endpoint):
                raise _bad_rights_error(
                    f"{endpoint[:80]!r} is no endpoint", "host:port, both exact and in small letters"
                )


def _bad_rights_error(message: str, expected: str) -> ToolError:
    return ToolError("tools.bad-rights", message, expected=expected)


def interpreter_tool(
    name: str = "run_python",
    rights: ProgramRights | None = None,
    *,
    probe: ConfinementProbe = confinement_problem,
) -> Tool:
    """A tool that runs Python programs, each confined and from nothing.

    Without endpoints a call is pure: its result depends on the program alone, and has its labels. With endpoints it
    sends, and policy decides about it.

    Example:
        >>> registry = Registry([interpreter_tool("run_python", ProgramRights(wall_seconds=5))])
        >>> (await registry["run_python"].call({"program": "print(6 * 7)"}))["output"]
        '42'
    """
    rights = rights or ProgramRights()
    interpreter = Interpreter(rights, probe)
    purpose = "directs" if rights.endpoints else "selects"
    return Tool(
        name,
        "Run a Python program with the standard library alone, and return what it prints.",
        (Argument(PROGRAM, STR, "The text of the program.", purpose=purpose),),
        type_from_annotation(ProgramResult),
        "send" if rights.endpoints else "pure",
        interpreter.run,
        timeout=rights.wall_seconds + _CLEANUP_SECONDS,
        idempotent=not rights.endpoints,
        origins={"": Origin("third_party")} if rights.endpoints else {},
        outbound=bool(rights.endpoints),
        receivers=(),
        attaches={},
        hosts=rights.endpoints,
        code=interpreter.fingerprint,
        declared=True,
    )


def find_interpreter(tool: Tool) -> Interpreter | None:
    """The interpreter that a tool runs programs with, or None if it is another tool."""
    # The exact class and method: no other object may pass for a confined interpreter.
    found = getattr(tool.run, "__self__", None)
    return found if type(found) is Interpreter and tool.run == found.run else None


@dataclass(frozen=True, slots=True)
class Interpreter:
    """Runs programs confined: the only class that the `run` of an interpreter tool is bound to."""

    rights: ProgramRights
    probe: ConfinementProbe = confinement_problem

    async def run(self, arguments: Mapping[str, Any]) -> ProgramResult:
        require_confinement(self.probe)
        try:
            program = str(arguments[PROGRAM]).encode()
        except UnicodeEncodeError:
            raise ToolError("tools.bad-argument", "the program is not Unicode text") from None
        with fresh_folder() as folder:
            # Isolated and without site-packages: nothing of the user's is on the path. "-" reads the program itself.
            argv = [str(_python()), "-I", "-S", "-B", "-X", "utf8", "-"]
            done = await run_confined(argv, self._confinement(folder), stdin=program, probe=self.probe)
        return self._result(done)

    def fingerprint(self) -> str:
        """A hash of what decides about a run besides the program."""
        return hashlib.sha256(repr((sys.version, sorted(asdict(self.rights).items()))).encode()).hexdigest()

    def _confinement(self, folder: Path) -> Confinement:
        rights = self.rights
        return Confinement(
            read=(_python(), Path(sys.base_prefix)),
            write=(folder,),
            network=rights.endpoints,
            timeout=rights.wall_seconds,
            memory=rights.memory_mb * MIB,
            output=_PRINTED_BYTES,
            processes=rights.processes,
            folder=folder,
            cpu=rights.cpu_seconds,
            disk=rights.disk_mb * MIB,
        )

    def _result(self, done: CommandResult) -> ProgramResult:
        ended = _ENDS.get(done.ended)
        if ended is None:
            raise ToolError("tools.cannot-start", "the interpreter could not be started in its sandbox")
        printed = _as_text(done.stdout)
        cut = max(len(printed) - self.rights.max_output, 0)
        return {
            "ended": ended,
            "status": done.exit_code,
            "output": printed[: self.rights.max_output],
            "errors": _as_text(done.stderr)[-_ERROR_CHARACTERS:],
            "cut": cut,
        }


def _python() -> Path:
    """The interpreter itself; that of a virtual environment is a link to it."""
    return Path(sys.executable).resolve()


def _as_text(printed: bytes) -> str:
    return printed.decode(errors="replace").replace("\0", "�").removesuffix("\n")


@contextmanager
def fresh_folder() -> Generator[Path]:
    """A folder that nobody has used, and that is gone afterwards, whatever was put into it."""
    folder = Path(tempfile.mkdtemp(prefix="bicameral-program-")).resolve()
    try:
        yield folder
    finally:
        remove_folder(folder)


def remove_folder(folder: Path) -> None:
    """Remove a folder that a hostile program has filled: nested too deep for a path, closed, or full of links.

    Nothing runs in it any more, so that nothing changes meanwhile. Links are removed and not followed.
    """
    root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        while names := os.listdir(root):
            for name in names:
                _remove_entry(root, name)
    finally:
        os.close(root)
    folder.rmdir()


def _remove_entry(root: int, name: str) -> None:
    if not _is_folder(root, name):
        os.unlink(name, dir_fd=root)
        return
    os.chmod(name, 0o700, dir_fd=root)
    inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=root)
    try:
        for each in os.listdir(inner):
            if _is_folder(inner, each):
                # Moved to the top instead of entered: no depth is too deep. The name is one that nobody could take.
                os.chmod(each, 0o700, dir_fd=inner)
                os.rename(each, secrets.token_hex(16), src_dir_fd=inner, dst_dir_fd=root)
            else:
                os.unlink(each, dir_fd=inner)
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=root)


def _is_folder(folder: int, name: str) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
