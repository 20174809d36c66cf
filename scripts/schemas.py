"""Write the published JSON Schemas, or say which differ from the code.

python -m scripts.schemas            writes schemas/*.json
python -m scripts.schemas --check    exits 1 if one is not as it should be
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bicameral.config import config_schema, llm_config_schema, profile_schema
from bicameral.evaluation import baseline_schema, suite_schema
from bicameral.foreign import declarations_schema
from bicameral.planning import intent_schema
from bicameral.plans import tasks_schema
from bicameral.tools import manifest_schema
from bicameral.trials import trial_schema
from scripts.plan_schema import plan_schema

FOLDER = Path(__file__).parents[1] / "schemas"


def schemas() -> dict[str, dict[str, Any]]:
    """Every published schema by its file name."""
    return {
        "plan.v1.json": plan_schema(),
        "tasks.v1.json": tasks_schema(),
        "intent.v2.json": intent_schema(),
        "config.v1.json": config_schema(),
        "profile.v1.json": profile_schema(),
        "llm-config.v1.json": llm_config_schema(),
        "tool-manifest.v1.json": manifest_schema(),
        "foreign-tools.v1.json": declarations_schema(),
        "model-trial.v1.json": trial_schema(),
        "evaluation-suite.v1.json": suite_schema(),
        "evaluation-baseline.v1.json": baseline_schema(),
    }


def text_of(schema: dict[str, Any]) -> str:
    """A schema as it stands in its file."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def differing(folder: Path = FOLDER, made: Mapping[str, dict[str, Any]] | None = None) -> list[str]:
    """The files that are missing or not what the code says; `made` has the schemas if they are made already."""
    made = schemas() if made is None else made
    return [name for name, schema in made.items() if _read(folder / name) != text_of(schema)]


def write(folder: Path = FOLDER) -> list[str]:
    """Write the files that differ; gives their names."""
    made = schemas()
    changed = differing(folder, made)
    folder.mkdir(parents=True, exist_ok=True)
    for name in changed:
        (folder / name).write_text(text_of(made[name]), encoding="utf-8")
    return changed


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Write the published JSON Schemas.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a file differs")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the files are")
    given = parser.parse_args(words)
    if not given.check:
        for name in write(given.folder):
            sys.stdout.write(f"wrote {name}\n")
        return 0
    found = differing(given.folder)
    for name in found:
        sys.stderr.write(f"{name} is not what the code says; run: python -m scripts.schemas\n")
    return 1 if found else 0


def _read(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


if __name__ == "__main__":
    sys.exit(main())
