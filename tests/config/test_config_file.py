"""The configuration file: what it may say, and what a mistake in it gets."""

from __future__ import annotations

import contextlib
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic import BaseModel

from bicameral.config import Config, ConfigFile, config_schema, config_template, find_file, load_config, open_registry
from bicameral.errors import ConfigError
from bicameral.openapi import parse_document

SCHEMA = Path(__file__).parents[2] / "schemas" / "config.v1.json"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user of our own: no file or variable of the machine plays a part."""
    for variable, folder in (("XDG_CONFIG_HOME", "config"), ("XDG_STATE_HOME", "state"), ("XDG_CACHE_HOME", "cache")):
        monkeypatch.setenv(variable, str(tmp_path / folder))
    for variable in ("BICAMERAL_CONFIG", "BICAMERAL_MODELS", "BICAMERAL_THREADS", "BICAMERAL_PROFILE"):
        monkeypatch.delenv(variable, raising=False)
    (tmp_path / "work").mkdir()
    return tmp_path


def written(home: Path, text: str) -> Path:
    (home / "work" / "bicameral.toml").write_text(text, encoding="utf-8")
    return home / "work"


def refused(base: Path, **options: Any) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load_config(base=base, **options)
    return caught.value


def test_without_any_file_the_defaults_serve(home: Path) -> None:
    config = load_config(base=home / "work")
    assert config == Config.defaults(home / "work")
    assert config.source is None
    assert (config.weights("privileged"), config.weights("quarantined")) == ("1.5b", "0.5b")
    assert config.folders.read == (".",)
    assert config.journal_file == home / "state" / "bicameral" / "journal.db"
    assert config.models_folder == home / "cache" / "bicameral" / "models"


def test_the_file_that_init_writes_says_exactly_what_the_defaults_are() -> None:
    assert ConfigFile.model_validate(tomllib.loads(config_template())) == ConfigFile()


def test_every_setting_that_init_leaves_out_is_written_as_an_example_that_is_valid(home: Path) -> None:
    everything = tomllib.loads(config_template().replace("#:", ""))
    ConfigFile.model_validate(everything)
    base = written(home, config_template().replace("#:", ""))
    (base / "Maildir").mkdir()
    (base / "mcp").mkdir()
    (base / "mcp" / "time.toml").write_text("version = 1\n")
    (base / "openapi").mkdir()
    schemes = {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}}
    document = parse_document(json.dumps({"openapi": "3.1.0", "paths": {}, "components": schemes}), "tracker.json")
    (base / "openapi" / "tracker.json").write_text(document.to_text())
    (base / "openapi" / "tracker.toml").write_text(f'version = 1\ndocument = "{document.digest}"\n')
    (base / "profile.yaml").write_text("agent:\n  planning_strategy: spar\n")
    (base / "llm_config.yaml").write_text("models:\n  powerful: openai/gpt-4.1\n")
    assert "send_mail" in open_registry(load_config(base=base))


def test_init_mentions_every_setting() -> None:
    everything = tomllib.loads(config_template().replace("#:", ""))
    assert set(everything) == set(ConfigFile.model_fields)
    for name, field in ConfigFile.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            assert set(everything[name]) == set(field.annotation.model_fields), name


def test_the_published_schema_is_in_step() -> None:
    assert json.loads(SCHEMA.read_text(encoding="utf-8")) == config_schema()


def test_the_schema_takes_what_init_writes() -> None:
    import jsonschema

    jsonschema.validate(tomllib.loads(config_template()), config_schema())


def test_the_file_of_the_working_folder_goes_before_the_users(home: Path) -> None:
    users = home / "config" / "bicameral" / "bicameral.toml"
    users.parent.mkdir(parents=True)
    users.write_text('profile = "small"\n')
    assert find_file(home / "work") == users
    assert load_config(base=home / "work").profile == "small"
    base = written(home, "")
    assert load_config(base=base).profile == "default"
    assert load_config(base=base).source == base / "bicameral.toml"


def test_a_given_file_goes_before_both(home: Path) -> None:
    base = written(home, 'profile = "default"\n')
    other = home / "other.toml"
    other.write_text('profile = "small"\n')
    assert load_config(other, base=base).profile == "small"
    assert load_config(base=base, environment={"BICAMERAL_CONFIG": str(other)}).profile == "small"


def test_a_file_that_is_named_and_not_there_is_an_error(home: Path) -> None:
    error = refused(home / "work", file=home / "gone.toml")
    assert error.code == "config.unreadable"
    assert "gone.toml" in str(error)


def test_a_working_folder_that_is_not_there_is_an_error(home: Path) -> None:
    assert refused(home / "nowhere").code == "config.no-folder"


def test_an_unknown_key_is_refused_with_its_line_and_the_nearest_name(home: Path) -> None:
    error = refused(written(home, 'profile = "small"\n\n[folders]\nread = ["."]\nwrte = ["."]\n'))
    assert error.code == "config.unknown-key"
    assert error.nearest == "write"
    assert error.place is not None
    assert error.place.line == 5
    assert str(error.place.file).endswith("bicameral.toml")


def test_an_unknown_table_is_refused_with_the_nearest_name(home: Path) -> None:
    error = refused(written(home, "# a comment\n\n[model]\nthreads = 2\n"))
    assert (error.code, error.nearest) == ("config.unknown-key", "models")
    assert error.place is not None
    assert error.place.line == 3


def test_a_wrong_type_is_refused_with_its_line_and_what_was_expected(home: Path) -> None:
    error = refused(written(home, '[models]\nprivileged = "1.5b"\nthreads = "four"\n'))
    assert error.code == "config.wrong-type"
    assert "models.threads" in error.message
    assert error.expected == "a valid integer"
    assert error.place is not None
    assert error.place.line == 3


@pytest.mark.parametrize("table", ["limits", "reason", "llm.budget"])
@pytest.mark.parametrize("key", ["money", "seconds"])
@pytest.mark.parametrize("number", ["inf", "nan"])
def test_a_limit_that_is_not_finite_is_refused(home: Path, table: str, key: str, number: str) -> None:
    error = refused(written(home, f"[{table}]\n{key} = {number}\n"))
    assert (error.code, error.expected) == ("config.wrong-type", "a finite number")
    assert f"{table}.{key}" in error.message


def test_nothing_is_coerced(home: Path) -> None:
    assert refused(written(home, '[limits]\nmax_items = "12"\n')).code == "config.wrong-type"
    assert refused(written(home, "[limits]\nmax_items = 1.0\n")).code == "config.wrong-type"
    assert refused(written(home, "[limits]\nmax_items = 0\n")).code == "config.wrong-type"
    assert refused(written(home, 'profile = "tiny"\n')).expected == "'default' or 'small'"


def test_the_line_of_a_value_that_spans_lines_is_its_first(home: Path) -> None:
    text = '[folders]\nread = [\n  ".",\n  3,\n]\n'
    error = refused(written(home, text))
    assert error.place is not None
    assert error.place.line == 2


def test_broken_toml_is_refused_with_line_and_column(home: Path) -> None:
    error = refused(written(home, 'profile = "small"\nfolders = [1,\n}\n'))
    assert error.code == "config.bad-toml"
    assert error.place is not None
    assert (error.place.line, error.place.column) == (3, 1)


def test_a_binary_file_is_refused(home: Path) -> None:
    (home / "work" / "bicameral.toml").write_bytes(b"\xff\xfe\x00\x01")
    assert refused(home / "work").code == "config.bad-toml"


def test_a_huge_file_is_refused(home: Path) -> None:
    assert refused(written(home, "#" * 1_000_001)).code == "config.too-large"


def test_deep_nesting_is_refused_not_a_crash(home: Path) -> None:
    assert refused(written(home, f"profile = {'[' * 5000}{']' * 5000}\n")).code in (
        "config.bad-toml",
        "config.wrong-type",
    )


def test_relative_paths_start_at_the_working_folder(home: Path) -> None:
    base = written(home, '[journal]\nfile = ".bicameral/journal.db"\n[cache]\nfolder = "c"\n[models]\nfolder = "~/m"\n')
    config = load_config(base=base)
    assert config.journal_file == base / ".bicameral" / "journal.db"
    assert config.cache_folder == base / "c"
    assert config.models_folder == Path("~/m").expanduser()


def test_toolbox_files_start_next_to_the_file_that_names_them(home: Path) -> None:
    other = home / "shared" / "b.toml"
    other.parent.mkdir()
    other.write_text('[toolboxes]\nfiles = ["mine.py"]\n')
    assert load_config(other, base=home / "work").toolbox_files == (home / "shared" / "mine.py",)


def test_the_small_profile_uses_the_quarantined_model_for_both_roles(home: Path) -> None:
    config = load_config(base=written(home, '[models]\nprivileged = "1.5b"\n'), profile="small")
    assert config.weights("privileged") == config.weights("quarantined") == "0.5b"


@given(st.text(max_size=200))
def test_any_text_is_a_configuration_or_a_config_error(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    base = tmp_path_factory.mktemp("any")
    (base / "bicameral.toml").write_bytes(text.encode("utf-8", "surrogatepass"))
    with contextlib.suppress(ConfigError):
        assert isinstance(load_config(base=base, environment={}), Config)
