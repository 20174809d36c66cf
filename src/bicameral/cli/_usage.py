"""What a run cost and what was noticed in it, in a quiet line or two."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ._costs import say_degraded
from ._output import Output

if TYPE_CHECKING:
    from bicameral.runs import Event, RunAlert, RunOutcome
    from bicameral.sessions import Spent

_MOST = 5
_WORTH_TELLING = 0.2
"""What weighs less is in the record, and told to programs only."""


def say_usage(out: Output, outcome: RunOutcome, planning: Spent | None = None) -> None:
    """Alerts first, then what was not filled, then what the models read and wrote."""
    _say_alerts(out, outcome.alerts)
    say_degraded(out, outcome.usage.degraded)
    if outcome.usage.rejected or outcome.usage.not_found:
        out.say(_unfilled_text(outcome.usage.rejected, outcome.usage.not_found), style="dim")
    spent = outcome.usage.spent if planning is None else planning + outcome.usage.spent
    if text := tokens_text(spent.to_json()):
        out.say(text, style="dim")


def tokens_text(spent: Mapping[str, Any]) -> str:
    """`tokens: reasoner 1,204 in 3 calls, executor 310 in 1 call`; nothing where no model was asked."""
    told: list[str] = []
    for whose in ("reasoner", "executor"):
        tokens, calls = int(spent.get(f"{whose}_tokens", 0)), int(spent.get(f"{whose}_calls", 0))
        if calls:
            told.append(f"{whose} {tokens:,} in {calls:,} call{'' if calls == 1 else 's'}")
    return f"tokens: {', '.join(told)}" if told else ""


def usage_json(outcome: RunOutcome) -> dict[str, Any]:
    """The same for a program, and every alert."""
    return {"usage": outcome.usage.to_json(), "alerts": [alert.to_json() for alert in outcome.alerts]}


def recorded_json(events: Iterable[Event]) -> dict[str, Any]:
    """What the journal holds of that; a run from before it was counted has no usage."""
    usage: dict[str, Any] | None = None
    alerts: list[Any] = []
    for event in events:
        alerts += event.body.get("alerts", []) if event.kind.startswith("step-") else []
        usage = event.body.get("usage", usage) if event.kind.startswith("run-") else usage
    return {"usage": usage, "alerts": alerts}


def recorded_text(facts: Mapping[str, Any]) -> str:
    """Two lines at most on a recorded run."""
    usage: Mapping[str, Any] = facts["usage"] or {}
    alerts: list[dict[str, Any]] = facts["alerts"]
    lines = [f"{_many(len(alerts), 'alert')}: {_recorded_alerts(alerts)}"] if alerts else []
    lines += [f"degraded: {said}" for said in usage.get("degraded", [])]
    if usage.get("rejected") or usage.get("not_found"):
        lines.append(_unfilled_text(usage.get("rejected", {}), usage.get("not_found", 0)))
    if text := tokens_text(usage):
        lines.append(text)
    return "\n".join(lines)


def _say_alerts(out: Output, alerts: tuple[RunAlert, ...]) -> None:
    telling = [alert for alert in alerts if alert.weight >= _WORTH_TELLING]
    if not telling:
        return
    texts = list(dict.fromkeys(str(alert) for alert in sorted(telling, key=lambda alert: -alert.weight)))
    more = f"; and {len(texts) - _MOST} more" if len(texts) > _MOST else ""
    out.say(f"{_many(len(telling), 'alert')}: {'; '.join(texts[:_MOST])}{more}", style="yellow")


def _recorded_alerts(alerts: list[dict[str, Any]]) -> str:
    texts = list(dict.fromkeys(f"{alert.get('note', '')} (step {alert.get('step', '')})" for alert in alerts))
    return "; ".join(texts[:_MOST]) + (f"; and {len(texts) - _MOST} more" if len(texts) > _MOST else "")


def _unfilled_text(rejected: Mapping[Any, int], not_found: int) -> str:
    kinds = ", ".join(f"{kind} × {times}" if times > 1 else str(kind) for kind, times in rejected.items())
    told = [f"{_many(sum(rejected.values()), 'reply', 'replies')} rejected ({kinds})"] if rejected else []
    return "; ".join([*told, *([f"{_many(not_found, 'blank')} not in the text"] if not_found else [])])


def _many(number: int, one: str, several: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else several or one + 's'}"
