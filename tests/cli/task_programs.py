"""Small programs that describe themselves, and lists of tasks that call them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_PROGRAM = """#!/bin/sh
if [ "$1" = "--describe" ]; then cat <<'END'
{description}
END
exit 0
fi
{body}
"""


def write_program(folder: Path, file_name: str, body: str, **facts: Any) -> str:
    """Write a program that reads text on its standard input and prints text, unless the facts say otherwise."""
    described = {
        "name": file_name,
        "version": "0.1.0",
        "capabilities": ["text-filter"],
        "inputs": ["text/plain"],
        "outputs": ["text/plain"],
        **facts,
    }
    file = folder / file_name
    file.write_text(_PROGRAM.format(description=json.dumps(described), body=body), encoding="utf-8")
    file.chmod(0o755)
    return file_name


OCR: dict[str, Any] = {
    "capabilities": ["document-ocr", "image-to-text"],
    "inputs": ["image/png", "image/jpeg", "application/pdf"],
    "outputs": ["text/plain", "application/json"],
}
"""What the OCR program of the source document says of itself."""


def write_config(folder: Path, effects: dict[str, str]) -> str:
    """Write a configuration with these programs as tools, each with the effect that the user grants it."""
    lines = ["[toolboxes]", f"files = {json.dumps(list(effects))}"]
    for name, effect in effects.items():
        lines += [f'[toolbox."{name}"]', f'effect = "{effect}"']
    (folder / "own.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return "own.toml"


def task_list(*tasks: dict[str, Any] | str, plan_id: str = "uuid-5678", **facts: Any) -> dict[str, Any]:
    """A list in which each task reads the one before it, unless it says otherwise; a text is a command."""
    found: list[dict[str, Any]] = []
    for number, task in enumerate(tasks, 1):
        given: dict[str, Any] = {"command": task} if isinstance(task, str) else task
        made: dict[str, Any] = {"task_number": number, "args": []}
        found.append(made | ({} if number == 1 else {"input_from_task": number - 1}) | given)
    return {"plan_id": plan_id, "plan_description": "", "tasks": found, **facts}


def write_tasks(folder: Path, *tasks: dict[str, Any] | str, **facts: Any) -> str:
    (folder / "tasks.json").write_text(json.dumps(task_list(*tasks, **facts)), encoding="utf-8")
    return "tasks.json"
