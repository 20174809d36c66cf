"""What a server is equipped with: tools, policies, an MCP server and models, described by whoever wrote them.

The same for a friendly world, and for one in which every description is hostile.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bicameral.foreign import DeclarationFile, ForeignTool, ToolDeclaration, pins_file, write_declarations
from bicameral.journal import Journal, NewEvent

DECLARATIONS = "mcp/notes.toml"
KEY = "NOTES_READER_KEY"
"""The environment variable with the key of a model that nothing here asks."""
CONFIGURED = f"""[policy]
files = ["team.cedar"]
[mcp.notes]
command = ["python3", "notes.py"]
tools = "{DECLARATIONS}"
[llm]
default_model = "main"
[llm.models]
main = "openai/gpt-4.1"
own = {{ model = "openai/gpt-4.1-mini", quarantined_api_key_env = "{KEY}" }}
[llm.model_roles]
quarantined = "own"
"""
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
ARGUMENTS = 10
"""Arguments of one tool."""
FRIENDLY = ("Search the notes of the team.", "Add a note.", "Who may see a note.", "How many at most.")


@dataclass(frozen=True, slots=True)
class Equipment:
    """Descriptions by strangers.

    Args:
        words: What descriptions of tools, arguments, policies and servers say.
    """

    words: Sequence[str] = FRIENDLY

    def write(self, folder: Path) -> str:
        """Write the files of the equipment, before a server starts; returns the settings that name them."""
        (folder / "team.cedar").write_text("".join(map(_policy, range(len(self.words)), self.words)), "utf-8")
        declared = {
            tool.name: ToolDeclaration(pin=tool.pin, doc=FRIENDLY[0], effect="read") for tool in self._listed(0)
        }
        file = DeclarationFile(version=1, server="notes", tools=declared)
        write_declarations(folder / DECLARATIONS, file, self._listed(0))
        return CONFIGURED

    @property
    def tools(self) -> str:
        """The source of tools with these descriptions."""
        parts: list[str] = ["\n\nfrom typing import Annotated\n"]
        for number, start in enumerate(range(0, len(self.words), ARGUMENTS)):
            words = self.words[start : start + ARGUMENTS]
            arguments = ", ".join(f"a{place}: Annotated[str, {text!r}] = ''" for place, text in enumerate(words))
            parts.append(f"\n\ndef note_{number}({arguments}) -> str:\n    return 'x'\n")
            parts.append(f"\n\nnote_{number}.__doc__ = {words[0]!r} + '\\n'\n")
            parts.append(f"note_{number} = tool(effect='send', origins=Origin('third_party'))(note_{number})\n")
        return "".join(parts)

    def change(self, folder: Path) -> None:
        """Let the server list every second tool otherwise than it was reviewed, after the review."""
        file = pins_file(folder / DECLARATIONS)
        pins: list[dict[str, Any]] = json.loads(file.read_text("utf-8"))
        for facts, tool in zip(pins[::2], self._listed(1)[::2], strict=True):
            facts["description"], facts["title"] = tool.description, tool.title
        file.write_text(json.dumps(pins), "utf-8")

    def _listed(self, shift: int) -> list[ForeignTool]:
        """The tools of the MCP server; each is described by other words if shifted."""
        words = [*self.words[shift:], *self.words[:shift]]
        return [ForeignTool(f"note{number}", text, SCHEMA, title=text[:200]) for number, text in enumerate(words)]

    def record(self, folder: Path, run: str) -> None:
        """Append alerts, costs and a refused call to the record of a run, as workers write them."""
        at = time.time()
        events: list[NewEvent] = []
        for number, text in enumerate(self.words):
            source = {"tool": text[:200], "part": text[:200], "step": "0"}
            alert = {"step": "0", "kind": text[:80], "where": text[:80], "weight": 0.7, "note": text, "count": 1}
            events.append(
                NewEvent(
                    at + number / 1000,
                    "step-finished",
                    "0",
                    {"result": text, "alerts": [alert | {"sources": [source]}]},
                )
            )
            usage = {"prompt": 100, "output": 10, "cached": 0, "seconds": 0.1, "ending": "answered"}
            charge = {"role": "quarantined", "phase": "", "model": text[:200] or "x", "money": 0.001 * number} | usage
            events.append(
                NewEvent(at + number / 1000, "model-called", "0", {"role": "quarantined", "charges": [charge]})
            )
            error = {"code": "mcp.changed", "message": text, "fix": text[:200]}
            events.append(NewEvent(at + number / 1000, "step-failed", "1", {"error": error}))
        with Journal(folder / "xdg_state_home" / "bicameral" / "journal.db") as journal:
            journal.append_all(run, events)


def _policy(number: int, text: str) -> str:
    written = "".join(
        each if each.isascii() and each.isprintable() and each not in '"\\' else f"\\u{{{ord(each):x}}}"
        for each in text[:400]
    )
    return (
        f'@id("rule-{number}")\n@reason("{written}")\nforbid (principal, action, resource in Tool::"post")\n'
        f'when {{ context.domains.contains("example{number}.invalid") }};\n'
    )
