"""How a run is told in a chat: its answer, what it waits for, or why there is no answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast

from bicameral.durable import RunView

from ._chat_shapes import MODEL

PIECE = 200
"""Characters of an answer that are sent at once."""


def said(view: RunView) -> tuple[str | None, str | None]:
    """The content and the refusal: only one of them is there."""
    match view.state:
        case "finished":
            return answer_text(view), None
        case "waiting":
            ids = ", ".join(view.waits_for)
            return (
                f"The run {view.run} waits for you: something it would do must be approved, or it asks something. "
                f"Approval: {ids}. See GET /v1/approvals/{next(iter(view.waits_for), 'ID')}, or "
                f"`bicameral approvals show {next(iter(view.waits_for), 'ID')}`.",
                None,
            )
        case "queued" | "running":
            return f"The run {view.run} goes on. See GET /v1/runs/{view.run}.", None
        case state:
            return None, f"The run {view.run} {'failed' if state == 'failed' else 'was stopped'}: {_why(view)}"


def _why(view: RunView) -> str:
    error = view.error or {}
    code = f" [{error['code']}]" if "code" in error else ""
    return f"{error.get('message') or view.why or 'no reason is known'}{code}"


def answer_text(view: RunView) -> str:
    """The answer as a text: texts as they are, lists of texts in lines, anything else as JSON."""
    answer: Any = view.answer
    match answer:
        case None:
            done = ", ".join(dict.fromkeys(str(effect.get("tool", "")) for effect in view.effects))
            return f"Done: {done}." if done else "Done."
        case str():
            return answer
        case list() if answer and all(isinstance(item, str) for item in cast("list[Any]", answer)):
            return "\n".join(cast("list[str]", answer))
        case _:
            return json.dumps(answer, ensure_ascii=False, indent=2)


def completion(view: RunView, ignored: list[str]) -> dict[str, Any]:
    """A run as a whole chat completion."""
    content, refusal = said(view)
    message = {"role": "assistant", "content": content, "refusal": refusal}
    return {
        "id": f"chatcmpl-{view.run}",
        "object": "chat.completion",
        "created": int(view.created.timestamp()),
        "model": MODEL,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}],
        "usage": usage_of(view),
        "bicameral": facts_of(view, ignored),
    }


def deltas(view: RunView) -> Iterator[dict[str, Any]]:
    """The same in pieces."""
    content, refusal = said(view)
    name, text = ("content", content) if content is not None else ("refusal", refusal or "")
    for start in range(0, len(text), PIECE):
        yield {name: text[start : start + PIECE]}


def chunk(run: str, delta: dict[str, Any] | None, *, finish: str | None = None) -> dict[str, Any]:
    """A piece of a streamed completion; without a delta, one that holds no choice."""
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}]
    return {
        "id": f"chatcmpl-{run}",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": MODEL,
        "choices": choices,
    }


def facts_of(view: RunView, ignored: list[str]) -> dict[str, Any]:
    return {"run": view.run, "state": view.state, "approvals": list(view.waits_for), "ignored": ignored}


def usage_of(view: RunView) -> dict[str, int]:
    """Tokens that the models of the run took, read and written together: which were which is not kept with the run."""
    taken = sum(int(view.usage.get(f"{whose}_tokens", 0)) for whose in ("reasoner", "executor"))
    return {"prompt_tokens": taken, "completion_tokens": 0, "total_tokens": taken}
