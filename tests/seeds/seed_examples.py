"""The examples that the three source documents print, with their keys and values, for the tests of this folder."""

from __future__ import annotations

import json
from typing import Any

REQUEST = "Remove duplicates and find lines mentioning invoices"
INTENT: dict[str, Any] = {
    "task": "text-filtering",
    "steps": [{"action": "remove-duplicates"}, {"action": "grep", "pattern": "invoice"}],
    "constraints": [],
    "output": "stdout",
}
PLAN: dict[str, Any] = {
    "plan_id": "uuid-5678",
    "plan_description": "Filter text: deduplicate and find invoices",
    "tasks": [
        {"task_number": 1, "command": "uniq", "args": [], "timeout_secs": 30},
        {"task_number": 2, "command": "grep", "args": ["invoice"], "input_from_task": 1, "timeout_secs": 30},
    ],
}
DESCRIPTION: dict[str, Any] = {
    "name": "agx-ocr",
    "version": "0.1.0",
    "capabilities": ["document-ocr", "image-to-text"],
    "inputs": ["image/png", "image/jpeg", "application/pdf"],
    "outputs": ["text/plain", "application/json"],
}

ALIASES = """\
models:
  main: "azure/gpt-4.1"
  fast: "azure/gpt-4.1-mini"
  powerful: "azure/gpt-5.0-mini"
  local: "ollama/llama3"
"""
ALIASES_PATH = "src/taskforce_extensions/configs/llm_config.yaml"
ROLE_MAP = f"""\
llm:
  config_path: {ALIASES_PATH}
  default_model: main
  model_roles:
    planning: powerful
    reasoning: powerful
    acting: fast
    reflecting: powerful
    summarizing: fast
"""
PHASE_MAP = """\
agent:
  planning_strategy: spar
  planning_strategy_params:
    max_step_iterations: 3
    reflect_every_step: true
    phase_models:
      sense: fast
      plan: powerful
      act: main
      reflect: powerful
      final_answer: fast
"""
RULES = f"""\
llm:
  config_path: {ALIASES_PATH}
  default_model: main
  routing:
    enabled: true
    rules:
      - condition: has_tools
        model: powerful
      - condition: no_tools
        model: fast
      - condition: message_count > 10
        model: powerful
      - condition: hint:planning
        model: powerful
      - condition: hint:summarizing
        model: fast
"""

MAIL = "Dear all,\ninvoice 17 is due\nlunch?\ninvoice 17 is due\nthe Invoice of May\n"


def program(description: dict[str, Any] = DESCRIPTION, body: str = "") -> str:
    """The text of a program that prints a description for `--describe`, and does something otherwise."""
    told = json.dumps(description)
    return (
        "#!/usr/bin/env python3\nimport sys\n"
        f"if sys.argv[1:] == ['--describe']:\n    print({told!r})\n    sys.exit()\n{body}\n"
    )
