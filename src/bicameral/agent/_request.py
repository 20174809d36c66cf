"""What may be planned from: the user's own words, and nothing that a stranger had a hand in."""

from __future__ import annotations

from bicameral.errors import IntentError
from bicameral.labels import Labelled, opened, own_value


def own_request(request: str | Labelled[str]) -> str:
    """The words of a request for the privileged planner; refused if a stranger had a hand in them.

    A naked text is the user's, unless it is recognised as one that an outcome handed out (`labels.laundered`). A text
    with a label is taken at its label.
    """
    asked = own_value(request) if isinstance(request, str) else request
    if not asked.label.trusted:
        raise IntentError(
            "intent.needs-endorsement",
            "strangers had a hand in this request, and no plan is written from what they say",
            fix="Show it to a person with `agent.follow`, or let a strategy work on it: `agent.work`.",
        )
    return opened(asked)
