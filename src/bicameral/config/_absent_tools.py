"""The tools of a configuration that cannot work as it is: settings or packages are missing, or what settings name."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from bicameral.config._config import Config
from bicameral.config._resources import configured_toolboxes, missing_toolboxes
from bicameral.tools import AbsentTool, MissingSetting, Registry, Surroundings


def absent_tools(config: Config, registry: Registry, surroundings: Surroundings) -> tuple[AbsentTool, ...]:
    """The tools that the planner is not told of: settings decide, and nothing that lies in a folder.

    Example:
        >>> [str(each) for each in absent_tools(config, open_registry(config), surroundings_of(config))]
        ['send_mail: no SMTP server is set']
    """
    return (*_lacking_tools(config, registry, surroundings), *_tools_of_missing_packages(config))


def unready_tools(
    config: Config, registry: Registry, surroundings: Surroundings, toolboxes: Collection[str] | None = None
) -> tuple[AbsentTool, ...]:
    """The tools of these toolboxes, or of all, that cannot work since what their settings name is not there now."""
    found: list[AbsentTool] = []
    for each in configured_toolboxes(config):
        name = each.loaded.name
        if toolboxes is None or name in toolboxes:
            for missing in each.loaded.toolbox.unready(each.settings, surroundings):
                found += _of_toolbox(name, missing, registry)
    return tuple(found)


def _lacking_tools(config: Config, registry: Registry, surroundings: Surroundings) -> Iterator[AbsentTool]:
    for each in configured_toolboxes(config):
        for missing in each.loaded.toolbox.lacks(each.settings, surroundings):
            yield from _of_toolbox(each.loaded.name, missing, registry)


def _of_toolbox(toolbox: str, missing: MissingSetting, registry: Registry) -> Iterator[AbsentTool]:
    for name in missing.tools:
        tool = registry.get(name)
        if tool is not None and tool.toolbox == toolbox:
            yield AbsentTool(name, toolbox, missing, tool)


def _tools_of_missing_packages(config: Config) -> Iterator[AbsentTool]:
    """One for each toolbox that is left out: without its package nobody knows its tools."""
    for name, error in missing_toolboxes(config).items():
        yield AbsentTool(name, name, MissingSetting((), error.message, error.fix or ""))
