"""What must hold around a local engine: nobody talks to it from outside, no text becomes a control token."""

from __future__ import annotations

import http.client
import os
import re
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from bicameral.errors import ConfigError, ModelError
from bicameral.models import LocalProvider, Message, ModelRequest, ModelStore, _engine as engines, find_weights
from bicameral.models._completion import Completion
from bicameral.models._engine import EngineServer, Slots
from bicameral.models._local import engine_threads
from bicameral.models._prompts import Vocabulary, read_vocabulary, render_prompt

CONTROL = frozenset({"<|im_start|>", "<|im_end|>", "</s>", "ab", "bc", "aba"})
CHATML = Vocabulary(start=1, end=2, control=CONTROL, trained_context=0)


@pytest.fixture(scope="module")
def weights() -> Path:
    return ModelStore().ensure(find_weights("0.5b"))


@given(st.lists(st.sampled_from([*CONTROL, "<", "|", "<|", "im_end|>", "a", "b", "c", "\n", "é", "\ud800"])))
def test_no_piece_of_a_prompt_spells_a_control_token(parts: list[str]) -> None:
    text = "".join(parts)
    prompt = render_prompt([Message("user", text)], text, CHATML)
    pieces = [piece for piece in prompt if isinstance(piece, str)]
    assert not [piece for piece in pieces if any(control in piece for control in CONTROL)]
    said = text.replace("\ud800", "?")
    assert "".join(pieces) == f"user\n{said}\nassistant\n{said}"
    assert [piece for piece in prompt if isinstance(piece, int)] == [1, 2, 1]


@pytest.mark.model
async def test_a_text_cannot_smuggle_any_control_token_into_the_model(
    small_model: LocalProvider, weights: Path
) -> None:
    async def tokens(text: str) -> int:
        return (await small_model.generate(ModelRequest((Message("user", text),), max_tokens=1))).usage.prompt

    control = sorted(read_vocabulary(weights).control)
    assert {"<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|fim_prefix|>", "</s>"} <= set(control)
    plain = await tokens("")
    # As control tokens they would be one each; spelled out, none is.
    assert await tokens("".join(control)) - plain >= 2 * len(control)


def listening(pid: int) -> Iterator[str]:
    """Addresses on which sockets of this process listen."""
    links = (os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink())
    inodes = {found[1] for link in links if (found := re.fullmatch(r"socket:\[(\d+)\]", link))}
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == "0A" and fields[9] in inodes:
            yield fields[1]
    for line in Path("/proc/net/unix").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == "00010000" and fields[6] in inodes:
            yield fields[7]


@pytest.mark.model
@pytest.mark.live
async def test_a_loaded_engine_listens_on_no_port_and_its_socket_is_in_a_folder_of_this_user_only(
    small_model: LocalProvider,
) -> None:
    await small_model.generate(ModelRequest((Message("user", "Hi."),), max_tokens=1))
    addresses = [found for found in listening(os.getpid()) if "bicameral-" in found]
    assert addresses  # One for each weights file that a test of this process has loaded.
    assert not [found for found in listening(os.getpid()) if re.fullmatch(r"0100007F:.*", found)]
    for address in addresses:
        folder = Path(address).parent
        assert folder.stat().st_uid == os.getuid()
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert stat.S_IMODE((folder / "states").stat().st_mode) == 0o700


@pytest.mark.model
@pytest.mark.live
def test_nothing_is_left_of_an_engine_that_was_closed(weights: Path) -> None:
    server = EngineServer(weights, 256, 1, Slots(()))
    folder = server.states.parent
    assert (folder / "engine.sock").exists()
    assert server.tokenize(["Hi.", "", "there"], 151644) == [(13048, 13), (), (18532,)]
    server.close()
    assert not folder.exists()


ENDPOINTS = (
    "GET /v1/models, GET /models, GET /api/tags, GET /props, POST /props, GET /slots, POST /slots/0?action=save, "
    "GET /metrics, POST /completion, POST /completions, POST /v1/completions, POST /chat/completions, "
    "POST /v1/chat/completions, POST /api/chat, POST /api/show, POST /v1/responses, POST /v1/messages, "
    "POST /v1/messages/count_tokens, POST /infill, POST /embedding, POST /embeddings, POST /v1/embeddings, "
    "POST /rerank, POST /v1/rerank, POST /tokenize, POST /detokenize, POST /apply-template, GET /lora-adapters, "
    "POST /lora-adapters, GET /tools, POST /tools, GET /cors-proxy, POST /v1/audio/transcriptions, "
    "POST /v1/systemone, POST /models/load, GET /, GET /index.html"
).split(", ")


@pytest.mark.model
@pytest.mark.live
def test_only_a_bare_health_check_answers_without_the_key(weights: Path) -> None:
    server = EngineServer(weights, 256, 1, Slots(()))
    path = str(server.states.parent / "engine.sock")

    def status(endpoint: str) -> tuple[int, bytes]:
        method, target = endpoint.split(" ")
        connection = http.client.HTTPConnection("engine", timeout=10)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(path)
        connection.request(method, target, body=b"{}", headers={"Authorization": "Bearer guess"})
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, content

    answers = {endpoint: status(endpoint)[0] for endpoint in ENDPOINTS}
    assert {endpoint: code for endpoint, code in answers.items() if code not in (401, 404)} == {}
    assert answers["POST /v1/chat/completions"] == answers["GET /slots"] == answers["GET /props"] == 401
    assert status("GET /health") == (200, b'{"status":"ok"}')
    server.close()


@pytest.mark.model
@pytest.mark.only_live
async def test_providers_of_one_file_share_one_engine_which_grows_to_the_largest_context(
    small_model: LocalProvider, weights: Path, tmp_path: Path
) -> None:
    link = tmp_path / "linked.gguf"
    link.symlink_to(weights)
    short = ModelRequest((Message("user", "Hi."),), max_tokens=1)
    long = ModelRequest((Message("user", "word " * 8400),), timeout=2)
    await small_model.generate(short)
    engine = engines.lease_engine(weights, 1)
    before = engine.leases
    larger = LocalProvider(link, name="local:larger", context=9000)
    await larger.generate(short)
    assert engine.leases == before + 1
    with pytest.raises(ModelError) as raised:
        await small_model.generate(long)
    # It would be refused at once as too long for 8192 tokens.
    assert raised.value.code == "models.timeout"
    await larger.aclose()
    await larger.aclose()
    assert engine.leases == before
    engines.return_engine(engine)


@pytest.mark.model
@pytest.mark.live
async def test_weights_cut_short_are_refused(weights: Path, tmp_path: Path) -> None:
    short = tmp_path / "short.gguf"
    with weights.open("rb") as whole, short.open("wb") as part:
        part.write(whole.read(12_000_000))
    model = LocalProvider(short, name="local:short")
    with pytest.raises(ModelError) as raised:
        await model.generate(ModelRequest((Message("user", "Hi."),)))
    assert raised.value.code == "models.load-failed"
    await model.aclose()


QUIET = """
import asyncio, sys
from pathlib import Path
from bicameral.models import LocalProvider, Message, ModelRequest
assert not {"xllamacpp", "httpx", "huggingface_hub", "ctypes"} & set(sys.modules)
model = LocalProvider(Path(sys.argv[1]), name="local:quiet", context=256)
reply = asyncio.run(model.generate(ModelRequest((Message("user", "Hi."),), max_tokens=1)))
print(reply.usage.output)
"""


@pytest.mark.model
@pytest.mark.live
def test_the_engine_is_loaded_late_prints_nothing_and_ends_with_the_program(weights: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", QUIET, str(weights)], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")


def test_a_constraint_that_is_lost_half_way_ends_the_reply() -> None:
    request = ModelRequest((), grammar='%llguidance {}\nstart: "yes " /[a-z]+/')
    completion = Completion(request, None, threading.Event())
    assert not completion.take({"choices": [{"text": "yes ", "finish_reason": None}]})
    assert completion.take({"choices": [{"text": "<|im_start|>", "finish_reason": None}]})
    with pytest.raises(ModelError, match="grew too large") as raised:
        completion.reply(0, 0)
    assert raised.value.code == "models.bad-grammar"


def test_the_number_of_threads_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BICAMERAL_THREADS", "3")
    assert engine_threads() == 3
    monkeypatch.delenv("BICAMERAL_THREADS")
    assert 1 <= engine_threads() <= 8


@pytest.mark.parametrize("chosen", ["0", "-1", "two", "1.5", "²"])
def test_a_number_of_threads_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, chosen: str) -> None:
    monkeypatch.setenv("BICAMERAL_THREADS", chosen)
    with pytest.raises(ConfigError, match="BICAMERAL_THREADS"):
        engine_threads()
