"""What a configuration opens besides models: tools, policies, journal, cache, prices, budgets, and protected files.

No tool may change a file that decides how the next run behaves, or that records earlier runs. Files that a withheld
configuration names are protected like those of an accepted one, since the user may accept it later.
"""

from __future__ import annotations

import hashlib
import os
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import ValidationError

from bicameral.config._config import Config, acceptance_file, named_files
from bicameral.config._load import CONFIG_NAME, SettingsOrigin, settings_origin
from bicameral.config._quarantine import mark_executor_tools
from bicameral.config._sources import settings_error, unknown_key_error
from bicameral.errors import ConfigError, ToolError
from bicameral.tools import (
    Folders,
    LoadedToolbox,
    ProtectedPath,
    Registry,
    Settings,
    Surroundings,
    Tool,
    effects_file,
    installed_toolboxes,
    load_file,
    load_installed_toolbox,
    protected_database_files,
)

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from bicameral.limits import Budgets, Limits, Prices
    from bicameral.mcp import ProtectedPlaces, ServerTools
    from bicameral.policy import Policy
    from bicameral.runs import Journal


def config_template() -> str:
    """A commented `bicameral.toml` that says exactly what the defaults are: the file that `bicameral init` writes."""
    return files("bicameral.config").joinpath("template.toml").read_text("utf-8")


def open_journal(config: Config) -> Journal:
    """The journal of all runs; the file is created if it does not exist."""
    from bicameral.runs import Journal

    return Journal(config.journal_file)


def open_cache(config: Config) -> MutableMapping[str, str]:
    """The cache of plans and intents of this project."""
    from bicameral.cache import FolderCache

    # A folder for each project: a plan of one project is never used in another.
    project = hashlib.sha256(config.project.encode("utf-8", "surrogateescape")).hexdigest()
    return FolderCache(config.cache_folder / "plans" / project[:32])


def open_prices(config: Config) -> Prices:
    """The price table: the file that the configuration names, over the prices that come with Bicameral."""
    from bicameral.limits import known_prices, load_prices

    if config.llm.prices is None:
        return known_prices()
    start = config.source.parent if config.source is not None else config.base
    return load_prices(start / os.path.expanduser(config.llm.prices))


def budgets_of(config: Config) -> Budgets:
    """The budget of one run, and of each role in it."""
    from bicameral.limits import Budgets, Limits

    roles = {role: Limits(**budget.model_dump()) for role, budget in config.llm.role_budgets.items()}
    return Budgets(Limits(**config.llm.budget.model_dump()), roles)


def bounds_of(config: Config) -> Limits:
    """The limits of work in rounds, from `[reason]`."""
    from bicameral.limits import ChamberPrices, Price, reasoning_limits

    price = config.reason.price
    privileged = Price(price.privileged_read, price.privileged_written)
    quarantined = Price(price.quarantined_read, price.quarantined_written)
    bounds = config.reason.model_dump(exclude={"level", "price"})
    return reasoning_limits(**bounds, prices=ChamberPrices(privileged, quarantined))


def open_policy(config: Config, registry: Registry) -> Policy:
    """The default policies and the user's own, for these tools.

    Example:
        >>> open_policy(Config.defaults(), registry).mode
        'strict'
    """
    from bicameral.policy import Policy

    return Policy.load(config.policy_files, registry, mode=config.policy.mode, me=config.policy.me)


def protected_paths(config: Config) -> Iterator[ProtectedPath]:
    """Every file and folder that no tool may change."""
    source = config.source or config.base / CONFIG_NAME
    start = source.parent
    yield ProtectedPath(source, "the configuration")
    # The environment may name files that the configuration does not.
    for settings in (_read_settings(source), config.model_dump(include={"toolboxes", "policy", "mcp", "openapi"})):
        for file in named_files(settings, source, config.base):
            yield ProtectedPath(file, "code, a policy or declarations that the configuration names")
            yield ProtectedPath(file.with_name(f"{file.stem}.pins.json"), "what was reviewed of a server")
    named = [(start, config.models.profile), (start, config.llm.prices)]
    for folder, name in (*named, (start, config.llm.config_path), (config.base, config.llm.config_path)):
        if name:
            yield ProtectedPath(folder / _expand_path(name), "a file of settings that the configuration names")
    yield from _private_paths(config)
    yield ProtectedPath(config.models_folder, "among the weights of models", whole=True)
    for file in _model_files(config, start):
        yield ProtectedPath(file, "the weights of a model")


def _private_paths(config: Config) -> Iterator[ProtectedPath]:
    """What is recorded of runs, questions and answers, and tokens: of these, reading alone tells too much."""
    yield from protected_database_files(config.journal_file, "the journal of runs")
    database = (config.durable.database or config.durable_database).removeprefix("sqlite:///")
    if "://" not in database:
        yield from protected_database_files(config.base / _expand_path(database), "the database of submitted runs")
    records = config.records_database.removeprefix("sqlite:///")
    if "://" not in records:
        yield from protected_database_files(Path(records), "the records that are kept between runs")
    yield ProtectedPath(config.token_file, "the file of the server's tokens")
    yield ProtectedPath(acceptance_file(), "the record of configurations that were accepted")
    yield ProtectedPath(effects_file(), "the record of effects that were confirmed")
    yield ProtectedPath(config.cache_folder, "in the cache of plans", whole=True)


def _model_files(config: Config, start: Path) -> Iterator[Path]:
    """The files of models outside of the store: those that were added, and those that the configuration names."""
    from bicameral.models import is_model_reference, own_files

    yield from own_files(config.models_folder)
    aliases = (alias.model or "" for alias in config.llm.models.values())
    for name in (config.models.privileged, config.models.quarantined, *aliases):
        if is_model_reference(name) and not name.startswith("hub:"):
            yield start / _expand_path(name.removeprefix("local/"))


def _read_settings(source: Path) -> dict[str, Any]:
    """The settings of the file, whether accepted or not; none if it cannot be read."""
    try:
        return tomllib.loads(source.read_text("utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return {}


def open_registry(config: Config, surroundings: Surroundings | None = None) -> Registry:
    """Every tool that plans may use.

    Example:
        >>> open_registry(Config.defaults())["sort_lines"].effect
        'pure'
    """
    origin, installed = settings_origin(config), installed_toolboxes()
    known = {*installed, *(path.stem for path in config.toolbox_files)}
    unknown = next((name for name in config.toolbox if name not in known), None)
    if unknown is not None:
        raise unknown_key_error(("toolbox", unknown), known, origin.locate)
    around = surroundings or surroundings_of(config)
    loaded = list(_load_toolboxes(config, origin, installed))
    # Before any toolbox is opened: no tool may change what another toolbox keeps.
    around = replace(around, folders=around.folders.with_protected(_toolbox_paths(loaded)))
    tools = [tool for each in loaded for tool in _open_toolbox(config, each, around, origin)]
    tools += [tool for path in config.toolbox_files for tool in _open_toolbox_file(config, path, around, origin)]
    for server in open_mcp_servers(config):
        around.closers.append(server.connection.close)
        tools += _open_server(server.tools, ("mcp", server.name), origin)
    for name in config.openapi:
        tools += _open_server(partial(_api_tools, config, name), ("openapi", name), origin)
    if config.mcp or config.openapi:
        from bicameral.foreign import set_aside_mentioning

        tools = set_aside_mentioning(tools)
    return mark_executor_tools(config, Registry(tools), origin.locate)


def open_mcp_servers(config: Config) -> list[ServerTools]:
    """The configured MCP servers with their declarations; none is started before it is used.

    Example:
        >>> [server.name for server in open_mcp_servers(Config.load())]
        ['time']
    """
    if not config.mcp:
        return []
    from bicameral.mcp import mcp_tools

    beside = config.source.parent if config.source is not None else config.base
    return mcp_tools(config.mcp, base=config.base, beside=beside, places=partial(server_places, config))


def server_places(config: Config) -> ProtectedPlaces:
    """What no confined server gets, whatever it is granted."""
    from bicameral.mcp import ProtectedPlaces

    return ProtectedPlaces(tuple(protected_paths(config)), tuple(_private_paths(config)))


def _api_tools(config: Config, name: str) -> list[Tool]:
    """The tools of a configured API. Nothing is sent for it."""
    from bicameral.openapi import openapi_tools

    beside = config.source.parent if config.source is not None else config.base
    return openapi_tools(name, config.openapi[name], beside)


def _open_server(tools: Callable[[], Iterable[Tool]], keys: tuple[str, ...], origin: SettingsOrigin) -> list[Tool]:
    try:
        return list(tools())
    except ToolError as error:
        error.place = error.place or origin.locate(keys)
        raise


def configured_toolboxes(config: Config) -> list[ConfiguredToolbox]:
    """The toolboxes in use with their settings; those of files are not among them."""
    return list(_load_toolboxes(config, settings_origin(config), installed_toolboxes()))


def surroundings_of(config: Config) -> Surroundings:
    """The folders that tools may use, and the machine's clock and environment."""
    named = config.folders
    read, write, trusted = (tuple(map(_expand_path, each)) for each in (named.read, named.write, named.trusted))
    folders = Folders.of(config.base, read=read, write=write, trusted=trusted)
    return Surroundings(folders.with_protected(protected_paths(config)))


class ConfiguredToolbox(NamedTuple):
    """A toolbox in use, with its validated settings."""

    loaded: LoadedToolbox
    settings: Settings


def _load_toolboxes(
    config: Config, origin: SettingsOrigin, installed: Mapping[str, EntryPoint]
) -> Iterator[ConfiguredToolbox]:
    for name in config.toolboxes.use:
        try:
            loaded = load_installed_toolbox(name, installed)
        except ToolError as error:
            if _is_excused(config, error):
                continue
            error.place = error.place or origin.locate(("toolboxes", "use"))
            raise
        settings = _find_settings(config) if name == "find" else config.toolbox.get(name, {})
        yield ConfiguredToolbox(loaded, _validate_settings(loaded, settings, origin))


def _find_settings(config: Config) -> Mapping[str, Any]:
    """The settings of the find toolbox: it searches what the toolboxes in use may read, where their settings say."""
    mail, calendar = config.toolbox.get("mail", {}), config.toolbox.get("calendar", {})
    places = [each for each in ("files", "mail", "calendar") if each in config.toolboxes.use]
    known = {
        "search": places,
        "mail": mail.get("folder"),
        "calendar": calendar.get("file"),
        "timezone": calendar.get("timezone"),
    }
    return {key: value for key, value in known.items() if value is not None} | dict(config.toolbox.get("find", {}))


def _toolbox_paths(loaded: Iterable[ConfiguredToolbox]) -> Iterator[ProtectedPath]:
    """Files that toolboxes own, such as a calendar: no tool of another toolbox may change them."""
    for each in loaded:
        # A faulty toolbox is reported when it is opened.
        with suppress(ToolError):
            for kept in each.loaded.toolbox.keeps(each.settings):
                yield ProtectedPath(_expand_path(kept), f"kept by the toolbox {each.loaded.name!r}")


def missing_toolboxes(config: Config) -> dict[str, ToolError]:
    """The default toolboxes that are left out because a package that they need is not installed, and the errors."""
    installed, missing = installed_toolboxes(), dict[str, ToolError]()
    for name in config.toolboxes.use:
        try:
            load_installed_toolbox(name, installed)
        except ToolError as error:
            if _is_excused(config, error):
                missing[name] = error
    return missing


def _is_excused(config: Config, error: ToolError) -> bool:
    """Whether a toolbox may be left out: a package is missing, and the configuration does not name the toolbox."""
    return error.code == "tools.missing-extra" and "use" not in config.toolboxes.model_fields_set


def _open_toolbox(config: Config, each: ConfiguredToolbox, around: Surroundings, origin: SettingsOrigin) -> list[Tool]:
    try:
        return each.loaded.open(each.settings, around)
    except ToolError as error:
        if _is_excused(config, error):
            return []
        error.place = error.place or origin.locate(("toolboxes", "use"))
        raise


def _open_toolbox_file(config: Config, path: Path, around: Surroundings, origin: SettingsOrigin) -> list[Tool]:
    try:
        return load_file(path, around, config.toolbox.get(path.stem, {}))
    except (ToolError, ConfigError) as error:
        keys = ("toolbox", path.stem) if isinstance(error, ConfigError) else ("toolboxes", "files")
        error.place = error.place or origin.locate(keys)
        raise


def _validate_settings(loaded: LoadedToolbox, settings: Mapping[str, Any], origin: SettingsOrigin) -> Settings:
    """The validated settings of a toolbox; an error has the line in the configuration."""
    model = loaded.toolbox.settings
    try:
        return model.model_validate(dict(settings))
    except ValidationError as error:
        raise settings_error(error, model, origin.locate, ("toolbox", loaded.name)) from None


def _expand_path(name: str) -> Path:
    return Path(os.path.expanduser(name))
