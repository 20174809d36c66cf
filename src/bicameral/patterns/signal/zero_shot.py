"""S1, zero-shot: one call with an instruction and its input, and the reply as it comes.

Use it first: every richer prompt has to beat it in a measurement. Nothing is asked twice and nothing is mended. `probe`
measures how steady the form of the replies is, and says whether to stay here or to move to S6 or S2.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, cast

from bicameral.errors import CatalogError, RunError
from bicameral.patterns.kernel import (
    Answered,
    Context,
    Labelled,
    NoteEvent,
    Pattern,
    PatternExample,
    Role,
    approximate_tokens,
)

if TYPE_CHECKING:
    from bicameral.patterns.strategies import Runtime

HOST = Role("Host", "Do what the text asks for. Reply with the result alone.", max_tokens=256)
Verdict = Literal["enough", "unclear", "escalate"]

_PIECES: Final = {
    "S2": re.compile(r"<example|\bexamples?\s*:|\bfor example\b|\be\.g\.|^\s*(input|output|q|a)\s*:", re.I | re.M),
    "S3": re.compile(r"\byou are an? |\bact as an? |\bas an expert\b", re.I),
    "S4": re.compile(r"^\s*(\d+[.)]|step \d+)", re.I | re.M),
    "S5": re.compile(r"\b(never|must not|do not|don't|under no circumstances|forbidden)\b", re.I),
    "S6": re.compile(r"\bjson\b|[{}]|\bschema\b", re.I),
    "S9": re.compile(r"\bprinciples?\b", re.I),
}


def hidden_pieces(instruction: str) -> tuple[str, ...]:
    """The patterns whose pieces are in an instruction: examples, a role, numbered steps, bans, a form, principles.

    Example:
        >>> hidden_pieces("You are a clerk. Sort the mail, for example: 'It crashes' is a bug.")
        ('S2', 'S3')
    """
    return tuple(id for id, words in _PIECES.items() if words.search(instruction))


def prompt_hash(instruction: str) -> str:
    """The hash by which a baseline knows its prompt."""
    return hashlib.sha256(instruction.encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class BaselineSettings:
    """What has to be the same for all results of one baseline."""

    model: str
    prompt: str
    temperature: float
    max_tokens: int

    @classmethod
    def of(cls, outcome: Answered[str]) -> BaselineSettings:
        """The settings that are stored with a result."""
        (call,) = outcome.model_calls
        (note,) = (each for each in outcome.trace if isinstance(each, NoteEvent) and each.what == "sampling")
        return cls(call.model, call.prefix, float(note.facts["temperature"]), int(note.facts["max_tokens"]))


def common_settings(outcomes: Iterable[Answered[str]]) -> BaselineSettings:
    """The settings of all these results; `pattern.mixed-baseline` if they are not the same."""
    found = {BaselineSettings.of(each) for each in outcomes}
    if len(found) != 1:
        raise RunError(
            "pattern.mixed-baseline",
            f"the results have {len(found)} different settings",
            expected="one model, one prompt, one temperature and one length in a baseline",
            fix="Measure again with a pinned model, without a fallback.",
        )
    return found.pop()


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """How steady the form of the replies to one input is. Runs that failed have no form, and count."""

    runs: int
    failed: int
    forms: int
    consistency: float
    verdict: Verdict
    settings: BaselineSettings | None


@dataclass(frozen=True)
class ZeroShot(Pattern[[Labelled[str]], str]):
    """One call of one model; the reply goes on unchanged.

    Args:
        host: The instruction is its setup, at most `max_instruction_tokens` long.
        sample: Another one is another reply, if the host has a temperature.
        declared: The `prompt_hash` of a baseline. With another instruction nothing is made.
        probe_runs: The runs of `probe`.
        format_ok: The share of equal form from which this pattern is enough.
        format_escalate: The share below which it is not.
        lift_ignored: The gain by examples that is too small to pay for them.
        lift_wanted: The gain by examples from which S2 is taken.

    Example:
        >>> outcome = await ZeroShot().run(runtime, program_text("Translate into French: Good morning."))
        >>> outcome.value
        'Bonjour.'
    """

    id: ClassVar[str] = "S1"
    host: Role = HOST
    sample: int = 0
    declared: str = ""
    probe_runs: int = 20
    format_ok: float = 0.95
    format_escalate: float = 0.9
    lift_ignored: float = 0.05
    lift_wanted: float = 0.1
    max_instruction_tokens: int = 200

    def __post_init__(self) -> None:
        super().__post_init__()
        tokens = approximate_tokens(self.host.setup)
        if tokens > self.max_instruction_tokens:
            raise CatalogError(
                "pattern.long-instruction",
                f"S1: the instruction has about {tokens} tokens",
                expected=f"at most {self.max_instruction_tokens}",
                fix="Steps of a procedure belong to S4, a form to S6.",
            )
        if self.declared and self.declared != prompt_hash(self.host.setup):
            raise CatalogError(
                "pattern.changed-baseline",
                "S1: the instruction is not the one of the declared baseline",
                expected=f"the instruction with the hash {self.declared}",
                fix=f"Measure again, and declare {prompt_hash(self.host.setup)}.",
            )

    async def execute(self, context: Context, /, task: Labelled[str]) -> Labelled[str]:
        reply = await context.ask(self.host, task, sample=self.sample)
        context.note("sampling", temperature=self.host.temperature, max_tokens=self.host.max_tokens, seed=self.sample)
        return reply

    async def probe(
        self, runtime: Runtime, task: Labelled[str], form: Callable[[str], str] | None = None
    ) -> ProbeResult:
        """Answer one task `probe_runs` times, each in a run of its own, and compare the forms of the replies.

        Args:
            runtime: The models.
            task: The task.
            form: The name of the form of a reply; by default `reply_form`.
        """
        if pieces := hidden_pieces(self.host.setup):
            raise RunError(
                "pattern.not-bare",
                f"the instruction has pieces of {', '.join(pieces)} in it, so it is no baseline",
                fix="Take them out, or measure the pattern that they belong to.",
            )
        outcomes = [await replace(self, sample=number).run(runtime, task) for number in range(self.probe_runs)]
        answers = [each for each in outcomes if isinstance(each, Answered)]
        forms = Counter((form or reply_form)(each.value) for each in answers)
        share = max(forms.values(), default=0) / len(outcomes)
        settings = common_settings(answers) if answers else None
        return ProbeResult(len(outcomes), len(outcomes) - len(answers), len(forms), share, self._judge(share), settings)

    def _judge(self, consistency: float) -> Verdict:
        if consistency >= self.format_ok:
            return "enough"
        return "escalate" if consistency < self.format_escalate else "unclear"

    def judge_examples(self, lift: float) -> Verdict:
        """Whether a gain by examples, as `FewShot.compare` measures it, is reason enough to move to S2."""
        if lift <= self.lift_ignored:
            return "enough"
        return "escalate" if lift >= self.lift_wanted else "unclear"


def reply_form(reply: str) -> str:
    """The form of a reply without its content: the fields of JSON, or the kinds of its lines.

    Example:
        >>> reply_form("Two reasons:\\n- it is late\\n- it rains")
        'phrase bullet'
    """
    try:
        return f"json {_json_form(json.loads(reply))}"
    except (ValueError, RecursionError):
        kinds = (_line_kind(line.strip()) for line in reply.splitlines() if line.strip())
        return " ".join(kind for kind, _ in groupby(kinds))


def _json_form(value: object) -> str:
    match value:
        case dict():
            fields = cast("dict[str, Any]", value)
            return "{" + ", ".join(f"{name}: {_json_form(fields[name])}" for name in sorted(fields)) + "}"
        case list():
            return "[" + ", ".join(sorted({_json_form(each) for each in cast("list[Any]", value)})) + "]"
        case _:
            return type(value).__name__


def _line_kind(line: str) -> str:
    if line.startswith("```"):
        return "fence"
    if line.startswith("#"):
        return "heading"
    if re.match(r"[-*•] ", line):
        return "bullet"
    if re.match(r"\d+[.)] ", line):
        return "number"
    if len(line.split()) == 1:
        return "word"
    return "sentence" if line[-1] in ".!?" else "phrase"


# An example ---------------------------------------------------------------------------------------------------------

_TASK: Final = "In which language is this text written? Guten Morgen, wie geht es Ihnen?"


def _is_correct(outcome: Answered[str]) -> bool:
    return "german" in outcome.value.lower() or "deutsch" in outcome.value.lower()


EXAMPLE = PatternExample(
    "A question with an everyday answer is asked once.",
    lambda folder: ZeroShot(),
    _TASK,
    _is_correct,
    lambda folder: {"setup": HOST.setup, "input": _TASK, "output": 4},
)
