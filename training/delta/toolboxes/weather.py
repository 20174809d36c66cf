"""Weather: what it is, what it will be, warnings, alerts."""

from dataclasses import dataclass
from datetime import date, datetime, time

from bicameral.tools import tool


@dataclass(frozen=True, slots=True)
class Now:
    """The weather at this moment."""

    city: str
    celsius: float
    wind_kmh: float
    rain_mm: float
    sky: str


@dataclass(frozen=True, slots=True)
class Day:
    """The forecast of a day; `rain_chance` is in percent."""

    day: date
    low: float
    high: float
    rain_chance: int
    wind_kmh: float
    sunrise: time
    sunset: time


@dataclass(frozen=True, slots=True)
class Warning:
    """An official warning; level 4 is the worst."""

    region: str
    level: int
    headline: str
    text: str
    begins: datetime
    ends: datetime


@tool(effect="read")
def current_weather(city: str) -> Now:
    """The weather in a city now."""
    raise NotImplementedError


@tool(effect="read")
def daily_forecast(city: str, days: int = 7) -> list[Day]:
    """The forecast day by day, today first."""
    raise NotImplementedError


@tool(effect="read")
def forecast_for(city: str, day: date) -> Day:
    """The forecast of one day."""
    raise NotImplementedError


@tool(effect="read")
def past_weather(city: str, start: date, end: date) -> list[Day]:
    """How the weather was, day by day."""
    raise NotImplementedError


@tool(effect="read")
def active_warnings(region: str) -> list[Warning]:
    """Official warnings for a region."""
    raise NotImplementedError


@tool(effect="read")
def air_quality(city: str) -> int:
    """The air quality index; above 100 is unhealthy."""
    raise NotImplementedError


@tool(effect="read")
def weather_report(region: str) -> str:
    """The written report of the meteorologists."""
    raise NotImplementedError


@tool(effect="read")
def saved_cities() -> list[str]:
    """The cities I follow."""
    raise NotImplementedError


@tool(effect="write", words=("follow", "add", "save", "watch", "track", "put"))
def save_city(city: str) -> None:
    """Follow a city."""
    raise NotImplementedError


@tool(effect="write", words=("unfollow", "remove", "drop", "forget"))
def forget_city(city: str) -> None:
    """Do not follow a city any more."""
    raise NotImplementedError


@tool(effect="send", words=("text", "sms", "message", "send", "warn", "alert", "notify", "tell"))
def text_alert(phone: str, message: str) -> None:
    """Send a text message to a phone."""
    raise NotImplementedError
