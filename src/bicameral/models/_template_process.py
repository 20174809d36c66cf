"""Renders a chat template in a process of its own: a program that reads and writes JSON, and imports nothing of ours.

A template comes with the weights, so it is a text of whoever made them. MiniJinja gives it no way to Python's objects
and counts its steps. It counts no memory, and too deep a nesting ends its process; so the process has a limit on its
memory and on its time, and does nothing else.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

FUEL = 1_000_000
"""Instructions for one layout; the longest usual template takes about a hundred for a turn."""
MEMORY = 1 << 28
SECONDS = 2
MAX_LENGTH = 1 << 20
_TRAINING_TAGS = re.compile(r"(\{%[-+]?)\s*(?:end)?generation\s*([-+]?%\})")
"""Tags that mark what a model is trained on; they have no effect on the text."""


def render(source: str, names: dict[str, Any]) -> str:
    """The text of a template with these values."""
    from minijinja import Environment

    environment = Environment(trim_blocks=True, lstrip_blocks=True, auto_escape_callback=lambda _: False)
    environment.fuel = FUEL
    # A comment instead of the tag keeps what it does to the white space around it.
    source = _TRAINING_TAGS.sub(lambda tag: f"{tag[1].replace('%', '#')}{tag[2].replace('%', '#')}", source)
    environment.add_template("chat", source)
    # The values are literals of another template that includes it. As objects of Python they would have attributes.
    values = "".join(f"{{% set {name} = {json.dumps(value, ensure_ascii=False)} %}}" for name, value in names.items())
    return environment.render_str(f'{values}{{% include "chat" %}}')


def reason_of(error: Exception) -> str:
    """Why a template cannot be rendered, in a few words."""
    cause = str(error).rpartition("caused by: ")[2]
    told = cause.partition("\n")[0][:200] or type(error).__name__
    # There is no such function: any call of it is an error, which is what it is for.
    return "it refuses the conversation" if "raise_exception" in told else told


def limit_process() -> None:
    """Bound the memory and the time of this process, where the system can."""
    try:
        import resource
    except ImportError:
        return
    for kind, most in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_CPU, SECONDS), (resource.RLIMIT_CORE, 0)):
        try:
            resource.setrlimit(kind, (most, most))
        except (OSError, ValueError):
            continue


def main() -> None:
    asked: dict[str, Any] = json.load(sys.stdin)
    limit_process()
    try:
        text = render(asked["source"], asked["names"])
    except Exception as error:
        told = {"error": reason_of(error)}
    else:
        told = {"text": text} if len(text) <= MAX_LENGTH else {"error": "its result is too long"}
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main()
