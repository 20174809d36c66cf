"""What tools depend on: that they load, and the mailbox, mail server and calendar behind them."""

from __future__ import annotations

import asyncio
import datetime as dt
import os
import socket
from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from bicameral.errors import BicameralError
from bicameral.tools import Registry

from ._check import Check, failed, settled
from ._config import Config
from ._policy import open_policy
from ._registry import left_out, open_registry

_SECONDS = 10.0
_CONNECT_SECONDS = 3.0


def service_checks(config: Config) -> Iterator[Check]:
    try:
        registry = open_registry(config)
    except BicameralError as error:
        yield failed("toolboxes", error)
        return
    boxes = sorted({tool.toolbox for tool in registry})
    yield Check("toolboxes", "ok" if boxes else "warn", f"{len(registry)} tools: {', '.join(boxes) or 'none'}")
    yield _policy(config, registry)
    for name, lacking in left_out(config).items():
        yield failed(f"toolbox {name}", lacking, status="warn")
    yield from _reads(config, registry, "mail", "folder", "search_mail", {"limit": 1})
    yield from _reads(config, registry, "calendar", "file", "list_events", {"start": dt.date.today()})
    yield from _smtp(config)


def _policy(config: Config, registry: Registry) -> Check:
    try:
        policy = open_policy(config, registry)
    except BicameralError as error:
        return failed("policy", error)
    own = sum(not rule.default for rule in policy.rules)
    weaker = "; control flow does not count" if policy.mode == "normal" else ""
    return Check("policy", "ok", f"{len(policy.rules) - own} defaults, {own} of your own{weaker}")


def _reads(
    config: Config, registry: Registry, box: str, setting: str, tool_name: str, arguments: dict[str, Any]
) -> Iterator[Check]:
    """Whether a tool that reads can read: the surest test is to let it."""
    tool = registry.get(tool_name)
    if tool is None or tool.toolbox != box:
        return
    chosen = config.toolbox.get(box, {}).get(setting)

    async def attempt() -> Any:
        return await asyncio.wait_for(tool.call(arguments), _SECONDS)

    try:
        settled(attempt())
    except BicameralError as error:
        # Nobody needs a mailbox or a calendar who has not named one.
        yield failed(box, error, status="bad" if chosen else "warn")
    except TimeoutError:
        yield Check(box, "warn", f"reading took longer than {_SECONDS:.0f} seconds", f"Name a smaller {setting}.")
    else:
        yield Check(box, "ok", f"{chosen or 'found'} can be read")


def _smtp(config: Config) -> Iterator[Check]:
    if "mail" not in config.toolboxes.use:
        return
    from bicameral.toolboxes.mail import MailSettings

    try:
        smtp = MailSettings.model_validate(config.toolbox.get("mail", {})).smtp
    except ValidationError:
        return  # The toolbox did not load either, and that check says why.
    if smtp is None:
        yield Check("mail server", "ok", "none; mail can be read but not sent (`smtp` in [toolbox.mail])")
        return
    address = f"{smtp.host}:{smtp.port_or_usual}"
    if smtp.password_env and not os.environ.get(smtp.password_env):
        fix = f"Set it to the password of {smtp.user} at {smtp.host}."
        yield Check("mail server", "bad", f"the environment variable {smtp.password_env} is not set", fix)
    try:
        with socket.create_connection((smtp.host, smtp.port_or_usual), timeout=_CONNECT_SECONDS):
            yield Check("mail server", "ok", f"{address} answers")
    except OSError as error:
        fix = "Check host and port of `smtp` in [toolbox.mail], and the network."
        yield Check("mail server", "bad", f"{address} cannot be reached: {error.strerror or error}", fix)
