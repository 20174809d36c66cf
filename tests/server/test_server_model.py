"""The whole way with a real model's replies: OpenAI's client, the server, the planner, the run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import openai
import pytest
from server_world import MAIL

from bicameral.models import ModelStore
from recordings import recorded_environment

PROGRAM = str(Path(__file__).parents[1] / "recorded_program.py")


@pytest.mark.model
@pytest.mark.timeout(900)
def test_an_openai_client_is_answered_by_the_embedded_model(tmp_path: Path) -> None:
    (tmp_path / "mail.txt").write_text(MAIL)
    # Few tools make a short prompt, and the small model fast.
    (tmp_path / "bicameral.toml").write_text('[toolboxes]\nuse = ["files", "lines"]\n')
    # A user of its own, who has no plan in the cache yet, and the weights of this one.
    homes = {name: str(tmp_path / name.lower()) for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")} | {
        "BICAMERAL_MODELS": str(ModelStore().folder)
    }
    process = subprocess.Popen(
        [sys.executable, PROGRAM, "serve", "--port", "0", "--json", "--profile", "small"],
        cwd=tmp_path,
        env={**os.environ, **homes, **recorded_environment(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        started = json.loads(process.stdout.readline())
        with openai.OpenAI(
            base_url=f"{started['address']}/v1", api_key=started["token"], max_retries=0, timeout=800
        ) as client:
            done = client.chat.completions.create(
                model="bicameral", messages=[{"role": "user", "content": "Count the lines of mail.txt"}]
            )
        assert done.choices[0].message.content == "4", done
    finally:
        process.terminate()
        process.wait(30)
        assert process.stdout is not None
        process.stdout.close()
