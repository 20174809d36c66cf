"""Does a reply depend on what was evaluated before it? Each prompt is asked afresh and in other circumstances.

    python -m benchmarks.reuse [--prompts 40] [--variants 5] [--kv bf16|f16|f32] [--evaluation canonical|engine]

The circumstances: the same prompt again, after a longer and after a shorter one that begins like it, after an unrelated
one (a system message is then restored from its saved state), and as a continuation of its own reply. Half of the
prompts are asked with the planner's adapter, half are greedy and half sampled, two in five have a system message. Text
and log-probabilities are compared exactly. The last line is one JSON object; `different` are the replies that were not
the same.

With `--evaluation engine` llama.cpp reuses whatever it finds, as it does on its own: that shows whether its kernels on
this CPU depend on the size of a batch. On Neoverse-N1 those for F16 do, from 64 tokens on: `--kv f16 --block 64
--padding 60`. `--weights FILE` takes other weights, without an adapter.
"""

from __future__ import annotations

import argparse
import json
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast

from bicameral.models import (
    Adapter,
    Message,
    ModelReply,
    ModelRequest,
    ModelStore,
    _engine as servers,
    _evaluator as canonical,
    adapters_of,
    engine_threads,
    find_weights,
)
from bicameral.models._completion import Completion, completion_body
from bicameral.models._engine import Slots
from bicameral.models._evaluator import Evaluator, SlotPlacement, TokenizedPrompt
from bicameral.models._prefix_states import PrefixStates
from bicameral.models._prompts import PromptTokenizer, read_vocabulary

Kv = Literal["bf16", "f16", "f32"]
Evaluation = Literal["canonical", "engine"]

SYSTEMS = ("Be brief.", "Only facts.")
OTHER = "Write poems."
QUESTIONS = (
    "Name a colour.",
    "What is 7 times 8?",
    "Count the lines of a.txt",
    "Who wrote Faust?",
    "Translate 'house' into French.",
    "Send the report to Anna",
    "Is 91 a prime?",
    "List three fruits.",
    "def add(a, b):",
    "Why is the sky blue?",
    "Delete old.log",
    "What comes after Tuesday?",
    "Spell 'queue'.",
    "Sum the column amount",
    "SELECT * FROM",
    "How many legs has a spider?",
    "Write a haiku.",
    "Read notes.md aloud",
    "Give a synonym of big.",
    "Round 3.14159.",
    "What is the capital of Peru?",
    "Move a.txt to b.txt",
    "Name a planet.",
    "Convert 10 km to miles.",
    "Say hello in Japanese.",
    "Find mails from Bob",
    "Is water wet?",
    "Reverse 'abc'.",
    "for i in range(10):",
    "When did Rome fall?",
    "Summarise the page",
    "Who are you?",
    "Pick a number.",
    "Sort 3, 1, 2.",
    "Größe auf Englisch?",
    "Add a meeting at noon",
    "What rhymes with cat?",
    "Name a metal.",
    "2, 4, 8, 16,",
    "Tell me a secret.",
)


@dataclass(frozen=True, slots=True)
class Case:
    """One prompt, and how it is asked."""

    request: ModelRequest
    adapted: bool


def question(number: int, padding: int) -> str:
    again, which = divmod(number, len(QUESTIONS))
    return " and" * padding + QUESTIONS[which] + "!" * again


def cases(count: int, tokens: int, padding: int = 0) -> list[Case]:
    """Prompts of different lengths: greedy and sampled, with and without an adapter, in all four combinations."""
    return [
        Case(
            ModelRequest(
                (
                    *([Message("system", SYSTEMS[number // 5 % 2])] if number % 5 in (1, 2) else []),
                    Message(
                        "user", " and" * padding + QUESTIONS[number % len(QUESTIONS)] + "!" * (number // len(QUESTIONS))
                    ),
                ),
                max_tokens=tokens,
                temperature=1.2 if number % 2 else 0.0,
                seed=number,
                confidence=True,
            ),
            adapted=number // 2 % 2 == 1,
        )
        for number in range(count)
    ]


class EngineReuse:
    """What llama.cpp does on its own: it reuses the longest common prefix, of whatever size."""

    def __init__(self, server: servers.EngineServer) -> None:
        self._server = server

    def complete(
        self,
        prompt: TokenizedPrompt,
        body: dict[str, Any],
        placement: SlotPlacement,
        take: Callable[[dict[str, Any]], bool],
        stopped: Callable[[], bool],
    ) -> int:
        del stopped
        request = {**body, **placement.body, "prompt": list(prompt.tokens), "cache_prompt": True, "stream": True}
        cached: list[int] = []

        def see(piece: dict[str, Any]) -> bool:
            cached.extend([piece["prompt_progress"]["cache"]] if "prompt_progress" in piece else [])
            return take(piece)

        self._server.complete({**request, "return_progress": True}, see)
        return cached[0]

    def erase_slot(self, slot: int) -> None:
        self._server.erase(slot)


class Asker:
    """An engine that answers at once, in this thread, and whose slots can be emptied."""

    def __init__(self, path: Path, adapter: Adapter | None, evaluation: Evaluation, context: int) -> None:
        vocabulary = read_vocabulary(path)
        self._adapter = adapter
        self._slots = Slots(() if adapter is None else (adapter,))
        self.server = servers.EngineServer(path, context, engine_threads(), self._slots)
        self._vocabulary = vocabulary
        self._tokenizer = PromptTokenizer(vocabulary, self.server.tokenize)
        self.states = PrefixStates(self.server.states)
        self.evaluator = (
            Evaluator(self.server, self.states, (vocabulary.start, vocabulary.end))
            if evaluation == "canonical"
            else EngineReuse(self.server)
        )

    def ask(self, case: Case, **changes: Any) -> ModelReply:
        request = replace(case.request, **changes)
        completion = Completion(request, None, threading.Event())
        body = completion_body(request, self._vocabulary)
        began = time.perf_counter()
        reused = self.evaluator.complete(
            self._tokenizer.prompt(request), body, self._placement(case), completion.take, lambda: False
        )
        return completion.reply(time.perf_counter() - began, reused)

    def forget(self, case: Case) -> None:
        self.evaluator.erase_slot(self._placement(case).slot)

    def _placement(self, case: Case) -> SlotPlacement:
        # Always the same two slots, so that conversations overwrite each other.
        return self._slots.place(self._adapter if case.adapted else None)


@contextmanager
def asking(
    *,
    evaluation: Evaluation = "canonical",
    kv: Kv = "bf16",
    block: int | None = None,
    context: int = 512,
    path: Path | None = None,
) -> Generator[Asker]:
    """The 0.5B with its adapter, under settings that may be worse than those of the product."""
    from xllamacpp import ggml_type

    kinds = {"bf16": ggml_type.GGML_TYPE_BF16, "f16": ggml_type.GGML_TYPE_F16, "f32": ggml_type.GGML_TYPE_F32}
    usual_params, usual_block = servers.engine_params, canonical.BLOCK

    def params(*arguments: Any) -> Any:
        made = usual_params(*arguments)
        made.cache_type_k = made.cache_type_v = kinds[kv]
        return made

    weights = find_weights("0.5b")
    servers.engine_params, canonical.BLOCK = params, block or usual_block
    try:
        adapter = adapters_of(weights)["delta"] if path is None else None
        asker = Asker(path or ModelStore().ensure(weights), adapter, evaluation, context)
        try:
            yield asker
        finally:
            asker.server.close()
    finally:
        servers.engine_params, canonical.BLOCK = usual_params, usual_block


def same_again(asker: Asker, case: Case, fresh: ModelReply) -> tuple[ModelReply, ModelReply]:
    return fresh, asker.ask(case)


def after_a_longer_one(asker: Asker, case: Case, fresh: ModelReply) -> tuple[ModelReply, ModelReply]:
    longer = (*case.request.messages, Message("assistant", fresh.text), Message("user", "Why?"))
    asker.ask(case, messages=longer, max_tokens=1)
    return fresh, asker.ask(case)


def after_a_shorter_one(asker: Asker, case: Case, fresh: ModelReply) -> tuple[ModelReply, ModelReply]:
    *system, user = case.request.messages
    asker.forget(case)
    asker.ask(case, messages=(*system, replace(user, text=user.text[: len(user.text) // 2])), max_tokens=1)
    return fresh, asker.ask(case)


def after_an_unrelated_one(asker: Asker, case: Case, fresh: ModelReply) -> tuple[ModelReply, ModelReply]:
    asker.ask(case, messages=(Message("system", OTHER),), max_tokens=2)
    return fresh, asker.ask(case)


def continued(asker: Asker, case: Case, fresh: ModelReply) -> tuple[ModelReply, ModelReply]:
    """The reply's own beginning as a prefill: behind the reply that is still there, and afresh."""
    prefill = fresh.text[: max(1, len(fresh.text) * 2 // 3)]
    after = asker.ask(case, prefill=prefill)
    asker.forget(case)
    return asker.ask(case, prefill=prefill), after


VARIANTS = (same_again, after_a_longer_one, after_an_unrelated_one, after_a_shorter_one, continued)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A prompt in some circumstances: how much of it was reused, and whether the reply was that of a fresh prompt."""

    question: str
    variant: str
    reused: int
    same: bool


def sweep(asker: Asker, chosen: list[Case], variants: int) -> Iterator[Outcome]:
    """Every prompt afresh and in some of the circumstances, another selection for each."""
    for number, case in enumerate(chosen):
        asker.forget(case)
        fresh = asker.ask(case)
        for variant in (VARIANTS[(number * variants + turn) % len(VARIANTS)] for turn in range(variants)):
            expected, found = variant(asker, case, fresh)
            same = (found.text, found.confidence) == (expected.text, expected.confidence)
            yield Outcome(case.request.messages[-1].text, variant.__name__, found.usage.cached, same)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prompts", type=int, default=len(QUESTIONS))
    parser.add_argument("--variants", type=int, default=len(VARIANTS))
    parser.add_argument("--tokens", type=int, default=8)
    parser.add_argument("--block", type=int, default=canonical.BLOCK)
    parser.add_argument("--padding", type=int, default=0, help="so many more words in each question")
    parser.add_argument("--weights", type=Path)
    parser.add_argument("--kv", choices=["bf16", "f16", "f32"], default="bf16")
    parser.add_argument("--evaluation", choices=["canonical", "engine"], default="canonical")
    options = parser.parse_args()
    began = time.perf_counter()
    kv, evaluation = cast("Kv", options.kv), cast("Evaluation", options.evaluation)
    with asking(evaluation=evaluation, kv=kv, block=options.block, path=options.weights) as asker:
        outcomes: list[Outcome] = []
        for outcome in sweep(asker, cases(options.prompts, options.tokens, options.padding), options.variants):
            same = "same" if outcome.same else "OTHER"
            print(f"{same:5} {outcome.variant:22} {outcome.reused:4} {outcome.question[-40:]}", flush=True)
            outcomes.append(outcome)
    print(
        json.dumps(
            {
                "prompts": options.prompts,
                "replies": len(outcomes),
                "different": sum(not outcome.same for outcome in outcomes),
                "reused": sum(outcome.reused for outcome in outcomes),
                "evaluation": evaluation,
                "kv": kv,
                "block": options.block,
                "seconds": round(time.perf_counter() - began, 1),
            }
        )
    )


if __name__ == "__main__":
    main()
