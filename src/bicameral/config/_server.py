"""What can be configured of the server."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Count = Annotated[int, Field(gt=0)]


class ServerSettings(BaseModel):
    """Where `bicameral serve` listens, and how much it lets anybody take."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True)

    host: str = "127.0.0.1"
    """The address to listen on. Any but the machine's own needs tokens."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8417
    """The port to listen on; 0 takes a free one."""
    tokens: str | None = None
    """The file with the hashes of the tokens; without it, `tokens.json` in the user's configuration folder."""
    max_body: Count = 1_000_000
    """Bytes that the body of a request may have."""
    rate: Count = 600
    """Requests a minute for each user; a quarter of them may come at once."""
    watches: Count = 16
    """Runs that a user may watch, or wait for, at the same time."""
    watch_seconds: Annotated[float, Field(gt=0)] = 3600.0
    """How long one watch, or one wait for a run, may last; whoever wants more comes again and misses nothing."""
    requests: Count = 128
    """Requests that are answered at the same time, of all users together."""
    history: Literal["ignore", "refuse"] = "ignore"
    """What becomes of the messages of a chat before the last one of the user."""
