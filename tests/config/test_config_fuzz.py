"""Any file gives a working configuration, or an error with its line and key; never a traceback."""

from __future__ import annotations

import string
import tomllib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import pytest
import yaml
from hypothesis import example, given, settings, strategies as st

from bicameral.config import load_config, open_models
from bicameral.errors import BicameralError, ConfigError, ModelError
from bicameral.models import Message, ModelRequest
from bicameral.routing import ROLES, CallContext, Router
from property_examples import examples

ALIASES = ("main", "fast", "local", "embedded", "a b", "planning", "")
MODELS = ("openai/gpt-4.1", "ollama/llama3", "local/0.5b", "local/9b", "gpt", "azure/x", "/", "x/y/z", "litellm/a/b")
CONDITIONS = (
    *("has_tools", "no_tools", "message_count > 3", "message_count < 2 and message_count > 4", "hint:planning"),
    *("not (has_tools or label: trusted)", "always", "budget_left < 3 tokens", "bogus", "(", "hint:main", ""),
)

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from([*ALIASES, *MODELS, *CONDITIONS, *ROLES]),
)
anything = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8) | st.sampled_from(ALIASES), inner, max_size=3)
    ),
    max_leaves=8,
)


@st.composite
def mostly(draw: st.DrawFn, right: st.SearchStrategy[Any]) -> Any:
    """What belongs there, and once in a while something else."""
    return draw(right if draw(st.integers(0, 9)) else anything)


aliases = mostly(st.sampled_from(ALIASES[:3]))
numbers = mostly(st.sampled_from([0, 1, 3, 0.5, -1]))
model = mostly(
    st.one_of(
        st.sampled_from(MODELS),
        st.fixed_dictionaries(
            {"model": mostly(st.sampled_from(MODELS[:3]))},
            optional={
                "api_key_env": mostly(st.sampled_from(["KEY_A", "KEY_B"])),
                "quarantined_api_key_env": mostly(st.sampled_from(["KEY_A", "KEY_C"])),
                "fallback": mostly(st.lists(aliases, max_size=2)),
                "retry": mostly(st.fixed_dictionaries({}, optional={"attempts": numbers, "first": numbers})),
                "budget": mostly(st.fixed_dictionaries({}, optional={"money": numbers, "calls": numbers})),
                "temperature": numbers,
                "hedge_after": numbers,
                "cache": mostly(st.booleans()),
                "base_url": mostly(st.sampled_from(["http://127.0.0.1:1/v1", "no url", "http://[::1"])),
            },
        ),
        st.fixed_dictionaries({"cascade": mostly(st.lists(aliases, max_size=2))}),
    )
)
rules = mostly(
    st.lists(
        mostly(st.fixed_dictionaries({"condition": mostly(st.sampled_from(CONDITIONS)), "model": aliases})), max_size=3
    )
)
llm = st.fixed_dictionaries(
    {"models": mostly(st.dictionaries(st.sampled_from(ALIASES[:3]), model, min_size=2))},
    optional={
        "default_model": aliases,
        "model_roles": mostly(st.dictionaries(st.sampled_from(ROLES) | st.text(max_size=6), aliases, max_size=3)),
        "routing": mostly(st.fixed_dictionaries({"rules": rules}, optional={"enabled": mostly(st.booleans())})),
        "default_params": mostly(st.dictionaries(st.sampled_from(["temperature", "top_p"]), numbers)),
        "model_params": mostly(st.dictionaries(st.sampled_from(ALIASES), anything, max_size=1)),
        "budget": mostly(st.dictionaries(st.sampled_from(["money", "calls"]), numbers)),
    },
)
phases = mostly(st.dictionaries(st.sampled_from(["sense", "plan", "act", "acts"]), aliases, max_size=2))
profiles = st.fixed_dictionaries(
    {"llm": mostly(llm)},
    optional={
        "agent": mostly(
            st.fixed_dictionaries({"planning_strategy_params": st.fixed_dictionaries({"phase_models": phases})})
        )
    },
)


def tried(profile: str, *, as_toml: bool = False) -> BicameralError | None:
    """The error that a file is, or None if it works: every call of every chamber finds a model."""
    with TemporaryDirectory() as folder:
        base = Path(folder)
        try:
            if as_toml:
                (base / "bicameral.toml").write_bytes(profile.encode("utf-8", "surrogatepass"))
                config = load_config(base=base, environment={"BICAMERAL_ACCEPT": folder})
            else:
                (base / "profile.yaml").write_bytes(profile.encode("utf-8", "surrogatepass"))
                config = load_config(base=base, profile=base / "profile.yaml", environment={})
        except ConfigError as error:
            return error
        try:
            models = open_models(config)
        except ModelError as error:
            # A key that both sides share is known only when the keys are looked up.
            return error
        for router in (models.privileged, models.quarantined):
            assert isinstance(router, Router)
            for call, here in calls():
                assert router.choose(call, here).alias in router.aliases
            assert router.name
        return None


def calls() -> Iterator[tuple[ModelRequest, CallContext]]:
    for role in ROLES:
        yield ModelRequest((Message("user", "hello"),)), CallContext(role=role, phase="plan")
        yield ModelRequest((), model="planning", json_schema={}), CallContext(role=role, trusted=True, failures=3)


def clear(error: BicameralError) -> None:
    """It says what is wrong, in which file and line, and which key."""
    assert error.code.partition(".")[0] in ("config", "routing", "models")
    assert error.place is not None, error
    assert error.place.file, error
    assert error.place.line is not None, error
    assert "Traceback" not in str(error)


@given(profiles)
@settings(max_examples=examples(150))
def test_any_profile_works_or_is_told_with_its_line(profile: Any) -> None:
    error = tried(yaml.safe_dump(profile, allow_unicode=True))
    if isinstance(error, ConfigError):
        clear(error)


@given(st.text(max_size=200) | st.text(string.printable + "&*!%@`{}[]:-#'\"|>\n", max_size=200))
@example("a: \x00")
@example("llm: \ud800")
@example("llm: {models: {a: 0o9}}")
@example("? [a, b]\n: c")
@example("llm: 2026-99-99")
@example("%YAML 9.9\n---\na: b")
@example("llm: &x {models: *x}")
@example("llm: {<<: {models: {}}}")
@example("llm: {models: {a: 1e999}}")
@example("--- a\n--- b")
@example("llm: " + "9" * 5_000)
@settings(max_examples=examples(300))
def test_any_text_works_or_is_told_with_its_line(text: str) -> None:
    error = tried(text)
    if error is not None:
        clear(error)


def toml(value: Any) -> str:
    """A value as TOML writes it, on one line."""
    match value:
        case bool():
            return str(value).lower()
        case dict():
            pairs = cast("dict[str, Any]", value).items()
            inner = ", ".join(f"{toml(str(key))} = {toml(each)}" for key, each in pairs if each is not None)
            return "{" + inner + "}"
        case list():
            return "[" + ", ".join(toml(each) for each in cast("list[Any]", value) if each is not None) + "]"
        case str():
            return (
                '"' + "".join(f"\\U{ord(letter):08x}" for letter in value if not 0xD800 <= ord(letter) < 0xE000) + '"'
            )
        case float():
            return repr(value)
        case _:
            return str(value)


@given(profiles)
@settings(max_examples=examples(100))
def test_the_same_in_toml(profile: dict[str, Any]) -> None:
    text = "".join(f"{key} = {toml(value)}\n" for key, value in profile.items() if value is not None)
    tomllib.loads(text)
    error = tried(text, as_toml=True)
    if isinstance(error, ConfigError):
        clear(error)


@pytest.mark.parametrize("text", ["", "\n", "# nothing\n", "llm: {}\n", "llm:\n  models: {}\n"])
def test_nothing_said_is_nothing_wrong(text: str) -> None:
    assert tried(text) is None
