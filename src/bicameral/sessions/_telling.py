"""What is told of a model call: who was asked, how much was read and written, and never a word of it."""

from __future__ import annotations

from bicameral.models import ModelRequest
from bicameral.telemetry import Fact, Span, count, measure, span

from ._ledger import ModelCall, Role


def asking(role: Role, name: str, request: ModelRequest) -> Span:
    """The span of a model call, by the conventions for generative models."""
    facts: dict[str, Fact] = {
        "gen_ai.operation.name": "chat",
        **_model(name),
        "gen_ai.request.max_tokens": request.max_tokens,
        "gen_ai.request.temperature": request.temperature,
        "gen_ai.request.seed": request.seed,
        "gen_ai.output.type": "json" if request.json_schema is not None else "text",
        "bicameral.role": role,
        "bicameral.chamber": _chamber(role),
    }
    return span("chat", str(facts["gen_ai.request.model"]), facts, kind="client")


def heard(told: Span, call: ModelCall) -> None:
    """What is known when the reply has come."""
    usage = call.reply.usage
    if told.on:
        told.tell(
            {
                "gen_ai.response.finish_reasons": (call.reply.finish,),
                "gen_ai.usage.input_tokens": usage.prompt,
                "gen_ai.usage.output_tokens": usage.output,
                "gen_ai.usage.cache_read.input_tokens": usage.cached,
            }
        )
    about: dict[str, Fact] = {"gen_ai.operation.name": "chat", **_model(call.model)}
    about["bicameral.chamber"] = _chamber(call.role)
    measure("gen_ai.client.token.usage", usage.prompt, about | {"gen_ai.token.type": "input"})
    measure("gen_ai.client.token.usage", usage.output, about | {"gen_ai.token.type": "output"})
    measure("gen_ai.client.operation.duration", call.seconds, about)
    whose = "executor" if call.role == "quarantined" else "reasoner"
    count(f"bicameral.{whose}_tokens", usage.prompt + usage.output, about)


def _chamber(role: Role) -> str:
    return "quarantined" if role == "quarantined" else "privileged"


def _model(name: str) -> dict[str, Fact]:
    """A provider's name is `local:0.5b@f7e2a9c1`: who serves it, and which model."""
    provider, colon, model = name.partition(":")
    return {"gen_ai.provider.name": provider or "unknown", "gen_ai.request.model": model if colon else name}
