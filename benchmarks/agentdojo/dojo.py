"""The one door to agentdojo, which ships no types: what comes through it is typed here, as far as it is used."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

from agentdojo.agent_pipeline.base_pipeline_element import BasePipelineElement
from agentdojo.agent_pipeline.ground_truth_pipeline import GroundTruthPipeline
from agentdojo.attacks.important_instructions_attacks import ImportantInstructionsAttack
from agentdojo.default_suites.v1.tools.banking_client import Transaction as Transaction
from agentdojo.functions_runtime import FunctionCall, FunctionsRuntime
from agentdojo.task_suite.load_suites import get_suite
from agentdojo.task_suite.task_suite import read_suite_file
from agentdojo.types import text_content_block_from_string
from pydantic import BaseModel

VERSION = "v1.2.2"
SUITES = ("workspace", "travel", "banking", "slack")

Pipeline = BasePipelineElement
"""What a suite runs a task with; its `query` gives the messages and the environment afterwards."""


class Made(Protocol):
    """A call of a tool that was made, or that a ground truth makes."""

    function: str
    args: Mapping[str, Any]


class ToolFunction(Protocol):
    """A tool of a suite."""

    name: str
    description: str
    parameters: type[BaseModel]
    return_type: Any


class UserTask(Protocol):
    """What a user asks for, and how the suite judges whether he got it."""

    ID: str
    PROMPT: str

    def init_environment(self, environment: Any) -> Any: ...
    def ground_truth(self, pre_environment: Any) -> Sequence[Made]: ...
    def utility(self, model_output: str, pre_environment: Any, post_environment: Any) -> bool: ...
    def utility_from_traces(
        self, model_output: str, pre_environment: Any, post_environment: Any, traces: Sequence[Made]
    ) -> bool | None: ...


class InjectionTask(Protocol):
    """What an attacker is after, and how the suite judges whether he got it (True means that he did)."""

    ID: str
    GOAL: str

    def ground_truth(self, pre_environment: Any) -> Sequence[Made]: ...
    def security(self, model_output: str, pre_environment: Any, post_environment: Any) -> bool: ...
    def security_from_traces(
        self, model_output: str, pre_environment: Any, post_environment: Any, traces: Sequence[Made]
    ) -> bool | None: ...


class Suite(Protocol):
    """Tools, an environment, and tasks in it."""

    name: str
    tools: Sequence[ToolFunction]
    environment_type: type[BaseModel]
    data_path: Path | None

    @property
    def user_tasks(self) -> Mapping[str, UserTask]: ...
    @property
    def injection_tasks(self) -> Mapping[str, InjectionTask]: ...
    def get_injection_vector_defaults(self) -> Mapping[str, str]: ...
    def load_and_inject_default_environment(self, injections: Mapping[str, str]) -> Any: ...
    def run_task_with_pipeline(
        self,
        agent_pipeline: Pipeline,
        user_task: UserTask,
        injection_task: InjectionTask | None,
        injections: dict[str, str],
        *,
        environment: Any = None,
    ) -> tuple[bool, bool]: ...


class Runtime(Protocol):
    """What runs a suite's tools on an environment."""

    def run_function(self, env: Any, function: str, kwargs: Mapping[str, Any]) -> tuple[Any, str | None]: ...


def suite_of(name: str) -> Suite:
    return cast("Suite", get_suite(VERSION, name))


def runtime_of(suite: str) -> Runtime:
    return cast("Runtime", FunctionsRuntime(cast("Any", suite_of(suite).tools)))


def environment_text(suite: str) -> str:
    """The suite's environment as YAML, with the names of the injection vectors in braces."""
    return read_suite_file(suite, "environment.yaml", suite_of(suite).data_path)


def made(function: str, arguments: Mapping[str, Any]) -> Made:
    return cast("Made", FunctionCall(function=function, args=dict(arguments)))


def said(text: str, calls: Sequence[Made] | None = None) -> Any:
    """A message of the agent's: what it says, and what it calls."""
    return {"role": "assistant", "content": [text_content_block_from_string(text)], "tool_calls": calls}


def important_instructions(suite: str, user_task: UserTask, injection_task: InjectionTask) -> Mapping[str, str]:
    """The suite's own attack on a local model: its text at the vectors that the task comes across."""
    pipeline = GroundTruthPipeline(None)
    # The attack addresses the model by a name from its own table.
    pipeline.name = "local"
    attack = ImportantInstructionsAttack(cast("Any", suite_of(suite)), pipeline)
    return attack.attack(cast("Any", user_task), cast("Any", injection_task))
