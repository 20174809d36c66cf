"""Cloud machines: list, start, stop, resize, costs and logs."""

from dataclasses import dataclass
from datetime import datetime

from bicameral.tools import tool
from bicameral.types import Id


@dataclass(frozen=True, slots=True)
class Machine:
    """A virtual machine."""

    name: str
    region: str
    size: str
    state: str
    cpu_percent: float
    disk_gb: int
    hourly_cost: float
    owner: str
    launched: datetime


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A copy of a machine's disk."""

    snapshot_id: Id
    machine: str
    taken: datetime
    size_gb: int


@dataclass(frozen=True, slots=True)
class Alarm:
    """An alarm that rang."""

    alarm_id: Id
    machine: str
    severity: str
    raised: datetime
    message: str


@tool(effect="read")
def describe_machines(region: str | None = None, state: str | None = None, owner: str | None = None) -> list[Machine]:
    """Machines that match; states are running and stopped."""
    raise NotImplementedError


@tool(effect="read")
def describe_machine(name: str) -> Machine:
    """One machine."""
    raise NotImplementedError


@tool(effect="read")
def describe_snapshots(machine: str | None = None) -> list[Snapshot]:
    """Snapshots, oldest first."""
    raise NotImplementedError


@tool(effect="read")
def describe_alarms(severity: str | None = None) -> list[Alarm]:
    """Alarms that ring now."""
    raise NotImplementedError


@tool(effect="read")
def fetch_log(machine: str, lines: int = 200) -> str:
    """The end of a machine's log."""
    raise NotImplementedError


@tool(effect="read")
def monthly_bill(year: int, month: int) -> float:
    """The bill of a month in dollars."""
    raise NotImplementedError


@tool(effect="write", words=("start", "boot", "launch", "wake", "power", "up"))
def start_machine(name: str) -> None:
    """Start a machine."""
    raise NotImplementedError


@tool(effect="write", words=("stop", "shut", "halt", "pause", "power", "down", "off"))
def stop_machine(name: str) -> None:
    """Stop a machine."""
    raise NotImplementedError


@tool(effect="write", words=("restart", "reboot", "bounce"))
def restart_machine(name: str) -> None:
    """Restart a machine."""
    raise NotImplementedError


@tool(effect="write", words=("resize", "scale", "upgrade", "downgrade", "change", "shrink", "grow"))
def resize_machine(name: str, size: str) -> None:
    """Change the size of a machine."""
    raise NotImplementedError


@tool(effect="write", words=("snapshot", "backup", "back", "copy"))
def take_snapshot(machine: str) -> Snapshot:
    """Take a snapshot of a machine's disk."""
    raise NotImplementedError


@tool(effect="irreversible", words=("terminate", "delete", "destroy", "remove", "kill", "drop", "purge", "clean"))
def terminate_machine(name: str) -> None:
    """Delete a machine for good."""
    raise NotImplementedError


@tool(effect="irreversible", words=("delete", "remove", "purge", "drop", "clean"))
def delete_snapshot(snapshot_id: Id) -> None:
    """Delete a snapshot."""
    raise NotImplementedError


@tool(effect="send", words=("page", "alert", "notify", "tell", "call", "wake", "send", "report"))
def page_oncall(message: str) -> None:
    """Page the engineer on call."""
    raise NotImplementedError
