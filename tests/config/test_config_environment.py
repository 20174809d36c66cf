"""Environment variables go over the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from bicameral.config import Config, load_config
from bicameral.errors import ConfigError


def loaded(base: Path, text: str = "", **variables: str) -> Config:
    (base / "bicameral.toml").write_text(text, encoding="utf-8")
    return load_config(base=base, environment={"BICAMERAL_ACCEPT": str(base), **variables})


def test_short_names_set_what_they_say(tmp_path: Path) -> None:
    config = loaded(
        tmp_path,
        BICAMERAL_PROFILE="small",
        BICAMERAL_MODELS="/srv/models",
        BICAMERAL_THREADS="3",
        BICAMERAL_JOURNAL="j.db",
        BICAMERAL_CACHE="c",
    )
    assert config.profile == "small"
    assert config.models_folder == Path("/srv/models")
    assert config.models.threads == 3
    assert config.journal_file == tmp_path / "j.db"
    assert config.cache_folder == tmp_path / "c"


def test_a_variable_goes_over_the_file(tmp_path: Path) -> None:
    assert loaded(tmp_path, "[limits]\nmax_items = 10\n", BICAMERAL_LIMITS__MAX_ITEMS="20").limits.max_items == 20


def test_a_double_underscore_goes_one_table_deeper(tmp_path: Path) -> None:
    config = loaded(
        tmp_path,
        '[toolbox.mail]\nfolder = "a"\naddress = "me@example.com"\n',
        BICAMERAL_TOOLBOX__MAIL__FOLDER="Maildir",
        BICAMERAL_TOOLBOX__MAIL__SMTP__HOST="localhost",
        BICAMERAL_TOOLBOX__MAIL__SMTP__PORT="2525",
    )
    assert config.toolbox["mail"] == {
        "folder": "Maildir",
        "address": "me@example.com",
        "smtp": {"host": "localhost", "port": 2525},
    }


def test_lists_are_separated_by_commas_or_written_as_toml(tmp_path: Path) -> None:
    assert loaded(tmp_path, BICAMERAL_FOLDERS__READ="., data").folders.read == (".", "data")
    assert loaded(tmp_path, BICAMERAL_FOLDERS__READ='["a,b"]').folders.read == ("a,b",)


def test_an_empty_variable_sets_nothing(tmp_path: Path) -> None:
    assert loaded(tmp_path, 'profile = "small"\n', BICAMERAL_PROFILE="").profile == "small"


def test_a_password_that_happens_to_have_our_prefix_is_left_alone(tmp_path: Path) -> None:
    assert loaded(tmp_path, BICAMERAL_SMTP_PASSWORD="secret") == loaded(tmp_path)


@pytest.mark.parametrize(
    ("variable", "value", "code"),
    [
        ("BICAMERAL_THREADS", "many", "config.wrong-type"),
        ("BICAMERAL_PROFILE", "huge", "config.wrong-type"),
        ("BICAMERAL_LIMITS__MAX_ITEM", "3", "config.unknown-key"),
        ("BICAMERAL_PROFILE__DEEPER", "3", "config.wrong-type"),
    ],
)
def test_a_wrong_variable_is_named(tmp_path: Path, variable: str, value: str, code: str) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, 'profile = "small"\n', **{variable: value})
    assert caught.value.code == code
    assert variable in str(caught.value)


def test_an_argument_goes_over_everything(tmp_path: Path) -> None:
    assert (
        load_config(base=tmp_path, profile="default", environment={"BICAMERAL_PROFILE": "small"}).profile == "default"
    )
