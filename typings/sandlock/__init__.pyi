"""The part of sandlock that Bicameral uses; the package ships no types."""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from io import FileIO
from types import TracebackType

class SandlockError(Exception): ...

class StdioMode(IntEnum):
    INHERIT = 0
    PIPED = 1
    NULL = 2

class ExitReason(IntEnum):
    EXITED = 0
    SIGNALED = 1
    KILLED = 2
    TIMEOUT = 3

class Result:
    exit_code: int
    reason: ExitReason
    signal: int

class Process:
    stdin: FileIO
    stdout: FileIO
    stderr: FileIO
    @property
    def pid(self) -> int | None: ...
    def kill(self) -> None: ...
    def wait(self, timeout: float | None = None) -> Result: ...
    def __enter__(self) -> Process: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

class Sandbox:
    def __init__(
        self,
        *,
        fs_readable: Sequence[str],
        fs_writable: Sequence[str] = ...,
        fs_denied: Sequence[str] = ...,
        extra_deny_syscalls: Sequence[str] = ...,
        net_allow: Sequence[str] = ...,
        max_memory: int = ...,
        max_processes: int = ...,
        clean_env: bool = ...,
        env: Mapping[str, str] = ...,
        cwd: str | None = ...,
        no_coredump: bool = ...,
    ) -> None: ...
    def popen(self, cmd: Sequence[str], stdin: StdioMode, stdout: StdioMode, stderr: StdioMode) -> Process: ...

def confine(policy: Sandbox) -> None: ...
def landlock_abi_version() -> int: ...
def min_landlock_abi() -> int: ...
