"""Settings of MCP servers: from the options of a command, from the configuration, and written into it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from bicameral.cli._mcp_reviews import server_head
from bicameral.cli._mcp_tables import (
    TABLE,
    Acceptance,
    read_config_text,
    server_tables,
    settings_table,
    with_setting,
    with_table,
    write_config_text,
)
from bicameral.cli._options import CommandFunction, CommonOptions
from bicameral.errors import ConfigError, Place, ToolError, nearest_name

if TYPE_CHECKING:
    from bicameral.config import Config
    from bicameral.foreign import DeclarationFile, ForeignTool
    from bicameral.mcp import McpSettings


class PairType(click.ParamType[tuple[str, str]]):
    """A name and a value: `NAME=VALUE`."""

    name = "pair"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        if isinstance(value, tuple):
            return cast("tuple[str, str]", value)
        name, sign, text = str(value).partition("=")
        if not sign or not name.strip():
            # The value is not quoted: it may be a secret.
            return self.fail("Write NAME=VALUE.", param, ctx)
        return name.strip(), text


_OPTIONS = (
    click.option("--url", help="The address of a server that is reached over HTTP, instead of a command."),
    click.option(
        "--env", "env", type=PairType(), metavar="NAME=VALUE", multiple=True, help="A variable for the command."
    ),
    click.option(
        "--secret",
        "secrets",
        type=PairType(),
        metavar="NAME=WHERE",
        multiple=True,
        help="A secret variable for the command: the name of a variable here, or keyring:ENTRY.",
    ),
    click.option(
        "--header",
        "headers",
        type=PairType(),
        metavar="NAME=WHERE",
        multiple=True,
        help="A header for the address, from the same places.",
    ),
    click.option("--bearer", metavar="WHERE", help="A token for the address, from the same places."),
    click.option("--read", "read", metavar="PATH", multiple=True, help="A file or folder that the command may read."),
    click.option(
        "--write", "write", metavar="PATH", multiple=True, help="A file or folder that the command may change."
    ),
    click.option(
        "--network",
        metavar="HOST:PORT|all|none",
        multiple=True,
        help="What the command may reach. Without it, it has no network.",
    ),
    click.option(
        "--no-sandbox", "unconfined", is_flag=True, help="Do not confine the command: it may do whatever you may."
    ),
    click.option(
        "--show",
        type=click.Choice(["handles", "marked-text"]),
        help="How the firewall shows its results to a client's model: behind handles (the default), or as marked text.",
    ),
)


def server_options(function: CommandFunction) -> CommandFunction:
    """How a server is reached and what it may do; `given_settings` reads them."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def review_options(function: CommandFunction) -> CommandFunction:
    """`--full`, `--descriptions` and `--yes`: how a server is reviewed."""
    full = click.option("--full", is_flag=True, help="Show all that a server says of its tools.")
    words = click.option(
        "--descriptions",
        is_flag=True,
        help="Propose the first line of each description for models to read. Only for a server whose words you "
        "take for your own.",
    )
    yes = click.option("-y", "--yes", is_flag=True, help="Do not ask.")
    return full(words(yes(function)))


def given_settings(name: str, words: tuple[str, ...], **options: Any) -> McpSettings:
    """The settings that the options say; `mcp.bad-settings` if they contradict each other."""
    from bicameral.mcp import server_name_problem

    if (problem := server_name_problem(name)) is not None:
        raise ConfigError("mcp.bad-settings", f"{name[:60]!r} cannot name a server: {problem}")
    network = tuple(each for each in options["network"] if each != "none")
    given: dict[str, Any] = {
        "command": words,
        "url": options["url"],
        "bearer": options["bearer"],
        "read": options["read"],
        "write": options["write"],
        "network": True if "all" in network else network or False,
        "sandbox": not options["unconfined"],
        "show": options["show"] or "handles",
        **{key: dict(options[key]) for key in ("env", "secrets", "headers")},
    }
    return validated_settings(given)


def validated_settings(given: Mapping[str, Any]) -> McpSettings:
    """Settings from a table; `mcp.bad-settings` if they contradict each other."""
    from pydantic import ValidationError

    from bicameral.documents import first_key_fault
    from bicameral.mcp import McpSettings

    try:
        return McpSettings.model_validate(given)
    except ValidationError as error:
        fault = first_key_fault(error, McpSettings)
        message = fault.message.removeprefix("value error, ")
        raise ConfigError(
            "mcp.bad-settings", f"{fault.key}: {message}" if fault.path else message, expected=fault.expected
        ) from None


def require_new(file: Path, declarations: Path, name: str, *, replace: bool) -> None:
    """`mcp.exists` if there is a server of this name, or a file that its declarations would replace."""
    known = server_tables(read_config_text(file), file)
    if replace or (name not in known and not declarations.exists()):
        return
    what = f"there is a server {name!r} already" if name in known else "there are declarations already"
    raise ConfigError(
        "mcp.exists",
        what,
        place=Place(file=str(file if name in known else declarations)),
        fix=f"--replace replaces it; `bicameral mcp review {name}` only looks at its tools again.",
    )


def find_server(config: Config, name: str) -> McpSettings:
    if (found := config.mcp.get(name)) is not None:
        return found
    withheld = f"{TABLE}.{name}" in config.withheld
    raise ToolError(
        "mcp.unknown",
        f"there is no MCP server {name!r}",
        nearest=nearest_name(name, config.mcp),
        fix="Its settings are not accepted: `bicameral config accept`."
        if withheld
        else "`bicameral mcp list` has them.",
    )


def settings_file(config: Config) -> Path:
    return config.source or config.base / "bicameral.toml"


def declarations_file(config: Config, name: str, settings: McpSettings) -> Path:
    return settings_file(config).parent / Path(settings.tools or f"{TABLE}/{name}.toml").expanduser()


def save_server(
    file: Path,
    base: Path,
    name: str,
    settings: McpSettings,
    declared: DeclarationFile,
    listed: Iterable[ForeignTool],
    *,
    new: bool,
    private: bool = False,
) -> bool:
    """Write what the person has agreed to of a server; returns whether the configuration is used in full.

    Args:
        file: The configuration.
        base: The working folder.
        name: The name of the server.
        settings: Its settings, which name the file of its declarations.
        declared: The declarations.
        listed: The listing that was reviewed.
        new: Whether the settings are to be written, too.
        private: Whether nobody else may read the configuration from now on.
    """
    from bicameral.foreign import pins_file, write_declarations

    declarations = file.parent / (settings.tools or f"{TABLE}/{name}.toml")
    before, text = Acceptance.of(file, base), read_config_text(file)
    # Everything that can be refused comes before anything is written.
    if new:
        text = with_table(text, name, settings_table(settings), file)
    elif "tools" not in server_tables(text, file).get(name, {}):
        text = with_setting(text, name, "tools", settings.tools, file)
    write_declarations(declarations, declared, listed, head=server_head(name, declarations))
    write_config_text(file, text, private=private)
    return before.renew(name, (declarations, pins_file(declarations)))


def say_unaccepted(chosen: CommonOptions, file: Path, accepted: bool) -> None:
    """Say that what was written is not used before the person has accepted the file."""
    if not accepted:
        chosen.out.say(
            f"{file} is not accepted, so that its settings are not used yet: `bicameral config accept`", style="yellow"
        )
