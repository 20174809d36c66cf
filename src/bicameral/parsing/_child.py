"""The parser process: it confines itself, then answers request frames until its input ends.

It is started by `_pool` as an isolated interpreter with an empty environment. Everything that it reads except the
name of the function may be hostile. An attacker who takes it over has a process without files (Landlock), network or
other programs (seccomp), and with little time. Both confinements are irreversible. Where the kernel lacks one of
them, the process continues with the other and reports it; the limits on time, memory and output hold without either.
"""

from __future__ import annotations

import ctypes
import gc
import math
import mimetypes
import os
import platform
import resource
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any, cast

from bicameral.errors import BicameralError
from bicameral.parsing._pool import ERROR, FAILED, FRAME_PREFIX, HELLO, LIMIT, VALUE, ParserFrame

_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 22, 2

# Numbers of the denied system calls: sockets, starting programs, and access to other processes.
_NEW_CALLS = (424, 425, 434, 435)  # pidfd_send_signal, io_uring_setup, pidfd_open, clone3: the same everywhere
_DENIED_CALLS = {
    "x86_64": (
        0xC000003E,
        302,
        (41, 42, 43, 49, 50, 53, 56, 57, 58, 59, 62, 101, 200, 234, 288, 310, 311, 322, *_NEW_CALLS),
    ),
    "aarch64": (0xC00000B7, 261, (117, *range(129, 132), *range(198, 204), 220, 221, 242, 270, 271, 281, *_NEW_CALLS)),
}
"""By machine: the kernel's audit number for it, the number of `prlimit64`, and the denied numbers."""
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _FAIL = 0x7FFF0000, 0x00050001  # EPERM
_X32 = 0x40000000

# Hard limits for the life of the process; each request sets its own, lower, soft limits.
_HARD_MEMORY = 4 << 30
_MAX_REQUEST = 512 << 20


def confine_process() -> list[str]:
    """Confine this process irreversibly; return the confinements that worked: `files`, `network`."""
    return [name for name, confine in (("files", _confine_files), ("network", _confine_network)) if confine()]


def _confine_files() -> bool:
    """Deny all files except Python's own: modules and codecs are still imported at their first use."""
    readable = {sys.prefix, sys.base_prefix, sys.exec_prefix, *sys.path, "/usr", "/lib", "/lib64", "/etc/localtime"}
    readable |= {"/dev/null", "/dev/urandom", "/etc/ld.so.cache", *map(str, mimetypes.knownfiles)}
    try:
        from sandlock import Sandbox, confine, landlock_abi_version, min_landlock_abi

        if landlock_abi_version() < min_landlock_abi():
            return False
        confine(Sandbox(fs_readable=sorted(path for path in readable if path and os.path.exists(path))))
    except (ImportError, OSError, RuntimeError, ValueError, TypeError, AttributeError):
        # The kernel or the installed package cannot do it; the limits on time and memory remain.
        return False
    return True


def _confine_network() -> bool:
    """Install a seccomp filter that denies sockets, starting programs, and access to other processes."""
    known = _DENIED_CALLS.get(platform.machine())
    if known is None or platform.system() != "Linux":
        return False
    architecture, prlimit, denied = known
    # Each instruction is (code, jump if true, jump if false, operand); jumps count instructions to skip.
    program = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, architecture), (_RETURN, 0, 0, _FAIL), (_LOAD, 0, 0, 0)]
    # The x32 calls of x86_64 are the same calls under other numbers, and would bypass the list.
    program += [(_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _FAIL)]
    for number in denied:
        program += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _FAIL)]
    # `prlimit64` is allowed for the process itself (pid 0) only: `_set_limits` needs it.
    program += [(_EQUAL, 0, 3, prlimit), (_LOAD, 0, 0, 16), (_EQUAL, 1, 0, 0), (_RETURN, 0, 0, _FAIL)]
    program.append((_RETURN, 0, 0, _ALLOW))
    code = b"".join(struct.pack("HBBI", *instruction) for instruction in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    filter_ = struct.pack("HxxxxxxP", len(program), ctypes.addressof(buffer))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    if prctl(_PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0)) != 0:
        return False
    return prctl(_PR_SET_SECCOMP, ctypes.c_ulong(_SECCOMP_MODE_FILTER), ctypes.c_char_p(filter_)) == 0


def serve() -> None:
    """Answer request frames from standard input on standard output until the input ends."""
    requests, replies = _private_pipes()
    # The hard limits and the confinement are in force before any untrusted byte is read.
    for kind, limit in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_AS, _HARD_MEMORY)):
        with suppress(ValueError, OSError):
            resource.setrlimit(kind, (limit, limit))
    _write_frame(replies, ParserFrame.from_value(HELLO, confine_process()))
    # A large table has a million live objects; collecting garbage among them takes longer than parsing it.
    gc.disable()
    while (request := _read_frame(requests)) is not None:
        _write_frame(replies, _answer_request(request))
        gc.collect(0)


def _private_pipes() -> tuple[int, int]:
    """Move both pipes to other descriptors: output printed by a library must not get between the frames."""
    requests, replies = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    os.close(null)
    return requests, replies


def _answer_request(request: ParserFrame) -> ParserFrame:
    header = request.value
    _set_limits(float(header["cpu"]), int(header["memory"]))
    _set_zone(header["zone"])
    try:
        module, _, name = str(header["function"]).partition(":")
        parse = cast("Callable[..., object]", getattr(import_module(module), name))
        result = parse(request.body, **header["arguments"])
        value, body = cast("tuple[object, bytes]", result) if isinstance(result, tuple) else (result, b"")
        return ParserFrame.from_value(VALUE, value, body)
    except BicameralError as error:
        return ParserFrame.from_value(ERROR, error.to_json())
    except (MemoryError, RecursionError) as error:
        return ParserFrame.from_value(LIMIT, "memory" if isinstance(error, MemoryError) else "depth")
    except Exception as error:
        # Any failure of a parser on its input is reported as a failed parse; the process stays usable.
        return ParserFrame.from_value(FAILED, f"{type(error).__name__}: {error}"[:300])


def _set_limits(cpu: float, memory: int) -> None:
    """Set the soft limits of one request; the kernel counts CPU time over the life of the process."""
    _, hard_cpu = resource.getrlimit(resource.RLIMIT_CPU)
    until = math.ceil(time.process_time() + cpu)
    resource.setrlimit(resource.RLIMIT_CPU, (until if hard_cpu < 0 else min(until, hard_cpu), hard_cpu))
    _, hard_memory = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (memory if hard_memory < 0 else min(memory, hard_memory), hard_memory))


def _set_zone(zone: str | None) -> None:
    """Use the time zone of the parent: the environment of this process is empty."""
    if zone == os.environ.get("TZ"):
        return
    if zone is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = zone
    time.tzset()


def _read_frame(source: int) -> ParserFrame | None:
    prefix = _read_exactly(source, FRAME_PREFIX.size)
    if len(prefix) < FRAME_PREFIX.size:
        return None
    kind, text, body = FRAME_PREFIX.unpack(prefix)
    # A length that no request has means that the stream is out of step; the process ends.
    if text + body > _MAX_REQUEST:
        return None
    return ParserFrame(kind, _read_exactly(source, text), _read_exactly(source, body))


def _read_exactly(source: int, size: int) -> bytes:
    parts: list[bytes] = []
    left = size
    while left and (part := os.read(source, min(left, 1 << 20))):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _write_frame(target: int, frame: ParserFrame) -> None:
    view: Any = memoryview(frame.to_bytes())
    while view:
        view = view[os.write(target, view) :]
