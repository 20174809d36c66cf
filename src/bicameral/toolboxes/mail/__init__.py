"""Mail: search and read a Maildir or an mbox, send through an SMTP server, save attachments.

The mailbox is never written, and lies inside the folders that may be read. Mails are untrusted text: a broken charset,
date or MIME structure affects that mail only and not the search. Mails are parsed in the parser process (`_mime`), so
that a mail made to block its parser costs a second or two.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bicameral.toolboxes.mail._tools import Mail, MailSettings, Smtp, toolbox

__all__ = ["Mail", "MailSettings", "Smtp", "toolbox"]

_MODULES = {"Mail": "_tools", "MailSettings": "_tools", "Smtp": "_tools", "toolbox": "_tools"}


def __getattr__(name: str) -> Any:
    # Lazy, because the parser process imports `_mime` from this package and must not load the tools.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)
