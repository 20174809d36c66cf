"""The package that users install: what is in it, and that it works in an empty folder with what it declares."""

from __future__ import annotations

import hashlib
import re
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Generator
from contextlib import contextmanager
from importlib.metadata import packages_distributions
from pathlib import Path, PurePosixPath

import pytest
from models_store_world import content_of, serving_hub, sha256
from packaging.requirements import Requirement

from bicameral.config._doctor import STANDARD_PACKAGES
from bicameral.models import known_weights
from wheel_world import ROOT, Installation, build, declared_packages, install

# The limit of the package index for one file.
LARGEST = 100_000_000
# What a package is made of. A database, a journal, a cache or a key has another ending.
PAGES = {".html", ".css", ".js", ".svg"}
KINDS = {".py", ".typed", ".toml", ".yaml", ".json", ".txt", ".cedar", ".cedarschema", ".gguf", *PAGES}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("sdist", tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def plain(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """`pip install bicameral`."""
    return install(wheel, tmp_path_factory.mktemp("plain"), declared_packages(PROJECT["dependencies"]))


@pytest.fixture(scope="module")
def standard(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """`pip install 'bicameral[standard]'`."""
    wanted = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["standard"]]
    return install(wheel, tmp_path_factory.mktemp("standard"), declared_packages(wanted))


@pytest.fixture(scope="module")
def files(wheel: Path) -> dict[str, bytes]:
    return read_wheel(wheel)


@pytest.fixture(scope="module")
def sources(sdist: Path) -> dict[str, bytes]:
    with tarfile.open(sdist) as archive:
        opened = {member.name.partition("/")[2]: archive.extractfile(member) for member in archive if member.isfile()}
        return {name: file.read() for name, file in opened.items() if file is not None}


def read_wheel(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


# What is in it


def test_the_wheel_and_the_sources_fit_into_the_index(wheel: Path, sdist: Path) -> None:
    assert wheel.stat().st_size < LARGEST
    assert sdist.stat().st_size < LARGEST


def test_the_wheel_holds_the_package_and_nothing_else(files: dict[str, bytes]) -> None:
    source = (path for path in (ROOT / "src").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    expected = {path.relative_to(ROOT / "src").as_posix() for path in source}
    names = {name for name in files if ".dist-info/" not in name}
    assert names == expected
    assert {PurePosixPath(name).suffix for name in names - {"bicameral/py.typed"}} <= KINDS
    folders = {part for name in names for part in PurePosixPath(name).parts[:-1]}
    assert not folders & {"tests", "benchmarks", "training", "__pycache__"}


def test_the_wheel_holds_what_the_package_reads(files: dict[str, bytes]) -> None:
    data = "binding/synonyms.toml catalog/data/laws.yaml config/template.toml limits/prices.toml models/known.toml"
    data += " planning/examples.txt planning/echo.json policy/default.cedar policy/schema.cedarschema py.typed"
    assert {f"bicameral/{name}" for name in data.split()} <= files.keys()
    pins = [pin for weights in known_weights() for pin in weights.adapters.values()]
    found = {pin.file: hashlib.sha256(files[f"bicameral/models/adapters/{pin.file}"]).hexdigest() for pin in pins}
    assert found == {pin.file: pin.sha256 for pin in pins}
    assert len([name for name in files if name.endswith(".gguf")]) == len(pins)


def test_the_wheel_says_what_it_is(files: dict[str, bytes]) -> None:
    (info,) = {name.partition("/")[0] for name in files if ".dist-info/" in name}
    assert files[f"{info}/licenses/LICENSE"] == (ROOT / "LICENSE").read_bytes()
    metadata = files[f"{info}/METADATA"].decode()
    assert f"Name: bicameral\nVersion: {PROJECT['version']}\n" in metadata
    assert "License-Expression: Apache-2.0" in metadata
    assert "Requires-Python: >=3.11" in metadata


def test_nothing_in_the_package_names_the_machine_that_built_it(
    files: dict[str, bytes], sources: dict[str, bytes], sdist: Path
) -> None:
    private = [re.escape(str(path).encode()) for path in (ROOT, sys.prefix, Path.home()) if path != Path("/")]
    pattern = re.compile(b"(?:" + b"|".join(private) + rb")(?![\w-])")
    found = {name for each in (files, sources) for name, body in each.items() if pattern.search(body)}
    assert found == set()
    with tarfile.open(sdist) as archive:
        assert {(member.uname, member.gname) for member in archive} == {("", "")}


def test_the_sources_hold_what_the_wheel_is_made_of_and_no_data_of_tests_and_training(
    files: dict[str, bytes], sources: dict[str, bytes]
) -> None:
    package = {name: body for name, body in files.items() if ".dist-info/" not in name}
    assert {name: sources.get(f"src/{name}") for name in package} == package
    assert sources["pyproject.toml"] == (ROOT / "pyproject.toml").read_bytes()
    top = {name.partition("/")[0] for name in sources}
    texts = {"README.md", "CHANGELOG.md", "LICENSE", "PKG-INFO", "pyproject.toml", ".gitignore"}
    assert top == texts | {"src", "docs", "examples", "schemas"}


@pytest.mark.slow
def test_the_sources_make_the_same_wheel(files: dict[str, bytes], sdist: Path, tmp_path: Path) -> None:
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    assert read_wheel(build("wheel", tmp_path / "dist", source)) == files


# That it works


def test_an_installation_uses_nothing_of_the_source_tree(plain: Installation) -> None:
    code = "import bicameral, sys; print(bicameral.__file__); print(*sys.path, sep='\\n')"
    file, *path = plain.evaluate(code).splitlines()
    assert Path(file).is_relative_to(plain.site)
    assert not [entry for entry in path if entry and Path(entry).is_relative_to(ROOT)]


@pytest.mark.parametrize("name", ["plain", "standard"])
def test_the_first_commands_work_in_an_empty_folder(name: str, request: pytest.FixtureRequest) -> None:
    installed: Installation = request.getfixturevalue(name)
    assert f"bicameral {PROJECT['version']}" in installed.call("version").stdout
    tools = installed.call("tools")
    assert (tools.returncode, tools.stderr) == (0, "")
    assert {"read_lines(", "search_mail(", "list_events(", "fetch_page(", "find("} <= set(
        re.findall(r"\w+\(", tools.stdout)
    )
    doctor = installed.call("doctor")
    assert (doctor.returncode, re.findall(r"^bad.*", doctor.stdout, re.M)) == (0, [])
    (installed.work / "notes.txt").write_text("rope\nvarnish\nrope\n", encoding="utf-8")
    (installed.work / "count.py").write_text('lines = read_lines("notes.txt")\nanswer(len(lines))\n', encoding="utf-8")
    ran = installed.call("run", "--plan", "count.py")
    assert (ran.returncode, ran.stdout) == (0, "3\n"), ran.stderr
    assert installed.call("init").returncode == 0
    assert installed.call("config", "show").returncode == 0
    (installed.work / "bicameral.toml").unlink()


CALENDAR = """\
BEGIN:VCALENDAR
VERSION:2.0
PRODID:test
BEGIN:VEVENT
UID:1
DTSTART:20261119T100000Z
DTEND:20261119T110000Z
SUMMARY:Launch
END:VEVENT
END:VCALENDAR
"""
NEEDING_STANDARD = {
    "calendar": 'events = search_events("Launch")\nanswer(events[0].title)\n',
    "mail": 'mails = search_mail("launch")\nanswer(mails[0].subject)\n',
    "regex": 'found = grep(["Launch", "Rope"], "L.unch", regex=True)\nanswer(found)\n',
}


def write_office(installed: Installation) -> None:
    (installed.work / "calendar.ics").write_text(CALENDAR.replace("\n", "\r\n"), encoding="utf-8")
    for folder in ("new", "cur", "tmp"):
        (installed.work / "Maildir" / folder).mkdir(parents=True, exist_ok=True)
    mail = "From: kim@example.com\nSubject: Launch\nContent-Type: text/html\n\n<p>The launch is at ten</p>\n"
    (installed.work / "Maildir" / "new" / "1.a").write_text(mail, encoding="utf-8")


@pytest.mark.parametrize("name", NEEDING_STANDARD)
def test_what_needs_the_extra_works_with_it_and_says_so_without_it(
    name: str, plain: Installation, standard: Installation
) -> None:
    for installed in (plain, standard):
        write_office(installed)
        (installed.work / f"{name}.py").write_text(NEEDING_STANDARD[name], encoding="utf-8")
    ran = standard.call("run", "--plan", f"{name}.py")
    assert (ran.returncode, ran.stdout) == (0, "Launch\n"), ran.stderr
    refused = plain.call("run", "--plan", f"{name}.py")
    assert refused.returncode == 1
    assert "bicameral[standard]" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_the_doctor_says_what_does_not_work_without_the_extra(plain: Installation, standard: Installation) -> None:
    told = re.search(r"^warn  packages: (.*)\n +(.*)", plain.call("doctor").stdout, re.M)
    assert told is not None
    assert told[1].startswith("httpx, selectolax, icalendar, recurring_ical_events, re2 are not installed; ")
    assert told[1].endswith("web pages, mails in HTML, the calendar, regular expressions")
    assert "bicameral[standard]" in told[2]
    (plain.work / "bicameral.toml").write_text('[toolboxes]\nuse = ["files", "lines"]\n', encoding="utf-8")
    try:
        told = re.search(r"^warn  packages: (.*)", plain.call("doctor").stdout, re.M)
    finally:
        (plain.work / "bicameral.toml").unlink()
    assert told is not None
    assert told[1] == "re2 is not installed; what does not work without: regular expressions"
    assert "packages:" not in standard.call("doctor").stdout


def test_the_doctor_knows_every_package_of_the_extra() -> None:
    provided = packages_distributions()
    told = {provided[module][0].lower() for module in STANDARD_PACKAGES}
    assert told == {Requirement(text).name.lower() for text in PROJECT["optional-dependencies"]["standard"]}


# That the first run fetches weights


@contextmanager
def known_as(installed: Installation, weights: bytes) -> Generator[None]:
    """Have the installed package pin these weights as its small model: the real ones have 491 MB."""
    known = installed.site / "bicameral" / "models" / "known.toml"
    kept = known.read_text("utf-8")
    small = next(each for each in known_weights() if each.alias == "0.5b")
    text = kept.replace(small.sha256, sha256(weights)).replace(f"{small.bytes:_}", str(len(weights)))
    assert text != kept
    known.write_text(text, encoding="utf-8")
    try:
        yield
    finally:
        known.write_text(kept, encoding="utf-8")


REQUEST = "How many lines does notes.txt have?"


def test_the_first_run_fetches_the_weights_and_the_second_has_them(plain: Installation) -> None:
    weights = content_of(300_000)
    with known_as(plain, weights), serving_hub(weights) as hub:
        first = plain.call("run", "--profile", "small", REQUEST, HF_ENDPOINT=hub.url)
        second = plain.call("run", "--profile", "small", REQUEST, HF_ENDPOINT=hub.url)
    assert "is not on this machine yet: fetching" in first.stderr
    assert "Ctrl-C stops it; what was fetched is kept" in first.stderr
    assert "0.5b from the model hub: 100 %" in first.stderr
    assert (plain.store / f"sha256-{sha256(weights)}.gguf").read_bytes() == weights
    # They are no model, which is found after they were fetched and verified.
    assert "[models.not-gguf]" in first.stderr
    assert "fetching" not in second.stderr
    assert len(hub.ranges) == 1


def test_other_bytes_than_the_pinned_ones_are_not_used(plain: Installation) -> None:
    weights = content_of(200_000)
    with known_as(plain, weights), serving_hub(weights[::-1]) as hub:
        hub.etag = sha256(weights)
        result = plain.call("run", "--profile", "small", REQUEST, HF_ENDPOINT=hub.url)
    assert result.returncode == 1
    assert "[models.no-source]" in result.stderr
    assert "gave another file" in result.stderr
    assert not list(plain.store.glob(f"sha256-{sha256(weights)}*.gguf"))


def test_without_a_network_the_first_run_says_what_to_do(plain: Installation) -> None:
    result = plain.call("run", "--profile", "small", REQUEST)
    assert result.returncode == 1
    assert "[models.no-source]" in result.stderr
    assert "bicameral models pull 0.5b --file PATH" in result.stderr
    assert "Traceback" not in result.stderr
