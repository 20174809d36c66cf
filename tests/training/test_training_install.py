"""Installing an adapter: it lies beside the code, is pinned by its hash, and leaves those of other jobs alone."""

from __future__ import annotations

import hashlib
import shutil
import tomllib
from pathlib import Path

import pytest

from training.delta import install


@pytest.mark.parametrize("job", ["reader", "echo"])
def test_an_adapter_is_pinned_for_its_job_and_no_other_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, job: str
) -> None:
    shutil.copyfile(install.MODELS / "known.toml", tmp_path / "known.toml")
    before = tomllib.loads((tmp_path / "known.toml").read_text("utf-8"))["weights"]
    monkeypatch.setattr(install, "MODELS", tmp_path)
    tiny = tmp_path / "tiny.gguf"
    tiny.write_bytes(b"GGUF tiny")
    target = install.install(tiny, "0.5b", job)
    assert (target.name, target.read_bytes()) == (f"qwen2.5-coder-0.5b-{job}.gguf", b"GGUF tiny")
    after = tomllib.loads((tmp_path / "known.toml").read_text("utf-8"))["weights"]
    pinned = {"file": target.name, "sha256": hashlib.sha256(b"GGUF tiny").hexdigest()}
    before[0]["adapters"] |= {job: pinned}
    assert after == before
