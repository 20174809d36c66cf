"""Writing and trying: a request with its plan as it is written, the plan to be edited and checked, and its run."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Literal

from pydantic import ValidationError
from starlette.responses import Response

from bicameral.agent import CallPreview, Planned
from bicameral.console._drafts import Draft, Drafts
from bicameral.console._pages import PageCall, page_route, render
from bicameral.console._plan_check import PlanView, view_of_fault, view_of_planned, view_of_text
from bicameral.console._records import find_run_of, load_progress, redirect_to_run
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
    require_role,
    submit_run,
)

PlanOrigin = Literal["", "model", "other"]
"""Who wrote a plan, if the person did not: a model, or somebody else."""
DRAW_SECONDS = 0.3
"""How often what a model does is drawn anew."""


@dataclass(frozen=True, slots=True)
class AskForm:
    """What stands on the page.

    Args:
        request: The request.
        deterministic: Whether the first model is left out.
        plan: The text of the plan.
        origin: Who wrote that text, if somebody else than the person did.
        view: The plan as its check sees it.
        draft: The id of the plan of a model, as long as its text is unchanged.
        error: What is wrong.
        ending: `asked` if something must be said first, `refused` if no plan serves the request.
        calls: What the plan would change, once somebody asked for that.
    """

    request: str = ""
    deterministic: bool = False
    plan: str = ""
    origin: PlanOrigin = ""
    view: PlanView | None = None
    draft: str = ""
    error: BicameralError | None = None
    ending: str = ""
    calls: tuple[CallPreview, ...] | None = None

    @property
    def shown(self) -> str:
        """A hash over the text that was checked: what runs is what stood there with its check."""
        return text_hash(self.plan)


def text_hash(text: str) -> str:
    """A hash over the text of a plan."""
    return hashlib.sha256(text.strip().encode("utf-8", "surrogatepass")).hexdigest()


async def ask_page(call: PageCall) -> Response:
    """The form for a request; with a run, its plan to be edited."""
    return call.page("ask.html", form=await _form_of_run(call) if call.query("run") else AskForm())


async def _form_of_run(call: PageCall) -> AskForm:
    """The plan of a run to be edited, with its words as they were before they were bound.

    What a person runs here counts as their own words. A plan whose author had read something of the world may repeat it
    in its constants: such a plan is not taken over, since nobody sees where each of them came from.
    """
    require_role(call.token, "see")
    found = await find_run_of(call, call.query("run"), call.query("part"))
    progress, _ = await load_progress(call, found)
    if progress.plan is None:
        message = progress.plan_fault or "a pattern or a request in rounds has none of its own"
        raise HttpError(
            409, ServerError("console.no-plan", f"there is no plan to edit in the run {found.part}: {message}")
        )
    if progress.first.get("start") or found.part != found.run:
        error = ServerError(
            "console.plan-of-results",
            "who wrote this plan had read results of an earlier run: its constants may repeat untrusted text",
            fix="Write a request, or a plan of your own.",
        )
        raise HttpError(409, error)
    own = found.view is not None and found.view.user == call.token.user and not progress.first.get("intent")
    plan = print_plan(drop_bindings(progress.plan), call.context.agent.registry)
    return AskForm(plan=plan, origin="" if own else "model" if progress.first.get("intent") else "other")


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
        return call.page(
            "ask.html", form=await _written_form(call, asyncio.ensure_future(_write(call, request, writing)))
        )
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
        facts = {"token": call.token, "session": call.session, "form": await _written_form(call, task)}
        html = await asyncio.to_thread(render, "ask_result.html", **facts)
        yield stream_message(page_part("ask-result", html))
    finally:
        # The person has gone: nobody would see the plan.
        task.cancel()


async def _written_form(call: PageCall, writing: asyncio.Future[Planned]) -> AskForm:
    """What is shown of a plan that was written, or of why there is none."""
    typed = _typed_form(call)
    try:
        planned = await writing
    except Exception as error:
        return replace(typed, error=public_error(error).error, ending=_ending(error))
    draft = _drafts(call).add(call.session, planned)
    view = await asyncio.to_thread(view_of_planned, call.context.agent, planned)
    return replace(typed, plan=planned.source, view=view, draft=draft.id, origin="model")


def _typed_form(call: PageCall) -> AskForm:
    """The form as it was sent."""
    origin = call.field("origin")
    return AskForm(
        request=call.field("request"),
        deterministic=call.field("deterministic") == "1",
        origin=origin if origin in ("model", "other") else "",
    )


def _ending(error: Exception) -> str:
    """`asked` if something must be said first, `refused` if no plan serves the request; else empty."""
    return ending_of(error) if isinstance(error, IntentError | PlanError) else ""


async def check_plan(call: PageCall) -> Response:
    """The plan as it is edited, with what its check finds."""
    return call.page("ask_checked.html" if call.is_partial else "ask.html", form=await _checked_form(call))


async def _checked_form(call: PageCall) -> AskForm:
    """The form with the view of its plan, and the draft that it still is; or why it is no plan."""
    agent, text = call.context.agent, _plan_field(call)
    form = replace(_typed_form(call), plan=text)
    draft = _drafts(call).find(call.session.key, call.field("draft"))
    if draft is not None and draft.is_unchanged(text):
        view = await asyncio.to_thread(view_of_planned, agent, draft.planned)
        return replace(form, view=view, draft=draft.id, origin="model")
    if not text.strip():
        return replace(
            form, error=PlanError("plan.syntax", "there is no plan yet", fix="Write one, or a request above.")
        )
    try:
        # The view takes as long as the check: both count as planning, and neither keeps others waiting.
        with call.context.plans.slot():
            found = await check_plan_text(agent, text)
            view = await asyncio.to_thread(view_of_text, agent, text, found)
    except BicameralError as error:
        return replace(form, view=view_of_fault(text, error), error=error)
    return replace(form, view=view)


async def preview_plan(call: PageCall) -> Response:
    """What a plan would change in files; nothing is changed."""
    form, agent = await _checked_form(call), call.context.agent
    draft = _drafts(call).find(call.session.key, form.draft)
    try:
        if form.view is not None and form.view.ok:
            with call.context.plans.slot():
                # The plan that would run: that of the model, or the text as the person's own.
                own = None if draft is not None else await check_plan_text(agent, form.plan)
                checked = own.checked if own is not None else draft.planned.checked if draft is not None else None
                form = replace(form, calls=await agent.preview(checked) if checked is not None else ())
    except BicameralError as error:
        form = replace(form, error=error, calls=())
    return call.page("ask_preview.html" if call.is_partial else "ask.html", form=form)


async def run_plan(call: PageCall) -> Response:
    """Submit what is on the page: the plan of a model as it was shown, a plan of the person's, or the request."""
    context, user, sent = call.context, call.token.user, datetime.now(UTC)
    key = call.submission_key(
        call.field("what"), call.field("request"), call.field("plan"), call.field("deterministic")
    )
    try:
        match call.field("what"):
            case "request":
                wanted = SubmitRequest(request=_request_field(call), deterministic=call.field("deterministic") == "1")
                submission = await build_submission(wanted, context, user, key)
            case "draft":
                submission = Submission(planned=_own_draft(call).planned, user=user, key=key)
            case _:
                wanted = SubmitPlan(plan=_own_plan(call))
                submission = await build_submission(wanted, context, user, key)
    except ValidationError as error:
        raise _bad_field_error(error) from None
    except HttpError as error:
        if error.status != 409:
            raise
        return await _with_findings(call, error.error)
    return redirect_to_run(call, await submit_run(context, submission), sent, "/ask")


async def _with_findings(call: PageCall, error: BicameralError) -> Response:
    """The page again, with the plan that does not pass and what is wrong with it: nothing that was typed is lost."""
    form = await _checked_form(call)
    # What the check finds stands at its lines; anything else that was in the way is said above.
    shown = form.error or (error if form.view is None or form.view.ok else None)
    return call.page("ask.html", status=409, form=replace(form, error=shown))


def _own_plan(call: PageCall) -> str:
    """The text of a person's own plan, as it stood on the page with its check.

    The button belongs to the check that is shown: a text that was changed since is checked and shown first. And a text
    that somebody else wrote becomes the person's own only if they say so, since its constants are trusted then.
    """
    text = _plan_field(call)
    if call.field("shown") != text_hash(text):
        error = ServerError(
            "console.other-plan",
            "the plan was changed after its check",
            fix="Look at the check of the plan as it is now, and run it then.",
        )
        raise HttpError(409, error)
    if _typed_form(call).origin and call.field("own") != "1":
        error = ServerError(
            "console.not-own-plan",
            "you did not write this plan, and it counts as your own words if it runs",
            fix="Read it, and tick that its words are yours.",
        )
        raise HttpError(409, error)
    return text


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
    page_route("/ask/preview", preview_plan, "see", "run", every=True, method="POST"),
    page_route("/ask/run", run_plan, "run", method="POST"),
]
