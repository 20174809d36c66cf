"""A model whose replies are written beforehand: for tests, examples and documentation."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import TypeAlias

from bicameral.errors import ModelError
from bicameral.models._protocol import Chamber, ModelReply, ModelRequest, Usage
from bicameral.models._request import check_request

Reply: TypeAlias = str | Callable[[ModelRequest], str]
Rule: TypeAlias = tuple[str | Callable[[ModelRequest], bool], Reply]
Script: TypeAlias = Sequence[str] | Sequence[Rule] | Callable[[ModelRequest], str]

_CHARACTERS_PER_TOKEN = 4


class ScriptedProvider:
    """Replies from a list (each once, in order), from rules (the first that fits), or from a function.

    A rule is a text to look for in the prompt, or a predicate, and the reply. A reply that begins with the
    request's prefill loses it, a reply ends before the first stop string and at `max_tokens`. Tokens are counted
    as a quarter of the characters, rounded down; none are ever cached. `requests` is what was asked.

    Example:
        >>> model = ScriptedProvider([("weather", "Sunny."), ("", "I do not know.")])
        >>> (await model.generate(ModelRequest((Message("user", "What is the weather?"),)))).text
        'Sunny.'
    """

    def __init__(
        self, script: Script, *, name: str = "scripted", grammars: bool = True, chamber: Chamber | None = None
    ) -> None:
        self._script: Callable[[ModelRequest], str] | tuple[str | Rule, ...] = (
            script if callable(script) else tuple(script)
        )
        self._name = name
        self._grammars = grammars
        self._chamber: Chamber | None = chamber
        self._used = 0
        self.requests: list[ModelRequest] = []

    @property
    def name(self) -> str:
        return self._name

    @property
    def grammars(self) -> bool:
        return self._grammars

    @property
    def chamber(self) -> Chamber | None:
        return self._chamber

    @property
    def adapters(self) -> Mapping[str, str]:
        return {}

    async def generate(self, request: ModelRequest) -> ModelReply:
        """The scripted reply, or `models.script-exhausted` if there is none for this request."""
        check_request(request)
        self.requests.append(request)
        return _reply(request, self._written(request))

    async def stream(self, request: ModelRequest) -> AsyncGenerator[str, None]:
        """The scripted reply, a line at a time."""
        for line in (await self.generate(request)).text.splitlines(keepends=True):
            yield line

    async def aclose(self) -> None:
        """Nothing to free; what was asked stays readable."""

    def _written(self, request: ModelRequest) -> str:
        if callable(self._script):
            return self._script(request)
        for entry in self._script[self._used :]:
            match entry:
                case str():
                    self._used += 1
                    return entry
                case (wanted, reply) if _fits(wanted, request):
                    return reply if isinstance(reply, str) else reply(request)
                case _:
                    continue
        raise _exhausted(self._name, request, len(self.requests))


def _fits(wanted: str | Callable[[ModelRequest], bool], request: ModelRequest) -> bool:
    return wanted in _prompt(request) if isinstance(wanted, str) else wanted(request)


def _prompt(request: ModelRequest) -> str:
    return "\n".join([message.text for message in request.messages] + [request.prefill])


def _reply(request: ModelRequest, written: str) -> ModelReply:
    text = written.removeprefix(request.prefill)
    ends = [at for stop in request.stop if (at := text.find(stop)) >= 0]
    text = text[: min(ends, default=len(text))]
    most = request.max_tokens * _CHARACTERS_PER_TOKEN
    return ModelReply(
        text=text[:most],
        finish="length" if len(text) > most else "stop",
        usage=Usage(
            prompt=len(_prompt(request)) // _CHARACTERS_PER_TOKEN,
            output=len(text[:most]) // _CHARACTERS_PER_TOKEN,
        ),
    )


def _exhausted(name: str, request: ModelRequest, count: int) -> ModelError:
    asked = request.messages[-1].text if request.messages else request.prefill
    shown = asked if len(asked) <= 200 else f"{asked[:200]}…"
    return ModelError(
        "models.script-exhausted",
        f"{name} has no reply for request {count}, which ends in {shown!r}",
        fix="Add a reply or a rule to the script.",
    )
