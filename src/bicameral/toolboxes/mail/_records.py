"""A mail as plans see it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from bicameral.types import Id


@dataclass(frozen=True, slots=True)
class Mail:
    """One mail; `date` is local time, `sender` is the address alone."""

    id: Id
    sender: str
    sender_name: str
    to: tuple[str, ...]
    cc: tuple[str, ...]
    subject: str
    date: datetime
    body: str
    folder: str
    unread: bool
    attachments: tuple[str, ...]
