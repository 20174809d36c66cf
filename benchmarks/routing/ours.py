"""The fake model, and our router around it as a user would set it up."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping

from benchmarks.routing.timing import overhead
from bicameral.models import Chamber, Message, ModelReply, ModelRequest, Provider, Usage
from bicameral.routing import Alias, Aliases, Fallback, Retry, Router, RoutingRule, Selection

PROMPT = ("Answer in one word.", "What is the capital of Norway?")
ANSWER = "Oslo"
REQUEST = ModelRequest((Message("system", PROMPT[0]), Message("user", PROMPT[1])))

RULES = (
    RoutingRule.of("hint:deep", "powerful"),
    RoutingRule.of("has_tools and message_count > 20", "powerful"),
    RoutingRule.of("prompt_tokens > 4000", "powerful"),
    RoutingRule.of("has_schema and not has_tools", "main"),
    RoutingRule.of("no_tools", "fast"),
)


async def answer() -> str:
    """The model that everybody's router is put around."""
    return ANSWER


class FakeProvider:
    """The fake model as one of our providers."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def grammars(self) -> bool:
        return False

    @property
    def chamber(self) -> Chamber | None:
        return None

    @property
    def adapters(self) -> Mapping[str, str]:
        return {}

    async def generate(self, request: ModelRequest) -> ModelReply:
        del request
        return ModelReply(await answer(), usage=Usage(prompt=20, output=1), model=self.name)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[str, None]:
        yield (await self.generate(request)).text

    async def aclose(self) -> None:
        """Nothing to free."""


def router_over(providers: Mapping[str, Provider]) -> Router:
    """Rules, a phase map, a role map and a default over these aliases."""
    return Router(
        Aliases("privileged", [Alias.of(name, provider) for name, provider in providers.items()]),
        Selection("main", RULES, {"plan": "powerful", "act": "fast"}, {"reflecting": "main", "summarizing": "local"}),
    )


async def decision() -> float:
    """Seconds that the router adds to a call whose last rule decides."""
    providers = {name: FakeProvider(name) for name in ("main", "fast", "powerful", "local")}
    return await _added(router_over(providers), providers["fast"])


async def whole_stack() -> float:
    """The same with a retry, a fallback, a circuit breaker and the costs of every call behind each alias."""
    names = ("main", "fast", "powerful", "local")
    fakes = {name: FakeProvider(name) for name in (*names, "spare")}
    stacks = {name: Fallback([Retry(fakes[name]), Retry(fakes["spare"])]) for name in names}
    return await _added(router_over(stacks), fakes["fast"])


async def _added(router: Router, chosen: FakeProvider) -> float:
    reply = await router.generate(REQUEST)
    if reply.route is None or reply.route.alias != "fast" or reply.text != ANSWER:
        raise SystemExit(f"the router chose {reply.route} and not the fast model")
    return await overhead(lambda: router.generate(REQUEST), lambda: chosen.generate(REQUEST), calls=20, rounds=600)
