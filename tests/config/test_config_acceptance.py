"""A folder's configuration is used in full only after its user has accepted it, and what he accepted is what counts."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from bicameral.agent import Agent
from bicameral.config import (
    Config,
    ConfigFile,
    UnacceptedConfigWarning,
    acceptance_file,
    config_template,
    doctor,
    find_widening,
    forget_acceptance,
    load_config,
    open_registry,
    record_acceptance,
)
from bicameral.models import ScriptedProvider

pytestmark = pytest.mark.unaccepted


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable.lower()))
    monkeypatch.delenv("BICAMERAL_CONFIG", raising=False)
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def written(work: Path, text: str) -> Path:
    (work / "bicameral.toml").write_text(text)
    return work / "bicameral.toml"


def quiet(work: Path, **variables: str) -> Config:
    return load_config(base=work, environment=variables, confirm=lambda _: False)


WIDENING = """
[toolboxes]
files = ["own.py"]
[policy]
mode = "normal"
[toolbox.mail]
address = "me@example.com"
[limits]
rounds = 3
"""


def test_what_widens_is_withheld_the_rest_is_used_and_this_is_said(work: Path) -> None:
    written(work, WIDENING)
    with pytest.warns(UnacceptedConfigWarning, match=r"toolbox.mail.address, toolboxes.files.*\[config.unaccepted\]"):
        config = load_config(base=work, environment={})
    assert config.withheld == ("policy.mode", "toolbox.mail.address", "toolboxes.files")
    assert (config.policy.mode, config.toolbox, config.toolbox_files, config.limits.rounds) == ("strict", {}, (), 3)


def test_a_folder_beside_the_working_folder_is_withheld_by_whatever_name(work: Path) -> None:
    (work.parent / "work-of-others").mkdir()
    (work / "link").symlink_to("../work-of-others")
    outside = ["..", "../work-of-others", "link", "/", str(work.parent / "work-of-others")]
    written(work, f"[folders]\nread = {json.dumps(['.', 'sub', *outside])}\nwrite = {json.dumps(['sub', *outside])}")
    config = quiet(work)
    assert config.withheld == ("folders.read", "folders.write")
    assert find_widening(work / "bicameral.toml", base=work).settings == {
        "folders.read": outside,
        "folders.write": outside,
    }


def test_an_agent_from_python_says_so_too(work: Path) -> None:
    written(work, WIDENING)
    with pytest.warns(UnacceptedConfigWarning):
        agent = Agent.from_config(
            privileged=ScriptedProvider([], grammars=False), quarantined=ScriptedProvider([], grammars=False)
        )
    assert agent.policy.mode == "strict"


def test_the_doctor_warns_of_it(work: Path) -> None:
    written(work, '[policy]\nmode = "normal"\n')
    (found,) = [check for check in doctor(quiet(work)) if check.name == "configuration"]
    assert (found.status, "policy.mode" in found.detail, "config accept" in found.fix) == ("warn", True, True)


def test_a_yes_is_remembered_for_what_was_seen(work: Path) -> None:
    (work / "own.py").write_text("x = 1\n")
    file = written(work, WIDENING)
    assert load_config(base=work, environment={}, confirm=lambda _: True).withheld == ()
    assert load_config(base=work, environment={}).policy.mode == "normal"
    written(work, WIDENING.replace("rounds = 3", "rounds = 4"))
    assert load_config(base=work, environment={}).limits.rounds == 4
    (work / "own.py").write_text("x = 2\n")
    assert quiet(work).withheld
    assert forget_acceptance(file)
    assert not forget_acceptance(file)


def test_a_change_is_shown_as_a_change(work: Path) -> None:
    (work / "own.py").write_text("x = 1\n")
    file = written(work, WIDENING)
    record_acceptance(file, find_widening(file, work))
    (work / "own.py").write_text("x = 2\n")
    written(work, WIDENING.replace('mode = "normal"', 'me = ["x@y.z"]'))
    seen: list[str] = []
    load_config(base=work, environment={}, confirm=lambda found: bool(seen.extend(found.describe())))
    assert [line.replace(str(work), "") for line in seen] == [
        'uses the file "/own.py" (changed)',
        'policy.me = ["x@y.z"] (new)',
        '"policy.mode" (gone)',
        'toolbox.mail.address = "me@example.com"',
        'toolboxes.files = ["own.py"]',
    ]


def test_what_is_shown_holds_no_character_that_a_terminal_obeys(work: Path) -> None:
    written(work, '[toolbox.mail]\naddress = "a\\u001b[2Jb\\u202e"\n')
    seen: list[str] = []
    load_config(base=work, environment={}, confirm=lambda found: bool(seen.extend(found.describe())))
    assert seen == ['toolbox.mail.address = "a\\u001b[2Jb\\u202e"']


@pytest.mark.parametrize("listed", ["/nowhere:{work}", "{work}/bicameral.toml", "{work}/"])
def test_the_environment_may_list_the_file_or_its_folder(work: Path, listed: str) -> None:
    written(work, WIDENING)
    assert quiet(work, BICAMERAL_ACCEPT=listed.format(work=work)).withheld == ()


def test_a_folder_further_out_does_not_count(work: Path) -> None:
    written(work, WIDENING)
    assert quiet(work, BICAMERAL_ACCEPT=str(work.parent)).withheld


def test_a_file_that_is_named_counts_and_so_does_the_users_own(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(work, '[policy]\nmode = "normal"\n')
    assert load_config(file, base=work, environment={}).policy.mode == "normal"
    assert load_config(base=work, environment={"BICAMERAL_CONFIG": str(file)}).policy.mode == "normal"
    own = work.parent / "xdg_config_home" / "bicameral" / "bicameral.toml"
    own.parent.mkdir(parents=True)
    file.rename(own)
    assert load_config(base=work, environment={}).policy.mode == "normal"


def test_the_record_is_private_and_holds_no_value(work: Path) -> None:
    file = written(work, '[durable]\ndatabase = "postgresql://me:secret@db/x"\n')
    record_acceptance(file, find_widening(file, work))
    record = acceptance_file()
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    assert "secret" not in record.read_text()
    assert list(json.loads(record.read_text())["accepted"]) == [str(file.resolve())]


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"accepted": []}', '{"accepted": {"x": 1}}'])
def test_a_damaged_record_accepts_nothing(work: Path, damage: str) -> None:
    file = written(work, WIDENING)
    record_acceptance(file, find_widening(file, work))
    acceptance_file().write_text(damage)
    assert quiet(work).withheld


def test_what_init_writes_widens_nothing(work: Path) -> None:
    file = written(work, config_template())
    assert not find_widening(file, work)


def test_every_table_is_harmless_by_decision_or_withheld(work: Path) -> None:
    """A new table is withheld until somebody has decided that it is harmless."""
    harmless = {name for name in ConfigFile.model_fields if name in ("profile", "limits")}
    tables = set(ConfigFile.model_fields) - harmless - {"folders", "toolboxes", "toolbox"}
    for name in sorted(tables):
        written(work, f"[{name}]\nnobody_knows_this = 1\n")
        assert quiet(work).withheld == (f"{name}.nobody_knows_this",)


def test_the_files_of_a_withheld_configuration_are_protected_like_those_of_an_accepted_one(work: Path) -> None:
    (work / "own.py").write_text("x = 1\n")
    written(work, WIDENING)
    target = open_registry(quiet(work))["write_text"].write_target({"path": "own.py", "text": ""})
    assert target is not None
    assert target.protected is not None
