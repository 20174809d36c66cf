"""Files that other programs execute or obey: scripts, settings of shells and tools, build files, autostart, macros.

Text that a stranger wrote is harmless in `notes.txt` and runs as the user in `.bashrc`. What a file is follows from its
name, since that is what other programs go by; beside names only the executable bit and `#!` count. When in doubt a file
is taken for one that is executed: this only ever leads to a question, and only for untrusted content.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ._protected import compared_name


@dataclass(frozen=True, slots=True)
class Target:
    """What is known of the file that a call would write.

    `executed`: whether other programs execute or obey it; None if it is not known yet. `copied`: whether what is
    written comes from a file, a mail or a program, and not from the arguments alone, and strangers may have written it.
    `protected`: why no tool may change it, if so.
    """

    executed: bool | None = None
    copied: bool = False
    protected: str | None = None


UNKNOWN_TARGET = Target()

FindTarget = Callable[[Mapping[str, Any]], Target]
"""What is known of the file that a call with these arguments writes. Before a run only the literals are there."""

_SUFFIXES = frozenset(
    (
        # Programs, scripts, libraries and the sources that build them.
        "py pyw pyi pyc pyo pyd pyz pth ipynb sh bash zsh fish ksh csh tcsh command bat cmd ps1 psm1 psd1 vbs vbe "
        "js mjs cjs jse jsx ts tsx mts cts wsf wsh hta rb pl pm php phtml phar lua tcl awk r jl go rs java kt kts "
        "groovy scala swift c h cc cpp hpp cs fs ex exs erl hs ml clj el vim nu exe com scr msi msp dll so dylib cpl "
        "jar war class apk deb rpm pkg dmg appimage elf wasm "
        # What desktops, service managers and shells start or obey.
        "desktop service timer plist lnk url webloc reg inf scf job scpt applescript cron crontab "
        # Build files.
        "mk mak cmake gradle ninja bzl nix dockerfile containerfile tf "
        # What a viewer runs code of: pages and drawings with scripts, documents with macros.
        "html htm xhtml xht mht mhtml svg svgz xsl xslt chm iqy settingcontent-ms library-ms "
        "docm dotm xlsm xltm xlam xlsb xla xll pptm potm ppsm ppam sldm"
    ).split()
)
_NAMES = frozenset(
    (
        # Build files, package manifests, and settings of tools that run what they are told there.
        "makefile gnumakefile dockerfile containerfile jenkinsfile vagrantfile rakefile gemfile procfile justfile "
        "brewfile podfile fastfile guardfile capfile snakefile caddyfile tiltfile earthfile sconstruct sconscript "
        "wscript build pipfile cmakelists.txt meson.build package.json package-lock.json composer.json deno.json "
        "tsconfig.json pyproject.toml setup.cfg tox.ini pytest.ini cargo.toml go.mod go.work build.xml pom.xml "
        "taskfile.yml taskfile.yaml pnpm-workspace.yaml docker-compose.yml docker-compose.yaml compose.yml "
        "compose.yaml azure-pipelines.yml appveyor.yml bitbucket-pipelines.yml cloudbuild.yaml serverless.yml "
        "environment.yml crontab authorized_keys authorized_keys2 bashrc bash.bashrc zshrc zshenv sudoers rc.local "
        "mailcap autorun.inf"
    ).split()
)
_FOLDERS = frozenset(
    (
        "bin sbin venv virtualenv site-packages dist-packages node_modules __pycache__ autostart startup launchagents "
        "launchdaemons systemd init.d cron.d cron.daily cron.hourly cron.weekly cron.monthly profile.d sudoers.d udev"
    ).split()
)
_HIDDEN = frozenset(
    (
        ".git .github .gitlab .circleci .husky .vscode .idea .devcontainer .ssh .gnupg .config .kube .aws .docker "
        ".cargo .npm .venv .ipython .jupyter .emacs.d .vim"
    ).split()
)
"""Hidden folders that count also where the working folder lies inside them."""
_SYSTEM = ("/etc", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/boot", "/var/spool", "/Library", "/System")
_REQUIREMENTS = re.compile(r"(requirements|constraints)[\w.-]*\.(txt|in)")
TABLES = (".csv", ".tsv", ".tab")
"""Tables as text, whose cells spreadsheets may take for formulas."""

_ANY_EXECUTE = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH


def is_executed_name(path: Path, base: Path | None = None) -> bool:
    """Whether other programs execute or obey a file with this name at this place.

    Hidden files and folders are settings of programs, and nobody sees them; below the working folder each counts.

    Example:
        >>> is_executed_name(Path("report.PY")), is_executed_name(Path("notes.txt"))
        (True, False)
    """
    inner = path.relative_to(base) if base is not None and path.is_relative_to(base) else path
    if any(part.startswith(".") and part not in (".", "..") for part in inner.parts):
        return True
    if any(compared_name(part) in _FOLDERS for part in inner.parts[:-1]):
        return True
    if any(part.lower() in _HIDDEN for part in path.parts[:-1]):
        return True
    if inner is path and path.is_absolute() and any(path.is_relative_to(folder) for folder in _SYSTEM):
        return True
    name = compared_name(path.name)
    return (
        name in _NAMES
        or ("." in name and name.rpartition(".")[2] in _SUFFIXES)
        or name.partition(".")[0] in ("dockerfile", "containerfile", "makefile", "jenkinsfile")
        or _REQUIREMENTS.fullmatch(name) is not None
    )


def is_executable_file(path: Path) -> bool:
    """Whether the file that is there now is a program: it may be executed, or begins with `#!`."""
    try:
        found = os.lstat(path)
        if not stat.S_ISREG(found.st_mode):
            return False
        if found.st_mode & _ANY_EXECUTE:
            return True
        with path.open("rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return False


def named_target(names: tuple[str, ...]) -> FindTarget:
    """What names alone tell of the files that these arguments name, for a tool that says nothing more of them."""

    def find(given: Mapping[str, Any]) -> Target:
        if not all(name in given for name in names):
            return UNKNOWN_TARGET
        return Target(executed=any(is_executed_name(Path(each)) for name in names for each in _paths(given[name])))

    return find


def _paths(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [each for each in value if isinstance(each, str)] if isinstance(value, list | tuple) else []  # pyright: ignore[reportUnknownVariableType]
