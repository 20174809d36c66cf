"""A process takes from itself what it does not need: files (Landlock), network and other programs (seccomp).

Both are irreversible. Where the kernel lacks one of them, the process goes on with what it could get, and says so:
the limits on time, memory and output hold without either.
"""

from __future__ import annotations

import ctypes
import mimetypes
import os
import platform
import struct
import sys

_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 22, 2

# Numbers of system calls: sockets, other programs, other processes. Everything that opens a way out of the process.
_NEW = (424, 425, 434, 435)  # pidfd_send_signal, io_uring_setup, pidfd_open, clone3: the same everywhere
_DENIED = {
    "x86_64": (0xC000003E, 302, (41, 42, 43, 49, 50, 53, 56, 57, 58, 59, 62, 101, 200, 234, 288, 310, 311, 322, *_NEW)),
    "aarch64": (0xC00000B7, 261, (117, *range(129, 132), *range(198, 204), 220, 221, 242, 270, 271, 281, *_NEW)),
}
"""By machine: how the kernel calls it, the number of `prlimit64`, the numbers that are denied."""
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _FAIL = 0x7FFF0000, 0x00050001  # EPERM
_X32 = 0x40000000


def confine() -> list[str]:
    """Confine this process; gives what it has been cut off from: `files`, `network`."""
    done: list[str] = []
    if _confine_files():
        done.append("files")
    if _confine_network():
        done.append("network")
    return done


def _confine_files() -> bool:
    """Only Python's own files can be read: modules and codecs are imported when they are first used."""
    readable = {sys.prefix, sys.base_prefix, sys.exec_prefix, *sys.path, "/usr", "/lib", "/lib64", "/etc/localtime"}
    readable |= {"/dev/null", "/dev/urandom", "/etc/ld.so.cache", *map(str, mimetypes.knownfiles)}
    try:
        from sandlock import Sandbox, confine, landlock_abi_version, min_landlock_abi

        if landlock_abi_version() < min_landlock_abi():
            return False
        confine(Sandbox(fs_readable=sorted(path for path in readable if path and os.path.exists(path))))
    except (ImportError, OSError, RuntimeError, ValueError, TypeError, AttributeError):
        # A machine or a version of the package that cannot: what is left are the limits.
        return False
    return True


def _confine_network() -> bool:
    """No socket, no other program and no other process from here on."""
    known = _DENIED.get(platform.machine())
    if known is None or platform.system() != "Linux":
        return False
    architecture, prlimit, denied = known
    # Each instruction is (code, jump if true, jump if false, operand); jumps count instructions to skip.
    program = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, architecture), (_RETURN, 0, 0, _FAIL), (_LOAD, 0, 0, 0)]
    # The x32 calls of x86_64 are the same calls under other numbers.
    program += [(_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _FAIL)]
    for number in denied:
        program += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _FAIL)]
    # A process may limit itself (pid 0) and nobody else.
    program += [(_EQUAL, 0, 3, prlimit), (_LOAD, 0, 0, 16), (_EQUAL, 1, 0, 0), (_RETURN, 0, 0, _FAIL)]
    program.append((_RETURN, 0, 0, _ALLOW))
    code = b"".join(struct.pack("HBBI", *each) for each in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    filter_ = struct.pack("HxxxxxxP", len(program), ctypes.addressof(buffer))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    if prctl(_PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0)) != 0:
        return False
    return prctl(_PR_SET_SECCOMP, ctypes.c_ulong(_SECCOMP_MODE_FILTER), ctypes.c_char_p(filter_)) == 0
