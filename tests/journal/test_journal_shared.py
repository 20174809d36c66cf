"""One journal file, opened more than once in a process, while other processes come and go."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from bicameral.runs import Journal

LOOK = """
import sys
from pathlib import Path
from bicameral.runs import Journal
with Journal(Path(sys.argv[1])) as journal:
    print([event.kind for event in journal.events_after("a", -1)])
"""


def looked(path: Path) -> str:
    """What another process reads, which then closes the journal."""
    command = [sys.executable, "-c", LOOK, str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.strip()


def test_what_is_appended_is_seen_by_others_however_often_this_process_opened_the_file(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with Journal(path) as first:
        first.append("a", "run-started", "", {"request": "x"})
        # To open and close a file takes away this process's locks on it, if it is not done by SQLite itself.
        with Journal(path):
            assert looked(path) == "['run-started']"
            first.append("a", "run-waits", "", {})
            assert looked(path) == "['run-started', 'run-waits']"
            first.append("a", "run-resumed", "", {"attempt": 2})
        assert looked(path) == "['run-started', 'run-waits', 'run-resumed']"
    with Journal(path) as again:
        assert [event.kind for event in again.events("a")] == ["run-started", "run-waits", "run-resumed"]
        assert again.verify() == []


def test_the_file_is_for_nobody_else_to_read(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with Journal(path) as journal:
        journal.append("a", "run-started", "", {})
        assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o600}
