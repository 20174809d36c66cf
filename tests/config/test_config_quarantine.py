"""`[quarantine]`: the variant that a configuration chooses is checked, put together in one place, never weakened."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bicameral import Agent
from bicameral.boundary import Extractor, ReadOnlyExecutor, ValidatedExecutor, executor_facts
from bicameral.config import (
    Config,
    configured_executor,
    doctor,
    find_widening,
    load_config,
    needed_weights,
    open_registry,
    record_acceptance,
    with_quarantine_variant,
)
from bicameral.errors import BicameralError, ConfigError
from bicameral.models import ScriptedProvider
from bicameral.tools import executor_fault

TRIPLE = '[quarantine]\nvariant = "triple"\n'


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable.lower()))
    monkeypatch.delenv("BICAMERAL_CONFIG", raising=False)
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def loaded(work: Path, text: str, **environment: str) -> Config:
    file = work / "chosen.toml"
    file.write_text(text)
    return load_config(file, base=work, environment=environment)


def mistake(work: Path, text: str) -> ConfigError:
    with pytest.raises(ConfigError) as found:
        open_registry(loaded(work, text))
    return found.value


def agent_of(config: Config) -> Agent:
    privileged = ScriptedProvider([], name="planner", chamber="privileged")
    return Agent(config=config, privileged=privileged, quarantined=ScriptedProvider([], name="reader"))


def test_nothing_said_means_that_the_model_reads_alone(work: Path) -> None:
    agent = agent_of(Config.defaults(work))
    assert isinstance(agent.executor, Extractor)
    assert executor_facts(agent.executor).to_json() == {"variant": "extract", "model": "reader"}


def test_read_only_gives_the_named_tools_and_no_others(work: Path) -> None:
    agent = agent_of(loaded(work, '[quarantine]\nvariant = "read-only"\nreads = ["read_text", "find"]\nlookups = 5\n'))
    assert isinstance(agent.executor, ReadOnlyExecutor)
    assert executor_facts(agent.executor).tools == ("read_text", "find")
    assert {each.name for each in agent.registry.executor_tools} == {"read_text", "find"}


def test_triple_has_the_rules_and_the_model_that_reads_if_none_is_named(work: Path) -> None:
    agent = agent_of(loaded(work, TRIPLE))
    assert isinstance(agent.executor, ValidatedExecutor)
    assert executor_facts(agent.executor).validators == ("rules", "reader")


def test_triple_has_the_models_that_are_named(work: Path) -> None:
    text = TRIPLE + 'model = "0.5b"\nvalidator_models = ["1.5b", "other"]\n[llm.models]\nother = "ollama/llama3"\n'
    facts = configured_executor(loaded(work, text))
    assert facts.model.startswith("local:")
    assert "0.5b" in facts.model
    assert facts.validators[0] == "rules"
    assert "1.5b" in facts.validators[1]
    assert "llama3" in facts.validators[2] or facts.validators[2] == "other"


def test_the_weights_of_validators_are_fetched_with_the_others(work: Path) -> None:
    wanted = {
        each.alias for each in needed_weights(loaded(work, TRIPLE + 'validator_models = ["1.5b"]\n'), ["quarantined"])
    }
    assert wanted == {"0.5b", "1.5b"}


@pytest.mark.parametrize(
    ("text", "code", "line", "nearest"),
    [
        ('variant = "tripel"', "config.wrong-type", 2, "triple"),
        ('variant = "triple"\nreads = ["read_text"]', "config.other-variant", 3, None),
        ('variant = "read-only"\nvalidators = 2', "config.other-variant", 3, None),
        ('validator_models = ["1.5b"]', "config.other-variant", 2, None),
        ('model = "0.5c"', "config.unknown-model", 2, "0.5b"),
        ('variant = "triple"\nvalidator_models = ["embeded"]', "config.unknown-model", 3, "embedded"),
        ('variant = "triple"\nvalidators = 3', "config.same-validators", 3, None),
        ('variant = "triple"\nvalidators = 3\nvalidator_models = ["1.5b", "0.5b"]', "config.same-validators", 3, None),
        ('variant = "triple"\nvalidator_models = ["1.5b", "1.5b"]', "config.same-validators", 3, None),
        ('variant = "read-only"\nreads = ["read_txt"]', "config.unknown-tool", 3, "read_text"),
        ('variant = "read-only"\nreads = ["fetch_page"]', "config.not-for-executor", 3, None),
        ('variant = "read-only"\nreads = ["fetch_json"]', "config.not-for-executor", 3, None),
        ('variant = "read-only"\nreads = ["write_text"]', "config.not-for-executor", 3, None),
        ('variant = "read-only"\nreads = ["send_mail"]', "config.not-for-executor", 3, None),
        ('variant = "read-only"\nlookups = 0', "config.wrong-type", 3, None),
        ("validator = 2", "config.unknown-key", 2, "validators"),
    ],
)
def test_a_mistake_has_its_place_and_the_nearest_name(
    work: Path, text: str, code: str, line: int, nearest: str | None
) -> None:
    error = mistake(work, f"[quarantine]\n{text}\n")
    assert error.place is not None
    assert (error.code, error.place.line) == (code, line), str(error)
    if nearest is not None:
        assert error.nearest == nearest or nearest in (error.expected or "")


def test_no_standard_tool_that_acts_or_tells_somebody_something_is_fit_for_the_executor(work: Path) -> None:
    registry = open_registry(Config.defaults(work))
    fit = {each.name for each in registry if executor_fault(each) is None}
    assert all(registry[name].effect == "read" and not registry[name].outbound for name in fit)
    assert not fit & {"fetch_page", "fetch_json", "send_mail", "write_text", "delete_file"}
    assert fit >= {"read_text", "find", "read_mail"}


def test_a_toolbox_file_cannot_offer_its_own_tool_to_the_executor(work: Path) -> None:
    (work / "own.py").write_text(
        "from dataclasses import replace\nfrom bicameral import tool\nfrom bicameral.tools import Origin\n"
        '@tool(effect="read", outbound=False, purpose={"x": "selects"}, origins=Origin("system"))\n'
        'def peek(x: str) -> str:\n    "Look."\n    return x\n'
        "peek = replace(peek, for_executor=True)\n"
    )
    registry = open_registry(loaded(work, '[toolboxes]\nfiles = ["own.py"]\n'))
    assert "peek" in registry
    assert registry.executor_tools == ()


# Models that the quarantine may not use


PRIVILEGED_ONLY = '[llm.models]\nmain = { model = "openai/gpt-4.1", api_key_env = "SOME_KEY" }\n'


@pytest.mark.parametrize("setting", ['model = "main"', 'variant = "triple"\nvalidator_models = ["main"]'])
def test_a_model_without_a_key_of_the_quarantine_fails_closed(work: Path, setting: str) -> None:
    error = mistake(work, f"[quarantine]\n{setting}\n{PRIVILEGED_ONLY}")
    assert error.code == "routing.no-quarantined-key"
    assert error.place is not None
    assert error.place.line in (2, 3)


def test_the_same_model_with_a_key_of_its_own_serves(work: Path) -> None:
    own = PRIVILEGED_ONLY.replace(" }", ', quarantined_api_key_env = "OTHER_KEY" }')
    facts = configured_executor(loaded(work, f"{TRIPLE}validator_models = ['main']\n{own}"))
    assert len(facts.validators) == 2


def test_a_key_of_the_privileged_model_cannot_come_in_through_a_validator(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_KEY", "sk-the-same-key")
    monkeypatch.setenv("OTHER_KEY", "sk-the-same-key")
    own = PRIVILEGED_ONLY.replace(" }", ', quarantined_api_key_env = "OTHER_KEY" }')
    config = loaded(work, f'{TRIPLE}validator_models = ["main"]\n[llm]\ndefault_model = "main"\n{own}')
    with pytest.raises(BicameralError) as shared:
        Agent(config=config, quarantined=ScriptedProvider([], name="reader"))
    assert shared.value.code == "models.shared-chamber"


# Whose word counts


def own_file(text: str) -> Path:
    from bicameral.config import user_folder

    file = user_folder("config") / "bicameral.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


@pytest.mark.unaccepted
@pytest.mark.parametrize(
    "beside",
    [
        '[quarantine]\nvariant = "extract"\n',
        "[limits]\nrounds = 3\n",
        '[quarantine]\nvariant = "read-only"\nreads = ["find"]\n',
    ],
)
def test_a_folder_cannot_weaken_what_the_users_own_file_says(work: Path, beside: str) -> None:
    own_file(TRIPLE)
    (work / "bicameral.toml").write_text(beside)
    config = load_config(base=work, environment={}, confirm=lambda _: False)
    assert config.quarantine.variant == "triple"


@pytest.mark.unaccepted
@pytest.mark.parametrize(
    ("wrong", "code"),
    [('model = "0.5c"', "config.unknown-model"), ('variant = "read-only"\nreads = ["nothing"]', "config.unknown-tool")],
)
def test_a_mistake_in_the_users_own_file_has_its_place_there(work: Path, wrong: str, code: str) -> None:
    file = own_file(f"[quarantine]\n{wrong}\n")
    (work / "bicameral.toml").write_text("[limits]\nrounds = 3\n")
    with pytest.raises(ConfigError) as found:
        open_registry(load_config(base=work, environment={}, confirm=lambda _: False))
    assert found.value.code == code
    assert found.value.place is not None
    assert found.value.place.file == str(file)


@pytest.mark.unaccepted
def test_a_folder_cannot_give_the_executor_tools_unaccepted(work: Path) -> None:
    file = work / "bicameral.toml"
    file.write_text('[quarantine]\nvariant = "read-only"\nreads = ["read_text"]\n')
    config = load_config(base=work, environment={}, confirm=lambda _: False)
    assert (config.quarantine.variant, config.quarantine.reads) == ("extract", ())
    assert config.withheld == ("quarantine.reads", "quarantine.variant")


@pytest.mark.unaccepted
def test_what_the_user_has_accepted_counts(work: Path) -> None:
    own_file(TRIPLE)
    file = work / "bicameral.toml"
    file.write_text('[quarantine]\nvariant = "extract"\n')
    record_acceptance(file, find_widening(file, work))
    assert load_config(base=work, environment={}, confirm=lambda _: False).quarantine.variant == "extract"


@pytest.mark.unaccepted
def test_a_folder_may_ask_for_validators(work: Path) -> None:
    (work / "bicameral.toml").write_text(TRIPLE)
    config = load_config(base=work, environment={}, confirm=lambda _: False)
    assert (config.quarantine.variant, config.withheld) == ("triple", ())


@pytest.mark.unaccepted
def test_an_own_file_that_cannot_be_read_is_an_error_and_not_a_weaker_variant(work: Path) -> None:
    own_file("[quarantine\n")
    (work / "bicameral.toml").write_text("[limits]\nrounds = 3\n")
    with pytest.raises(ConfigError) as broken:
        load_config(base=work, environment={}, confirm=lambda _: False)
    assert broken.value.code == "config.bad-toml"


def test_the_environment_sets_it_and_an_option_overrides_it(work: Path) -> None:
    config = loaded(work, "", BICAMERAL_QUARANTINE__VARIANT="read-only", BICAMERAL_QUARANTINE__READS="find, read_text")
    assert (config.quarantine.variant, config.quarantine.reads) == ("read-only", ("find", "read_text"))
    triple = with_quarantine_variant(config, "triple")
    assert (triple.quarantine.variant, triple.quarantine.reads) == ("triple", ())
    assert open_registry(triple).executor_tools == ()


def test_doctor_says_which_variant_there_is_and_warns_of_a_reader_that_validates_itself(work: Path) -> None:
    def found(text: str) -> Any:
        return next(each for each in doctor(loaded(work, text)) if each.name == "quarantine")

    assert found("").status == "ok"
    assert found("").detail.startswith("extract: local:")
    same = found(TRIPLE)
    assert same.status == "warn"
    assert "also validates" in same.detail
    small = found(TRIPLE + 'validator_models = ["1.5b"]\n')
    assert (small.status, "also validates" in small.detail) == ("warn", False)
    assert "too small" in small.detail
    other = found(TRIPLE + 'validator_models = ["other"]\n[llm.models]\nother = "ollama/llama3"\n')
    assert (other.status, "checked by rules, " in other.detail) == ("ok", True)


def test_the_worst_case_counts_the_calls_of_validators(work: Path) -> None:
    plan = 'note = read_text("a.txt")\nwhat = extract(note, "the day", date)\nanswer(what)\n'
    from bicameral.plans import parse

    def most(text: str) -> int:
        agent = agent_of(loaded(work, text))
        return agent.worst_case(agent.check(parse(plan, agent.registry).plan).report).calls

    assert most("") < most(TRIPLE) < most('[quarantine]\nvariant = "read-only"\nreads = ["find"]\n')
    assert json.dumps(executor_facts(agent_of(loaded(work, TRIPLE)).executor).to_json())
