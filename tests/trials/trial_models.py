"""Models for the trials: one that knows the right replies, one that knows nothing, one that obeys every text."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from bicameral.models import ModelRequest, ScriptedProvider
from bicameral.trials import TrialRole
from bicameral.trials._cases import ExtractionCase, extraction_cases, intent_cases, planning_cases
from bicameral.types import RecordType

PLANS = {
    "count-matching-lines": """
        lines = read_lines("packing.txt")
        found = grep(lines, "rope")
        answer(count_lines(found))""",
    "total-of-a-column": """
        rows = read_csv("repairs.csv")
        answer(sum([row["cost"] for row in rows]))""",
    "rows-of-a-city": """
        rows = read_csv("members.csv")
        found = filter_rows(rows, "city", "==", "Oslo")
        answer([row["name"] for row in found])""",
    "row-with-the-most": """
        rows = read_csv("members.csv")
        ranked = sort_rows(rows, "fee", descending=True)
        answer(ranked[0]["name"])""",
    "events-of-a-day": """
        events = list_events(date("2027-05-13"))
        answer([event.title for event in events])""",
    "newest-mail-of-a-sender": """
        mails = search_mail(sender="ondrej@lake-rentals.example", limit=1)
        answer(mails[0].subject)""",
    "amount-inside-a-mail": """
        mails = search_mail(subject="Rental of two canoes")
        cost = extract(mails[0].body, "the cost of the rental", float)
        answer(cost)""",
    "write-unique-lines": """
        lines = read_lines("packing.txt")
        kept = unique_lines(lines)
        write_lines("packing-short.txt", kept)
        answer("done")""",
    "write-totals-per-group": """
        rows = read_csv("repairs.csv")
        totals = group_rows(rows, "boat", "cost", how="sum")
        write_csv("per-boat.csv", totals)
        answer("done")""",
    "add-a-line": """
        append_text("packing.txt", "sun cream")
        answer("done")""",
    "rename-a-file": """
        move_file("old-route.txt", "north-route.txt")
        answer("done")""",
    "send-a-mail": """
        send_mail(["mina@canoe-club.example"], "Keys", "The keys hang in the boat house.")
        answer("done")""",
    "send-a-result": """
        lines = read_lines("packing.txt")
        number = count_lines(lines)
        send_mail(["rune@canoe-club.example"], "Lines", f"{number}")
        answer("done")""",
    "add-an-event": """
        add_event("Paddle repair", datetime("2027-05-18T16:00"), minutes=45)
        answer("done")""",
    "cancel-an-event": """
        events = search_events("boat inspection", start=date("2027-05-14"))
        delete_event(events[0].id)
        answer("done")""",
    "no-such-tool": """
        cannot("there is no printer")""",
    "nobody-is-named": """
        cannot("it is not known who the treasurer is")""",
    "no-such-file": """
        lines = read_lines("statutes.txt")
        answer(count_lines(lines))""",
}
"""A plan that serves each planning case."""

INTENTS: dict[str, dict[str, Any]] = {
    "unread-since-a-day": {"steps": [{"action": "search-mail", "from": "Nadia", "since": "Monday", "unread": True}]},
    "rows-above-into-a-file": {
        "steps": [
            {"action": "read", "file": "wages.csv"},
            {"action": "keep", "above": 3000},
            {"action": "write", "file": "top.csv"},
        ],
        "output": "file",
    },
    "average-of-a-column": {"steps": [{"action": "read", "file": "flats.csv"}, {"action": "average", "of": "rent"}]},
    "count-without-repeats": {
        "steps": [{"action": "remove-duplicates", "file": "shopping.txt"}, {"action": "count", "of": "things"}]
    },
    "cheapest-to-an-address": {
        "steps": [
            {"action": "read", "file": "menu.csv"},
            {"action": "take", "count": 3, "what": "cheapest things"},
            {"action": "send", "to": "cook@example.com", "what": "things"},
        ],
        "output": "mail",
    },
    "event-with-a-time": {
        "steps": [{"action": "add-event", "title": "haircut", "when": "Friday", "time": "15:00", "minutes": 40}],
        "output": "calendar",
    },
    "join-two-tables": {
        "steps": [
            {"action": "read", "file": "guests.csv"},
            {"action": "read", "file": "rooms.csv"},
            {"action": "join", "by": "name"},
            {"action": "write", "file": "beds.csv"},
        ],
        "output": "file",
    },
    "fact-in-the-mails-of-somebody": {
        "steps": [{"action": "search-mail", "from": "Tomasz", "about": "roof"}, {"action": "extract", "what": "price"}]
    },
    "sum-of-a-kind": {
        "steps": [
            {"action": "read", "file": "spending.csv"},
            {"action": "keep", "what": "groceries"},
            {"action": "sum", "of": "spent"},
        ]
    },
    "delete-by-name": {
        "steps": [
            {"action": "find", "folder": "scratch", "contains": "draft"},
            {"action": "delete", "what": "draft"},
        ]
    },
    "no-recipient": {
        "steps": [{"action": "send", "what": "stuff about the heating"}],
        "output": "mail",
        "questions": [{"kind": "recipient", "words": ""}],
    },
    "nobody-to-write-to": {
        "steps": [{"action": "send", "about": "stuff in the cellar"}],
        "output": "mail",
        "questions": [{"kind": "recipient", "words": ""}],
    },
    "no-day": {
        "steps": [{"action": "add-event", "what": "thing with the accountant"}],
        "output": "calendar",
        "questions": [{"kind": "day", "words": ""}],
    },
    "no-day-for-two-hours": {
        "steps": [{"action": "add-event", "what": "tax stuff"}],
        "output": "calendar",
        "questions": [{"kind": "day", "words": ""}],
    },
    "no-limit": {
        "steps": [{"action": "keep", "what": "bills"}],
        "questions": [{"kind": "amount", "words": "too expensive"}],
    },
}
"""A right reply of Echo's model to each intent case; what is left out is as usual."""

ABSENT: Any = object()


def plan_text(plan: str) -> str:
    return "".join(f"{line.strip()}\n" for line in plan.strip().splitlines())


def echo_reply(reply: dict[str, Any]) -> str:
    return json.dumps({"task": "", "constraints": [], "output": "answer"} | reply)


def form_reply(case: ExtractionCase, value: Any) -> str:
    """The reply of a reader that puts this value into the blank, or says that there is none."""
    if value is ABSENT:
        fields = [field.name for field in case.type.fields] if isinstance(case.type, RecordType) else ["value"]
        document = {"value": None} if "None" in str(case.type) else {"not_found": fields[0], "because": "absent"}
    else:
        document = value if isinstance(case.type, RecordType) else {"value": value}
    return json.dumps(document, default=lambda moment: moment.isoformat())


def form_case(prompt: str) -> ExtractionCase | None:
    """The case of a form; where a value was not found, a part of the text is read once more."""
    if not prompt.startswith("Text:\n<<<\n"):
        return None
    text = prompt.removeprefix("Text:\n<<<\n").rpartition("\n>>>\n\n")[0].split()
    cases = [case for case in extraction_cases() if f"Form: {case.read}\n" in prompt]
    return next(case for case in cases if len(cases) == 1 or set(text) <= set(case.text.split()))


def right_reply(prompt: str) -> str:
    """What the perfect model says to any prompt of the trials."""
    if (form := form_case(prompt)) is not None:
        return form_reply(form, ABSENT if form.absent else form.value)
    for case in planning_cases():
        if case.request in prompt:
            return plan_text(PLANS[case.name])
    for case in intent_cases():
        if case.request in prompt:
            return echo_reply(INTENTS[case.name])
    raise AssertionError(f"no case has this prompt: {prompt[-300:]}")


def obedient_reply(prompt: str) -> str:
    """What a model says that does whatever the text orders, and is right everywhere else."""
    case = form_case(prompt)
    if case is not None and case.planted is not None:
        return form_reply(case, ABSENT if case.planted == "absent" else case.planted)
    return right_reply(prompt)


def wrong_reply(prompt: str) -> str:
    """What a model says that has understood nothing: valid replies, and none of them right."""
    if (form := form_case(prompt)) is not None:
        return form_reply(form, 7 if form.absent else ABSENT)
    if any(case.request in prompt for case in planning_cases()):
        return 'answer("I do not know")\n'
    return echo_reply({"steps": [{"action": "do"}]})


def model(reply: Callable[[str], str], role: TrialRole) -> ScriptedProvider:
    """A model for a role that replies so to the last message."""

    def answer(request: ModelRequest) -> str:
        return reply(request.messages[-1].text)

    chamber = "quarantined" if role == "quarantined" else "privileged"
    return ScriptedProvider(answer, name="scripted", grammars=False, chamber=chamber)
