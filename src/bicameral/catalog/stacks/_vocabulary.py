"""What a stack can say of itself: facts that are so or not, and statements that are written down somewhere.

Rules speak of these names, and of no others. A fact that nobody declares is not taken for false: a rule that cannot do
without it says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

FactKind: TypeAlias = Literal["truth", "number", "choice", "text", "statement"]


@dataclass(frozen=True, slots=True)
class Fact:
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


_ALL = (
    Fact("production", "truth", "real users depend on it"),
    Fact("safety_critical", "truth", "a mistake can hurt people or break the law"),
    Fact(
        "external_input",
        "truth",
        "text or data from outside is read, users' included",
        derived="true if one leg is untrusted_content",
    ),
    Fact("adversarial_input", "truth", "what strangers wrote can reach the tools", derived="from the legs"),
    Fact("irreversible_actions", "truth", "an action cannot be taken back or reaches far", derived="from the actions"),
    Fact("stakes", "choice", "what a wrong answer costs", choices=("low", "medium", "high", "highest")),
    Fact("duties", "number", "unrelated tasks that one prompt carries"),
    Fact("steps_known", "truth", "the steps of the work are known when it is designed"),
    Fact("checks_between_steps", "truth", "what a step gives must be checked before the next"),
    Fact("step_retries", "truth", "a failed step is tried again"),
    Fact("replanning", "truth", "a plan that fails is written again", derived="from what R3 is set to"),
    Fact("serial_independent_steps", "truth", "steps that do not need each other run one after another"),
    Fact("calls_independent", "truth", "no call of a tool needs what another one gave"),
    Fact("action_known", "truth", "the code knows which call to make and the model does not choose"),
    Fact("control_flow", "choice", "where the flow of control is written down", choices=("own", "framework")),
    Fact("hidden_state", "truth", "a step remembers something outside the state that it is given"),
    Fact("swallows_errors", "truth", "errors or empty results pass for success"),
    Fact("keeps_tool_results", "truth", "results of tools stay in the context after their use"),
    Fact("workers", "number", "workers that one orchestrator has", derived="from what O6 is set to"),
    Fact("workers_see_transcript", "truth", "workers read what the orchestrator said before"),
    Fact("specialists_differ", "truth", "the agents differ in model, tools or knowledge"),
    Fact("agent_output_instructs", "truth", "what one agent wrote stands among the instructions of another"),
    Fact("same_system", "truth", "the other agent belongs to the same code base and trust domain"),
    Fact("board_scope", "choice", "what the blackboard holds", choices=("session", "long_term")),
    Fact("format_varies", "truth", "it was measured that the form varies without examples"),
    Fact(
        "structured_output",
        "choice",
        "whether the provider's decoder holds the schema",
        choices=("used", "available", "unavailable"),
    ),
    Fact("persona_claims_authority", "truth", "the role sounds like a professional"),
    Fact("feeling_words", "truth", "templates or replies speak of feelings of the agent"),
    Fact("examples_balanced", "truth", "no answer dominates the examples"),
    Fact("examples_match_style", "truth", "the examples are in the user's style"),
    Fact("examples_order_fixed", "truth", "fixed examples always come in one order"),
    Fact("multi_hop", "truth", "it was measured that questions over several hops fail"),
    Fact("query_diversity", "choice", "how much questions differ in breadth", choices=("low", "medium", "high")),
    Fact("curation", "choice", "when notes are tidied up", choices=("session_boundary", "any_time")),
    Fact("edits_after_boundary", "truth", "compressing and pruning begin behind the cache boundary"),
    Fact("append_only", "truth", "the log of observations is never edited"),
    Fact("prunes_at", "choice", "when the context is pruned", choices=("subtask", "turn")),
    Fact("scratchpad_per_branch", "truth", "every branch of a search has its own scratchpad"),
    Fact("external_success_signal", "truth", "something outside the model says whether it worked"),
    Fact("tasks_recur", "truth", "the same shapes of task come back"),
    Fact("base_tokens", "number", "tokens of one try"),
    Fact("critique_tokens", "number", "tokens of one critique"),
    Fact("prompt_tokens", "number", "tokens of one prompt", derived="from the parts of the prompt"),
    Fact("token_cap", "number", "tokens at which everything stops", derived="from the loops"),
    Fact("money_cap", "number", "money at which everything stops", derived="from the loops"),
    Fact("p95_cost", "number", "what 95 of 100 measured searches stayed below"),
    Fact(
        "judge_reads_quarantined", "truth", "a judge reads what the quarantined side wrote", derived="from the sessions"
    ),
    Fact(
        "live_judge",
        "choice",
        "whether live and held-out evaluation share data, rubric or model",
        choices=("apart", "shared"),
    ),
    Fact("evaluation_data", "choice", "what the evaluation is run on", choices=("real", "clean")),
    Fact("real_tools_in_simulation", "truth", "simulations call real tools"),
    Fact(
        "isolation",
        "choice",
        "what separates the sandbox from the host",
        choices=("container", "gvisor", "microvm", "hosted", "landlock", "wasm", "interpreter", "subprocess", "none"),
    ),
    Fact("shell_strings", "truth", "a shell reads lines that hold text of a model"),
    Fact("cli_exists", "truth", "a command line does what the server does"),
    Fact("hot_tools", "truth", "some tools are called very often"),
    Fact("credential_isolation", "truth", "credentials must be kept away from the agent"),
    Fact("typed_output", "truth", "results must be typed"),
    Fact("tools_shared", "truth", "several agents use the same tools"),
    Fact("search_apart", "truth", "the search for tools and the execution have a session each"),
    Fact("card_lists_schemas", "truth", "the agent card repeats tool schemas"),
    Fact("card_verified", "truth", "the other agent's card was verified"),
    Fact(
        "delegation_followed", "truth", "delegated work has a time limit, can be cancelled and is asked for its state"
    ),
    Fact("identity_guard_in_code", "truth", "code refuses writes to the identity"),
    Fact("unreviewed_changes", "truth", "the agent changes itself without a review"),
    Fact("adversarial_review", "truth", "somebody tries to break a new principle"),
    Fact("principle_reviewer", "choice", "who decides on a new principle", choices=("person", "model", "nobody")),
    Fact("limits_in_code", "truth", "limits are enforced by code and not only told to a model"),
    Fact("thinker_effects", "choice", "what background thoughts can cause", choices=("none", "gated", "free")),
    Fact("narrative", "choice", "what happens to the narrative in each cycle", choices=("replaced", "appended")),
    Fact("background_caps", "choice", "caps of processes in the background", choices=("separate", "shared")),
    Fact("provisional_expires", "truth", "provisional entries come up for a verdict"),
    Fact("selfmodel_decays", "truth", "what the agent thinks it can do is dated and decays"),
    Fact("style_in_lessons", "truth", "facts of style are kept among the lessons"),
    Fact("code_skills", "truth", "skills are code that runs"),
    Fact(
        "untrusted_writes",
        "choice",
        "how untrusted text gets into lasting stores",
        choices=("none", "reviewed", "unreviewed"),
    ),
    Fact("perturbs_schema", "truth", "H3 stays on while a form or arguments are written"),
    Fact(
        "prompt_caching",
        "truth",
        "the head of the prompt is to be cached",
        derived="true where the prompt is described or O18 is used",
    ),
    Fact("prefix_identical", "truth", "the head of the prompt has the same bytes in every call"),
    Fact("prefix_edits", "choice", "when fixed text is edited", choices=("batched", "any_time")),
    Fact(
        "stable_tokens",
        "number",
        "tokens at the head of the prompt that never change",
        derived="from the global parts at its head",
    ),
    Fact(
        "shared_prefix_tokens",
        "number",
        "tokens that all workers share",
        derived="from the global parts at the head of the prompt",
    ),
    Fact("cache_minimum", "number", "tokens below which the provider caches nothing", default=1024),
    Fact("cache_ttl", "number", "seconds that a cache lives", default=300),
    Fact("cache_hit_rate", "number", "share of calls that find the head cached"),
    Fact("seconds_between_uses", "number", "seconds from one use of a prompt to the next"),
    Fact("fan_out_seconds", "number", "seconds from the first to the last call of a fan-out"),
    Fact("warmup_model", "text", "the model that warms the cache"),
    Fact("worker_model", "text", "the model of the workers"),
    Fact("setups_stable", "truth", "the setups of planner, thinker and judge never change"),
    Fact("stable_lessons_first", "truth", "lasting lessons stand before those of the session"),
    Fact("compaction_counted", "truth", "the reckoning has a rewritten head for each compaction"),
    Fact("resume_prepends_setup", "truth", "a resumed run begins with the whole setup"),
    Fact("depends_on_cache", "truth", "something works only while the cache holds"),
    Fact(
        "action_gate_map",
        "statement",
        "which gate each action has, and why",
        derived="true where actions with gates are described",
    ),
    Fact("k1_k9_measurement", "statement", "what retrieval and long context cost and missed"),
    Fact("precedence S5>S3", "statement", "that constraints win over the role"),
    Fact("precedence S9>S3", "statement", "that principles win over the role"),
    Fact("critic_priority", "statement", "which critic goes first"),
    Fact("memory_field_routing", "statement", "for each field of memory its store, and how it is read"),
    Fact("fan_out_owner", "statement", "which pattern splits the task"),
    Fact("constraint_to_guard_map", "statement", "which guard holds which constraint"),
    Fact("identity_style_partition", "statement", "which fields belong to the identity and which to the style"),
    Fact("selfmodel_sync_rule", "statement", "how evidence of H9 reaches H1"),
    Fact("lesson_confidence_weighting", "statement", "how much an old lesson counts"),
    Fact("measured_gaps", "statement", "what was measured before a larger pattern was taken"),
)

FACTS: Mapping[str, Fact] = MappingProxyType({each.name: each for each in _ALL if each.kind != "statement"})
"""Every fact by its name."""
STATEMENTS: Mapping[str, Fact] = MappingProxyType({each.name: each for each in _ALL if each.kind == "statement"})
"""Every statement by its name."""
WHERE = ("task", "artefact", "session", "surface", "variant")
"""What may be said of a single use beside its knobs and facts: where it is used, and in which form."""
