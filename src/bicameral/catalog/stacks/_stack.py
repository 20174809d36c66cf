"""A stack as data: the patterns of an agent, what is said about it, and the names it may use. Nothing here runs.

What was not said is None and not empty: a rule must be able to tell "no tools" from "nobody said which". Rules refer to
the facts and statements declared here and to no others. A fact that nobody declares is not taken for false: a rule that
needs it reports that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from bicameral.errors import Place

StackPath: TypeAlias = tuple[str | int, ...]
"""The way to something in a stack, key by key."""
Leg: TypeAlias = Literal["private_data", "untrusted_content", "external_comms"]
GuardPoint: TypeAlias = Literal["input", "call", "result", "output", "write", "read"]
PromptStability: TypeAlias = Literal["global", "per_user", "per_call"]
BlastRadius: TypeAlias = Literal["low", "medium", "high"]
Gate: TypeAlias = Literal["V1", "V2", "none"]
VaryingContent: TypeAlias = Literal["timestamp", "uuid", "random", "unsorted"]
StoreContent: TypeAlias = Literal["content", "references", "redacted"]


@lru_cache(maxsize=4096)
def dotted_path(path: StackPath) -> str:
    """A path as people read it: `agents.triage.patterns[1]`."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).removeprefix(".")


@dataclass(frozen=True, slots=True)
class PatternUse:
    """A pattern that is used, and what was set for it. `task`, `artefact` and `session` say where it is used."""

    id: str
    path: StackPath
    knobs: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class ToolCounts:
    """The tools of an agent in numbers."""

    path: StackPath
    count: int | None = None
    schema_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class PromptPart:
    """A part of a prompt, in the order in which the model reads them."""

    part: str
    stable: PromptStability
    path: StackPath
    tokens: int | None = None
    holds: tuple[VaryingContent, ...] = ()
    """What in it differs from call to call."""
    breakpoint: bool = False
    """Whether the cache boundary is set behind it."""


@dataclass(frozen=True, slots=True)
class Loop:
    """Something that repeats, and what ends it."""

    name: str
    path: StackPath
    steps: float | None = None
    tokens: float | None = None
    money: float | None = None
    seconds: float | None = None
    exit: str | None = None


@dataclass(frozen=True, slots=True)
class StackSession:
    """A conversation with a model: what it reads, writes and judges."""

    name: str
    path: StackPath
    model: str | None = None
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    judges: tuple[str, ...] = ()
    tools: tuple[str, ...] | None = None
    policy: str | None = None
    quarantined: bool = False


@dataclass(frozen=True, slots=True)
class Action:
    """Something that is done to the world, and what stands before it."""

    name: str
    path: StackPath
    reversible: bool | None = None
    blast_radius: BlastRadius | None = None
    novel: bool | None = None
    gate: Gate | None = None
    was: Gate | None = None
    """The gate that it had before."""
    review: str | None = None
    """Where the change of its gate was decided."""


@dataclass(frozen=True, slots=True)
class StackStore:
    """Something that is kept, and who reads, writes and erases it."""

    name: str
    path: StackPath
    patterns: tuple[str, ...] = ()
    readers: tuple[str, ...] = ()
    writers: tuple[str, ...] = ()
    eraser: bool | None = None
    personal: bool = False
    holds: StoreContent = "content"


@dataclass(frozen=True, slots=True)
class StackMember:
    """An agent of a stack, or the whole of it (which has no name): all that was said of it."""

    name: str
    path: StackPath
    uses: tuple[PatternUse, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    declares: Mapping[str, str | bool] = field(default_factory=dict[str, str | bool])
    model: str | None = None
    owner: str | None = None
    policy: str | None = None
    tools: ToolCounts | None = None
    legs: tuple[Leg, ...] | None = None
    guards: tuple[GuardPoint, ...] | None = None
    prompt: tuple[PromptPart, ...] | None = None
    loops: tuple[Loop, ...] | None = None
    sessions: tuple[StackSession, ...] | None = None
    actions: tuple[Action, ...] | None = None
    stores: tuple[StackStore, ...] | None = None
    pipeline: tuple[str, ...] | None = None

    @property
    def patterns(self) -> frozenset[str]:
        """The ids of its own patterns."""
        return frozenset(use.id for use in self.uses)


@dataclass(frozen=True, slots=True)
class OwnPattern:
    """A pattern of one's own: what it needs beside it, and what it does not go with."""

    id: str
    name: str
    path: StackPath
    needs: tuple[str, ...] = ()
    needs_one_of: tuple[str, ...] = ()
    not_with: tuple[str, ...] = ()
    loops: bool = False
    why: str = "its definition says so"


@dataclass(frozen=True, slots=True)
class Waiver:
    """A finding that is known and accepted for a while. Without a reason or an end it waives nothing."""

    rules: tuple[str, ...]
    path: StackPath
    at: str | None = None
    reason: str | None = None
    until: date | None = None

    def covers(self, path: StackPath) -> bool:
        """Whether something at this path is meant."""
        if self.at is None:
            return True
        shown = dotted_path(path)
        return shown == self.at or shown.startswith((f"{self.at}.", f"{self.at}["))


def _argument_place(path: StackPath) -> Place:
    return Place(argument=dotted_path(path)) if path else Place()


@dataclass(frozen=True, slots=True)
class Stack:
    """An architecture: what holds for the whole, its agents, and what is waived.

    Example:
        >>> stack = stack_of({"name": "Triage", "patterns": ["R4", "V9", "V14"]})
        >>> sorted(stack.whole.patterns)
        ['R4', 'V14', 'V9']
    """

    name: str
    whole: StackMember
    agents: tuple[StackMember, ...] = ()
    waivers: tuple[Waiver, ...] = ()
    defined: Mapping[str, OwnPattern] = field(default_factory=dict[str, OwnPattern])
    file: str | None = None
    locate: Callable[[StackPath], Place] = field(default=_argument_place, repr=False, compare=False)

    @property
    def members(self) -> Iterator[StackMember]:
        """The whole and every agent."""
        yield self.whole
        yield from self.agents

    def place(self, path: StackPath) -> Place:
        """Where something of this stack is written."""
        return self.locate(path)


FactKind: TypeAlias = Literal["truth", "number", "choice", "text", "statement"]


@dataclass(frozen=True, slots=True)
class StackFact:
    """A name that a stack may give a value to. A `statement` says where something is written down."""

    name: str
    kind: FactKind
    what: str
    choices: tuple[str, ...] = ()
    default: float | None = None
    derived: str | None = None
    """How it is found out where nobody says it."""

    @property
    def expected(self) -> str:
        """What may be said of it."""
        match self.kind:
            case "truth":
                return "true or false"
            case "number":
                return "a number"
            case "choice":
                return f"one of {', '.join(self.choices)}"
            case "text":
                return "a text"
            case "statement":
                return "where it is written down"

    def to_json(self) -> dict[str, Any]:
        pairs = (
            ("name", self.name),
            ("kind", self.kind),
            ("what", self.what),
            ("choices", list(self.choices) or None),
            ("default", self.default),
            ("derived", self.derived),
        )
        return {key: value for key, value in pairs if value is not None}

    def accepts(self, value: Any) -> bool:
        """Whether a value is one that this fact can have."""
        match self.kind:
            case "truth":
                return isinstance(value, bool)
            case "number":
                return isinstance(value, int | float) and not isinstance(value, bool) and value == value
            case "choice":
                return value in self.choices
            case "text":
                return isinstance(value, str) and bool(value.strip())
            case "statement":
                return isinstance(value, bool) or (isinstance(value, str) and bool(value.strip()))


_ALL_FACTS = (
    StackFact("production", "truth", "real users depend on it"),
    StackFact("safety_critical", "truth", "a mistake can hurt people or break the law"),
    StackFact(
        "external_input",
        "truth",
        "text or data from outside is read, users' included",
        derived="true if one leg is untrusted_content",
    ),
    StackFact("adversarial_input", "truth", "what strangers wrote can reach the tools", derived="from the legs"),
    StackFact(
        "irreversible_actions", "truth", "an action cannot be taken back or reaches far", derived="from the actions"
    ),
    StackFact("stakes", "choice", "what a wrong answer costs", choices=("low", "medium", "high", "highest")),
    StackFact("duties", "number", "unrelated tasks that one prompt carries"),
    StackFact("steps_known", "truth", "the steps of the work are known when it is designed"),
    StackFact("checks_between_steps", "truth", "what a step gives must be checked before the next"),
    StackFact("step_retries", "truth", "a failed step is tried again"),
    StackFact("replanning", "truth", "a plan that fails is written again", derived="from what R3 is set to"),
    StackFact("serial_independent_steps", "truth", "steps that do not need each other run one after another"),
    StackFact("calls_independent", "truth", "no call of a tool needs what another one gave"),
    StackFact("action_known", "truth", "the code knows which call to make and the model does not choose"),
    StackFact("control_flow", "choice", "where the flow of control is written down", choices=("own", "framework")),
    StackFact("hidden_state", "truth", "a step remembers something outside the state that it is given"),
    StackFact("swallows_errors", "truth", "errors or empty results pass for success"),
    StackFact("keeps_tool_results", "truth", "results of tools stay in the context after their use"),
    StackFact("workers", "number", "workers that one orchestrator has", derived="from what O6 is set to"),
    StackFact("workers_see_transcript", "truth", "workers read what the orchestrator said before"),
    StackFact("specialists_differ", "truth", "the agents differ in model, tools or knowledge"),
    StackFact("agent_output_instructs", "truth", "what one agent wrote stands among the instructions of another"),
    StackFact("same_system", "truth", "the other agent belongs to the same code base and trust domain"),
    StackFact("board_scope", "choice", "what the blackboard holds", choices=("session", "long_term")),
    StackFact("format_varies", "truth", "it was measured that the form varies without examples"),
    StackFact(
        "structured_output",
        "choice",
        "whether the provider's decoder holds the schema",
        choices=("used", "available", "unavailable"),
    ),
    StackFact("persona_claims_authority", "truth", "the role sounds like a professional"),
    StackFact("feeling_words", "truth", "templates or replies speak of feelings of the agent"),
    StackFact("examples_balanced", "truth", "no answer dominates the examples"),
    StackFact("examples_match_style", "truth", "the examples are in the user's style"),
    StackFact("examples_order_fixed", "truth", "fixed examples always come in one order"),
    StackFact("multi_hop", "truth", "it was measured that questions over several hops fail"),
    StackFact("query_diversity", "choice", "how much questions differ in breadth", choices=("low", "medium", "high")),
    StackFact("curation", "choice", "when notes are tidied up", choices=("session_boundary", "any_time")),
    StackFact("edits_after_boundary", "truth", "compressing and pruning begin behind the cache boundary"),
    StackFact("append_only", "truth", "the log of observations is never edited"),
    StackFact("prunes_at", "choice", "when the context is pruned", choices=("subtask", "turn")),
    StackFact("scratchpad_per_branch", "truth", "every branch of a search has its own scratchpad"),
    StackFact("external_success_signal", "truth", "something outside the model says whether it worked"),
    StackFact("tasks_recur", "truth", "the same shapes of task come back"),
    StackFact("base_tokens", "number", "tokens of one try"),
    StackFact("critique_tokens", "number", "tokens of one critique"),
    StackFact("prompt_tokens", "number", "tokens of one prompt", derived="from the parts of the prompt"),
    StackFact("token_cap", "number", "tokens at which everything stops", derived="from the loops"),
    StackFact("money_cap", "number", "money at which everything stops", derived="from the loops"),
    StackFact("p95_cost", "number", "what 95 of 100 measured searches stayed below"),
    StackFact(
        "judge_reads_quarantined", "truth", "a judge reads what the quarantined side wrote", derived="from the sessions"
    ),
    StackFact(
        "live_judge",
        "choice",
        "whether live and held-out evaluation share data, rubric or model",
        choices=("apart", "shared"),
    ),
    StackFact("evaluation_data", "choice", "what the evaluation is run on", choices=("real", "clean")),
    StackFact("real_tools_in_simulation", "truth", "simulations call real tools"),
    StackFact(
        "isolation",
        "choice",
        "what separates the sandbox from the host",
        choices=("container", "gvisor", "microvm", "hosted", "landlock", "wasm", "interpreter", "subprocess", "none"),
    ),
    StackFact("shell_strings", "truth", "a shell reads lines that hold text of a model"),
    StackFact("cli_exists", "truth", "a command line does what the server does"),
    StackFact("hot_tools", "truth", "some tools are called very often"),
    StackFact("credential_isolation", "truth", "credentials must be kept away from the agent"),
    StackFact("typed_output", "truth", "results must be typed"),
    StackFact("tools_shared", "truth", "several agents use the same tools"),
    StackFact("search_apart", "truth", "the search for tools and the execution have a session each"),
    StackFact("card_lists_schemas", "truth", "the agent card repeats tool schemas"),
    StackFact("card_verified", "truth", "the other agent's card was verified"),
    StackFact(
        "delegation_followed", "truth", "delegated work has a time limit, can be cancelled and is asked for its state"
    ),
    StackFact("identity_guard_in_code", "truth", "code refuses writes to the identity"),
    StackFact("unreviewed_changes", "truth", "the agent changes itself without a review"),
    StackFact("adversarial_review", "truth", "somebody tries to break a new principle"),
    StackFact("principle_reviewer", "choice", "who decides on a new principle", choices=("person", "model", "nobody")),
    StackFact("limits_in_code", "truth", "limits are enforced by code and not only told to a model"),
    StackFact("thinker_effects", "choice", "what background thoughts can cause", choices=("none", "gated", "free")),
    StackFact("narrative", "choice", "what happens to the narrative in each cycle", choices=("replaced", "appended")),
    StackFact("background_caps", "choice", "caps of processes in the background", choices=("separate", "shared")),
    StackFact("provisional_expires", "truth", "provisional entries come up for a verdict"),
    StackFact("selfmodel_decays", "truth", "what the agent thinks it can do is dated and decays"),
    StackFact("style_in_lessons", "truth", "facts of style are kept among the lessons"),
    StackFact("code_skills", "truth", "skills are code that runs"),
    StackFact(
        "untrusted_writes",
        "choice",
        "how untrusted text gets into lasting stores",
        choices=("none", "reviewed", "unreviewed"),
    ),
    StackFact("perturbs_schema", "truth", "H3 stays on while a form or arguments are written"),
    StackFact(
        "prompt_caching",
        "truth",
        "the head of the prompt is to be cached",
        derived="true where the prompt is described or O18 is used",
    ),
    StackFact("prefix_identical", "truth", "the head of the prompt has the same bytes in every call"),
    StackFact("prefix_edits", "choice", "when fixed text is edited", choices=("batched", "any_time")),
    StackFact(
        "stable_tokens",
        "number",
        "tokens at the head of the prompt that never change",
        derived="from the global parts at its head",
    ),
    StackFact(
        "shared_prefix_tokens",
        "number",
        "tokens that all workers share",
        derived="from the global parts at the head of the prompt",
    ),
    StackFact("cache_minimum", "number", "tokens below which the provider caches nothing", default=1024),
    StackFact("cache_ttl", "number", "seconds that a cache lives", default=300),
    StackFact("cache_hit_rate", "number", "share of calls that find the head cached"),
    StackFact("seconds_between_uses", "number", "seconds from one use of a prompt to the next"),
    StackFact("fan_out_seconds", "number", "seconds from the first to the last call of a fan-out"),
    StackFact("warmup_model", "text", "the model that warms the cache"),
    StackFact("worker_model", "text", "the model of the workers"),
    StackFact("setups_stable", "truth", "the setups of planner, thinker and judge never change"),
    StackFact("stable_lessons_first", "truth", "lasting lessons stand before those of the session"),
    StackFact("compaction_counted", "truth", "the reckoning has a rewritten head for each compaction"),
    StackFact("resume_prepends_setup", "truth", "a resumed run begins with the whole setup"),
    StackFact("depends_on_cache", "truth", "something works only while the cache holds"),
    StackFact(
        "action_gate_map",
        "statement",
        "which gate each action has, and why",
        derived="true where actions with gates are described",
    ),
    StackFact("k1_k9_measurement", "statement", "what retrieval and long context cost and missed"),
    StackFact("precedence S5>S3", "statement", "that constraints win over the role"),
    StackFact("precedence S9>S3", "statement", "that principles win over the role"),
    StackFact("critic_priority", "statement", "which critic goes first"),
    StackFact("memory_field_routing", "statement", "for each field of memory its store, and how it is read"),
    StackFact("fan_out_owner", "statement", "which pattern splits the task"),
    StackFact("constraint_to_guard_map", "statement", "which guard holds which constraint"),
    StackFact("identity_style_partition", "statement", "which fields belong to the identity and which to the style"),
    StackFact("selfmodel_sync_rule", "statement", "how evidence of H9 reaches H1"),
    StackFact("lesson_confidence_weighting", "statement", "how much an old lesson counts"),
    StackFact("measured_gaps", "statement", "what was measured before a larger pattern was taken"),
)

FACTS: Mapping[str, StackFact] = MappingProxyType({each.name: each for each in _ALL_FACTS if each.kind != "statement"})
"""Every fact by its name."""
STATEMENTS: Mapping[str, StackFact] = MappingProxyType(
    {each.name: each for each in _ALL_FACTS if each.kind == "statement"}
)
"""Every statement by its name."""
USE_KEYS = ("task", "artefact", "session", "surface", "variant")
"""What may be said of a single use beside its knobs and facts: where it is used, and in which form."""
