"""Resources and prompts of servers: read like results of tools, and listed without a word of the servers.

Their names, addresses and texts are untrusted text, and so is how many there are. A client lists them by itself, often
before anybody has asked for anything, so that a list says nothing but which servers have some: one entry a server. What
is behind an entry, and each document by its number in it, is read with a call: judged, recorded, kept by name.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from bicameral.errors import ToolError
from bicameral.firewall._settings import TOOLBOX_PREFIX
from bicameral.labels import NOTHING, Label, Labelled, join, open_labelled
from bicameral.tools import Argument, Origin, Tool
from bicameral.types import INT, STR, Field, ListType, RecordType, Type

DocumentKind = Literal["resource", "prompt"]
DOCUMENT_KINDS: tuple[DocumentKind, ...] = ("resource", "prompt")
MAX_DOCUMENTS = 10_000

_ENTRY = RecordType((Field("name", STR), Field("description", STR)))
_INDEX = ListType(_ENTRY)


@dataclass(frozen=True, slots=True)
class Document:
    """A resource or prompt as its server lists it: all of it is untrusted text. `address` is its URI or its name."""

    address: str
    name: str = ""
    description: str = ""


ToolRunner = Callable[[Mapping[str, Any]], Awaitable[object]]
_NOTHING_LISTED: tuple[tuple[Document, ...], Label] = ((), NOTHING)


class Resources(Protocol):
    """Documents of servers, such as over their MCP connections."""

    def servers(self, kind: DocumentKind, /) -> Sequence[str]:
        """The names of the servers that may have documents of a kind; they come from the configuration."""
        ...

    def is_outbound(self, server: str, /) -> bool:
        """Whether somebody else learns what is read: a server that is confined to this machine tells nobody."""
        ...

    async def list(self, server: str, kind: DocumentKind, /) -> Labelled[Sequence[Document]]:
        """What a server lists."""
        ...

    async def read(self, server: str, kind: DocumentKind, address: str, /) -> Labelled[str]:
        """The text of a document."""
        ...


def document_tools(resources: Resources) -> list[Tool]:
    """The tools that list and read documents. No client sees them, and the policies must know them.

    Sessions have runners of their own for them: called outside of one, they fail.
    """

    async def run(arguments: Mapping[str, Any]) -> object:
        raise ToolError("tools.only-in-a-run", "documents are read in a session")

    return [
        make(server, kind, run, outbound=resources.is_outbound(server))
        for kind in DOCUMENT_KINDS
        for server in resources.servers(kind)
        for make in (_index_tool, _reading_tool)
    ]


def _index_tool(server: str, kind: DocumentKind, run: ToolRunner, *, outbound: bool) -> Tool:
    name, doc = f"list_{kind}s_of_{_plain(server)}", f"List the {kind}s of {server}."
    return _document_tool(name, doc, (), _INDEX, server, run, outbound=outbound)


def _reading_tool(server: str, kind: DocumentKind, run: ToolRunner, *, outbound: bool) -> Tool:
    name, doc = f"read_{kind}_of_{_plain(server)}", f"Read a {kind} of {server}."
    # What is read is chosen by a number that the client wrote; the address goes back to the server that gave it.
    number = Argument("number", INT, purpose="selects")
    return _document_tool(name, doc, (number,), STR, server, run, outbound=outbound)


def _document_tool(
    name: str,
    doc: str,
    arguments: tuple[Argument, ...],
    result: Type,
    server: str,
    run: ToolRunner,
    *,
    outbound: bool,
) -> Tool:
    return Tool(
        name,
        doc,
        arguments,
        result,
        "read",
        run,
        toolbox=f"{TOOLBOX_PREFIX}{server}",
        origins={"": Origin("third_party", "user")},
        outbound=outbound,
        attaches={},
    )


def _plain(server: str) -> str:
    """The name of a server as a part of a tool's name; different for any two servers."""
    return re.sub(r"\W", lambda sign: f"_{ord(sign[0]):x}", server.replace("_", "__"))


class DocumentReader:
    """The documents of one session: what its servers have listed, and the tools with which they are read.

    Args:
        resources: The documents.
    """

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._listed: dict[tuple[str, DocumentKind], tuple[tuple[Document, ...], Label]] = {}
        self.found: Label = NOTHING
        """The join of the labels that the servers' documents came with, besides those that the tools declare."""

    def tool(self, server: str, kind: DocumentKind, number: int | None) -> tuple[Tool, Mapping[str, Any]]:
        """The tool that lists the documents of a server, or reads one by its number, and its arguments."""
        if server not in self._resources.servers(kind):
            raise ToolError("firewall.unknown-document", f"no server {server[:60]!r} has a {kind}")

        async def list_documents(arguments: Mapping[str, Any]) -> object:
            listed = await self._resources.list(server, kind)
            documents = tuple(open_labelled(listed))[:MAX_DOCUMENTS]
            self._listed[server, kind] = documents, listed.label
            self.found = join(self.found, listed.label)
            return [{"name": each.name, "description": each.description} for each in documents]

        async def read_document(arguments: Mapping[str, Any]) -> object:
            documents, label = self._listed.get((server, kind), _NOTHING_LISTED)
            wanted = int(arguments["number"])
            if not 1 <= wanted <= len(documents):
                raise ToolError("firewall.unknown-document", f"{server} has listed no {kind} {wanted}")
            text = await self._resources.read(server, kind, documents[wanted - 1].address)
            self.found = join(join(self.found, label), text.label)
            return open_labelled(text)

        outbound = self._resources.is_outbound(server)
        if number is None:
            return _index_tool(server, kind, list_documents, outbound=outbound), {}
        return _reading_tool(server, kind, read_document, outbound=outbound), {"number": number}
