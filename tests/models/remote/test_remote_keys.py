"""A key is seen by its server and by nobody else, and each chamber speaks with its own."""

from __future__ import annotations

import logging
import pickle
import ssl
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import certifi
import pytest
from hypothesis import given, strategies as st
from remote_world import KEY, OTHER_KEY, Answer, Loopback, ask, completion, error, piece, remote, streamed

from bicameral.errors import ModelError
from bicameral.models import FAMILIES, Key, ModelFailure, RemoteProvider
from bicameral.models.remote import _servers as families
from bicameral.sessions import Chambers, Quarantined


def _everything(error: BaseException | None) -> Iterator[Any]:
    """An error, what it carries, and what it came from."""
    while error is not None:
        yield from (error, error.args, vars(error))
        error = error.__cause__ or error.__context__


_ECHOES = f"Incorrect API key provided: {KEY}. Or {KEY[:8]}***{KEY[-4:]}."


@pytest.mark.parametrize(
    "answer",
    [error(status, _ECHOES) for status in (400, 401, 403, 404, 422, 429, 500)]
    + [streamed(piece({"content": "a"}), b"data: {broken " + KEY.encode() + b"\n\n"), completion(KEY, finish="odd")],
)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_key_is_in_no_error_no_log_and_no_repr(
    answer: Answer, stream: bool, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    shown: list[str] = []
    async with Loopback(answer) as server:
        model = remote(server)
        shown += [repr(model), str(model), model.name, str(model.credential), repr(vars(model))]
        try:
            if stream:
                _ = [text async for text in model.stream(ask(timeout=20))]
            else:
                await model.generate(ask(timeout=20))
        except ModelFailure as raised:
            shown += [str(each) + repr(each) for each in _everything(raised)]
            shown += traceback.format_exception(raised)
            shown.append(str(raised.to_json()))
        await model.aclose()
    assert server.seen[0].headers["authorization"] == f"Bearer {KEY}"
    out = capfd.readouterr()
    text = "\n".join([*shown, *(record.getMessage() for record in caplog.records), out.out, out.err])
    assert KEY not in text
    assert KEY[:8] not in text


def test_a_key_shows_itself_to_nobody() -> None:
    key = Key(KEY)
    assert KEY not in f"{key} {key!r} {[key]} {key.fingerprint}"
    with pytest.raises(TypeError):
        pickle.dumps(key)
    assert key == Key(f" {KEY}\n")
    assert key != Key(OTHER_KEY)


@given(st.text(alphabet=st.characters(min_codepoint=33, max_codepoint=126), min_size=4))
def test_no_text_that_quotes_a_key_keeps_it(secret: str) -> None:
    key = Key(secret)
    assert key.reveal() == secret
    assert secret not in key.mask_in(f"before {secret}, after {secret}").replace("[key]", "")


@pytest.mark.parametrize("secret", ["", " ", "\n", "a\nb: c", "ключ", "a\x00b", "a\rb"])
def test_what_cannot_be_a_key_is_refused_without_being_quoted(secret: str) -> None:
    with pytest.raises(ModelError) as raised:
        Key(secret)
    assert raised.value.code == "models.bad-setting"
    assert len(secret.strip()) < 2 or secret not in str(raised.value)


async def test_nothing_of_the_environment_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = {
        "OPENAI_API_KEY": OTHER_KEY,
        "OPENAI_ORG_ID": "org-from-the-environment",
        "OPENAI_PROJECT_ID": "project-from-the-environment",
        "OPENAI_ADMIN_KEY": OTHER_KEY,
        "OPENAI_BASE_URL": "http://127.0.0.1:1/elsewhere",
        "OPENAI_CUSTOM_HEADERS": f"X-Smuggled: {OTHER_KEY}",
    }
    for name, value in taken.items():
        monkeypatch.setenv(name, value)
    async with Loopback(completion()) as server:
        for key in (KEY, None):
            model = remote(server, key=key)
            await model.generate(ask())
            await model.aclose()
    assert [seen.headers.get("authorization") for seen in server.seen] == [f"Bearer {KEY}", None]
    for seen in server.seen:
        assert OTHER_KEY.encode() not in seen.raw
        assert b"from-the-environment" not in seen.raw


async def test_a_header_of_ones_own_is_sent_but_never_one_with_another_key() -> None:
    async with Loopback(completion()) as server:
        own = {"X-Team": "blue", "Api-Key": OTHER_KEY}
        model = remote(server, settings={"extra_headers": own})
        await model.generate(ask())
        await model.aclose()
    assert server.seen[0].headers["x-team"] == "blue"
    assert OTHER_KEY.encode() not in server.seen[0].raw


async def test_a_redirect_is_not_followed_so_that_a_key_goes_nowhere_else() -> None:
    async with Loopback(completion()) as elsewhere, Loopback(error(307, location=f"{elsewhere.url}/x")) as server:
        model = remote(server)
        with pytest.raises(ModelFailure):
            await model.generate(ask())
        await model.aclose()
    assert not elsewhere.seen


@pytest.mark.parametrize("family", sorted(name for name, family in FAMILIES.items() if family.key))
def test_a_family_that_needs_a_key_does_not_look_for_one(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI", "AZURE_OPENAI", "ANTHROPIC", "GOOGLE", "MISTRAL", "GROQ"):
        monkeypatch.setenv(f"{name}_API_KEY", KEY)
    monkeypatch.setattr(families, "missing_packages", str.isspace)
    with pytest.raises(ModelFailure) as raised:
        RemoteProvider(family, "m")
    assert raised.value.code == "models.auth"
    assert KEY not in str(raised.value)


def test_one_key_for_both_chambers_is_refused_and_two_are_not() -> None:
    def provider(key: str, chamber: Any) -> RemoteProvider:
        return RemoteProvider("openai", "m", key=Key(key), chamber=chamber)

    with pytest.raises(ModelError) as raised:
        Chambers(provider(KEY, "privileged"), Quarantined(provider(f"{KEY} ", "quarantined")))
    assert raised.value.code == "models.shared-chamber"
    Chambers(provider(KEY, "privileged"), Quarantined(provider(OTHER_KEY, "quarantined")))


def test_a_provider_with_a_key_says_of_which_chamber_it_is() -> None:
    for chamber in (None, "privileged"):
        with pytest.raises(ModelError) as raised:
            Quarantined(RemoteProvider("openai", "m", key=Key(KEY), chamber=chamber))
        assert raised.value.code == "models.wrong-chamber"
    Quarantined(RemoteProvider("ollama", "m"))


def test_the_name_tells_apart_all_that_a_reply_depends_on_and_holds_no_key() -> None:
    def name(*given: Any, **more: Any) -> str:
        return RemoteProvider(*given, key=Key(KEY), **more).name

    names = [
        name("openai", "m"),
        name("openai", "n"),
        name("openai", "m", base_url="http://localhost:8000/v1"),
        name("openai", "m", base_url="http://localhost:8001/v1"),
        name("openai", "m", settings={"top_p": 0.5}),
        name("openai", "m", settings={"top_p": 0.6}),
    ]
    assert names[:3] == ["openai:m", "openai:n", "openai:m@localhost:8000/v1"]
    assert len(set(names)) == len(names)
    assert KEY not in "".join(names)


@pytest.mark.parametrize(
    "url", ["localhost", "ftp://x/v1", f"http://u:{KEY}@x/v1", f"http://x/v1?key={KEY}", "http://"]
)
def test_an_address_that_may_hide_a_key_or_is_none_is_refused_and_not_quoted(url: str) -> None:
    with pytest.raises(ModelError) as raised:
        RemoteProvider("openai", "m", base_url=url)
    assert raised.value.code == "models.bad-setting"
    assert KEY not in str(raised.value)


def test_an_unknown_family_and_a_missing_package_say_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelError, match="Did you mean 'anthropic'") as raised:
        RemoteProvider("antropic", "m")
    assert raised.value.code == "models.unknown-family"
    with pytest.raises(ModelError, match="LiteLLM's proxy") as raised:
        RemoteProvider("litellm", "azure/m")
    assert raised.value.code == "models.unknown-family"
    monkeypatch.setattr(families, "missing_packages", str.isprintable)
    for name, family in FAMILIES.items():
        with pytest.raises(ModelError) as raised:
            RemoteProvider(name, "m", key=Key(KEY), base_url="http://localhost/v1")
        assert raised.value.code == "models.missing-package"
        assert f"bicameral[{family.extra}]" in str(raised.value)


def test_clients_share_the_certificate_authorities_until_others_are_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = list[ssl.SSLContext]()
    create = ssl.create_default_context

    def counting(*args: Any, **options: Any) -> ssl.SSLContext:
        made.append(create(*args, **options))
        return made[-1]

    monkeypatch.setattr(ssl, "create_default_context", counting)
    others = tmp_path / "others.pem"
    others.write_text(Path(certifi.where()).read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setenv("SSL_CERT_FILE", str(others))
    for _ in range(3):
        families.open_client(None, "https://one.example/v1", legacy=False)
    assert len(made) == 1
    monkeypatch.delenv("SSL_CERT_FILE")
    families.open_client(None, "https://one.example/v1", legacy=False)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "missing.pem"))
    with pytest.raises(OSError, match="No such file"):
        families.open_client(None, "https://one.example/v1", legacy=False)
