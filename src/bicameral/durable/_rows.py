"""Rows of the tables as what the outside sees, and what the outside gives as rows."""

from __future__ import annotations

import json
from typing import Any, cast

import sqlalchemy as sa

from bicameral.errors import DurableError

from ._views import FIRST, LAST, Approval, Kind, RunView, Standing, State, Submission, moment

MAX_REQUEST = 100_000
MAX_PLAN = 2_000_000
MAX_NAME = 200
MAX_KEPT = 32_000
"""Characters of an answer that are kept beside the run; a longer one is read from the journal."""
MAX_REPLY = 100_000


def checked(submission: Submission) -> None:
    """Refuse what cannot be run, before it is kept."""
    if (submission.request is None) == (submission.plan is None):
        raise _bad("a run is submitted with a request or with a plan, and not with both")
    if submission.request is not None and not submission.request.strip():
        raise _bad("the request is empty")
    if submission.request is not None and len(submission.request) > MAX_REQUEST:
        raise _bad(f"the request is longer than {MAX_REQUEST:,} characters")
    if not FIRST <= submission.priority <= LAST:
        raise _bad(f"the priority {submission.priority} is none", expected=f"{FIRST} (first) to {LAST} (last)")
    for name, text in (("user", submission.user), ("key", submission.key)):
        if text is not None and not (0 < len(text) <= MAX_NAME and text.isprintable()):
            raise _bad(f"the {name} is no name", expected=f"1 to {MAX_NAME} printable characters")
    if submission.not_before is not None and submission.not_before.tzinfo is None:
        raise _bad("not_before has no time zone", fix="Give one, such as datetime.now(UTC).")
    within = submission.answer_within
    if within is not None and not 0 < within < 10 * 365 * 86_400:
        raise _bad(f"answer_within is {within}", expected="seconds, more than 0")


def _bad(message: str, *, expected: str | None = None, fix: str | None = None) -> DurableError:
    return DurableError("durable.bad-submission", message, expected=expected, fix=fix)


def submission_json(submission: Submission) -> str:
    """What was submitted, for the attempts to come."""
    from dataclasses import asdict

    caps = None if submission.caps is None else asdict(submission.caps)
    plan = None if submission.plan is None else submission.plan.to_json()
    text = json.dumps(
        {
            "request": submission.request,
            "plan": plan,
            "deterministic": submission.deterministic,
            "answer_within": submission.answer_within,
            "caps": caps,
        },
        separators=(",", ":"),
    )
    if len(text) > MAX_PLAN:
        raise _bad(f"the plan is longer than {MAX_PLAN:,} characters")
    return text


def run_view(row: sa.RowMapping, waits_for: tuple[str, ...] = ()) -> RunView:
    """A run as it stands."""
    outcome = cast("dict[str, Any]", json.loads(row["outcome"])) if row["outcome"] else {}
    return RunView(
        row["run"],
        row["user"],
        row["request"],
        cast("State", row["state"]),
        moment(row["created"]),
        moment(row["updated"]),
        row["attempt"],
        row["worker"],
        row["priority"],
        None if row["not_before"] is None else moment(row["not_before"]),
        row["why"],
        outcome.get("answer"),
        tuple(outcome.get("effects", ())),
        waits_for,
        outcome.get("error"),
        outcome.get("usage", {}),
        outcome.get("seconds"),
        row["key"],
    )


def answer_elsewhere(row: sa.RowMapping) -> bool:
    """Whether the answer was too long to be kept beside the run."""
    return bool(row["outcome"]) and bool(json.loads(row["outcome"]).get("long"))


def outcome_text(outcome: dict[str, Any]) -> str:
    """How a run ended, with an answer only if it is short."""
    text = json.dumps(outcome, separators=(",", ":"))
    if len(text) <= MAX_KEPT:
        return text
    rest = {key: value for key, value in outcome.items() if key != "answer"}
    text = json.dumps({**rest, "long": True}, separators=(",", ":"))
    if len(text) <= MAX_KEPT:
        return text
    return json.dumps({"effects": [], "long": True}, separators=(",", ":"))


def read_answer(answer: object) -> tuple[list[str], list[str]]:
    """The hashes of the calls that were approved, and of those whose offer for the rest of the run was taken."""
    if isinstance(answer, dict):
        told = cast("dict[str, Any]", answer)
        return [str(each) for each in told["approved"]], [str(each) for each in told["for_run"]]
    return [str(each) for each in cast("list[Any]", answer or [])], []


def written_answer(approved: list[str], for_run: list[str]) -> object:
    """An answer as it is kept; without grants as earlier versions read it."""
    return {"approved": approved, "for_run": for_run} if for_run else approved


def approval_view(row: sa.RowMapping) -> Approval:
    """A question as it stands: one whose time is over has expired, also before anybody swept it away."""
    question = cast("dict[str, Any]", json.loads(row["question"]))
    answer: Any = json.loads(row["answer"]) if row["answer"] else None
    calls = row["kind"] == "calls"
    yes, for_run = read_answer(answer) if calls else ([], [])
    state = "expired" if row["state"] == "open" and row["over"] else row["state"]
    return Approval(
        row["id"],
        row["run"],
        row["user"],
        cast("Kind", row["kind"]),
        tuple(question.get("calls", ())),
        question.get("question", ""),
        moment(row["asked"]),
        moment(row["expires"]),
        cast("Standing", state),
        row["by"],
        question.get("type"),
        question.get("step", ""),
        row["request"],
        None if row["answered"] is None else moment(row["answered"]),
        tuple(yes),
        tuple(for_run),
        None if calls else answer,
        bool(question.get("before", False)),
    )
