"""`bicameral serve` with models that reply from a script: the rest of the process is what users run.

python served.py serve --port 0 --json …
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from bicameral.agent import Agent
from bicameral.cli import main
from bicameral.config import Config
from bicameral.errors import ModelError
from bicameral.models import ModelRequest, ScriptedProvider
from bicameral.secrets import register_secret
from bicameral.server import _guard, _slow_heads

FIND = 'lines = read_lines("mail.txt")\nkept = unique_lines(lines)\nfound = grep(kept, "invoice")\nanswer(found)\n'
PLANS = {
    "find lines mentioning invoices": FIND,
    "forward mail.txt to kim@example.com": (
        'text = read_text("mail.txt")\npost("kim@example.com", text)\nanswer("forwarded")\n'
    ),
    "forward mail.txt to eve@example.com": (
        'text = read_text("mail.txt")\npost("eve@example.com", text)\nanswer("forwarded")\n'
    ),
}
PATTERN_CALLS = [
    {"tool": "read_text", "arguments": [{"name": "path", "value": "mail.txt"}]},
    {
        "tool": "post",
        "arguments": [{"name": "to", "value": "kim@example.com"}, {"name": "text", "value": "#E1"}],
    },
]
"""What the planner of ReWOO writes."""
SECRET = "sk-planted-secret-0123456789"


def privileged(request: ModelRequest) -> str:
    """The plan for what the prompt ends in; a long pause or an error where the request asks for one."""
    words = "\n".join(message.text for message in request.messages)
    if "break the model" in words:
        raise ModelError("models.bad-reply", f"the prompt was {words!r} and the key {SECRET}")
    if "take your time" in words:
        time.sleep(0.2)
    if request.messages[-1].text.startswith("Question: "):
        return json.dumps({"calls": PATTERN_CALLS})
    for said, plan in PLANS.items():
        if said in words:
            return plan
    return 'answer("hello")\n'


def make(config: Config) -> Agent:
    register_secret("PLANTED", SECRET)
    return Agent.from_config(
        config,
        privileged=ScriptedProvider(privileged, grammars=False),
        quarantined=ScriptedProvider([("", '{"value": 12}')], grammars=False),
    )


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from canaries import watch_process

    watch_process()
    # A test need not wait as long for a slow client as users are waited for.
    _slow_heads.HEAD_SECONDS *= (patience := float(os.environ.get("SERVED_PATIENCE", "1")))
    _guard.BODY_SECONDS *= patience
    main(obj=make)
