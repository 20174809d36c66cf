"""Writing and trying: a request with its plan as it is written, the plan to be edited and checked, and its run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError
from starlette.responses import Response

from bicameral.agent import Planned
from bicameral.console._drafts import Draft, Drafts
from bicameral.console._pages import PageCall, page_response, page_route, render
from bicameral.console._plan_check import PlanView, view_of_fault, view_of_planned, view_of_text
from bicameral.console._records import find_run, load_progress, run_address
from bicameral.console._run_stream import is_signed_in, page_part, stream_message, stream_response
from bicameral.durable import Submission
from bicameral.errors import BicameralError, IntentError, PlanError, ServerError
from bicameral.labels import user_input
from bicameral.models import ModelProgress, ModelStages, watch_model
from bicameral.plans import drop_bindings, print_plan
from bicameral.runs import ending_of
from bicameral.server.surface import (
    MAX_PLAN_CHARS,
    HttpError,
    SubmitPlan,
    SubmitRequest,
    build_submission,
    check_plan_text,
    public_error,
    submit_run,
)

DRAW_SECONDS = 0.3
"""How often what a model does is drawn anew."""


async def ask_page(call: PageCall) -> Response:
    """The form for a request; with a run, its plan to be edited."""
    plan = await _plan_of_run(call) if call.query("run") else ""
    facts: dict[str, Any] = {"plan": plan, "view": None, "draft": "", "error": None, "ending": ""}
    return call.page("ask.html", request=call.query("request")[:2_000], **facts)


async def _plan_of_run(call: PageCall) -> str:
    """The plan of a run as text, with its words as they were before they were bound."""
    call.request.path_params["run"] = call.query("run")
    progress, _ = await load_progress(call, await find_run(call))
    if progress.plan is None:
        return ""
    return print_plan(drop_bindings(progress.plan), call.context.agent.registry)


@dataclass(slots=True)
class _Writing:
    """What is shown of a plan while it is written."""

    statements: list[str] = field(default_factory=list[str])
    stages: ModelStages = field(default_factory=ModelStages)

    def add_statement(self, text: str) -> None:
        self.stages.lines += 1
        self.statements.append(text)

    def note(self, progress: ModelProgress) -> None:
        self.stages.update(progress)

    @property
    def html(self) -> str:
        facts = {"statements": self.statements, "stage": self.stages.text, "hint": self.stages.hint}
        return page_part("ask-result", render("ask_writing.html", **facts))


async def write_plan(call: PageCall) -> Response:
    """Write the plan for a request: as a stream where the page can show one, and else as a whole."""
    request = _request_field(call)
    writing = _Writing()
    if not call.is_partial:
        facts = await _plan_facts(call, asyncio.ensure_future(_write(call, request, writing)))
        return call.page("ask.html", request=request, **facts)
    return stream_response(call, _write_stream(call, request, writing))


async def _write(call: PageCall, request: str, writing: _Writing) -> Planned:
    with call.context.plans.slot(), watch_model(writing.note):
        return await call.context.agent.plan(
            user_input(request),
            deterministic=call.field("deterministic") == "1",
            fresh=call.field("fresh") == "1",
            watch=writing.add_statement,
        )


async def _write_stream(call: PageCall, request: str, writing: _Writing) -> AsyncGenerator[bytes]:
    """What has been written so far, whenever it has changed; at the end the plan with its check."""
    task = asyncio.create_task(_write(call, request, writing))
    drawn = ""
    try:
        while not task.done():
            if (html := writing.html) != drawn:
                drawn = html
                yield stream_message(html)
            else:
                yield b": still here\n\n"
            await asyncio.wait({task}, timeout=DRAW_SECONDS)
            if call.context.stopping.is_set() or not is_signed_in(call):
                return
        facts = await _plan_facts(call, task)
        shared = {"token": call.token, "session": call.session, "request": request}
        yield stream_message(page_part("ask-result", render("ask_result.html", **shared, **facts)))
    finally:
        # The person has gone: nobody would see the plan.
        task.cancel()


async def _plan_facts(call: PageCall, writing: asyncio.Future[Planned]) -> dict[str, Any]:
    """What is shown of a plan that was written, or of why there is none."""
    try:
        planned = await writing
    except Exception as error:
        public = public_error(error)
        return {"plan": "", "view": None, "draft": "", "error": public.error, "ending": _ending(error)}
    draft = _drafts(call).add(call.session.key, planned)
    view = view_of_planned(call.context.agent, planned)
    return {"plan": planned.source, "view": view, "draft": draft.id, "error": None, "ending": ""}


def _ending(error: Exception) -> str:
    """`asked` if something must be said first, `refused` if no plan serves the request; else empty."""
    return ending_of(error) if isinstance(error, IntentError | PlanError) else ""


async def check_plan(call: PageCall) -> Response:
    """The plan as it is edited, with what its check finds."""
    text = _plan_field(call)
    view, draft, error = await _check(call, text)
    facts: dict[str, Any] = {
        "view": view,
        "draft": draft.id if draft is not None else "",
        "error": error,
        "ending": "",
        "plan": text,
    }
    if call.is_partial:
        return call.page("ask_checked.html", **facts)
    return call.page("ask.html", request=call.field("request"), **facts)


async def _check(call: PageCall, text: str) -> tuple[PlanView | None, Draft | None, BicameralError | None]:
    """The view of a text, and the draft that it still is; or why it is no plan."""
    agent = call.context.agent
    draft = _drafts(call).find(call.session.key, call.field("draft"))
    if draft is not None and draft.is_unchanged(text):
        return view_of_planned(agent, draft.planned), draft, None
    if not text.strip():
        return None, None, PlanError("plan.syntax", "there is no plan yet", fix="Write one, or a request above.")
    try:
        with call.context.plans.slot():
            found = await check_plan_text(agent, text)
    except BicameralError as error:
        return view_of_fault(text, error), None, error
    return view_of_text(agent, text, found), None, None


async def preview_plan(call: PageCall) -> Response:
    """What a plan would change in files; nothing is changed."""
    text, agent = _plan_field(call), call.context.agent
    try:
        with call.context.plans.slot():
            found = await check_plan_text(agent, text)
            calls = await agent.preview(found.checked) if found.checked.ok else ()
    except BicameralError as error:
        return page_response("ask_preview.html", calls=(), error=error, ok=False)
    return page_response("ask_preview.html", calls=calls, error=None, ok=found.checked.ok)


async def run_plan(call: PageCall) -> Response:
    """Submit what is on the page: the plan of a model as it was shown, a plan of the person's, or the request."""
    context, user = call.context, call.token.user
    try:
        match call.field("what"):
            case "request":
                wanted = SubmitRequest(request=_request_field(call), deterministic=call.field("deterministic") == "1")
                submission = await build_submission(wanted, context, user)
            case "draft":
                submission = Submission(planned=_own_draft(call).planned, user=user)
            case _:
                submission = await build_submission(SubmitPlan(plan=_plan_field(call)), context, user)
    except ValidationError as error:
        raise _bad_field_error(error) from None
    except HttpError as error:
        if error.status != 409:
            raise
        return await _with_findings(call, error.error)
    view = await submit_run(context, submission)
    return call.redirect(run_address(view.run), "Submitted.")


async def _with_findings(call: PageCall, error: BicameralError) -> Response:
    """The page again, with the plan that does not pass and what is wrong with it: nothing that was typed is lost."""
    text = _plan_field(call)
    view, _, fault = await _check(call, text)
    # What the check finds stands at its lines; anything else that was in the way is said above.
    shown = fault or (error if view is None or view.ok else None)
    facts: dict[str, Any] = {"plan": text, "view": view, "draft": "", "error": shown, "ending": ""}
    return call.page("ask.html", status=409, request=call.field("request"), **facts)


def _own_draft(call: PageCall) -> Draft:
    """The draft of the form, if its text was not changed."""
    draft = _drafts(call).find(call.session.key, call.field("draft"))
    if draft is None or not draft.is_unchanged(_plan_field(call)):
        error = ServerError(
            "console.draft-gone",
            "the plan as it was written for the request is not here any more, or its text was changed",
            fix="Write it again, or run the text as your own plan: then its constants count as your words.",
        )
        raise HttpError(409, error)
    return draft


def _request_field(call: PageCall) -> str:
    request = call.field("request").strip()
    try:
        return SubmitRequest(request=request).request
    except ValidationError as error:
        raise _bad_field_error(error) from None


def _plan_field(call: PageCall) -> str:
    text = call.field("plan")
    if len(text) > MAX_PLAN_CHARS:
        message, expected = "the plan is too long", f"at most {MAX_PLAN_CHARS:,} characters"
        raise HttpError(422, ServerError("server.bad-request", message, expected=expected))
    return text


def _bad_field_error(error: ValidationError) -> HttpError:
    first = error.errors()[0]
    empty = first["type"] in ("string_too_short", "string_pattern_mismatch")
    message = "a request is needed, of characters that a person can type" if empty else "this is too long"
    return HttpError(422, ServerError("server.bad-request", message))


def _drafts(call: PageCall) -> Drafts:
    return call.request.app.state.drafts


ask_routes = [
    page_route("/ask", ask_page, "run"),
    page_route("/ask/plan", write_plan, "run", method="POST"),
    page_route("/ask/check", check_plan, "run", method="POST"),
    page_route("/ask/preview", preview_plan, "run", method="POST"),
    page_route("/ask/run", run_plan, "run", method="POST"),
]
