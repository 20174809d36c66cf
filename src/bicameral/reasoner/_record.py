"""The record of a reasoning in the journal: which runs are its rounds, and every line that crossed to the reasoner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bicameral.errors import JournalError
from bicameral.intent import Intent
from bicameral.labels import shade_to_json
from bicameral.runs import Journal

from ._bounds import Bounds
from ._outcome import Answered, Exhausted, GaveUp, Reasoned, Round

if TYPE_CHECKING:
    from bicameral.policy import Policy


@dataclass(frozen=True, slots=True)
class Record:
    """Writes down one reasoning under its id; without a journal nothing is kept."""

    id: str
    journal: Journal | None

    def started(self, intent: Intent, bounds: Bounds, policy: Policy) -> None:
        limits = {name: getattr(bounds, name) for name in ("rounds", "calls", "tokens", "money", "seconds")}
        facts = {"request": intent.request, "bounds": limits, "policy": policy.fingerprint, "mode": policy.mode}
        self._write("reason-started", facts)

    def round(self, this: Round, calls: Sequence[Mapping[str, Any]] = ()) -> None:
        """What the reasoner was told is written to the letter, with its label: that is all that has crossed."""
        facts: dict[str, Any] = {
            "round": this.number,
            "run": this.run,
            "told": list(this.told),
            "left": list(this.left),
            "read": shade_to_json(this.read),
        }
        facts |= {"planning_calls": [dict(call) for call in calls]} if calls else {}
        self._write("reason-round", facts | ({} if this.failure is None else {"failed": str(this.failure)}))

    def ended(self, reasoned: Reasoned) -> Reasoned:
        """The same, written down. A journal that fails now cannot take back what was done."""
        facts: dict[str, Any] = {"ok": reasoned.ok, "taken": reasoned.taken.to_json()}
        match reasoned:
            case Exhausted(bound=bound):
                facts["bound"] = bound
            case GaveUp(error=error):
                facts["error"] = error.to_json()
            case Answered():
                pass
        try:
            self._write("reason-ended", facts)
        except JournalError as error:
            return reasoned if isinstance(reasoned, GaveUp) else GaveUp(self.id, error, reasoned.rounds, reasoned.taken)
        return reasoned

    def _write(self, kind: Any, facts: dict[str, Any]) -> None:
        if self.journal is not None:
            self.journal.append(self.id, kind, "", facts)
