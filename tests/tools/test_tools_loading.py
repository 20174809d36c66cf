"""Toolboxes from installed packages and tools from files, whole or with an error that names the culprit."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bicameral.errors import BicameralError, ConfigError, ToolError
from bicameral.tools import Surroundings, installed_toolboxes, load_file, load_installed_toolbox, load_toolboxes

ROOT = Path(__file__).parents[2]
GOOD = '''
from bicameral.tools import Settings, Toolbox, tool
from pydantic import Field


class Greeting(Settings):
    greeting: str = "hello"
    times: int = Field(default=1, ge=1, description="a number from 1 on")


def build(settings, surroundings):
    @tool(effect="pure")
    def greet(name: str) -> str:
        """Greet somebody."""
        return f"{settings.greeting} {name}" * settings.times

    return [greet]


toolbox = Toolbox("greetings", "Say hello.", Greeting, build)
'''

Install = Callable[..., str]


@pytest.fixture
def here(tmp_path: Path) -> Surroundings:
    return Surroundings.here(tmp_path)


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Install a small package with one toolbox, as a package installer would leave it on disk."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.setattr(sys, "path", [str(site), *sys.path])

    def put(code: str, *, package: str = "greetings-kit", name: str = "greetings", attribute: str = "toolbox") -> str:
        module = f"{package.replace('-', '_')}_for_test"
        (site / f"{module}.py").write_text(code)
        info = site / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[bicameral.toolboxes]\n{name} = {module}:{attribute}\n")
        monkeypatch.delitem(sys.modules, module, raising=False)
        importlib.invalidate_caches()
        return name

    return put


def code_of(error: pytest.ExceptionInfo[BicameralError]) -> str:
    return error.value.code


async def test_a_toolbox_of_another_package_is_found_and_opened(install: Install, here: Surroundings) -> None:
    install(GOOD)
    assert "greetings" in installed_toolboxes()
    registry = load_toolboxes({"greetings": {"greeting": "hi"}}, here)
    assert registry["greet"].toolbox == "greetings"
    assert await registry["greet"].call({"name": "you"}) == "hi you"


def test_a_package_that_is_installed_later_is_found_too(install: Install, tmp_path: Path) -> None:
    assert "greetings" not in installed_toolboxes()
    install(GOOD)
    # A clock may stand still between two changes of a folder.
    os.utime(tmp_path / "site", ns=(1, 1))
    assert "greetings" in installed_toolboxes()


def test_the_standard_toolboxes_are_on_offer() -> None:
    assert {"files", "lines", "tables", "mail", "calendar", "web", "clock"} <= set(installed_toolboxes())


def test_no_toolbox_is_no_tools(here: Surroundings) -> None:
    assert len(load_toolboxes({}, here)) == 0


def test_a_toolbox_that_is_not_there_is_named_with_the_nearest(here: Surroundings) -> None:
    with pytest.raises(ToolError) as caught:
        load_toolboxes({"calender": {}}, here)
    assert (code_of(caught), caught.value.nearest) == ("tools.unknown-toolbox", "calendar")


@pytest.mark.parametrize(
    ("settings", "key", "nearest"),
    [
        ({"greting": "hi"}, "greting", "greeting"),
        ({"times": "many"}, "times", None),
        ({"times": 0}, "times", None),
        ({"greeting": None}, "greeting", None),
    ],
)
def test_a_wrong_setting_is_named_with_its_toolbox(
    install: Install, here: Surroundings, settings: dict[str, object], key: str, nearest: str | None
) -> None:
    install(GOOD)
    with pytest.raises(ConfigError) as caught:
        load_toolboxes({"greetings": settings}, here)
    assert (code_of(caught), caught.value.nearest) == ("config.bad-setting", nearest)
    assert repr(key) in caught.value.message
    assert "'greetings'" in caught.value.message
    if key == "times":
        assert caught.value.expected == "a number from 1 on"


@pytest.mark.parametrize(
    "code",
    ["raise RuntimeError('no luck')", "toolbox = 3", "other = 3", "def toolbox(: pass", "raise KeyError('x')"],
)
def test_a_broken_package_is_named(install: Install, here: Surroundings, code: str) -> None:
    install(code)
    with pytest.raises(ToolError) as caught:
        load_toolboxes({"greetings": {}}, here)
    assert code_of(caught) == "tools.broken-toolbox"
    assert "'greetings-kit'" in caught.value.message
    assert "greetings-kit" in (caught.value.fix or "")


def test_a_package_that_breaks_while_it_opens_is_named(install: Install, here: Surroundings) -> None:
    install(GOOD.replace('    @tool(effect="pure")', '    1 / 0\n\n    @tool(effect="pure")'))
    with pytest.raises(ToolError) as caught:
        load_toolboxes({"greetings": {}}, here)
    assert code_of(caught) == "tools.broken-toolbox"
    assert "ZeroDivisionError" in caught.value.message


@pytest.mark.parametrize("late", [False, True])
def test_a_missing_module_says_what_to_install(install: Install, here: Surroundings, late: bool) -> None:
    missing = "import no_such_module_anywhere\n"
    install(GOOD.replace("    @tool", f"    {missing}\n    @tool") if late else missing + GOOD)
    with pytest.raises(ToolError) as caught:
        load_toolboxes({"greetings": {}}, here)
    assert code_of(caught) == "tools.missing-extra"
    assert "no_such_module_anywhere" in caught.value.message
    assert "greetings-kit" in (caught.value.fix or "")


def test_a_missing_extra_of_our_own_says_the_command(install: Install, here: Surroundings) -> None:
    install("import no_such_module_anywhere", package="bicameral", name="ours")
    with pytest.raises(ToolError) as caught:
        load_toolboxes({"ours": {}}, here)
    assert code_of(caught) == "tools.missing-extra"
    assert "pip install 'bicameral[standard]'" in (caught.value.fix or "")


@pytest.mark.parametrize("package", ["bicameral", "greetings-kit"])
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("line", ["import bicameral.no_such_room", "from bicameral.tools import no_such_name"])
def test_a_module_of_bicameral_that_does_not_import_is_no_missing_extra(
    install: Install, here: Surroundings, line: str, late: bool, package: str
) -> None:
    code = GOOD.replace("    @tool", f"    {line}\n\n    @tool") if late else f"{line}\n{GOOD}"
    install(code, package=package, name="ours")
    with pytest.raises(ToolError) as caught:
        load_toolboxes({"ours": {}}, here)
    assert code_of(caught) == "tools.broken-toolbox"
    assert "no_such" in caught.value.message


def test_two_packages_with_one_name_are_both_named(install: Install) -> None:
    install(GOOD)
    install(GOOD, package="other-kit")
    with pytest.raises(ToolError) as caught:
        load_installed_toolbox("greetings", installed_toolboxes())
    assert code_of(caught) == "tools.duplicate"
    assert "greetings-kit" in caught.value.message
    assert "other-kit" in caught.value.message


async def test_a_python_file_offers_a_toolbox(tmp_path: Path, here: Surroundings) -> None:
    (tmp_path / "greet.py").write_text(GOOD)
    (greet,) = load_file(Path("greet.py"), here, {"greeting": "hi"})
    assert (greet.toolbox, await greet.call({"name": "you"})) == ("greetings", "hi you")
    with pytest.raises(ConfigError, match="bad-setting"):
        load_file(Path("greet.py"), here, {"times": -1})


async def test_a_python_file_offers_tools(tmp_path: Path, here: Surroundings) -> None:
    (tmp_path / "mine.py").write_text(
        "from dataclasses import dataclass\nfrom bicameral.tools import tool\n"
        "@dataclass\nclass Point:\n    x: int\n"
        "@tool(effect='pure')\ndef double(n: int) -> int:\n    'Twice as much.'\n    return 2 * n\n"
        "@tool(effect='pure')\ndef point(x: int) -> Point:\n    'A point.'\n    return Point(x)\n"
        "again = double\n"
    )
    double, point = load_file(tmp_path / "mine.py", here)
    assert (double.name, double.toolbox, await double.call({"n": 2})) == ("double", "mine", 4)
    assert await point.call({"x": 1}) == {"x": 1}
    with pytest.raises(ConfigError, match="bad-setting"):
        load_file(tmp_path / "mine.py", here, {"anything": 1})


@pytest.mark.parametrize(
    ("code", "expected", "line"),
    [
        ("x = 1\n", "tools.no-tools", None),
        ("x = 1\nraise RuntimeError('no')\n", "tools.broken-file", 2),
        ("x = 1\ny = (\n", "tools.broken-file", 2),
        ("import sys\n\nsys.exit(3)\n", "tools.broken-file", 3),
        ("\nimport no_such_module_anywhere\n", "tools.missing-extra", 2),
        ("from bicameral.tools import tool\n\n@tool\ndef f(x): return 1\n", "tools.untyped", 3),
        ("x = '\0'", "tools.broken-file", None),
    ],
)
def test_a_broken_python_file_is_told_with_its_line(
    tmp_path: Path, here: Surroundings, code: str, expected: str, line: int | None
) -> None:
    file = tmp_path / "broken.py"
    file.write_text(code)
    before = set(sys.modules)
    with pytest.raises(ToolError) as caught:
        load_file(file, here)
    assert code_of(caught) == expected
    assert caught.value.place is not None
    assert (caught.value.place.file, caught.value.place.line) == (str(file), line)
    if expected != "tools.no-tools":
        assert not {name for name in set(sys.modules) - before if "broken" in name}


async def test_a_manifest_and_a_describing_command_are_loaded(tmp_path: Path, here: Surroundings) -> None:
    tools = {tool.name: tool for tool in load_file(ROOT / "examples" / "tools" / "wordcount.toml", here)}
    assert await tools["count_words"].call({"text": "to be or not"}) == 4
    (tmp_path / "-a.txt").write_text("one two\n")
    counted = await tools["count_in_files"].call({"paths": ["-a.txt"], "longest": True})
    assert counted[0].split()[:4] == ["1", "2", "8", "7"]
    (checksum,) = load_file(ROOT / "examples" / "tools" / "checksum", here)
    assert (checksum.toolbox, (await checksum.call({"path": "-a.txt"}))["size"]) == ("checksum", 8)


def test_settings_of_a_describing_command_are_checked(here: Surroundings) -> None:
    with pytest.raises(ConfigError) as caught:
        load_file(ROOT / "examples" / "tools" / "checksum", here, {"efect": "read"})
    assert (code_of(caught), caught.value.nearest) == ("config.bad-setting", "effect")
    with pytest.raises(ConfigError, match="bad-setting"):
        load_file(ROOT / "examples" / "tools" / "wordcount.toml", here, {"effect": "read"})


def test_files_that_hold_no_tools_are_refused(tmp_path: Path, here: Surroundings) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(ToolError) as caught:
        load_file(Path("notes.txt"), here)
    assert code_of(caught) == "tools.unknown-file"
    assert "chmod" in (caught.value.fix or "")
    with pytest.raises(ToolError) as caught:
        load_file(Path("note.txt"), here)
    assert (code_of(caught), caught.value.nearest) == ("tools.no-such-file", "notes.txt")
    with pytest.raises(ToolError) as caught:
        load_file(tmp_path, here)
    assert code_of(caught) == "tools.no-such-file"


def test_an_executable_that_is_no_program_is_refused(tmp_path: Path, here: Surroundings) -> None:
    file = tmp_path / "picture"
    file.write_bytes(b"\x89PNG\r\n")
    file.chmod(0o755)
    with pytest.raises(ToolError) as caught:
        load_file(file, here)
    assert code_of(caught) == "tools.describe-failed"


def test_every_public_name_is_there_and_the_sandbox_is_not_loaded_for_it() -> None:
    code = (
        "import sys, bicameral.tools as tools\n"
        "assert not [m for m in sys.modules if m.startswith(('sandlock', 'bicameral.tools._command'))]\n"
        "assert all(getattr(tools, name) is not None for names in tools._LATER.values() for name in names)\n"
        "assert 'sandlock' not in sys.modules\n"
        "assert not hasattr(tools, 'no_such_name')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
