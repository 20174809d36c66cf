"""A smart home: lights, heating, sensors, doors and scenes."""

from dataclasses import dataclass
from datetime import date, datetime

from bicameral.tools import tool
from bicameral.types import Id


@dataclass(frozen=True, slots=True)
class Device:
    """A device; `battery` is in percent."""

    device_id: Id
    name: str
    room: str
    kind: str
    on: bool
    watts: float
    battery: int


@dataclass(frozen=True, slots=True)
class Reading:
    """What a room's sensor measured."""

    room: str
    temperature: float
    humidity: float
    measured: datetime


@dataclass(frozen=True, slots=True)
class Visit:
    """Something the doorbell camera saw."""

    at: datetime
    door: str
    note: str


@tool(effect="read")
def get_devices(room: str = "", kind: str = "") -> list[Device]:
    """Devices, by room or kind such as light, plug, lock, blind."""
    raise NotImplementedError


@tool(effect="read")
def get_climate(room: str) -> Reading:
    """Temperature and humidity of a room."""
    raise NotImplementedError


@tool(effect="read")
def get_rooms() -> list[str]:
    """The names of the rooms."""
    raise NotImplementedError


@tool(effect="read")
def get_power_use(day: date | None = None) -> float:
    """Kilowatt hours used on a day, by default today."""
    raise NotImplementedError


@tool(effect="read")
def get_door_log(since: date | None = None) -> list[Visit]:
    """What the doorbell camera saw, in words."""
    raise NotImplementedError


@tool(effect="read")
def is_anyone_home() -> bool:
    """Whether somebody is at home."""
    raise NotImplementedError


@tool(effect="write", words=("switch", "turn", "on", "light", "kill", "power", "enable"))
def turn_on(device_id: Id) -> None:
    """Switch a device on."""
    raise NotImplementedError


@tool(effect="write", words=("switch", "turn", "off", "shut", "kill", "power", "out", "disable"))
def turn_off(device_id: Id) -> None:
    """Switch a device off."""
    raise NotImplementedError


@tool(effect="write", words=("heat", "set", "temperature", "warm", "degrees", "thermostat", "cool", "make"))
def set_temperature(room: str, celsius: float) -> None:
    """Set the thermostat of a room."""
    raise NotImplementedError


@tool(effect="write", words=("scene", "start", "run", "activate", "play", "mode"))
def start_scene(scene: str) -> None:
    """Start a scene such as movie or night."""
    raise NotImplementedError


@tool(effect="write", words=("lock",))
def lock_all_doors() -> int:
    """Lock every door; gives how many were open."""
    raise NotImplementedError


@tool(effect="send", words=("notify", "push", "alert", "phone", "tell", "send", "warn", "ping"))
def notify_phone(message: str) -> None:
    """Push a message to the phones of the family."""
    raise NotImplementedError
