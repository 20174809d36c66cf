"""The package as it is published, and environments that hold nothing but it and what it declares to need."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Literal

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]


def build(kind: Literal["wheel", "sdist"], target: Path, source: Path = ROOT) -> Path:
    """Build the package from a source tree, without a network."""
    argv = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(target)]
    subprocess.run(argv, cwd=source, env=clean_environment(target), check=True, capture_output=True)
    (built,) = target.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return built


def clean_environment(home: Path) -> dict[str, str]:
    """The environment of a new user: nothing of this one leads to the source tree or to weights that are here."""
    found = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", "NO_PROXY": "127.0.0.1"}
    # Where a program would look for weights, so that no test downloads any: nothing listens on port 9.
    nowhere = {"HF_ENDPOINT": "http://127.0.0.1:9", "PIP_INDEX_URL": "http://127.0.0.1:9/simple/"}
    return {**found, **nowhere, "PIP_CONFIG_FILE": os.devnull, "PIP_RETRIES": "0"}


def declared_packages(requirements: Iterable[str], extras: Iterable[str] = ()) -> dict[str, Distribution]:
    """What pip would install for these requirements, as it is installed here, by name."""
    found: dict[str, Distribution] = {}
    seen: set[tuple[str, str]] = set()
    todo = [(requirement, extra) for requirement in requirements for extra in ("", *extras)]
    while todo:
        text, extra = todo.pop()
        requirement = Requirement(text)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            continue
        try:
            package = distribution(requirement.name)
        except PackageNotFoundError:
            raise AssertionError(f"{requirement.name} is declared and not installed here") from None
        found[requirement.name.lower()] = package
        for wanted in ("", *requirement.extras):
            if (requirement.name, wanted) not in seen:
                seen.add((requirement.name, wanted))
                todo += [(each, wanted) for each in package.requires or ()]
    return found


@dataclass(frozen=True, slots=True)
class Installation:
    """A virtual environment with the built package, used from an empty folder."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "venv" / "bin" / "python"

    @property
    def site(self) -> Path:
        (found,) = (self.folder / "venv" / "lib").glob("python3*/site-packages")
        return found

    @property
    def work(self) -> Path:
        return self.folder / "work"

    @property
    def store(self) -> Path:
        return self.folder / ".cache" / "bicameral" / "models"

    def call(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run `bicameral` as a user of the environment does."""
        program = str(self.folder / "venv" / "bin" / "bicameral")
        return self._run([program, *arguments], environment)

    def evaluate(self, code: str) -> str:
        """What a program in this environment prints."""
        result = self._run([str(self.python), "-c", code], {})
        assert result.returncode == 0, result.stderr
        return result.stdout.strip()

    def _run(self, argv: list[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        env = {**clean_environment(self.folder), **environment}
        stdin = subprocess.DEVNULL
        return subprocess.run(
            argv, cwd=self.work, env=env, stdin=stdin, capture_output=True, text=True, timeout=280, check=False
        )


def install(wheel: Path, folder: Path, packages: Mapping[str, Distribution]) -> Installation:
    """Install the wheel into a new environment beside these packages, without a network."""
    made = Installation(folder)
    made.work.mkdir(parents=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
    for package in packages.values():
        _copy_package(package, made.site)
    argv = [sys.executable, "-m", "pip", "--python", str(made.python), "install", "--quiet", "--no-compile"]
    argv += ["--no-deps", "--no-index", str(wheel)]
    subprocess.run(argv, env=clean_environment(folder), check=True, capture_output=True)
    return made


def _copy_package(package: Distribution, site: Path) -> None:
    # Files, not links: the parser's sandbox may read the environment and nothing that lies elsewhere.
    for file in package.files or ():
        if ".." in file.parts or "__pycache__" in file.parts:
            continue
        source, target = Path(str(package.locate_file(file))), site / file
        if source.is_file() and not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(source, target)
            except OSError:  # another file system
                shutil.copy(source, target)
