"""Which model answers which call: the settings of `[llm]` and `[agent]`, in `bicameral.toml` or in a profile."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, model_validator
from pydantic_core import CoreSchema

Names = Annotated[tuple[str, ...], Field(strict=False)]
Temperature = Annotated[float, Field(ge=0, le=10)]
Seconds = Annotated[float, Field(gt=0, le=1e9)]
Tokens = Annotated[int, Field(gt=0, le=10**9)]
Count = Annotated[int, Field(ge=0, le=10**15)]
Amount = Annotated[float, Field(ge=0, le=1e15)]
Strategy = Literal["compiled", "native_react", "plan_and_execute", "spar"]
ConfiguredStrategy = Literal["compiled", "native_react", "plan_and_execute", "spar", "auto"]
Reading = Literal["typed", "as_needed", "open"]


class ConfigTable(BaseModel):
    """A table of settings; unknown keys are errors, nothing is coerced, and numbers are finite."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """The schema with the docstrings of the settings. Reading them at import would slow every command down."""
        found = handler(core_schema)
        properties = handler.resolve_ref_schema(found).get("properties", {})
        for name, text in attribute_docstrings(cls).items():
            if name in properties:
                properties[name].setdefault("description", text)
        return found


def attribute_docstrings(cls: type) -> dict[str, str]:
    """The docstrings of the attributes of a class and of those it inherits."""
    found: dict[str, str] = {}
    for each in reversed(cls.__mro__):
        if each.__module__.partition(".")[0] != __name__.partition(".")[0]:
            continue
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(each))).body
        body = definition.body if isinstance(definition, ast.ClassDef) else []
        for before, after in pairwise(body):
            match before, after:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str() as text)):
                    found[name] = inspect.cleandoc(text)
                case _:
                    continue
    return found


class ParameterSettings(ConfigTable):
    """How a model is asked. Whatever else is named here goes to its server as it stands (`top_p` and such)."""

    model_config = ConfigDict(extra="allow")

    temperature: Temperature | None = None
    """0 gives the same reply each time."""
    max_tokens: Tokens | None = None
    """The most that a reply may have; a call that asks for less gets less."""
    timeout: Seconds | None = None
    """Seconds that a reply may take; a call that allows less gets less."""
    seed: int | None = None
    """What chance begins with where the temperature is above 0."""


class RetryConfig(ConfigTable):
    """How often a model is asked at most, and how long is waited before each further time."""

    attempts: Annotated[int, Field(ge=1, le=20)] = 3
    """How often it is asked at most."""
    first: Amount = 0.5
    """Seconds before the second time; they double each time."""
    most: Amount = 30.0
    """The longest wait."""
    jitter: Annotated[float, Field(ge=0, le=1)] = 0.5
    """The share of a wait that is left off by chance."""
    patience: Amount = 60.0
    """For a service that asks for a longer wait nobody waits."""
    each: Seconds | None = None
    """Seconds that a single attempt may take."""

    @model_validator(mode="after")
    def _growing(self) -> RetryConfig:
        if self.first > self.most:
            raise ValueError("a first wait that is no longer than the longest")
        return self


class BreakerConfig(ConfigTable):
    """When a model is left alone: after so many failures in a row, for so many seconds."""

    failures: Annotated[int, Field(ge=1, le=10**6)] = 5
    """So many in a row."""
    rest: Seconds = 30.0
    """Seconds until it is tried again."""


class BudgetConfig(ConfigTable):
    """How much may be taken; what is not said is not bounded."""

    calls: Count | None = None
    """Calls of a model."""
    tokens: Count | None = None
    """Tokens read and written."""
    money: Amount | None = None
    """In the currency of the price table."""
    seconds: Amount | None = None
    """Seconds."""


class AliasSettings(ConfigTable):
    """A model under a name of its own. The text `family/model` alone does where nothing else is to be said."""

    model: str | None = None
    """`family/model`, such as `openai/gpt-4.1`, `ollama/llama3`, `local/1.5b` of the store; or a GGUF file."""
    api_key_env: str | None = None
    """The environment variable with the key of the privileged chamber; without it, the usual one of the family."""
    api_key_keyring: str | None = None
    """The same from the keyring, under this name of the service `bicameral`."""
    quarantined_api_key_env: str | None = None
    """The variable with the key of the quarantined chamber; without one, a model that needs a key is not used there."""
    quarantined_api_key_keyring: str | None = None
    """The same from the keyring."""
    base_url: str | None = None
    """Where the server is, if it is not the family's own."""
    temperature: Temperature | None = None
    """0 gives the same reply each time."""
    max_tokens: Tokens | None = None
    """The most that a reply may have; a call that asks for less gets less."""
    timeout: Seconds | None = None
    """Seconds that a reply may take; a call that allows less gets less."""
    seed: int | None = None
    """What chance begins with where the temperature is above 0."""
    params: dict[str, Any] = Field(default_factory=dict[str, Any])
    """What else goes to the server with every request, such as `top_p`."""
    options: dict[str, Any] = Field(default_factory=dict[str, Any])
    """What the family wants to know once, such as `api_version` for azure or `region_name` for bedrock."""
    retry: RetryConfig | None = None
    """How it is asked again after a rate limit, an outage, a time-out or a broken reply."""
    hedge_after: Seconds | None = None
    """After so many seconds without a reply a second request is sent; the first reply counts."""
    hedge_with: str | None = None
    """The alias that gets the second request; without it, the same model."""
    fallback: Names = ()
    """Aliases that are asked in this order if this one cannot answer. Never one of the other chamber."""
    breaker: BreakerConfig | None = None
    """When a model that keeps failing is left alone, and for how long."""
    cascade: Names = ()
    """Instead of a model: aliases from the cheapest on, each asked if the reply before was not whole or did not fit."""
    settle: bool = False
    """Whether a cascade takes a reply that was not accepted when no larger model can be asked."""
    cache: bool = False
    """Whether the same request to this model is answered from the cache the second time."""
    budget: BudgetConfig | None = None
    """The most that this model may take in the life of the process."""

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        return {"model": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _one_of_both(self) -> AliasSettings:
        if (self.model is None) == (not self.cascade):
            raise ValueError("a model, or a cascade of aliases instead of one")
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        found = handler.resolve_ref_schema(super().__get_pydantic_json_schema__(schema, handler))
        return {"anyOf": [{"type": "string", "description": "family/model"}, dict(found)]}


USUAL_KEY_VARIABLES: Mapping[str, str] = {
    "openai": "OPENAI_API_KEY",
    "azure": "AZURE_OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "google": "GEMINI_API_KEY",
    "mistral": "MISTRAL_API_KEY",
    "groq": "GROQ_API_KEY",
    "bedrock": "AWS_BEARER_TOKEN_BEDROCK",
}
"""The usual variables for the key of a family. Only the privileged chamber uses them: the quarantine names its key."""


class RuleSettings(ConfigTable):
    """Calls for which the condition holds go to the model with this alias; the first rule that matches counts."""

    condition: str
    """Such as `has_tools`, `message_count > 10`, `hint:planning`, `label: untrusted and time_left < 30`."""
    model: str
    """An alias."""


class RoutingSettings(ConfigTable):
    """Rules that look at each call."""

    enabled: bool = True
    """Whether the rules count."""
    rules: Annotated[tuple[RuleSettings, ...], Field(strict=False)] = ()
    """Tried from the first on."""


class LlmConfigFile(ConfigTable):
    """Everything that `llm_config.yaml` may say."""

    models: dict[str, AliasSettings] = Field(default_factory=dict[str, AliasSettings])
    """Aliases: names for models."""
    default_model: str | None = None
    """The alias of calls for which nothing else applies; without it, the embedded models."""
    default_params: ParameterSettings = ParameterSettings()
    """How every model is asked, unless more is said about it."""
    model_params: dict[str, ParameterSettings] = Field(default_factory=dict[str, ParameterSettings])
    """How single models are asked, by alias or by the name of the model."""


class LlmSettings(LlmConfigFile):
    """Which model answers which call. Without it, the two embedded models do."""

    config_path: str | None = None
    """A file with aliases (`llm_config.yaml`), found next to the file that names it or in the working folder."""
    model_roles: dict[str, str] = Field(default_factory=dict[str, str])
    """Aliases by role: echo, delta, quarantined, validator, planning, reasoning, acting, reflecting, summarizing.

    Any other name is a role of your own, such as `coding`: a hint with this name gets the alias.
    """
    routing: RoutingSettings = RoutingSettings()
    budget: BudgetConfig = BudgetConfig()
    """The most that one run may take, planning included."""
    role_budgets: dict[str, BudgetConfig] = Field(default_factory=dict[str, BudgetConfig])
    """The most that one role may take in a run."""
    prices: str | None = None
    """A table of prices of your own, over the one that comes with Bicameral."""


class StrategySettings(ConfigTable):
    """How a strategy works."""

    max_step_iterations: Annotated[int, Field(gt=0, le=1_000)] = 3
    """How many rounds one step may take."""
    max_steps: Annotated[int, Field(gt=0, le=1_000)] = 8
    """How many steps a plan may have."""
    reflect_every_step: bool = True
    """Whether SPAR looks back after each step, or only at the end."""
    phase_models: dict[str, str] = Field(default_factory=dict[str, str])
    """An alias for each phase: sense, plan, act, reflect, final_answer. It holds for every strategy."""
    strategy_phase_models: dict[str, dict[str, str]] = Field(default_factory=dict[str, dict[str, str]])
    """The same for one strategy (native_react, plan_and_execute, spar), before what `phase_models` says."""
    reading: Reading = "as_needed"
    """Who goes on after untrusted text has come in: `typed` (the privileged model, by typed values alone), `as_needed`
    (the same, and single steps may be left to the quarantined model), `open` (the quarantined model, with the request
    and all tools)."""
    max_history: Annotated[int, Field(ge=2_000, le=10_000_000)] = 40_000
    """Characters of a conversation beyond which its oldest parts are shortened."""
    reflect_looks: Annotated[int, Field(ge=0, le=20)] = 2
    """How often a reflection may look again with tools that only read."""


class StrategyRuleSettings(ConfigTable):
    """A rule of your own for `planning_strategy = "auto"`: requests with one of these phrases get this strategy."""

    contains: Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(strict=False, min_length=1)]
    """Words or phrases of the request, in any case, as whole words."""
    strategy: Strategy
    """The strategy of such a request."""


class AgentSettings(ConfigTable):
    """How requests are worked on."""

    planning_strategy: ConfiguredStrategy | None = None
    """`compiled` (the default) writes a whole plan and proves it before it runs; the others call tools as they go.
    `auto` chooses for each request, by its words."""
    strategy_rules: Annotated[tuple[StrategyRuleSettings, ...], Field(strict=False)] = ()
    """Rules for `auto`, which come before those that are built in; the first that fits counts."""
    classifier_model: str | None = None
    """For `auto`: the alias of a model that chooses where no rule of yours fits. It reads the request alone."""
    planning_strategy_params: StrategySettings = StrategySettings()


class ProfileFile(ConfigTable):
    """Everything that a profile may say."""

    llm: LlmSettings = LlmSettings()
    agent: AgentSettings = AgentSettings()


_SCHEMA_URL = "https://json-schema.org/draft/2020-12/schema"


def profile_schema() -> dict[str, Any]:
    """The published JSON Schema of a profile."""
    return {"$schema": _SCHEMA_URL, **ProfileFile.model_json_schema()}


def llm_config_schema() -> dict[str, Any]:
    """The published JSON Schema of `llm_config.yaml`."""
    return {"$schema": _SCHEMA_URL, **LlmConfigFile.model_json_schema()}


def extra_parameters(parameters: ParameterSettings) -> dict[str, Any]:
    """The parameters that only the model's server understands."""
    return dict(parameters.model_extra or {})
