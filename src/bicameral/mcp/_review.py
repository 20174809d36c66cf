"""Reviewing a server: start it in its sandbox, read what it lists, and propose declarations for a person.

Well-known servers have declarations that come with Bicameral. They are proposed where the configured command starts the
package and nothing else: the command is the user's word, and what a server says of itself is not.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal

from bicameral.display import has_hidden
from bicameral.errors import ToolError
from bicameral.foreign import (
    DeclarationFile,
    Enforced,
    ForeignTool,
    Proposal,
    ToolDeclaration,
    parse_declarations,
    propose_declaration,
    schema_problem,
    with_own_names,
    without_unusable_patterns,
    write_declarations,
)
from bicameral.mcp._connection import ServerConnection
from bicameral.mcp._grants import FindPlaces
from bicameral.mcp._settings import McpSettings
from bicameral.tools import worst_effect


@dataclass(frozen=True, slots=True)
class _KnownPackage:
    """How a command names a well-known server: its package, what runs packages of that kind, and its own program."""

    package: str
    runner: Literal["npx", "uvx"]
    program: str


_PACKAGES: Mapping[str, _KnownPackage] = {
    "fetch": _KnownPackage("mcp-server-fetch", "uvx", "mcp-server-fetch"),
    "filesystem": _KnownPackage("@modelcontextprotocol/server-filesystem", "npx", "mcp-server-filesystem"),
    "git": _KnownPackage("mcp-server-git", "uvx", "mcp-server-git"),
    "memory": _KnownPackage("@modelcontextprotocol/server-memory", "npx", "mcp-server-memory"),
    "sqlite": _KnownPackage("mcp-server-sqlite", "uvx", "mcp-server-sqlite"),
    "time": _KnownPackage("mcp-server-time", "uvx", "mcp-server-time"),
}
_RUNNER_FLAGS = {"npx": {"-y", "--yes", "-q", "--quiet"}, "uvx": {"-q", "--quiet", "--offline", "--isolated"}}
"""What may stand before the package. Other options name sources, interpreters or programs."""
# No address, tag or file: a package manager takes `name@x.tgz` and `name@owner/repository` for other places.
_VERSION = r"((@|==)\d+(\.\d+)*([-.]?(a|b|rc|alpha|beta|dev|post)[-.]?\d*)?)?"
_CODE_VARIABLES = ("PATH", "PYTHON", "NODE_", "NPM_", "UV_", "PIP_", "LD_", "VIRTUAL_ENV")
_HARMLESS_VARIABLES = {"PYTHONUNBUFFERED", "PYTHONIOENCODING", "PYTHONUTF8", "NODE_NO_WARNINGS"}


def known_servers() -> tuple[str, ...]:
    """The servers whose declarations come with Bicameral."""
    return tuple(_PACKAGES)


@cache
def known_declarations(name: str) -> DeclarationFile:
    """The declarations of a well-known server, without pins."""
    text = files("bicameral.mcp").joinpath("known", f"{name}.toml").read_text("utf-8")
    return parse_declarations(text, f"{name}.toml")


def known_server_of(settings: McpSettings, base: Path | None = None) -> str | None:
    """The well-known server that a command starts; None for any other.

    Args:
        settings: How it is reached.
        base: The working folder: a program in it may be anybody's. By default that of this process.
    """
    if not settings.command or any(map(_chooses_code, (*settings.env, *settings.secrets))):
        return None
    folder = (base or Path.cwd()).absolute()
    program, *operands = settings.command
    if not _is_installed(program, folder):
        return None
    for name, known in _PACKAGES.items():
        if _starts_package(Path(program).name, operands, known, settings, folder):
            return name
    return None


def _chooses_code(variable: str) -> bool:
    """Whether a variable of the environment can put other code in the place of a package."""
    return variable.upper().startswith(_CODE_VARIABLES) and variable.upper() not in _HARMLESS_VARIABLES


def _is_installed(program: str, base: Path) -> bool:
    """Whether a program is found on the path, or at a place that is not in the working folder."""
    if "/" not in program:
        return True
    path = Path(program)
    places = {Path(os.path.normpath(path)), path.resolve()}
    return path.is_absolute() and not any(
        each.is_relative_to(folder) for each in places for folder in (base, base.resolve())
    )


def _starts_package(program: str, operands: list[str], known: _KnownPackage, settings: McpSettings, base: Path) -> bool:
    """Whether a program with these operands starts the package from where packages are installed."""
    if program == known.program:
        return True
    if program == known.runner:
        first = next((each for each in operands if each not in _RUNNER_FLAGS[program]), "")
        named = re.fullmatch(re.escape(known.package) + _VERSION, first) is not None
        return named and not (program == "npx" and _reads_folder(settings, base) and _has_node_packages(base))
    if program == "node" and known.runner == "npx" and operands and operands[0].startswith("/"):
        # The innermost package counts: a package may have others inside.
        inside = os.path.normpath(operands[0]).rpartition("/node_modules/")[2]
        return inside.startswith(f"{known.package}/") and _is_installed(operands[0], base)
    if re.fullmatch(r"python(3(\.\d+)?)?", program) and known.runner == "uvx":
        module = known.package.replace("-", "_")
        # Python looks for modules in the working folder first, unless it is told not to.
        isolated = operands[:1] in (["-I"], ["-P"])
        return operands[isolated : isolated + 2] == ["-m", module] and (isolated or not _reads_folder(settings, base))
    return False


def _reads_folder(settings: McpSettings, base: Path) -> bool:
    """Whether a command may read the working folder, which it starts in."""
    granted = ((base / os.path.expanduser(each)).resolve() for each in (*settings.read, *settings.write))
    return not settings.sandbox or any(base.resolve().is_relative_to(each) for each in granted)


def _has_node_packages(base: Path) -> bool:
    """Whether npx would take packages, or their source, from the working folder or one around it."""
    around = (folder for folder in (base, *base.parents) if folder != Path.home())
    return any((folder / each).exists() for folder in around for each in ("node_modules", ".npmrc"))


@dataclass(frozen=True, slots=True)
class ServerReview:
    """What a server lists, and what is proposed for each of its tools.

    Args:
        name: The name of the server in the configuration.
        known: The well-known server that its command names, if any.
        listed: Every tool as it is listed now.
        proposals: A declaration for each tool that can be used.
        refused: The tools that cannot be used, and why.
        offers: What the server has: `tools`, `resources`, `prompts`.
    """

    name: str
    known: str | None
    listed: tuple[ForeignTool, ...]
    proposals: tuple[Proposal, ...]
    refused: Mapping[str, str]
    offers: frozenset[str]

    @property
    def declared(self) -> DeclarationFile:
        """The proposed declarations as a file."""
        return DeclarationFile(
            version=1,
            server=self.name,
            resources="resources" in self.offers,
            prompts="prompts" in self.offers,
            tools={each.tool.name: each.declaration for each in self.proposals},
        )

    def keeping(self, old: DeclarationFile) -> ServerReview:
        """The same with what was declared before; every call asks of a tool that would now be proposed as worse."""
        kept = (_keep_declared(each, old.tools.get(each.tool.name)) for each in self.proposals)
        return replace(self, proposals=with_own_names(kept, self.name))

    def write(self, file: Path, *, head: str = "") -> None:
        """Write the declarations and the reviewed listing."""
        write_declarations(file, self.declared, self.listed, head=head)


def _keep_declared(proposal: Proposal, old: ToolDeclaration | None) -> Proposal:
    if old is None:
        return proposal
    fresh = proposal.declaration
    if old.arguments.keys() - fresh.arguments.keys():
        # A tool that the person has forbidden, or taken for worse, does not come back with another argument.
        kept = {"use": old.use, "reviewed": old.reviewed, "effect": worst_effect([old.effect, fresh.effect])}
        reasons = (*proposal.reasons, "its arguments are not those that you declared before")
        return replace(proposal, declaration=fresh.model_copy(update=kept), reasons=reasons)
    declared = old.model_copy(update={"pin": proposal.tool.pin})
    reasons = ("as you declared it before",)
    if old.pin != proposal.tool.pin and (worse := list(_worse_parts(old, fresh))):
        # What was declared was said of another tool, so that it lets no call pass without a look.
        declared = declared.model_copy(update={"reviewed": False})
        why = f"it has changed, and proposed anew {', '.join(worse)} ({'; '.join(proposal.reasons)})"
        reasons = (*reasons, why, "every call asks while it says `reviewed = false`")
    return replace(proposal, declaration=declared, reasons=reasons)


def _worse_parts(old: ToolDeclaration, fresh: ToolDeclaration) -> Iterator[str]:
    """In what a tool would now be proposed as worse than it is declared."""
    if worst_effect([old.effect, fresh.effect]) != old.effect:
        yield f"it would be {fresh.effect!r}"
    if old.outbound is False and fresh.outbound is not False:
        yield "it would tell others something"
    for name, argument in old.arguments.items():
        if argument.purpose in ("carries", "selects") and fresh.arguments[name].purpose == "directs":
            yield f"its argument {name[:60]!r} would direct it"


async def review_server(
    name: str,
    settings: McpSettings,
    *,
    base: Path,
    environment: Mapping[str, str] | None = None,
    use_descriptions: bool = False,
    places: FindPlaces | None = None,
) -> ServerReview:
    """Start a server, read what it lists, and propose declarations. The server is ended afterwards.

    Args:
        name: The name of the server in the configuration.
        settings: How it is reached.
        base: The working folder.
        environment: Where secrets are looked up.
        use_descriptions: Propose the first line of each description as the line that models read. Only for a server
            whose texts the user has read and takes for their own.
        places: What its sandbox keeps it from, besides what is protected on every machine.
    """
    connection = ServerConnection(name, settings, base=base, environment=environment, places=places)
    try:
        offers = await connection.offers()
        listed = await connection.list_tools() if "tools" in offers else ()
    finally:
        await connection.aclose()
    known = known_server_of(settings, base)
    declared = known_declarations(known).tools if known is not None else {}
    around = Enforced(
        network=not (settings.command and settings.sandbox) or bool(settings.network),
        writes=not (settings.command and settings.sandbox) or bool(settings.write),
    )
    proposals: list[Proposal] = []
    refused: dict[str, str] = {}
    for tool in listed:
        problem = schema_problem(without_unusable_patterns(tool.input_schema))
        if problem is None and tool.output_schema is not None:
            problem = schema_problem(without_unusable_patterns(tool.output_schema))
        if problem is not None:
            refused[tool.name] = problem
            continue
        try:
            proposal = propose_declaration(tool, server=name, around=around, known=declared.get(tool.name))
        except ToolError as error:
            refused[tool.name] = error.message
            continue
        proposals.append(_with_description(proposal) if use_descriptions else proposal)
    return ServerReview(name, known, listed, with_own_names(proposals, name), refused, offers)


def _with_description(proposal: Proposal) -> Proposal:
    line = next((each.strip() for each in proposal.tool.description.splitlines() if each.strip()), "")
    # What a person cannot see is nothing that a person has read.
    if not line or has_hidden(line):
        return proposal
    return replace(proposal, declaration=proposal.declaration.model_copy(update={"doc": line[:200]}))
