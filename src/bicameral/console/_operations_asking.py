"""Asking the MCP servers what they list now: on a click alone, since it starts programs and dials out.

Each server is asked as `bicameral mcp check` does it, under the confinement and the time limits of its settings. No
tool is called, and nothing that a server lists is taken over by it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from bicameral.console._operations_state import (
    AskedServer,
    Operations,
    ServerRound,
    operations_of,
    require_all_users,
)
from bicameral.console._pages import PageCall, page_route
from bicameral.errors import BicameralError, ServerError
from bicameral.server.surface import ServerContext

if TYPE_CHECKING:
    from bicameral.config import Config
    from bicameral.mcp import ServerCheck, ServerTools


async def ask_servers(call: PageCall) -> Response:
    """Begin to ask all MCP servers, unless that is under way; the page of the servers follows it."""
    require_all_users(call)
    operations, config = operations_of(call), call.context.config
    # Whoever may run and not see is not sent to a page that is closed to them.
    page = "/operations/servers" if call.token.may("see") else "/"
    # From here to the new round nothing is awaited, so that no two are begun.
    if operations.round is not None and operations.round.ended is None:
        return call.redirect(page, "The servers are being asked already.")
    if not config.mcp:
        return call.redirect(page, "No MCP server is configured.")
    slot = ExitStack()
    # Programs that start, and large listings that are compared, keep the machine busy, like a plan that is written.
    slot.enter_context(call.context.plans.slot())
    operations.round = ServerRound(call.token.user, len(config.mcp))
    operations.round_task = asyncio.create_task(_ask(call.context, operations, operations.round, slot))
    return call.redirect(page, "" if call.token.may("see") else "The servers are being asked.")


async def _ask(context: ServerContext, operations: Operations, asking: ServerRound, slot: ExitStack) -> None:
    from bicameral.mcp import check_servers

    def answered(check: ServerCheck) -> None:
        operations.asked[check.name] = AskedServer(check, asking.by)
        operations.answers += 1
        asking.done += 1

    with slot:
        try:
            servers, failed = await asyncio.to_thread(_open_servers, context.config)
            for check in failed:
                answered(check)
            await _until_stopping(context, check_servers(servers, answered))
        except BicameralError as error:
            asking.error = error.message
        except Exception as error:
            # Whatever it is, it is not the end of this server, and says nothing about those that were asked.
            asking.error = f"something went wrong here ({type(error).__name__})"
        finally:
            asking.ended = time.time()


def _open_servers(config: Config) -> tuple[list[ServerTools], list[ServerCheck]]:
    """The servers that can be asked, and why the others cannot: each on its own, so that none hinders another."""
    from bicameral.config import open_mcp_servers
    from bicameral.mcp import ServerCheck

    servers: list[ServerTools] = []
    failed: list[ServerCheck] = []
    for name, settings in config.mcp.items():
        try:
            servers += open_mcp_servers(config.model_copy(update={"mcp": {name: settings}}))
        except BicameralError as error:
            failed.append(ServerCheck(name, error=error))
    return servers, failed


async def _until_stopping(context: ServerContext, work: Coroutine[Any, Any, object]) -> None:
    """Wait for some work, and end it when this server stops: a program that it has started must not outlive it."""
    task, stopping = asyncio.create_task(work), asyncio.create_task(context.stopping.wait())
    try:
        await asyncio.wait({task, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ServerError("server.stopping", "the server stops")
        task.result()
    finally:
        task.cancel()
        stopping.cancel()
        await asyncio.gather(task, stopping, return_exceptions=True)


asking_routes = [page_route("/operations/servers", ask_servers, "run", method="POST")]
