"""How a pull is shown."""

from __future__ import annotations

import io
from pathlib import Path

from models_store_world import content_of, weights_of

from bicameral.models._store import ModelStore
from bicameral.models._store_files import BarProgress, LineProgress, format_bytes, terminal_progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_pipe_gets_a_line_for_every_tenth() -> None:
    out = io.StringIO()
    progress = terminal_progress(out)
    assert isinstance(progress, LineProgress)
    progress.start("tiny", 1_000)
    for _ in range(100):
        progress.advance(10)
    progress.done()
    assert out.getvalue().splitlines() == ["tiny (1.0 kB)", *(f"tiny: {n} %" for n in range(10, 101, 10))]


def test_without_a_total_a_pipe_gets_the_title_only() -> None:
    out = io.StringIO()
    progress = terminal_progress(out)
    progress.start("asking", None)
    progress.advance(10_000)
    assert out.getvalue() == "asking\n"


def test_a_terminal_gets_a_bar_that_takes_titles_literally() -> None:
    out = Terminal()
    progress = terminal_progress(out)
    assert isinstance(progress, BarProgress)
    progress.start("one [bold]", 100)
    progress.advance(50)
    progress.note("note [red]")
    progress.start("two", None)
    progress.done()
    progress.done()
    for part in ("one [bold]", "note [red]", "two"):
        assert part in out.getvalue()


def test_a_pull_counts_every_byte_and_says_when_it_is_done(tmp_path: Path) -> None:
    content = content_of()
    told: list[str] = []
    counted = 0

    class Recording:
        def start(self, title: str, total_bytes: int | None) -> None:
            told.append(f"start {total_bytes}")

        def advance(self, n: int) -> None:
            nonlocal counted
            counted += n

        def note(self, text: str) -> None:
            told.append(text)

        def done(self) -> None:
            told.append("done")

    (tmp_path / "given").write_bytes(content)
    ModelStore(tmp_path / "store").pull(weights_of(content), file=tmp_path / "given", progress=Recording())
    assert told == [f"start {len(content)}", "done"]
    assert counted == len(content)


def test_sizes_read_as_people_say_them() -> None:
    sizes = [0, 999, 1_500, 491_400_064, 1_117_320_768]
    assert [format_bytes(n) for n in sizes] == ["0 bytes", "999 bytes", "1.5 kB", "491.4 MB", "1.12 GB"]
