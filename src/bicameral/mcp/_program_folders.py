"""The files that a confined server reads of its own: its program, the environment of that, and its scripts.

The settings name a program, and what it needs to run is found from there. All of that may come from a repository of
somebody else: a `pyvenv.cfg`, a link, a folder that is named like one of a package manager. So nothing is granted
because such a file says so, but only what has the form of an installation, and never a folder of the user's own.
"""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

_MAX_CONFIG = 64 * 1024
_SCRIPTS = (".py", ".js", ".mjs", ".cjs")
_ENVIRONMENT_PARTS = ("bin", "lib", "lib64")
_OPENSSL_CONFIG = Path("/etc/ssl/openssl.cnf")
_SYSTEM = tuple(map(Path, ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")))


def program_folders(program: str, base: Path) -> tuple[Path, ...]:
    """What a program needs of its own: its virtual environment with the Python that made it, or its node_modules.

    Args:
        program: The absolute path of the program.
        base: The working folder. No folder around it is granted.
    """
    path = Path(program)
    found: list[Path] = [path]
    for start in dict.fromkeys((path, path.resolve())):
        # Only the environment whose own program it is: a `pyvenv.cfg` in any other folder is just a file there.
        if start.parent.name == "bin":
            found += _environment_parts(start.parent.parent, base)
        found += _node_modules(start, base)
    # Without it Node.js does not start; no secret is in it.
    found.append(_OPENSSL_CONFIG)
    return tuple(each for each in dict.fromkeys(found) if each.exists())


def argument_files(argv: Sequence[str], base: Path) -> tuple[Path, ...]:
    """Scripts that are named after an interpreter, with the packages around them, as seen from the working folder."""
    # The program is started in `base`, so that this is where it finds them.
    scripts = [base / each for each in argv[1:] if each.endswith(_SCRIPTS)]
    # A link of such a name to something that is no script would grant that.
    found = [each for each in scripts if each.is_file() and each.resolve().name.endswith(_SCRIPTS)]
    return (*found, *dict.fromkeys(folder for each in found for folder in _node_modules(each.resolve(), base)))


def shown_program_paths(paths: Iterable[Path]) -> tuple[str, ...]:
    """Of the paths that a program is granted, those that are not the system's: what a person has to see.

    Shared libraries of one folder count as that folder's.
    """
    shown: dict[str, None] = {}
    for each in paths:
        real = each.resolve()
        if real == _OPENSSL_CONFIG.resolve() or any(real.is_relative_to(root) for root in _SYSTEM):
            continue
        shown[str(each.parent / "*.so") if ".so" in each.suffixes else str(each)] = None
    return tuple(shown)


def _environment_parts(folder: Path, base: Path) -> Iterator[Path]:
    """The parts of a virtual environment that a program in it needs; nothing if the folder is none."""
    config = folder / "pyvenv.cfg"
    # A device or pipe of this name would hold up the start.
    if not config.is_file() or _is_too_wide(folder, base):
        return
    root = folder.resolve()
    yield config
    for name in _ENVIRONMENT_PARTS:
        part = folder / name
        # A link out of the environment would grant what it leads to.
        if part.is_dir() and part.resolve().is_relative_to(root):
            yield part
    yield from _base_python(config, base)


def _base_python(config: Path, base: Path) -> Iterator[Path]:
    """The parts of the Python that a virtual environment was made of, if what its `home` names is one."""
    home = _configured_home(config)
    # `home` is whatever somebody wrote there: `//bin` and `/home/bin` would open the whole disk, and every home.
    if home is None or not home.is_absolute():
        return
    folder = home.resolve()
    root = folder.parent
    if folder.name != "bin" or _is_too_wide(root, base):
        return
    programs = [each for each in _listed(folder, "python*") if _is_program_of(each, root)]
    libraries = [each for each in _listed(root / "lib", "python3.*") if _is_library_of(each, root)]
    if not programs or not libraries:
        return
    yield from programs
    yield from libraries
    # The interpreter may be linked with libraries that lie beside its own.
    yield from (each for each in _listed(root / "lib", "lib*.so*") if each.is_file() and _is_inside(each, root))


def _configured_home(config: Path) -> Path | None:
    with suppress(OSError, UnicodeDecodeError, ValueError):
        if config.stat().st_size > _MAX_CONFIG:
            return None
        for line in config.read_text("utf-8").splitlines():
            key, _, value = line.partition("=")
            if key.strip() == "home":
                return Path(value.strip())
    return None


def _listed(folder: Path, pattern: str) -> list[Path]:
    with suppress(OSError):
        return sorted(folder.glob(pattern))
    return []


def _is_program_of(path: Path, root: Path) -> bool:
    with suppress(OSError):
        return stat.S_ISREG(path.stat().st_mode) and os.access(path, os.X_OK) and _is_inside(path, root)
    return False


def _is_library_of(path: Path, root: Path) -> bool:
    return (path / "os.py").is_file() and _is_inside(path, root)


def _is_inside(path: Path, root: Path) -> bool:
    return path.resolve().is_relative_to(root)


def _node_modules(start: Path, base: Path) -> Iterator[Path]:
    for folder in start.parents:
        # By its real name: a link of this name may lead anywhere.
        if folder.name == "node_modules" and folder.resolve().name == "node_modules" and not _is_too_wide(folder, base):
            yield folder


def _is_too_wide(folder: Path, base: Path) -> bool:
    """Whether a folder is no installation whatever is in it: the root, a home, or one around the working folder."""
    real = folder.resolve()
    # Also the administrator's: a server may be run by that user, with another home in the environment.
    homes = {Path.home().resolve(), Path(pwd.getpwuid(0).pw_dir)}
    around = {*(parent for home in (*homes, base.resolve()) for parent in (home, *home.parents)), Path("/home")}
    # Of a system's own folders everything is readable anyway.
    return real in around - set(_SYSTEM) or real.parent == Path("/home")
