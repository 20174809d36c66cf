"""The tools that a configuration names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bicameral.config import Config, load_config, open_cache, open_journal, open_models, open_registry
from bicameral.config._resources import missing_toolboxes  # pyright: ignore[reportPrivateUsage]
from bicameral.errors import BicameralError, ConfigError, ToolError


def configured(base: Path, text: str) -> Config:
    (base / "bicameral.toml").write_text(text, encoding="utf-8")
    return load_config(base=base, environment={"BICAMERAL_ACCEPT": str(base)})


def refused(config: Config) -> BicameralError:
    with pytest.raises(BicameralError) as caught:
        open_registry(config)
    return caught.value


def test_the_defaults_give_the_whole_standard_toolbox(tmp_path: Path) -> None:
    registry = open_registry(Config.defaults(tmp_path))
    assert {tool.toolbox for tool in registry} == {
        "files",
        "lines",
        "tables",
        "mail",
        "calendar",
        "web",
        "clock",
        "find",
    }
    assert {"read_lines", "sort_lines", "read_csv", "search_mail", "list_events", "fetch_page", "today"} <= set(
        registry.names
    )


def test_only_the_toolboxes_that_are_named_are_there(tmp_path: Path) -> None:
    registry = open_registry(configured(tmp_path, '[toolboxes]\nuse = ["lines"]\n'))
    assert {tool.toolbox for tool in registry} == {"lines"}


async def test_tools_reach_the_configured_folders_and_no_others(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "a.txt").write_text("hello")
    registry = open_registry(configured(tmp_path, '[folders]\nread = ["inside"]\nwrite = []\n'))
    assert await registry["read_text"].call({"path": "inside/a.txt"}) == "hello"
    for tool, arguments in (
        ("read_text", {"path": "outside/a.txt"}),
        ("read_text", {"path": "inside/../outside/a.txt"}),
        ("write_text", {"path": "inside/b.txt", "text": "x"}),
    ):
        with pytest.raises(ToolError):
            await registry[tool].call(arguments)
    assert not (inside / "b.txt").exists()


def test_an_unknown_toolbox_is_refused_with_its_line(tmp_path: Path) -> None:
    error = refused(configured(tmp_path, 'profile = "small"\n[toolboxes]\nuse = ["line"]\n'))
    assert (error.code, error.nearest) == ("tools.unknown-toolbox", "lines")
    assert error.place is not None
    assert error.place.line == 3


def test_settings_of_no_toolbox_are_refused(tmp_path: Path) -> None:
    error = refused(configured(tmp_path, '[toolbox.mial]\nfolder = "x"\n'))
    assert (error.code, error.nearest) == ("config.unknown-key", "mail")
    assert error.place is not None
    assert error.place.line == 1


def test_an_unknown_setting_of_a_toolbox_is_refused_with_its_line(tmp_path: Path) -> None:
    error = refused(configured(tmp_path, '[toolbox.mail]\nfolder = "x"\nadress = "me@example.com"\n'))
    assert isinstance(error, ConfigError)
    assert (error.code, error.nearest) == ("config.unknown-key", "address")
    assert error.place is not None
    assert error.place.line == 3


def test_a_setting_deep_inside_a_toolbox_is_refused_with_its_name(tmp_path: Path) -> None:
    error = refused(configured(tmp_path, '[toolbox.mail]\nsmtp = { host = "h", tls = "maybe" }\n'))
    assert error.code == "config.wrong-type"
    assert "toolbox.mail.smtp.tls" in error.message


def test_settings_that_do_not_go_together_are_refused_in_the_toolboxs_words(tmp_path: Path) -> None:
    error = refused(configured(tmp_path, '[toolbox.mail]\nsmtp = { host = "h", user = "me" }\n'))
    assert error.code == "config.wrong-value"
    assert "password_env" in str(error)


def test_ones_own_tools_are_loaded_from_files(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from bicameral import tool\n\n@tool(effect='pure')\ndef shout(text: str) -> str:\n"
        "    'Upper case.'\n    return text.upper()\n"
    )
    registry = open_registry(configured(tmp_path, '[toolboxes]\nuse = ["lines"]\nfiles = ["mine.py"]\n'))
    assert registry["shout"].toolbox == "mine"


def test_a_file_of_tools_that_is_not_there_is_refused_with_its_line(tmp_path: Path) -> None:
    error = refused(configured(tmp_path, '[toolboxes]\nfiles = ["gone.py"]\n'))
    assert error.code == "tools.no-such-file"
    assert error.place is not None
    assert error.place.line == 2


def test_two_tools_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from bicameral import tool\n\n@tool(effect='pure')\ndef grep(text: str) -> str:\n    return text\n"
    )
    assert refused(configured(tmp_path, '[toolboxes]\nfiles = ["mine.py"]\n')).code == "tools.duplicate"


def test_a_toolbox_whose_package_is_missing_is_left_out_unless_it_was_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bicameral.tools import LoadedToolbox, load_installed_toolbox

    def lacking(name: str, installed: Any) -> LoadedToolbox:
        if name == "web":
            raise ToolError("tools.missing-extra", "the module 'httpx' is not installed")
        return load_installed_toolbox(name, installed)

    monkeypatch.setattr("bicameral.config._resources.load_installed_toolbox", lacking)
    registry = open_registry(Config.defaults(tmp_path))
    assert "fetch_page" not in registry
    assert "grep" in registry
    assert refused(configured(tmp_path, '[toolboxes]\nuse = ["lines", "web"]\n')).code == "tools.missing-extra"


@pytest.mark.parametrize(
    ("module", "left_out"), [("httpx", True), ("bicameral.toolboxes.web._no_such", False), ("bicameral", False)]
)
def test_a_default_toolbox_is_left_out_only_for_a_module_outside_bicameral(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, left_out: bool
) -> None:
    from importlib.metadata import EntryPoint

    load = EntryPoint.load

    def lacking(point: EntryPoint) -> Any:
        if point.name == "web":
            raise ModuleNotFoundError(f"No module named {module!r}", name=module)
        return load(point)

    monkeypatch.setattr(EntryPoint, "load", lacking)
    if left_out:
        assert "fetch_page" not in open_registry(Config.defaults(tmp_path))
        assert list(missing_toolboxes(Config.defaults(tmp_path))) == ["web"]
        return
    with pytest.raises(ToolError) as caught:
        open_registry(Config.defaults(tmp_path))
    assert caught.value.code == "tools.broken-toolbox"


def test_the_journal_and_the_cache_are_where_the_configuration_says(tmp_path: Path) -> None:
    config = configured(tmp_path, '[journal]\nfile = "deep/down/j.db"\n[cache]\nfolder = "c"\n')
    with open_journal(config) as journal:
        journal.append("r", "run-started", "", {"request": "hello"})
    assert (tmp_path / "deep" / "down" / "j.db").is_file()
    cache = open_cache(config)
    cache["abc"] = "text"
    assert open_cache(config)["abc"] == "text"
    assert (tmp_path / "c").is_dir()


def test_models_have_their_names_before_anything_is_fetched(tmp_path: Path) -> None:
    models = open_models(configured(tmp_path, '[models]\nfolder = "empty"\n'))
    assert models.privileged.name.startswith("local:qwen2.5-coder-1.5b@")
    assert models.quarantined.name.startswith("local:qwen2.5-coder-0.5b@")
    assert not (tmp_path / "empty").exists()


def test_an_unknown_model_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    with pytest.raises(BicameralError) as caught:
        open_models(configured(tmp_path, '[models]\nquarantined = "0.6b"\n'))
    assert (caught.value.code, caught.value.nearest) == ("models.unknown", "0.5b")


def test_installed_packages_are_looked_through_once_and_each_tool_is_declared_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib.metadata

    from bicameral.tools import _loading, _tool

    open_registry(Config.defaults(tmp_path))
    scans: list[str] = []
    declared: list[str] = []
    scan, declare = importlib.metadata.entry_points, getattr(_tool, "_check_declaration")  # noqa: B009 (private)

    def counted_scan(*, group: str) -> object:
        scans.append(group)
        return scan(group=group)

    def counted_declare(each: Any) -> None:
        declared.append(each.name)
        declare(each)

    monkeypatch.setattr(_loading, "entry_points", counted_scan)
    getattr(_loading, "_entry_points").cache_clear()  # noqa: B009 (private)
    monkeypatch.setattr(_tool, "_check_declaration", counted_declare)
    registry = open_registry(Config.defaults(tmp_path))
    assert len(scans) == 1
    assert len(declared) == len(set(declared)) <= len(registry)


def test_a_tool_of_two_openings_is_not_shared(tmp_path: Path) -> None:
    one, other = (open_registry(Config.defaults(tmp_path))["grep"] for _ in range(2))
    assert one is not other
    assert one.toolbox == other.toolbox == "lines"
    assert one.fingerprint == other.fingerprint
