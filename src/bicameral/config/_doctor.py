"""Health checks of the configuration and the machine, each with a fix.

They cover folders, tools, policies, the services behind tools (mailbox, mail server, calendar), weights, engine,
sandbox, parser, journal and terminal.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import os
import platform
import shutil
import socket
import stat
import sys
from collections.abc import Callable, Collection, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pydantic import ValidationError

from bicameral.config._absent_tools import absent_tools
from bicameral.config._config import Config
from bicameral.config._load import misspelt_variables
from bicameral.config._models import model_store, needed_weights, size_text
from bicameral.config._quarantine import configured_executor, executor_notes
from bicameral.config._quarantine_routes import quarantine_gaps
from bicameral.config._resources import missing_toolboxes, open_policy, open_registry, surroundings_of
from bicameral.errors import BicameralError, ConfigError, missing_packages
from bicameral.tools import MissingSetting, Registry, effects_file, record_problem

if TYPE_CHECKING:
    from bicameral.models import Weights


T = TypeVar("T")

Health = Literal["ok", "warn", "bad"]


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """The result of one check, and how to fix a problem. A warning affects only optional features."""

    name: str
    status: Health
    detail: str
    fix: str = ""

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "status": self.status, "detail": self.detail} | (
            {"fix": self.fix} if self.fix else {}
        )


def failed_check(name: str, error: BicameralError, *, status: Health = "bad") -> HealthCheck:
    """A failed check with the message of the error."""
    where = f"{error.place}: " if error.place and str(error.place) else ""
    wanted = f"; expected {error.expected}" if error.expected else ""
    meant = f"Did you mean {error.nearest!r}? " if error.nearest else ""
    return HealthCheck(
        name, status, f"{where}{error.message}{wanted} [{error.code}]", f"{meant}{error.fix or ''}".strip()
    )


def _attempt(name: str, check: Callable[[], HealthCheck], status: Health = "bad") -> HealthCheck:
    """The result of a check; a failed one with this name if it raises an error."""
    try:
        return check()
    except BicameralError as error:
        return failed_check(name, error, status=status)


def _check_quarantine_routes(config: Config) -> Iterator[HealthCheck]:
    """The aliases that roles and phases name, and that do not answer once untrusted text has come in."""
    try:
        gaps = quarantine_gaps(config)
    except BicameralError as error:
        yield failed_check("models after untrusted text", error, status="warn")
        return
    for gap in gaps:
        yield HealthCheck(f"alias {gap.alias}", "warn", f"{', '.join(gap.subjects)}: {gap.consequence}", gap.fix)


def run_coroutine(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine, in a thread with its own event loop, so that `doctor` can be called from anywhere."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def machine_checks(config: Config) -> Iterator[HealthCheck]:
    try:
        for weights in needed_weights(config):
            name = f"model {weights.alias}"
            yield _attempt(name, partial(_check_weights, config, weights, name))
    except BicameralError as error:
        yield failed_check("models", error)
    yield _attempt("model for meaning", lambda: _check_embedding(config), "warn")
    yield _check_engine()
    yield _attempt("sandbox", _check_sandbox, "warn")
    yield _attempt("parser", _check_parser)
    yield _attempt("journal", lambda: _check_journal(config))
    yield _check_terminal()


def _check_weights(config: Config, weights: Weights, name: str) -> HealthCheck:
    store = model_store(config)
    path = store.path(weights)
    if path is not None:
        return HealthCheck(name, "ok", f"{weights.title}, {path}")
    if weights.file is not None:
        fix = f"Bring it back, or take the model out with `bicameral models rm {weights.alias}`."
        return HealthCheck(name, "bad", f"its file is not there any more: {weights.file}", fix)
    free = shutil.disk_usage(_nearest_existing(store.folder)).free
    if free < weights.bytes:
        lacking = f"not here, and {size_text(free)} of disk are free where {size_text(weights.bytes)} are needed"
        return HealthCheck(
            name, "bad", lacking, f"Free some space at {store.folder}, or set BICAMERAL_MODELS to another disk."
        )
    detail = f"not here yet; the first run fetches it ({size_text(weights.bytes)})"
    return HealthCheck(name, "warn", detail, f"`bicameral models pull {weights.alias}` fetches it now.")


def _check_embedding(config: Config) -> HealthCheck:
    """Whether texts can be compared by meaning. That is optional: without it, words alone are compared."""
    from bicameral.models import find_weights
    from bicameral.retrieval import RetrievalError, require_packages

    name, weights = "model for meaning", find_weights("minilm", kind="embedding")
    without = "passages are found and names suggested by their words alone"
    try:
        require_packages()
    except RetrievalError:
        return HealthCheck(name, "ok", f'none; {without} (`pip install "bicameral[retrieval]"`)')
    path = model_store(config).path(weights)
    if path is None:
        return HealthCheck(name, "ok", f"none; {without} (`bicameral models pull {weights.alias}`)")
    return HealthCheck(name, "ok", f"{weights.title}, {path}")


def _check_engine() -> HealthCheck:
    try:
        import xllamacpp
    except (ImportError, OSError) as error:
        return HealthCheck(
            "engine", "bad", f"xllamacpp does not load: {error}", "Install it again: `pip install xllamacpp`."
        )
    return HealthCheck("engine", "ok", f"xllamacpp {getattr(xllamacpp, '__version__', '')}".rstrip())


def _check_sandbox() -> HealthCheck:
    from bicameral.tools import Confinement, run_confined

    done = run_coroutine(run_confined(["/bin/true"], Confinement(timeout=5.0)))
    if done.exit_code != 0:
        complaint = done.stderr.decode(errors="replace").strip() or f"exit code {done.exit_code}"
        return HealthCheck(
            "sandbox", "warn", f"a confined command failed: {complaint}", "Command-line tools will not run."
        )
    return HealthCheck("sandbox", "ok", "commands run confined")


def _check_parser() -> HealthCheck:
    from bicameral.parsing import parser_confinement

    confined = parser_confinement()
    if missing := [what for what in ("files", "network") if what not in confined]:
        detail = f"mails, calendars and pages are read apart, with limits, but not cut off from {' and '.join(missing)}"
        return HealthCheck("parser", "warn", detail, "Use Linux 6.12 or later with Landlock, on x86_64 or aarch64.")
    return HealthCheck("parser", "ok", "mails, calendars and pages are read apart, without files and network")


def _check_journal(config: Config) -> HealthCheck:
    from bicameral.runs import Journal

    file = config.journal_file
    if not file.exists():
        folder = _nearest_existing(file.parent)
        if folder.is_dir() and os.access(folder, os.W_OK | os.X_OK):
            return HealthCheck("journal", "ok", f"{file}; the first run makes it")
        return HealthCheck(
            "journal", "bad", f"{file} cannot be made", "Set [journal] file to a place that you can write."
        )
    with Journal(file) as journal:
        runs = sum(1 for _ in journal.runs(limit=1))
    if not os.access(file, os.W_OK):
        return HealthCheck(
            "journal", "bad", f"you may not write {file}", "Change its permissions, or set [journal] file."
        )
    return HealthCheck("journal", "ok", f"{file}" + ("" if runs else "; no runs yet"))


def _check_terminal() -> HealthCheck:
    if not sys.stderr.isatty():
        return HealthCheck("terminal", "ok", "none; output is plain lines")
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") in ("dumb", "")
    return HealthCheck("terminal", "ok", "without colour" if plain else "with colour")


def _nearest_existing(path: Path) -> Path:
    """The path, or the nearest parent that exists."""
    return next((one for one in (path, *path.parents) if one.exists()), Path("/"))


_READ_SECONDS = 10.0
_CONNECT_SECONDS = 3.0


def service_checks(config: Config) -> Iterator[HealthCheck]:
    try:
        registry = open_registry(config)
    except BicameralError as error:
        yield failed_check("toolboxes", error)
        return
    boxes = sorted({tool.toolbox for tool in registry})
    yield HealthCheck("toolboxes", "ok" if boxes else "warn", f"{len(registry)} tools: {', '.join(boxes) or 'none'}")
    yield _attempt("policy", lambda: _check_policy(config, registry))
    yield _attempt("quarantine", lambda: _check_quarantine(config))
    yield from _check_settings_of_tools(config, registry)
    yield from _check_described_tools(registry)
    for name, lacking in missing_toolboxes(config).items():
        yield failed_check(f"toolbox {name}", lacking, status="warn")
    yield from _check_standard_packages(boxes)
    yield from _check_reading_tool(config, registry, "mail", "folder", "search_mail", {"limit": 1})
    yield from _check_reading_tool(config, registry, "calendar", "file", "list_events", {"start": dt.date.today()})
    yield from _check_smtp(config)


def _check_settings_of_tools(config: Config, registry: Registry) -> Iterator[HealthCheck]:
    """The tools that planners are not told of, with the setting that they lack."""
    lacking: dict[MissingSetting, list[str]] = {}
    for each in absent_tools(config, registry, surroundings_of(config)):
        if each.tool is not None:
            lacking.setdefault(each.missing, []).append(each.name)
    for missing, names in lacking.items():
        yield HealthCheck(f"tool {', '.join(names)}", "warn", f"in no plan: {missing.lacking}", missing.fix)


def _check_described_tools(registry: Registry) -> Iterator[HealthCheck]:
    """The tools of programs that describe themselves, as far as nobody has confirmed their effects."""
    described = [tool for tool in registry if tool.described is not None]
    if described and (problem := record_problem()) is not None:
        yield HealthCheck("confirmed effects", "warn", problem, f"Look at {effects_file()}.")
    for tool in described:
        found = tool.described
        if found is not None and found.state in ("unconfirmed", "lapsed"):
            what = "no longer confirmed: " if found.state == "lapsed" else "not confirmed: "
            yield HealthCheck(
                f"tool {tool.name}",
                "warn",
                f"its effect is {what}it counts as irreversible",
                f"Look at `bicameral tools show {tool.name}`, then run `bicameral tools accept {tool.name}`.",
            )


STANDARD_PACKAGES = {
    "httpx": {"web": "web pages"},
    "selectolax": {"web": "web pages", "mail": "mails in HTML"},
    "icalendar": {"calendar": "the calendar"},
    "recurring_ical_events": {"calendar": "the calendar"},
    "re2": {"lines": "regular expressions"},
}
"""The modules of the extra `standard`: which toolboxes need them, and for what."""


def _check_standard_packages(boxes: Collection[str]) -> Iterator[HealthCheck]:
    """What the toolboxes in use cannot do because a package of the extra `standard` is not installed.

    The toolboxes import these packages when a tool is called, so that opening them does not show what is missing.
    """
    needed = {module: uses for module, uses in STANDARD_PACKAGES.items() if uses.keys() & boxes}
    if not (missing := missing_packages(*needed)):
        return
    lost = dict.fromkeys(text for module in missing for box, text in needed[module].items() if box in boxes)
    verb = "is" if len(missing) == 1 else "are"
    detail = f"{', '.join(missing)} {verb} not installed; what does not work without: {', '.join(lost)}"
    yield HealthCheck("packages", "warn", detail, 'Install with `pip install "bicameral[standard]"`.')


def _check_policy(config: Config, registry: Registry) -> HealthCheck:
    policy = open_policy(config, registry)
    own = sum(not rule.default for rule in policy.rules)
    weaker = "; control flow does not count" if policy.mode == "normal" else ""
    return HealthCheck("policy", "ok", f"{len(policy.rules) - own} defaults, {own} of your own{weaker}")


def _check_quarantine(config: Config) -> HealthCheck:
    detail = str(configured_executor(config))
    if notes := list(executor_notes(config)):
        return HealthCheck(
            "quarantine",
            "warn",
            f"{detail}; {'; '.join(notes)}",
            "Name another model in 'quarantine.validator_models'.",
        )
    return HealthCheck("quarantine", "ok", detail)


def _check_reading_tool(
    config: Config, registry: Registry, box: str, setting: str, tool_name: str, arguments: dict[str, Any]
) -> Iterator[HealthCheck]:
    """Call a reading tool once, to see whether it can read."""
    tool = registry.get(tool_name)
    if tool is None or tool.toolbox != box:
        return
    chosen = config.toolbox.get(box, {}).get(setting)

    async def attempt() -> Any:
        return await asyncio.wait_for(tool.call(arguments), _READ_SECONDS)

    try:
        run_coroutine(attempt())
    except BicameralError as error:
        # A mailbox or calendar that the configuration does not name is optional.
        yield failed_check(box, error, status="bad" if chosen else "warn")
    except TimeoutError:
        yield HealthCheck(
            box, "warn", f"reading took longer than {_READ_SECONDS:.0f} seconds", f"Name a smaller {setting}."
        )
    else:
        yield HealthCheck(box, "ok", f"{chosen or 'found'} can be read")


def _check_smtp(config: Config) -> Iterator[HealthCheck]:
    if "mail" not in config.toolboxes.use:
        return
    from bicameral.toolboxes.mail import MailSettings

    try:
        smtp = MailSettings.model_validate(config.toolbox.get("mail", {})).smtp
    except ValidationError:
        return  # The check of toolboxes has reported it.
    if smtp is None:
        return  # The check of the tools' settings has reported it.
    address = f"{smtp.host}:{smtp.port_or_usual}"
    if smtp.password_env and not os.environ.get(smtp.password_env):
        fix = f"Set it to the password of {smtp.user} at {smtp.host}."
        yield HealthCheck("mail server", "bad", f"the environment variable {smtp.password_env} is not set", fix)
    try:
        with socket.create_connection((smtp.host, smtp.port_or_usual), timeout=_CONNECT_SECONDS):
            yield HealthCheck("mail server", "ok", f"{address} answers")
    except OSError as error:
        fix = "Check host and port of `smtp` in [toolbox.mail], and the network."
        yield HealthCheck("mail server", "bad", f"{address} cannot be reached: {error.strerror or error}", fix)


def doctor(config: Config | ConfigError, base: Path | None = None) -> list[HealthCheck]:
    """The results of all checks; if the configuration could not be read, those of the defaults for a folder.

    Args:
        config: The configuration, or why it could not be read.
        base: The working folder, where there is no configuration that names it.

    Example:
        >>> [check.name for check in doctor(load_config()) if check.status == "bad"]
        []
    """
    usable = config if isinstance(config, Config) else Config.defaults(base)
    return [
        HealthCheck("python", "ok", f"{platform.python_version()}, {sys.executable}"),
        _check_file(config),
        *(
            HealthCheck("environment", "warn", f"{name} is set, but nothing reads it", f"Did you mean {meant}?")
            for name, meant in misspelt_variables(os.environ)
        ),
        # Of a folder that does not exist nothing can be said, and of no other one: the check of the file says it.
        *([*_check_folders(usable), *service_checks(usable)] if usable.base.is_dir() else []),
        *_check_quarantine_routes(usable),
        *machine_checks(usable),
    ]


def _check_file(config: Config | ConfigError) -> HealthCheck:
    if isinstance(config, ConfigError):
        return failed_check("configuration", config)
    if config.source is None:
        return HealthCheck("configuration", "ok", "no file; the defaults serve (`bicameral init` writes one)")
    if config.withheld:
        return HealthCheck(
            "configuration",
            "warn",
            f"{config.source} is not accepted, so these settings are not used: {', '.join(config.withheld)}",
            "Look at it, then run `bicameral config accept`.",
        )
    return HealthCheck("configuration", "ok", str(config.source))


def _check_folders(config: Config) -> Iterator[HealthCheck]:
    for use, names, needed in (("read", config.folders.read, os.R_OK), ("write", config.folders.write, os.W_OK)):
        for name in names:
            yield _check_folder(config.base / Path(name).expanduser(), use, needed)
    for name in config.folders.trusted:
        yield _check_trusted_folder(config.base / Path(name).expanduser(), "trusted folder")


def _check_trusted_folder(path: Path, title: str) -> HealthCheck:
    if not path.exists():
        return HealthCheck(title, "bad", f"{path} is not there", "Make it, or take it out of `trusted` in [folders].")
    if path.stat().st_mode & stat.S_IWOTH:
        return HealthCheck(
            title, "bad", f"everybody may write in {path}", "Change its permissions, or do not trust it."
        )
    return HealthCheck(title, "ok", f"{path}: what is read there counts as your own word")


def _check_folder(path: Path, use: str, needed: int) -> HealthCheck:
    title = f"folder to {use}"
    if not path.exists():
        fix = f"Make it, or change `{use}` in [folders] of bicameral.toml."
        return HealthCheck(title, "bad", f"{path} is not there", fix)
    if not os.access(path, needed | (os.X_OK if path.is_dir() else 0)):
        return HealthCheck(title, "bad", f"you may not {use} {path}", "Change its permissions, or name another folder.")
    return HealthCheck(title, "ok", str(path))
