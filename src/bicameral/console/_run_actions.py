"""What a person does with a run: stop it, replay it, compare it with another one, take its changes back."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from starlette.responses import Response

from bicameral.console._pages import PageCall, page_route
from bicameral.console._records import (
    FoundRun,
    damaged_record_error,
    find_run,
    find_run_of,
    load_progress,
    own_words_for_damage,
)
from bicameral.console._run_comparison import compare_runs
from bicameral.errors import DurableError, ServerError
from bicameral.runs import Replayed, Undo, apply_undo, plan_undo
from bicameral.server.surface import HttpError, get_own_run

if TYPE_CHECKING:
    from bicameral.tools import Folders


async def cancel_run(call: PageCall) -> Response:
    """Stop a run: what has begun is completed, and nothing else is begun."""
    run = call.path("run")
    await get_own_run(call.context, run, call.token.owner)
    view = await call.context.runs.cancel(run, call.token.owner)
    said = "It is stopped." if view.has_ended else "It ends once what has begun is completed."
    return call.redirect(f"/runs/{run}", said)


async def replay_run(call: PageCall) -> Response:
    """Run a recorded run again from its record, without any effect, and tell whether everything came out the same."""
    from bicameral.patterns.kernel import replay_run as replay

    found, agent = await find_run(call), call.context.agent
    _require_ended(found)
    await found.events()

    def replay_here() -> Replayed:
        # A loop of its own: everything that a replay awaits is recorded, and it computes as long as the run did.
        return asyncio.run(replay(found.journal, found.part, agent.registry, agent.policy))

    with call.context.plans.slot(), own_words_for_damage():
        replayed = await asyncio.to_thread(replay_here)
    return call.page("run_replay.html", found=found, replayed=replayed)


async def compare_page(call: PageCall) -> Response:
    """A run beside another one."""
    found = await find_run(call)
    left = await load_progress(call, found)
    # The other run is looked up as the first one: nobody compares with what they may not see.
    other = await find_run_of(call, call.query("with").strip())
    right = await load_progress(call, other)
    if left[0].damage or right[0].damage:
        # What is not there any more would count as what was not done.
        raise damaged_record_error()
    # Long plans that have little in common keep the machine busy, like a plan that is written.
    with call.context.plans.slot():
        comparison = await asyncio.to_thread(compare_runs, left, right, call.context.agent.registry)
    return call.page("run_comparison.html", found=found, other=other, comparison=comparison)


async def undo_page(call: PageCall) -> Response:
    """What taking a run back would do; nothing is changed."""
    found = await find_run(call)
    _require_ended(found)
    await found.events()
    with own_words_for_damage():
        undo = await asyncio.to_thread(plan_undo, found.journal, found.run, _folders(call), call.context.agent.registry)
    return call.page("run_undo.html", found=found, undo=undo, shown=undo_hash(undo))


async def undo_run(call: PageCall) -> Response:
    """Take back what a run changed, exactly as it was shown; all of it or nothing."""
    found = await find_run(call)
    _require_ended(found)
    await found.events()
    folders, registry = _folders(call), call.context.agent.registry

    def take_back() -> tuple[str, ...]:
        undo = plan_undo(found.journal, found.run, folders, registry)
        undo.require()
        if call.field("shown") != undo_hash(undo):
            error = ServerError(
                "console.other-undo",
                "what would be taken back is not what was shown",
                fix="Look at it again, and confirm it there.",
            )
            raise HttpError(409, error)
        return tuple(apply_undo(found.journal, undo, folders))

    with own_words_for_damage():
        left = await asyncio.to_thread(take_back)
    return call.redirect(f"/runs/{found.run}", f"Its changes are taken back.{folders_left(left)}")


def folders_left(left: Sequence[str]) -> str:
    """How many folders stay, in words. Without their names, which others may have chosen: a notice is ours alone."""
    if not left:
        return ""
    return (
        " One folder is not empty, and stays." if len(left) == 1 else f" {len(left)} folders are not empty, and stay."
    )


def undo_hash(undo: Undo) -> str:
    """A hash over everything that is shown of taking a run back."""
    return hashlib.sha256(json.dumps(undo.to_json(), sort_keys=True, default=str).encode()).hexdigest()


def _require_ended(found: FoundRun) -> None:
    """A worker may still change what a run that has not ended does."""
    if found.view is not None and not found.view.has_ended:
        raise DurableError("durable.not-ended", f"the run {found.run} is {found.view.state}", fix="Let it end first.")


def _folders(call: PageCall) -> Folders:
    """The folders in which anything may be put back: those that tools may write to now."""
    from bicameral.config import surroundings_of

    return surroundings_of(call.context.config).folders


run_action_routes = [
    page_route("/runs/{run}/cancel", cancel_run, "run", method="POST"),
    page_route("/runs/{run}/replay", replay_run, "see", "run", every=True, method="POST"),
    page_route("/runs/{run}/diff", compare_page, "see"),
    page_route("/runs/{run}/undo", undo_page, "see", "run", every=True),
    page_route("/runs/{run}/undo", undo_run, "see", "run", every=True, method="POST"),
]
