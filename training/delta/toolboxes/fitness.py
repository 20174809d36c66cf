"""A fitness log: workouts, body weight, sleep, goals."""

from dataclasses import dataclass
from datetime import date

from bicameral.tools import tool
from bicameral.types import Id


@dataclass(frozen=True, slots=True)
class Workout:
    """A workout; `diary` is what I wrote about it."""

    workout_id: Id
    day: date
    sport: str
    minutes: int
    km: float
    calories: int
    heart_rate: int
    diary: str


@dataclass(frozen=True, slots=True)
class Weight:
    """Body weight on a day."""

    day: date
    kg: float


@dataclass(frozen=True, slots=True)
class Night:
    """How I slept."""

    day: date
    hours: float
    deep_hours: float
    wakeups: int


@dataclass(frozen=True, slots=True)
class Goal:
    """Something to reach."""

    name: str
    target: float
    reached: float
    unit: str
    deadline: date


@tool(effect="read")
def workouts_between(first: date, last: date, sport: str = "") -> list[Workout]:
    """Workouts from a day to a day."""
    raise NotImplementedError


@tool(effect="read")
def latest_workouts(count: int = 10, sport: str = "") -> list[Workout]:
    """The last workouts, newest first."""
    raise NotImplementedError


@tool(effect="read")
def weights_between(first: date, last: date) -> list[Weight]:
    """Body weights from a day to a day."""
    raise NotImplementedError


@tool(effect="read")
def nights_between(first: date, last: date) -> list[Night]:
    """Nights from a day to a day."""
    raise NotImplementedError


@tool(effect="read")
def goals() -> list[Goal]:
    """My goals."""
    raise NotImplementedError


@tool(effect="read")
def steps_on(day: date) -> int:
    """Steps on a day."""
    raise NotImplementedError


@tool(effect="write", words=("log", "record", "add", "enter", "track", "note", "put", "save"))
def log_workout(sport: str, minutes: int, km: float = 0.0, day: date | None = None, diary: str = "") -> Workout:
    """Log a workout, by default of today."""
    raise NotImplementedError


@tool(effect="write", words=("log", "weigh", "record", "enter", "weight", "note", "put", "add", "save"))
def log_weight(kg: float, day: date | None = None) -> None:
    """Log the body weight."""
    raise NotImplementedError


@tool(effect="write", words=("goal", "set", "target", "change", "raise", "lower", "new"))
def set_goal(name: str, target: float, deadline: date | None = None) -> Goal:
    """Set a goal or change it."""
    raise NotImplementedError


@tool(effect="send", words=("share", "post", "send", "show", "tell", "brag"))
def share_with_friends(text: str) -> None:
    """Share a text with my friends."""
    raise NotImplementedError


@tool(effect="irreversible", words=("delete", "remove", "erase", "drop"))
def delete_workout(workout_id: Id) -> None:
    """Delete a workout."""
    raise NotImplementedError
