"""Download of one file from the model hub; a separate program that `HubSource` runs.

It is a child process because the hub client reads its settings when imported, retries for half a minute without a
network, and cannot be interrupted during a name lookup. It writes `reached` into its run folder once the hub has
answered, and `outcome.json` at the end.
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
    """Download `file` of `repo` to `target`, resuming an earlier download."""
    hub: Any = importlib.import_module("huggingface_hub")  # loosely typed and slow to import
    download: Any = importlib.import_module("huggingface_hub.file_download")
    url = hub.hf_hub_url(repo, file)
    # Without retries, unlike the download itself: a machine without a network fails here, quickly.
    metadata = hub.get_hf_file_metadata(url, timeout=_ANSWER_SECONDS)
    if metadata.etag and len(metadata.etag) == _SHA256_LENGTH and metadata.etag != sha256:
        raise ValueError(f"holds another version of {file} (SHA-256 {metadata.etag})")
    (run / "reached").touch()
    # Not `hf_hub_download`, which cannot resume an interrupted download.
    with target.open("ab") as out:
        if metadata.size is not None and out.tell() > metadata.size:
            out.truncate(0)
            out.seek(0)
        headers = hub.utils.build_hf_headers()
        download.http_get(url, out, resume_size=out.tell(), headers=headers, expected_size=metadata.size)


def failure_reason(error: Exception) -> str:
    """A short text for an error of the hub client, which is recognised by class names so as not to import it."""
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
    """End this process as soon as the parent ends: two processes must never append to the same file.

    The parent holds the other end of standard input, which the operating system closes in any case.
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
