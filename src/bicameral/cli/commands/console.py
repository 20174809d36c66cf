"""`bicameral console`: the console in a browser, on a server that runs already or on one of its own."""

from __future__ import annotations

import asyncio
import hmac
import html
import http.client
import json
import secrets
import urllib.request
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bicameral.cache import user_folder, write_private_file
from bicameral.cli._command_agent import fetch_missing_weights
from bicameral.cli._options import CommonOptions, common_options, model_option, quarantine_option
from bicameral.cli._output import OK, Output
from bicameral.cli.commands.serve import console_address, serve_until_stopped, with_address
from bicameral.errors import ServerError

if TYPE_CHECKING:
    from bicameral.config import Config

LINK_SECONDS = 300.0
"""How long a link for a server that runs already can be used; it signs in once."""
PROBE_SECONDS = 2.0
MAX_PROBED = 1_000
"""Bytes of an answer that are read of whatever listens at the port."""
USER = "local"
"""Whose runs `bicameral submit` makes, too."""


@click.command(short_help="Open the console: plans, runs, questions and their provenance, in a browser.")
@click.option("--host", help="The address of the server instead of the configured one (127.0.0.1).")
@click.option("--port", type=click.IntRange(0, 65535), help="Its port; 0 starts a server on a free one.")
@click.option("--worker/--no-worker", default=True, help="Whether a server that is started does the runs too.")
@click.option("--browser/--no-browser", default=True, help="Whether to open the browser, or only to say the address.")
@model_option
@quarantine_option
@common_options
def command(chosen: CommonOptions, host: str | None, port: int | None, worker: bool, browser: bool) -> int:
    """Open the console in a browser. If no server answers at the configured address, one is started until Ctrl-C.

    You are signed in as the one who may see and do everything on this server, by a link that holds once. A server that
    runs already has to prove first that it is yours: on this machine others can listen at a port, too.
    """
    config = with_address(chosen.config(), host, port)
    address = running_server(config)
    if address is not None:
        _open_running(chosen.out, config, address, browser=browser)
        return OK
    from bicameral.server import TokenFile, check_may_listen, new_token

    # For this process alone, besides the tokens of the file: it is stored nowhere.
    token, text = new_token(USER, all_users=True, link=True)
    tokens = TokenFile(config.token_file, [token])
    check_may_listen(config.server.host, TokenFile(config.token_file))
    fetch_missing_weights(chosen.out, config, ["privileged", "quarantined"] if worker else ["privileged"])

    def started(at: str) -> None:
        _show_console(chosen.out, console_address(at, text), browser=browser)
        chosen.out.say("Ctrl-C stops the server")

    return asyncio.run(serve_until_stopped(config, tokens, started, worker=worker, console=True))


def running_server(config: Config) -> str | None:
    """The address of the server that runs already; None if there is none."""
    host, port = config.server.host, config.server.port
    if port == 0:
        return None
    # A server that listens on every address is reached on this machine's own.
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104
    address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    try:
        if json.loads(_read(f"{address}/healthz")) != {"ok": True}:
            return None
    except (OSError, ValueError, http.client.HTTPException):
        return None
    try:
        _read(f"{address}/login")
    except (OSError, http.client.HTTPException):
        fix = "Start it without --no-console, or give another --port."
        raise ServerError("console.off", f"the server at {address} has no console", fix=fix) from None
    return address


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """What is asked for at this machine is answered there, or not at all."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> None:
        """Follow none."""


def _read(address: str) -> bytes:
    """The first bytes of an answer of this machine; not by way of a proxy, nor of anywhere else."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect)
    with opener.open(address, timeout=PROBE_SECONDS) as answer:
        return answer.read(MAX_PROBED)


def require_own_server(config: Config, address: str) -> None:
    """Raise `console.not-yours` unless the server proves that it can read the key beside this user's tokens."""
    from bicameral.console import make_proof_key, proof_of

    nonce = secrets.token_urlsafe(32)
    try:
        wanted = proof_of(make_proof_key(config.token_file), nonce, config.server.port)
        given = _read(f"{address}/login/proof?nonce={nonce}")
    except (OSError, http.client.HTTPException):
        wanted, given = "", b""
    if not wanted or not hmac.compare_digest(given, wanted.encode()):
        raise ServerError(
            "console.not-yours",
            f"what answers at {address} does not prove that it is a server of yours",
            expected="one that was started by this user, with the same token file",
            fix="Give another --port. If you trust it, open its address and sign in with a token of its own.",
        )


def _open_running(out: Output, config: Config, address: str, *, browser: bool) -> None:
    """Open the console of a server that runs, with a token that it finds in its file."""
    from bicameral.server import TokenFile

    require_own_server(config, address)
    _, text = TokenFile(config.token_file).add(USER, LINK_SECONDS, all_users=True, link=True)
    _show_console(out, console_address(address, text), browser=browser)


def _show_console(out: Output, link: str, *, browser: bool) -> None:
    """Say the address, and open it."""
    out.show(link)
    out.write_json({"ok": True, "address": link})
    if browser and not open_browser(link):
        out.say("no browser could be opened: open the address above in one")


def open_browser(link: str) -> bool:
    """Open a link with a token in the browser, without showing it to other users of the machine.

    The words of a process can be read by everybody here. So the browser is given a file that only this user can read,
    and that leads on to the link.
    """
    page = f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url={html.escape(link)}">'
    page += f'<a href="{html.escape(link)}">The console</a>'
    file = Path(user_folder("state")) / "console.html"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_private_file(file, [page.encode()])
        return webbrowser.open(file.as_uri())
    except (OSError, webbrowser.Error):
        return False
