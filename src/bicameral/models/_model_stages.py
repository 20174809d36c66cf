"""What a local model does at the moment, as a line for a person: the stage, tokens, elapsed and expected time."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from bicameral.cache import user_folder

if TYPE_CHECKING:
    from bicameral.models import ModelProgress

HINT_SECONDS = 10.0
LOG_SECONDS = 10.0
LONG_READ = 1_000
"""So many tokens are read only where nothing is known of the prompt."""
_READ_WHAT = {"delta": "your tools", "echo": "the request", "reader": "the text"}
_WRITE_WHAT = {"delta": "the plan", "echo": "what was understood", "reader": "the form"}
_MIN_TIMED_TOKENS = 64
_KEPT_TIMES = 20
_MAX_FILE_BYTES = 65_536


@dataclass(eq=False, slots=True)
class ModelStages:
    """Follows the progress of local models, and says in words what they do.

    Example:
        >>> stages = ModelStages()
        >>> stages.update(ModelProgress("reading", "delta", 900, 2250, 0, 18.0))
        >>> stages.text
        'reading your tools 40 % (900 of 2,250 tokens, 18 s, about 27 s more)'
    """

    clock: Callable[[], float] = time.monotonic
    text: str = ""
    lines: int = 0
    """How many statements of the plan are written."""
    read: int = 0
    """How many tokens had to be read, over all requests."""
    usual: float | None = None
    """How long planning usually takes here."""
    interrupted: bool = False
    """Whether a person was asked meanwhile: then the time says nothing about the model."""
    times: PlanningTimes = field(default_factory=lambda: PlanningTimes())
    began: float = field(default=0.0, init=False)
    _first: ModelProgress | None = field(default=None, init=False)
    _last: ModelProgress | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.began = self.clock()

    @property
    def hint(self) -> str:
        """What would make it faster, once it takes long."""
        last = self._last
        if last is None or self.elapsed < HINT_SECONDS or last.job == "reader":
            return ""
        return speed_hint(last.model, read=self.read, kept=last.kept, cores=os.cpu_count() or 1, threads=last.threads)

    def end(self) -> None:
        """The phase is over: if a plan was written without a pause, its time is remembered."""
        last, self._last = self._last, None
        if last is not None and self.lines and last.job == "delta" and not self.interrupted and self.read < LONG_READ:
            self.times.add(last.model, self.elapsed)

    @property
    def elapsed(self) -> float:
        """Seconds since planning began."""
        return self.clock() - self.began

    def update(self, progress: ModelProgress) -> None:
        """Take the next message of a model."""
        if self._last is None:
            self.usual = self.times.usual(progress.model)
        self._last = progress
        match progress.stage:
            case "loading":
                self.text = "loading the model"
            case "reading":
                self._update_reading(progress)
            case "writing":
                what = _WRITE_WHAT.get(progress.job, "a reply")
                line = f", line {self.lines + 1}" if progress.job == "delta" else ""
                self.text = f"writing {what}{line} ({progress.done} tokens, {self._times()})"

    def _update_reading(self, progress: ModelProgress) -> None:
        first = self._first
        is_new = (
            first is None or (first.job, first.total) != (progress.job, progress.total) or progress.done < first.done
        )
        if first is None or is_new:
            self._first = first = progress
        what = _READ_WHAT.get(progress.job, "the prompt")
        new, done = progress.total - progress.reused, progress.done - progress.reused
        if progress.job == "delta" and progress.reused:
            # The tools are known, and only the request is new.
            what = "the request"
        self.read = max(self.read, new)
        share = round(100 * done / new) if new > 0 else 100
        read, passed = progress.done - first.done, progress.seconds - first.seconds
        more = ""
        if read >= _MIN_TIMED_TOKENS and passed > 0:
            more = f", about {_seconds((progress.total - progress.done) * passed / read)} more"
        self.text = f"reading {what} {share} % ({done:,} of {new:,} tokens, {_seconds(self.elapsed)}{more})"

    def _times(self) -> str:
        usual = f", usually {_seconds(self.usual)}" if self.usual is not None else ""
        return f"{_seconds(self.elapsed)}{usual}"


def _seconds(value: float) -> str:
    whole = max(0, round(value))
    return f"{whole} s" if whole < 90 else f"{whole // 60} min {whole % 60} s"


def speed_hint(model: str, *, read: int, kept: bool, cores: int, threads: int) -> str:
    """What would make planning faster, or nothing if nothing is known to.

    Args:
        model: The name of the model that plans.
        read: How many tokens it had to read.
        kept: Whether what it reads is kept for the next process.
        cores: The cores of this machine.
        threads: Those that the model may use.
    """
    if not model.startswith("local:"):
        return ""
    ways: list[str] = []
    if read >= LONG_READ:
        ways.append(
            "your tools are read once and kept: the next plan is faster"
            if kept
            else "`kept_mb` under [models] keeps what was read for the next process"
        )
    if threads < min(cores, 8):
        ways.append(f"the model uses {threads} of {cores} cores: see `threads` under [models]")
    if "0.5b" not in model:
        ways.append("`--profile small` plans with the small model")
    else:
        ways.append("a remote model may plan faster: docs/models.md")
    return "; ".join(ways)


class PlanningTimes:
    """How long planning took on this machine, by model, so that the next plan can say what is usual.

    A file in the user's cache folder holds numbers only. Whatever is wrong with it, there is no usual time then.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path or user_folder("cache") / "planning-times.json"

    def usual(self, model: str) -> float | None:
        """The median of the last times, if there are at least three."""
        times = self._load().get(model, [])
        from statistics import median

        return median(times) if len(times) >= 3 else None

    def add(self, model: str, seconds: float) -> None:
        """Remember one more time."""
        found = self._load()
        found[model] = [*found.get(model, []), round(seconds, 2)][-_KEPT_TIMES:]
        part = self._path.with_name(f"{self._path.name}.{os.getpid()}.part")
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            part.write_text(json.dumps(found), encoding="utf-8")
            part.replace(self._path)

    def _load(self) -> dict[str, list[float]]:
        try:
            if self._path.stat().st_size > _MAX_FILE_BYTES:
                return {}
            found: Any = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        if not isinstance(found, dict):
            return {}
        items = cast("dict[str, Any]", found).items()
        return {model: times for model, times in items if _are_seconds(times)}


def _are_seconds(times: object) -> bool:
    return isinstance(times, list) and all(
        type(each) in (int, float) and 0 <= each < 86_400 for each in cast("list[Any]", times)
    )
