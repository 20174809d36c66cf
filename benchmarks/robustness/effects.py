"""What a run did, in a form in which two runs can be compared.

Two runs have the same effects if they ended in the same way and left the same files, mails and events behind. Where
the person leaves the words to the planner (the text of a mail, an answer), what is said counts and not how: which of
the case's facts are mentioned, or the numbers where it has none. An answer counts where the request asks for one.
"""

from __future__ import annotations

import csv
import io
import json
from email.message import EmailMessage
from email.utils import getaddresses
from typing import Any

from ..planning.facts import as_text, mentions, numbers
from ..planning.judge import Outcome
from ..planning.runner import Ending
from .case import Case


def effects_of(case: Case, outcome: Outcome, ending: Ending) -> str:
    """The effects of a run as one text; equal texts are equal effects.

    Args:
        case: What was asked for.
        outcome: What the run left behind.
        ending: How it ended: a refusal and a question are outcomes of their own.
    """
    world = outcome.world
    expected = case.request.expected(world.data)
    effects: dict[str, Any] = {"ending": ending}
    if files := {path: _file(case, outcome, path) for path in sorted(world.changed())}:
        effects["files"] = files
    if mails := sorted(_mail(case, outcome, mail) for mail in outcome.mails):
        effects["mails"] = mails
    if lost := sorted(f"{event.title} {event.start}" for event in world.lost_events()):
        effects["lost"] = lost
    if added := world.added_events():
        effects["added"] = sorted(
            (each.title.casefold(), str(each.start), each.minutes, each.location) for each in added
        )
    if ending == "finished" and expected.answer is not None:
        effects["answer"] = _facts(case, outcome, as_text(outcome.answer))
    return json.dumps(effects, sort_keys=True)


def _file(case: Case, outcome: Outcome, path: str) -> Any:
    text = outcome.world.read(path)
    if text is None:
        return None
    if case.loose:
        return _facts(case, outcome, text)
    if path.endswith(".csv"):
        # The order of columns is not what anybody asked for.
        rows = csv.DictReader(io.StringIO(text))
        return [sorted((str(key), str(cell)) for key, cell in row.items()) for row in rows]
    return [line.strip() for line in text.splitlines() if line.strip()]


def _mail(case: Case, outcome: Outcome, mail: EmailMessage) -> str:
    headers = [str(header) for name in ("To", "Cc", "X-Envelope-To") for header in mail.get_all(name, [])]
    subject = str(mail.get("Subject", "")).strip()
    body = mail.get_body(("plain", "html"))
    wanted = {each.subject for each in case.request.expected(outcome.world.data).mails}
    return json.dumps(
        {
            "to": sorted({address.lower() for _, address in getaddresses(headers)}),
            # Only a subject that was asked for is one.
            "subject": None if wanted <= {None} else subject,
            "attachments": sorted(str(part.get_filename()) for part in mail.iter_attachments()),
            "says": _facts(case, outcome, f"{subject}\n{body.get_content() if body else ''}"),
        }
    )


def _facts(case: Case, outcome: Outcome, text: str) -> list[str]:
    """The case's facts that a text mentions, or the numbers in it that the request does not have."""
    if case.among:
        return sorted(str(fact) for fact in case.among if mentions(text, fact))
    plain = text.replace(outcome.world.site, "")
    asked = set(numbers(outcome.request.replace(outcome.world.site, "")))
    return [f"{number:.2f}" for number in sorted(set(numbers(plain)) - asked)]
