"""`bicameral openapi`: APIs with an OpenAPI document, and the review of their operations."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bicameral.cli._mcp_checks import tool_check_lines
from bicameral.cli._mcp_reviews import confirm_at_terminal, count_text, refused_lines, reviewed_tool
from bicameral.cli._mcp_settings import PairType, say_unaccepted, settings_file
from bicameral.cli._mcp_tables import (
    Acceptance,
    read_config_text,
    server_tables,
    without_table,
    write_config_text,
)
from bicameral.cli._openapi_reviews import (
    TABLE,
    ReviewedApi,
    api_name,
    check_api,
    chosen_server,
    find_api,
    given_settings,
    key_lines,
    require_new,
    require_usable,
    save_api,
    taken_names,
    usable_api,
)
from bicameral.cli._options import (
    CommandFunction,
    CommonOptions,
    DefaultGroup,
    common_options,
    completer,
    load_config_quietly,
)
from bicameral.cli._output import FAILED, OK
from bicameral.display import terminal_width, visible_line
from bicameral.errors import BicameralError, ToolError, nearest_name

if TYPE_CHECKING:
    from bicameral.config import Config
    from bicameral.foreign import ToolCheck
    from bicameral.openapi import OpenApiSettings


@click.group(short_help="APIs with an OpenAPI document: add and review their operations.", cls=DefaultGroup)
def command() -> None:
    """APIs whose operations plans can use, as far as you have reviewed them. Without a subcommand: the list.

    \b
    bicameral openapi add https://api.example.com/openapi.json --key token=TRACKER_TOKEN
    bicameral openapi check
    """


@completer
def complete_api() -> Iterable[str]:
    """The configured APIs."""
    return load_config_quietly().openapi


def choice_options(function: CommandFunction) -> CommandFunction:
    """`--only`, `--tag`, `--full` and `--yes`: which operations are reviewed, and how."""
    only = click.option(
        "--only", metavar="NAME", multiple=True, help="Only operations of this name; `*` stands for any text."
    )
    tag = click.option("--tag", "tags", metavar="TAG", multiple=True, help="Only operations with this tag.")
    full = click.option("--full", is_flag=True, help="Show all that the document says of its operations.")
    yes = click.option("-y", "--yes", is_flag=True, help="Do not ask.")
    return only(tag(full(yes(function))))


@command.command("add")
@click.argument("source", metavar="FILE|URL")
@click.option("--name", help="The name of the API, with which the names of its tools begin; else from its title.")
@click.option("--server", metavar="URL", help="Where calls go; else what the document proposes, if you agree.")
@click.option(
    "--key",
    "keys",
    type=PairType(),
    metavar="SCHEME=WHERE",
    multiple=True,
    help="A key by the name of its security scheme: the name of a variable here, or keyring:ENTRY.",
)
@click.option(
    "--header",
    "headers",
    type=PairType(),
    metavar="NAME=WHERE",
    multiple=True,
    help="A header for every call, from the same places.",
)
@click.option("--bearer", metavar="WHERE", help="A token for every call, from the same places.")
@click.option("--replace", is_flag=True, help="Replace the settings and declarations of an API of this name.")
@choice_options
@common_options
def add(chosen: CommonOptions, source: str, **options: Any) -> int:
    """Read the OpenAPI document FILE|URL, show what is proposed of its operations, and add them once you say yes.

    Calls that only read are proposed to read; every other one asks before it is made. Nothing that the document says
    of itself is read by a model, and it decides neither where calls go nor which keys they get.

    A copy of the document and your declarations are written to `openapi/NAME.json` and `openapi/NAME.toml` beside
    bicameral.toml. A copy that changes is not used any more until you have looked at it again.

    \b
    bicameral openapi add https://api.example.com/openapi.json --key token=TRACKER_TOKEN
    bicameral openapi add tracker.yaml --server http://localhost:8080 --only 'list_*' --only get_issue
    """
    from bicameral.openapi import fetch_document, review_document

    config = chosen.config()
    document = fetch_document(source, config.base)
    name = api_name(document, options["name"])
    file = settings_file(config)
    require_new(file, name, replace=options["replace"])
    server, is_proposed = chosen_server(document, options["server"], source, asked=not options["yes"])
    settings = given_settings(
        name,
        {
            "server": server,
            "source": _kept_source(source, config.base, file.parent),
            "bearer": options["bearer"],
            "keys": dict(options["keys"]),
            "headers": dict(options["headers"]),
        },
    )
    review = review_document(name, document, only=options["only"], tags=options["tags"])
    found = usable_api(settings, review, taken_names(config, name), is_proposed=is_proposed)
    _require_known_keys(found)
    if not chosen.out.as_json:
        chosen.out.say("\n".join([*found.lines(full=options["full"]), ""]))
    require_usable(found)
    count = count_text(len(found.tools), "operation")
    if not confirm_at_terminal(chosen.out, f"Use {name!r} with {count} from now on?", options["yes"]):
        return FAILED
    accepted = save_api(file, config.base, found, new=True)
    written = [file, file.parent / settings.document, file.parent / str(settings.tools)]
    chosen.out.show("\n  ".join([f"added: {name}, {count}", *map(str, written)]))
    say_unaccepted(chosen, file, accepted)
    facts = {"file": str(file), "declarations": str(written[2]), "accepted": accepted, **found.to_json()}
    chosen.out.write_json({"ok": True, **facts})
    return OK


def _kept_source(source: str, base: Path, beside: Path) -> str:
    """Where the document came from, as it is written into the configuration."""
    from bicameral.openapi import is_address

    if is_address(source):
        return source
    file = (base / os.path.expanduser(source)).absolute()
    return str(file.relative_to(beside)) if file.is_relative_to(beside) else str(file)


def _require_known_keys(found: ReviewedApi) -> None:
    """The error of a key for a scheme that the document does not have, before anything is written."""
    from bicameral.openapi import ApiServer

    ApiServer(found.review.name, found.settings, found.review.document.security_schemes, {})


@command.command("review")
@click.argument("name", shell_complete=complete_api)
@choice_options
@common_options
def review(
    chosen: CommonOptions, name: str, only: tuple[str, ...], tags: tuple[str, ...], full: bool, yes: bool
) -> int:
    """Read the document of a configured API where it came from, show what differs, and take it over once you say yes.

    What you declared of its operations is kept. `--only` and `--tag` take more of them.
    """
    from bicameral.foreign import compare_listing, read_declarations, read_reviewed_listing
    from bicameral.openapi import fetch_document, review_document

    config, out = chosen.config(), chosen.out
    settings = find_api(config, name)
    file = settings_file(config)
    declarations = file.parent / os.path.expanduser(settings.tools or f"{TABLE}/{name}.toml")
    old = read_declarations(declarations) if declarations.exists() else None
    document = fetch_document(settings.source or settings.document, file.parent)
    names = None if old is None else old.tools
    found_review = review_document(name, document, only=only, tags=tags, names=names)
    reviewed = read_reviewed_listing(declarations)
    if old is not None:
        found_review = found_review.keeping(old, reviewed)
    found = usable_api(settings, found_review, taken_names(config, name))
    listed = {each.name: each for each in found_review.listed}
    checks = compare_listing(old, reviewed, listed)
    facts = {"declarations": str(declarations), "changes": [each.to_json() for each in checks], **found.to_json()}
    if old is not None and old.document == document.digest and not any(each.differs for each in checks):
        out.show(f"{name}: as reviewed, {count_text(len(found.tools), 'operation')}")
        out.write_json({"ok": True, "written": False, **facts})
        return OK
    if not out.as_json:
        lines = found.lines(full=full) if old is None else _difference_lines(found, checks, full=full)
        out.say("\n".join([*lines, ""]))
    if not confirm_at_terminal(out, f"Use the operations of {name!r} as they are now?", yes):
        return FAILED
    new = settings.tools is None
    if new:
        found = usable_api(
            settings.model_copy(update={"tools": f"{TABLE}/{name}.toml"}), found_review, taken_names(config, name)
        )
    accepted = save_api(file, config.base, found, new=new)
    out.show(f"reviewed: {name}, {count_text(len(found.tools), 'operation')}\n  {declarations}")
    say_unaccepted(chosen, file, accepted)
    out.write_json({"ok": True, "written": True, "accepted": accepted, **facts})
    return OK


def _difference_lines(found: ReviewedApi, checks: Iterable[ToolCheck], *, full: bool) -> Iterator[str]:
    """What differs, each operation with the difference and with what it would be from now on."""
    width, proposed = terminal_width(), {each.foreign.name: each for each in found.tools}
    yield from found.head_lines()
    for check in checks:
        yield from tool_check_lines(check, width, full=full)
        if check.differs and (tool := proposed.get(check.name)) is not None:
            yield from (f"  {line}" for line in tool.lines(width - 2, full=full))
            yield ""
    if not any(check.differs for check in checks):
        yield "  the operations are the same; the rest of the document is not"
    yield from refused_lines(found.refused)


@command.command("check")
@click.argument("names", metavar="[NAME]...", nargs=-1, shell_complete=complete_api)
@click.option("--full", is_flag=True, help="Show all that differs.")
@common_options
def check(chosen: CommonOptions, names: tuple[str, ...], full: bool) -> int:
    """Read the documents of the configured APIs, or of those named, and say whether they are what you reviewed.

    The exit code is 1 if a declared operation has changed or is gone, or if a document cannot be read.
    """
    # Not loaded as a whole: an API that cannot be used is what this looks for.
    config = chosen.config()
    beside = settings_file(config).parent
    found = [check_api(name, find_api(config, name), beside) for name in names or config.openapi]
    if not found:
        chosen.out.say("no API is configured")
    for each in found:
        chosen.out.show("\n".join(each.lines(full=full)))
    ok = all(each.ok for each in found)
    chosen.out.write_json({"ok": ok, "apis": [each.to_json() for each in found]})
    return OK if ok else FAILED


@command.command("list")
@common_options
def list_apis(chosen: CommonOptions) -> dict[str, Any]:
    """The configured APIs: where their calls go, and which of their operations are used."""
    config = chosen.config()
    found = [_api_facts(config, name, settings) for name, settings in config.openapi.items()]
    for each in found:
        chosen.out.show(f"{each['name']}  {visible_line(each['server'])}")
        chosen.out.show(f"    {each['error'] or ', '.join(each['tools']) or 'none of its operations is used'}")
    if not found:
        chosen.out.say("no API is configured; `bicameral openapi add` adds one")
    return {"apis": found}


def _api_facts(config: Config, name: str, settings: OpenApiSettings) -> dict[str, Any]:
    from bicameral.openapi import openapi_tools

    facts: dict[str, Any] = {"name": name, "server": settings.server, "tools": [], "error": None}
    try:
        found = openapi_tools(name, settings, settings_file(config).parent)
    except BicameralError as error:
        # The others are listed although this one cannot be used.
        return facts | {"error": str(error)}
    return facts | {"tools": [tool.name for tool in found]}


@command.command("show")
@click.argument("name", shell_complete=complete_api)
@click.option("--full", is_flag=True, help="Show all that the document says of its operations.")
@common_options
def show_api(chosen: CommonOptions, name: str, full: bool) -> dict[str, Any]:
    """Everything about one API: where its calls go, its keys, and its operations as you reviewed them."""
    from bicameral.foreign import read_declarations
    from bicameral.openapi import read_stored_document, review_document

    config = chosen.config()
    settings = find_api(config, name)
    out, beside, facts = chosen.out, settings_file(config).parent, _api_facts(config, name, settings)
    out.show(f"{name}: all calls go to {visible_line(settings.server)}")
    tools: list[dict[str, Any]] = []
    if facts["error"] is not None:
        out.show(facts["error"])
    else:
        document = read_stored_document(beside / os.path.expanduser(settings.document))
        out.show("\n".join(key_lines(settings, document)))
        file = None if settings.tools is None else beside / os.path.expanduser(settings.tools)
        declared = {} if file is None else read_declarations(file).tools
        names = None if file is None else declared
        for operation in review_document(name, document, names=names).operations:
            if (declaration := declared.get(operation.tool.name)) is None:
                out.show(f"\n{operation.tool.name}  not declared: every call asks")
                continue
            tool = reviewed_tool(name, operation.tool, declaration)
            out.show("\n".join(["", *tool.lines(terminal_width(), full=full)]))
            tools.append(tool.to_json())
    return {**facts, "settings": settings.model_dump(mode="json", exclude_defaults=True), "operations": tools}


@command.command("remove")
@click.argument("name", shell_complete=complete_api)
@click.option("-y", "--yes", is_flag=True, help="Delete its document and declarations without asking.")
@common_options
def remove(chosen: CommonOptions, name: str, yes: bool) -> dict[str, Any]:
    """Take an API out of bicameral.toml; its document and declarations are deleted if you say so, and else stay.

    Nothing else in the file is changed.
    """
    from bicameral.config import find_file

    # The configuration is not loaded: an API whose settings are wrong can be removed, too.
    base = (chosen.folder or Path.cwd()).absolute()
    file = (chosen.config_file or find_file(chosen.folder) or base / "bicameral.toml").absolute()
    text = read_config_text(file)
    known = server_tables(text, file, kind=TABLE)
    if name not in known:
        raise ToolError(
            "openapi.unknown",
            f"there is no API {name!r} in {file}",
            nearest=nearest_name(name, known),
            fix="`bicameral openapi list` has them.",
        )
    new = without_table(text, name, file, kind=TABLE)
    # Only the files that `add` writes: what else the settings name is not for this command to delete.
    doomed = [file.parent / TABLE / f"{name}{ending}" for ending in (".json", ".toml", ".pins.json")]
    doomed = [each for each in doomed if each.is_file()]
    interactive = bool(doomed) and not yes and chosen.out.is_interactive
    delete = yes or (interactive and confirm_at_terminal(chosen.out, f"Delete {doomed[0]} and its neighbours?", yes))
    accepted = Acceptance.of(file, base)
    write_config_text(file, new)
    deleted = [each for each in doomed if delete]
    for each in deleted:
        each.unlink(missing_ok=True)
    used = accepted.renew(name, (), kind=TABLE)
    chosen.out.show(f"removed: {name}")
    for each in doomed:
        chosen.out.show(f"  {'deleted' if delete else 'left'}: {each}")
    say_unaccepted(chosen, file, used)
    return {"name": name, "file": str(file), "deleted": [str(each) for each in deleted], "accepted": used}
