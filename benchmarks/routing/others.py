"""LiteLLM's `Router` and pydantic-ai's `FallbackModel` around the same fake model."""

from __future__ import annotations

import importlib
import logging
import os
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

from benchmarks.routing.ours import ANSWER, PROMPT, answer
from benchmarks.routing.timing import overhead

HOW_TO_INSTALL = "LiteLLM is not installed, so there is nothing to compare with: run `make routing`."


@dataclass(frozen=True, slots=True)
class LiteLlm:
    """Seconds that LiteLLM adds to a call: with its router, and without (`litellm.acompletion` alone)."""

    router: float
    alone: float
    version: str


async def litellm_overhead() -> LiteLlm | None:
    """None where it is not installed."""
    if find_spec("litellm") is None:
        return None
    litellm = _litellm()
    fake = _fake_handler(litellm)
    litellm.custom_provider_map = [{"provider": "fake", "custom_handler": fake}]
    litellm.utils.custom_llm_setup()
    router = litellm.Router(
        model_list=[
            {"model_name": name, "litellm_params": {"model": f"fake/{name}"}}
            for name in ("main", "fast", "powerful", "local")
        ],
        fallbacks=[{"main": ["local"]}, {"fast": ["local"]}, {"powerful": ["main"]}],
    )
    messages = [{"role": "system", "content": PROMPT[0]}, {"role": "user", "content": PROMPT[1]}]
    said = await router.acompletion(model="fast", messages=messages)
    if said.choices[0].message.content != ANSWER:
        raise SystemExit(f"LiteLLM answered {said!r}")

    async def bare() -> object:
        return await fake.acompletion(model_response=litellm.ModelResponse())

    async def routed() -> object:
        return await router.acompletion(model="fast", messages=messages)

    async def alone() -> object:
        return await litellm.acompletion(model="fake/fast", messages=messages)

    return LiteLlm(
        router=await overhead(routed, bare, calls=1, rounds=300),
        alone=await overhead(alone, bare, calls=1, rounds=300),
        version=version("litellm"),
    )


def _litellm() -> Any:
    """LiteLLM, kept from the network and from writing about itself."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    litellm: Any = importlib.import_module("litellm")
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logging.getLogger(name).setLevel(logging.ERROR)
    return litellm


def _fake_handler(litellm: Any) -> Any:
    async def acompletion(self: object, *args: object, model_response: Any, **rest: object) -> Any:
        del self, args, rest
        model_response.choices = [litellm.Choices(message=litellm.Message(content=await answer()))]
        return model_response

    return type("FakeHandler", (litellm.CustomLLM,), {"acompletion": acompletion})()


async def pydantic_ai_overhead() -> float | None:
    """Seconds that a `FallbackModel` adds to a call of its first model, or None where it is not installed."""
    if find_spec("pydantic_ai") is None:
        return None
    from pydantic_ai.messages import (
        ModelMessage,
        ModelRequest,
        ModelResponse,
        SystemPromptPart,
        TextPart,
        UserPromptPart,
    )
    from pydantic_ai.models import Model, ModelRequestParameters
    from pydantic_ai.models.fallback import FallbackModel

    class FakeModel(Model[Any]):
        @property
        def model_name(self) -> str:
            return "fake"

        @property
        def system(self) -> str:
            return "fake"

        async def request(self, *args: Any, **rest: Any) -> ModelResponse:
            del args, rest
            return ModelResponse(parts=[TextPart(await answer())])

    messages: list[ModelMessage] = [ModelRequest(parts=[SystemPromptPart(PROMPT[0]), UserPromptPart(PROMPT[1])])]
    first = FakeModel()
    chain = FallbackModel(first, FakeModel())
    asked = (messages, None, ModelRequestParameters())
    said = (await chain.request(*asked)).parts[0]
    if not isinstance(said, TextPart) or said.content != ANSWER:
        raise SystemExit(f"pydantic-ai answered {said!r}")
    return await overhead(lambda: chain.request(*asked), lambda: first.request(*asked), calls=20, rounds=300)
