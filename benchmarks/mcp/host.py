"""What connects the victim's model with servers: directly, as clients do, or through the firewall.

Both show the model all that they get. The direct one merges what its servers offer by names, as the interfaces of
models want them (64 letters, digits, `_` and `-`), so that the last one of a name counts. It puts no question before a
call, and hands every question of a server to the person.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from .person import Person

if TYPE_CHECKING:
    import mcp_types as types
    from mcp import Client
    from mcp.client.context import ClientRequestContext

HANDLE = re.compile(r"\$r[1-9][0-9]{0,5}(?:_[a-z0-9]{1,8})?\b")
ROOT = "file:///home/me/private-TRAPDOOR"


@dataclass(frozen=True, slots=True)
class Shown:
    """Something that the model was shown: all texts in it, the text of a result alone, and whether it was an error."""

    text: str
    plain: str = ""
    error: bool = False

    @property
    def handles(self) -> list[str]:
        return HANDLE.findall(self.text)


@dataclass(frozen=True, slots=True)
class Listed:
    """A tool as the model sees it."""

    name: str
    text: str
    schema: Mapping[str, Any]


def texts_of(value: object) -> Iterator[str]:
    """Every text in a value, keys included."""
    match value:
        case str():
            yield value
        case dict():
            for key, each in cast("dict[object, object]", value).items():
                yield from texts_of(key)
                yield from texts_of(each)
        case list() | tuple():
            for each in cast("Sequence[object]", value):
                yield from texts_of(each)
        case None | bool():
            pass
        case _:
            yield str(value)


def _texts(model: Any) -> str:
    return "\n".join(texts_of(model.model_dump(by_alias=True, mode="json", exclude_none=True)))


@dataclass(slots=True)
class Host:
    """The client's side of one or several connections.

    Args:
        clients: The connections by name, in the order in which the user configured them.
        person: Answers questions.
        firewall: Whether the only connection is the firewall's.
        arrived: What came without being asked for, and was not read yet.
        changed: Whether a server said that it offers something else now.
        owners: Of each tool, resource and prompt by its name here, the connection and the name there.
        context: All that the model was shown, for a server that asks the client's model.
    """

    clients: dict[str, Client]
    person: Person
    firewall: bool
    arrived: list[Shown] = field(default_factory=list[Shown])
    changed: bool = False
    owners: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    context: str = ""

    async def look(self) -> tuple[Sequence[Listed], Shown]:
        """The tools, and everything that the servers say of themselves."""
        listed: dict[str, Listed] = {}
        said: list[str] = []
        for connection, client in self.clients.items():
            said += [client.instructions or "", "" if client.server_info is None else _texts(client.server_info)]
            async for tool in self._tools(client, said):
                text = _texts(tool)
                said.append(text)
                name = tool.name if self.firewall else re.sub(r"[^A-Za-z0-9_-]", "_", tool.name)[:64]
                listed[name] = Listed(name, text, tool.input_schema)
                self.owners[name] = (connection, tool.name)
            await self._look_further(connection, client, said)
        shown = Shown("\n".join(said))
        return [*listed.values()], shown

    async def _look_further(self, connection: str, client: Client, said: list[str]) -> None:
        capabilities = client.server_capabilities
        if capabilities.resources is not None:
            with self._faults(said):
                resources = await client.list_resources()
                said.append(_texts(resources))
                self.owners |= {each.uri: (connection, each.uri) for each in resources.resources}
            with self._faults(said):
                said.append(_texts(await client.list_resource_templates()))
        if capabilities.prompts is not None:
            with self._faults(said):
                prompts = await client.list_prompts()
                said.append(_texts(prompts))
                self.owners |= {f"{each.name}()": (connection, each.name) for each in prompts.prompts}

    async def _tools(self, client: Client, said: list[str]) -> AsyncIterator[types.Tool]:
        cursor: str | None = None
        while True:
            try:
                page = await client.list_tools(cursor=cursor)
            except Exception as error:
                said.append(str(error))
                return
            for each in page.tools:
                yield each
            cursor = page.next_cursor
            if cursor is None:
                return

    @contextlib.contextmanager
    def _faults(self, said: list[str]) -> Generator[None]:
        try:
            yield
        except Exception as error:
            # A client shows its model what went wrong, in the words of whoever said so.
            said.append(str(error))

    def find(self, tool: str, listing: Sequence[Listed]) -> Listed | None:
        """The listed tool that `server.tool` means here."""
        names = self.names(tool)
        return next((each for name in names for each in reversed(listing) if each.name == name), None)

    def names(self, tool: str) -> list[str]:
        """What a tool may be called here, the most likely name first; `=name` is exactly that one."""
        if tool.startswith("="):
            return [tool[1:]]
        server, _, name = tool.partition(".")
        if not name:
            return [tool, tool.partition("_")[2] or tool]
        joined = f"{server}_{name}"
        if not self.firewall:
            return [name, joined, tool]
        plain = re.sub(r"[^A-Za-z0-9]+", "_", joined).strip("_")
        # A name may be cut off.
        cut = [each for each in self.owners if len(each) > 60 and plain.startswith(each)]
        return [*dict.fromkeys((joined, plain, *cut, tool, name))]

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Shown:
        """Call a tool; if nothing is called so, by the other names that it may have."""
        failed: list[str] = []
        for name in self.names(tool):
            client, original = self._owner(name, tool.partition(".")[0])
            try:
                result = await client.call_tool(original, dict(arguments))
            except Exception as error:
                failed.append(str(error))
                continue
            plain = "\n".join(each.text for each in result.content if each.type == "text")
            shown = Shown(_texts(result), plain, result.is_error is True)
            if not (self.firewall and shown.error and name not in self.owners):
                return shown
            failed.append(shown.text)
        return Shown("\n".join(failed), error=True)

    def _owner(self, name: str, server: str) -> tuple[Client, str]:
        """The connection that has something of this name, and its name there."""
        connection, original = self.owners.get(name, (server, name.removesuffix("()")))
        return self.clients.get(connection) or next(iter(self.clients.values())), original

    async def read(self, server: str, uri: str) -> Shown:
        """Read a resource; of the firewall, which gives them numbers, the first one of the server."""
        shown: list[str] = []
        plain: list[str] = []
        for each in (f"bicameral://{server}", f"bicameral://{server}/1", uri) if self.firewall else (uri,):
            client, original = self._owner(each, server)
            try:
                result = await client.read_resource(original)
            except Exception as error:
                shown.append(str(error))
                continue
            shown.insert(0, _texts(result))
            plain = [getattr(each, "text", "") for each in result.contents]
        return Shown("\n".join(shown), "\n".join(plain), not plain)

    async def prompt(self, server: str, name: str, arguments: Mapping[str, str]) -> Shown:
        """Get a prompt; of the firewall, which gives them numbers, the first one of the server."""
        wanted: list[tuple[str, dict[str, str]]] = [(server, {}), (server, {"number": "1"}), (name, dict(arguments))]
        shown: list[str] = []
        plain = ""
        for each, given in wanted if self.firewall else wanted[2:]:
            client, original = self._owner(f"{each}()", server)
            try:
                result = await client.get_prompt(original, given)
            except Exception as error:
                shown.append(str(error))
                continue
            plain = _texts(result)
            shown.insert(0, plain)
        return Shown("\n".join(shown), plain, not plain)

    async def send(self, server: str, method: str, params: Mapping[str, Any]) -> Shown:
        """A request of any method."""
        import mcp_types as types

        client, _ = self._owner("", server)
        request: Any = types.Request[dict[str, Any], str](method=method, params=dict(params))
        try:
            result = await client.session.send_request(request, types.EmptyResult)
        except Exception as error:
            return Shown(str(error), error=True)
        return Shown(_texts(result))


@asynccontextmanager
async def connected(
    commands: Mapping[str, Sequence[str]],
    person: Person,
    folder: Path,
    *,
    firewall: bool,
    mode: Literal["auto", "legacy"] = "auto",
) -> AsyncGenerator[Host]:
    """A host that is connected with all of these programs; what they print goes to a file."""
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    host = Host({}, person, firewall)
    async with AsyncExitStack() as stack:
        errors = stack.enter_context((folder / "errors.txt").open("a", encoding="utf-8"))
        for name, command in commands.items():
            environment = own_folders(folder)
            parameters = StdioServerParameters(command=command[0], args=[*command[1:]], env=environment, cwd=folder)
            client = Client(stdio_client(parameters, errors), mode=mode, **_callbacks(host))
            host.clients[name] = await stack.enter_async_context(client)
        yield host


@asynccontextmanager
async def connected_inside(
    config: Path, person: Person, *, mode: Literal["auto", "legacy"] = "auto", undeclared: str = "hide"
) -> AsyncGenerator[Host]:
    """A host that is connected with a firewall in this process, which starts in a tenth of the time."""
    from mcp import Client

    from bicameral.cli._mcp_firewall import open_firewall
    from bicameral.cli._output import Output
    from bicameral.config import load_config
    from bicameral.firewall import FirewallSettings, ServerRules, create_server

    settings = load_config(config, base=config.parent)
    rules = {name: ServerRules(show=each.show, rate=each.rate) for name, each in settings.mcp.items()}
    about = FirewallSettings.model_validate({"undeclared": undeclared, "servers": rules})
    async with open_firewall(Output(as_json=True), settings, about) as firewall:
        host = Host({}, person, firewall=True)
        async with Client(create_server(firewall), mode=mode, **_callbacks(host)) as client:
            host.clients["firewall"] = client
            yield host


def own_folders(folder: Path) -> dict[str, str]:
    """The environment of a program: Bicameral keeps its files beside the folder, and not with those of the user."""
    beside = folder.parent / "state"
    kept = {name: value for name, value in os.environ.items() if name.startswith("BICAMERAL_")}
    return kept | {f"XDG_{each}_HOME": str(beside / each.lower()) for each in ("STATE", "CONFIG")}


def _callbacks(host: Host) -> dict[str, Any]:
    """Answers to what servers ask and say, as the most obliging client gives them."""
    import mcp_types as types

    async def elicit(context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        if isinstance(params, types.ElicitRequestURLParams):
            answer = host.person.answer(f"{params.message}\n{params.url}", {})
        else:
            answer = host.person.answer(params.message, params.requested_schema)
        if answer is None:
            return types.ElicitResult(action="decline")
        return types.ElicitResult(action="accept", content=dict(answer))

    async def sample(
        context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult:
        host.arrived.append(Shown(_texts(params)))
        return types.CreateMessageResult(
            role="assistant", content=types.TextContent(type="text", text=host.context), model="victim"
        )

    async def list_roots(context: ClientRequestContext) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root.model_validate({"uri": ROOT})])

    async def log(params: types.LoggingMessageNotificationParams) -> None:
        host.arrived.append(Shown(_texts(params)))

    async def receive(message: object) -> None:
        if isinstance(message, Exception):
            host.arrived.append(Shown(str(message)))
        elif isinstance(message, types.ToolListChangedNotification):
            host.changed = True
        elif isinstance(message, types.ResourceUpdatedNotification | types.ProgressNotification):
            host.arrived.append(Shown(_texts(message)))

    return {
        "elicitation_callback": elicit,
        "sampling_callback": sample,
        "list_roots_callback": list_roots,
        "logging_callback": log,
        "message_handler": receive,
        "log_level": "debug",
    }
