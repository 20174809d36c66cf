"""Mail: search and read a Maildir or an mbox, send through an SMTP server, save attachments.

The mailbox is only ever read, and only inside the folders that may be read. What strangers wrote is decoded as far as
it can be and never trusted: a broken charset, date or MIME tree costs that mail its finesse, not the search. Mails are
taken apart in the parser process (`_reading`), so that one that is made to stop its reader costs a second or two.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bicameral.toolboxes.mail._tools import Mail, MailSettings, Smtp, toolbox

__all__ = ["Mail", "MailSettings", "Smtp", "toolbox"]

_MODULES = {"Mail": "_tools", "MailSettings": "_tools", "Smtp": "_tools", "toolbox": "_tools"}


def __getattr__(name: str) -> Any:
    # The parser process imports `_reading` from here and needs none of what the tools are made with.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)
