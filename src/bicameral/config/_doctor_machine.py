"""What the machine has to offer: weights, engine, sandbox, journal, terminal."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from bicameral.errors import BicameralError

from ._check import Check, failed, settled
from ._config import Config
from ._weights import model_store, needed_weights, size_text

if TYPE_CHECKING:
    from bicameral.models import Weights


def machine_checks(config: Config) -> Iterator[Check]:
    yield from _models(config)
    yield _engine()
    yield _sandbox()
    yield _parser()
    yield _journal(config)
    yield _terminal()


def _models(config: Config) -> Iterator[Check]:
    try:
        for weights in needed_weights(config):
            yield _model(config, weights)
    except BicameralError as error:
        yield failed("models", error)


def _model(config: Config, weights: Weights) -> Check:
    name, store = f"model {weights.alias}", model_store(config)
    try:
        path = store.path(weights)
    except BicameralError as error:
        return failed(name, error)
    if path is not None:
        return Check(name, "ok", f"{weights.title}, {path}")
    free = shutil.disk_usage(_existing(store.folder)).free
    if free < weights.bytes:
        lacking = f"not here, and {size_text(free)} of disk are free where {size_text(weights.bytes)} are needed"
        return Check(
            name, "bad", lacking, f"Free some space at {store.folder}, or set BICAMERAL_MODELS to another disk."
        )
    detail = f"not here yet; the first run fetches it ({size_text(weights.bytes)})"
    return Check(name, "warn", detail, f"`bicameral models pull {weights.alias}` fetches it now.")


def _engine() -> Check:
    try:
        import xllamacpp
    except (ImportError, OSError) as error:
        return Check("engine", "bad", f"xllamacpp does not load: {error}", "Install it again: `pip install xllamacpp`.")
    return Check("engine", "ok", f"xllamacpp {getattr(xllamacpp, '__version__', '')}".rstrip())


def _sandbox() -> Check:
    from bicameral.tools import Confinement, run_confined

    try:
        done = settled(run_confined(["/bin/true"], Confinement(timeout=5.0)))
    except BicameralError as error:
        return failed("sandbox", error, status="warn")
    if done.exit_code != 0:
        complaint = done.stderr.decode(errors="replace").strip() or f"exit code {done.exit_code}"
        return Check("sandbox", "warn", f"a confined command failed: {complaint}", "Command-line tools will not run.")
    return Check("sandbox", "ok", "commands run confined")


def _parser() -> Check:
    from bicameral.parsing import confinement_of_parser

    try:
        confined = confinement_of_parser()
    except BicameralError as error:
        return failed("parser", error)
    if missing := [what for what in ("files", "network") if what not in confined]:
        detail = f"mails, calendars and pages are read apart, with limits, but not cut off from {' and '.join(missing)}"
        return Check("parser", "warn", detail, "Use Linux 6.12 or later with Landlock, on x86_64 or aarch64.")
    return Check("parser", "ok", "mails, calendars and pages are read apart, without files and network")


def _journal(config: Config) -> Check:
    from bicameral.runs import Journal

    file = config.journal_file
    if not file.exists():
        folder = _existing(file.parent)
        if folder.is_dir() and os.access(folder, os.W_OK | os.X_OK):
            return Check("journal", "ok", f"{file}; the first run makes it")
        return Check("journal", "bad", f"{file} cannot be made", "Set [journal] file to a place that you can write.")
    try:
        with Journal(file) as journal:
            runs = sum(1 for _ in journal.runs(limit=1))
    except BicameralError as error:
        return failed("journal", error)
    if not os.access(file, os.W_OK):
        return Check("journal", "bad", f"you may not write {file}", "Change its permissions, or set [journal] file.")
    return Check("journal", "ok", f"{file}" + ("" if runs else "; no runs yet"))


def _terminal() -> Check:
    if not sys.stderr.isatty():
        return Check("terminal", "ok", "none; output is plain lines")
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") in ("dumb", "")
    return Check("terminal", "ok", "without colour" if plain else "with colour")


def _existing(path: Path) -> Path:
    """The path, or the nearest folder above it that is there."""
    return next((one for one in (path, *path.parents) if one.exists()), Path("/"))
