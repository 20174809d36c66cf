"""Reviews of OpenAPI documents at the command line: where calls go, with which keys, and what each operation is."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bicameral.cli._mcp_checks import tool_check_lines
from bicameral.cli._mcp_reviews import ReviewedTool, count_text, refused_lines, reviewed_tool
from bicameral.cli._mcp_tables import Acceptance, read_config_text, server_tables, with_table, write_config_text
from bicameral.display import terminal_width, visible_line
from bicameral.errors import BicameralError, ConfigError, Place, ToolError, nearest_name

if TYPE_CHECKING:
    from bicameral.config import Config
    from bicameral.foreign import DeclarationFile, ToolCheck
    from bicameral.openapi import DocumentReview, OpenApiDocument, OpenApiSettings

TABLE = "openapi"
_MOST_TITLE_WORDS = 4
_MOST_REFUSED = 3


def api_name(document: OpenApiDocument, given: str | None) -> str:
    """The name of an API: the given one, or what the title of its document makes."""
    from bicameral.foreign import is_plain_title, plain_name
    from bicameral.mcp import server_name_problem

    # The names of all its tools begin with it, and models read them: a title is a stranger's text.
    if given is None and not is_plain_title(document.title, most=_MOST_TITLE_WORDS):
        raise ConfigError(
            "openapi.bad-settings",
            f"the title of the document, {visible_line(document.title)[:100]!r}, cannot name an API",
            expected=f"a title of at most {_MOST_TITLE_WORDS} plain words that neither order nor praise, or a name",
            fix="Name it with --name.",
        )
    name = given if given is not None else plain_name(document.title).lower()[:40].strip("_")
    if (problem := server_name_problem(name)) is not None:
        raise ConfigError(
            "openapi.bad-settings", f"{name[:60]!r} cannot name an API: {problem}", fix="Name it with --name."
        )
    return name


def chosen_server(document: OpenApiDocument, given: str | None, source: str, *, asked: bool) -> tuple[str, bool]:
    """Where calls go, and whether only the document says so.

    Args:
        document: The document.
        given: What the person has named.
        source: Where the document came from.
        asked: Whether a person will see and confirm it.
    """
    if given is not None:
        return given, False
    proposed = next(document.servers(), None)
    if proposed is None:
        raise ConfigError(
            "openapi.no-server", "the document does not say where the API is", fix="Name its address with --server."
        )
    if not asked and not _is_beside(proposed, source):
        # Keys go there: a document alone must not decide it.
        raise ConfigError(
            "openapi.no-server",
            f"only the document says that calls go to {visible_line(proposed)[:200]}, and nobody is asked",
            fix="Name the address with --server.",
        )
    return proposed, True


def _is_beside(server: str, source: str) -> bool:
    from urllib.parse import urlsplit

    one, other = urlsplit(server), urlsplit(source)
    return (one.scheme, one.netloc) == (other.scheme, other.netloc)


def given_settings(name: str, given: Mapping[str, Any]) -> OpenApiSettings:
    """The settings that the options say; `openapi.bad-settings` if one of them cannot be."""
    from pydantic import ValidationError

    from bicameral.documents import first_key_fault
    from bicameral.openapi import OpenApiSettings

    files = {"document": f"{TABLE}/{name}.json", "tools": f"{TABLE}/{name}.toml"}
    try:
        return OpenApiSettings.model_validate({**files, **given})
    except ValidationError as error:
        fault = first_key_fault(error, OpenApiSettings)
        message = fault.message.removeprefix("value error, ")
        raise ConfigError(
            "openapi.bad-settings", f"{fault.key}: {message}" if fault.path else message, expected=fault.expected
        ) from None


@dataclass(frozen=True)
class ReviewedApi:
    """A document that was read, and what of it can be used.

    Args:
        settings: How the API is called.
        review: What was read of the document.
        tools: The tools that plans would get.
        refused: The operations that cannot be used, and why.
        is_proposed: Whether only the document says where calls go.
    """

    settings: OpenApiSettings
    review: DocumentReview
    tools: tuple[ReviewedTool, ...]
    refused: Mapping[str, str]
    is_proposed: bool = False

    @property
    def declared(self) -> DeclarationFile:
        """The declarations as they would be written."""
        return self.review.declared.model_copy(
            update={"tools": {each.foreign.name: each.declaration for each in self.tools}}
        )

    def head_lines(self) -> Iterator[str]:
        """Where calls go, and which keys go with them."""
        title = visible_line(self.review.document.title)[:100]
        yield f"{self.review.name}: {title or 'an API'}, {count_text(len(self.tools), 'operation')}"
        said = ", as the document proposes" if self.is_proposed else ""
        yield f"All calls go to {visible_line(self.settings.server)}{said}."
        yield from key_lines(self.settings, self.review.document)

    def lines(self, *, full: bool = False) -> Iterator[str]:
        """All of it for a person who decides about it."""
        yield from self.head_lines()
        for each in self.tools:
            yield ""
            yield from each.lines(terminal_width(), full=full)
        yield from refused_lines(self.refused)

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.review.name,
            "server": self.settings.server,
            "document": self.review.document.digest,
            "tools": [each.to_json() for each in self.tools],
            "refused": {name: visible_line(why) for name, why in self.refused.items()},
        }


def key_lines(settings: OpenApiSettings, document: OpenApiDocument) -> Iterator[str]:
    """The keys that an API knows, and where each of them comes from."""
    for name, scheme in document.security_schemes.items():
        where = settings.keys.get(name)
        from_ = f"from {where}" if where is not None else "NOT set: what needs it fails"
        yield f"  key {visible_line(name)[:60]} ({visible_line(scheme.place)[:80]}): {from_}"
    if settings.bearer is not None:
        yield f"  a token from {settings.bearer}, with every call"
    for name, where in settings.headers.items():
        yield f"  the header {name} from {where}, with every call"
    if settings.secrets and not settings.is_encrypted:
        yield "  These are sent unencrypted: whoever is on the way can read them."


def usable_api(
    settings: OpenApiSettings, review: DocumentReview, taken: Iterable[str], *, is_proposed: bool = False
) -> ReviewedApi:
    """What of a review can be used; tools whose names are taken get others."""
    used, refused, tools = {*taken}, dict(review.refused), list[ReviewedTool]()
    for proposal in review.proposals:
        try:
            found = reviewed_tool(review.name, proposal.tool, proposal.declaration, proposal.reasons)
            if found.tool.name in used:
                free = _free_name(found.tool.name, used)
                renamed = proposal.declaration.model_copy(update={"name": free})
                why = (*proposal.reasons, f"it is named {free!r}, since {found.tool.name!r} is taken")
                found = reviewed_tool(review.name, proposal.tool, renamed, why)
        except ToolError as error:
            refused[proposal.tool.name] = error.message
            continue
        used.add(found.tool.name)
        tools.append(found)
    return ReviewedApi(settings, review, tuple(tools), refused, is_proposed)


def _free_name(name: str, used: set[str]) -> str:
    number = 2
    while f"{name}_{number}" in used:
        number += 1
    return f"{name}_{number}"


def taken_names(config: Config, api: str) -> set[str]:
    """The names of all tools but those of one API. No server is started for it."""
    from bicameral.config import open_registry

    others = {name: each for name, each in config.openapi.items() if name != api}
    declared = {name: each for name, each in config.mcp.items() if each.tools is not None}
    try:
        return {*open_registry(config.model_copy(update={"openapi": others, "mcp": declared})).names}
    except BicameralError:
        # What cannot be opened is reported where it is used.
        return set()


def require_usable(found: ReviewedApi) -> None:
    """`openapi.nothing-usable` if no operation is left that plans could use."""
    if found.tools:
        return
    shown = [f"{name}: {visible_line(why)[:200]}" for name, why in list(found.refused.items())[:_MOST_REFUSED]]
    why = f"none of the {len(found.refused):,} operations can be used ({'; '.join(shown)})"
    raise ToolError(
        "openapi.nothing-usable",
        f"nothing of {found.review.name!r} was added: {why if shown else 'no operation was chosen'}",
        fix="Choose others with --only or --tag, or have the document mended.",
    )


def find_api(config: Config, name: str) -> OpenApiSettings:
    """The settings of an API; `openapi.unknown` if there is none of this name."""
    if (found := config.openapi.get(name)) is not None:
        return found
    withheld = f"{TABLE}.{name}" in config.withheld
    raise ToolError(
        "openapi.unknown",
        f"there is no API {name!r}",
        nearest=nearest_name(name, config.openapi),
        fix="Its settings are not accepted: `bicameral config accept`."
        if withheld
        else "`bicameral openapi list` has them.",
    )


def require_new(file: Path, name: str, *, replace: bool) -> None:
    """`openapi.exists` if there is an API of this name, or a file that its own would replace."""
    known = server_tables(read_config_text(file), file, kind=TABLE)
    files = [file.parent / TABLE / f"{name}{ending}" for ending in (".json", ".toml")]
    present = next((each for each in files if each.exists()), None)
    if replace or (name not in known and present is None):
        return
    raise ConfigError(
        "openapi.exists",
        f"there is an API {name!r} already" if name in known else "there are files of an API of this name already",
        place=Place(file=str(file if name in known else present)),
        fix=f"--replace replaces it, --name names this one; `bicameral openapi review {name}` only looks again.",
    )


def save_api(file: Path, base: Path, found: ReviewedApi, *, new: bool) -> bool:
    """Write what the person has agreed to; returns whether the configuration is used in full.

    Args:
        file: The configuration.
        base: The working folder.
        found: What the person has seen.
        new: Whether the settings are to be written, too.
    """
    from bicameral.cache import write_private_file
    from bicameral.foreign import write_declarations
    from bicameral.openapi import openapi_files

    name, settings = found.review.name, found.settings
    before, text = Acceptance.of(file, base), read_config_text(file)
    # Everything that can be refused comes before anything is written.
    if new:
        table = settings.model_dump(mode="json", exclude_defaults=True)
        text = with_table(text, name, table, file, kind=TABLE)
    document = file.parent / os.path.expanduser(settings.document)
    declarations = file.parent / os.path.expanduser(settings.tools or f"{TABLE}/{name}.toml")
    try:
        document.parent.mkdir(parents=True, exist_ok=True)
        write_private_file(document, [found.review.document.to_text().encode()])
    except OSError as error:
        raise ToolError(
            "openapi.unwritable",
            f"the document cannot be written: {error.strerror or error}",
            place=Place(str(document)),
        ) from None
    write_declarations(declarations, found.declared, found.review.listed, head=_api_head(name, declarations))
    if new:
        write_config_text(file, text)
    return before.renew(name, openapi_files(settings, file.parent), kind=TABLE)


def _api_head(name: str, file: Path) -> str:
    """The comment at the top of the declarations of an API."""
    from bicameral.foreign import declarations_head

    return declarations_head(
        file,
        f"What you have reviewed of the operations of the API {name!r}. This file is yours: change what you know\n"
        f"better. `bicameral openapi review {name}` looks at its document again and keeps what stands here.",
    )


@dataclass(frozen=True)
class ApiCheck:
    """What became of an API's document since it was reviewed.

    Args:
        name: The name of the API.
        tools: The declared operations, each with what became of it.
        moved_keys: Whether keys would be sent in another way.
        error: Why it could not be compared, or cannot be used.
    """

    name: str
    tools: tuple[ToolCheck, ...] = ()
    moved_keys: bool = False
    error: BicameralError | None = None

    @property
    def ok(self) -> bool:
        return self.error is None and not self.moved_keys and not any(each.differs for each in self.tools)

    def lines(self, *, full: bool = False) -> Iterator[str]:
        """What a person reads of it."""
        if self.error is not None:
            yield f"{self.name}: {visible_line(str(self.error))}"
            return
        count = count_text(len(self.tools), "operation")
        yield f"{self.name}: {'as reviewed' if self.ok else 'NOT as reviewed'}, {count}"
        if self.moved_keys:
            yield "  keys would be sent in another way"
        for each in self.tools:
            yield from tool_check_lines(each, terminal_width(), full=full)
        if not self.ok:
            yield f"  `bicameral openapi review {self.name}` shows what it would be now, and asks whether that is right"

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "ok": self.ok,
            "tools": [each.to_json() for each in self.tools],
            **({"moved_keys": True} if self.moved_keys else {}),
            **({} if self.error is None else {"error": self.error.to_json()}),
        }


def check_api(name: str, settings: OpenApiSettings, beside: Path) -> ApiCheck:
    """Compare the document where it came from with what was reviewed of it."""
    from bicameral.foreign import compare_listing, read_declarations, read_reviewed_listing
    from bicameral.openapi import fetch_document, openapi_tools, read_stored_document, review_document

    try:
        # The copy first: it is what counts.
        openapi_tools(name, settings, beside, {})
        stored = read_stored_document(beside / os.path.expanduser(settings.document))
        current = stored if settings.source is None else fetch_document(settings.source, beside)
        if settings.tools is None:
            return ApiCheck(name)
        file = beside / os.path.expanduser(settings.tools)
        declared = read_declarations(file)
        # Operations that were never declared are not asked about: a document may have very many.
        listed = {each.tool.name: each.tool for each in review_document(name, current, names=declared.tools).operations}
    except BicameralError as error:
        return ApiCheck(name, error=error)
    checks = compare_listing(declared, read_reviewed_listing(file), listed)
    return ApiCheck(name, checks, stored.security_schemes != current.security_schemes)
