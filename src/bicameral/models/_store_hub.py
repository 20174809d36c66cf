"""Download of one file from the model hub; run as a program of its own by `HubSource`.

A child process, because the hub client reads its settings when imported, retries for half a minute without a network,
and cannot be interrupted while a name is being looked up. Writes `reached` into its run folder once the hub has
answered and `outcome.json` at the end.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

_ANSWER_SECONDS = 4.0
_SHA256_LENGTH = 64


def download_file(repo: str, file: str, sha256: str, run: Path, target: Path) -> None:
    """Download `file` of `repo` to `target`, resuming what is there."""
    hub: Any = importlib.import_module("huggingface_hub")  # loosely typed, and slow to import
    download: Any = importlib.import_module("huggingface_hub.file_download")
    url = hub.hf_hub_url(repo, file)
    # Without retries, unlike the download itself: this is where a machine without a network fails fast.
    found = hub.get_hf_file_metadata(url, timeout=_ANSWER_SECONDS)
    if found.etag and len(found.etag) == _SHA256_LENGTH and found.etag != sha256:
        raise ValueError(f"holds another version of {file} (SHA-256 {found.etag})")
    (run / "reached").touch()
    # Not `hf_hub_download`: it starts from nothing when a download was interrupted.
    with target.open("ab") as out:
        if found.size is not None and out.tell() > found.size:
            out.truncate(0)
            out.seek(0)
        headers = hub.utils.build_hf_headers()
        download.http_get(url, out, resume_size=out.tell(), headers=headers, expected_size=found.size)


def failure_reason(error: Exception) -> str:
    """The failure in a few words."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    text = str(error).strip().splitlines()
    first = text[0] if text else type(error).__name__
    if "ImportError" in kinds:
        return f"the hub client cannot be used ({first})"
    if "OfflineModeIsEnabled" in kinds:
        return "not tried, since HF_HUB_OFFLINE is set"
    if "TransportError" in kinds:
        return f"cannot be reached ({first})"
    if "EntryNotFoundError" in kinds or "RepositoryNotFoundError" in kinds:
        return "does not hold the file (any more)"
    return first


def exit_with_parent() -> None:
    """End at once when the parent does: two programs must never append to the same file.

    The parent holds the other end of standard input, which the operating system closes however it ends.
    """
    sys.stdin.buffer.read()
    os._exit(1)


def main(repo: str, file: str, sha256: str, run: str, target: str) -> None:
    threading.Thread(target=exit_with_parent, daemon=True).start()
    try:
        download_file(repo, file, sha256, Path(run), Path(target))
        outcome: dict[str, object] = {}
    except Exception as error:
        outcome = {"reason": failure_reason(error), "errno": getattr(error, "errno", None)}
    Path(run, "outcome.json").write_text(json.dumps(outcome), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
