"""Known secrets are written nowhere: not as they are, and not in the shapes that programs give them."""

from __future__ import annotations

import base64
import json
import pickle
import time
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, given, strategies as st

from bicameral.errors import MAX_DESCRIPTION, Place, ToolError, describe_error
from bicameral.secrets import (
    MIN_SECRET_LENGTH,
    Secret,
    isolate_secrets,
    mask,
    mask_json,
    mask_value,
    redact_secrets,
    register_secret,
)
from bicameral.telemetry import safe_text

PLANTED = 'pa"ss\\wörd & 100%/+\n7'


def test_a_secret_shows_its_name_and_nothing_else() -> None:
    secret = Secret("MAIL_PASSWORD", PLANTED)
    shown = (str(secret), repr(secret), f"{secret}", f"{secret!r}", json.dumps({"s": secret}, default=str))
    assert all(PLANTED not in text and "[secret MAIL_PASSWORD]" in text for text in shown)
    assert secret.reveal() == PLANTED
    assert secret == Secret("other", PLANTED)
    assert secret != Secret("MAIL_PASSWORD", "another value")
    with pytest.raises(TypeError):
        pickle.dumps(secret)


def _shapes(value: str) -> list[str]:
    raw = value.encode()
    return [
        value,
        json.dumps(value),
        json.dumps(value, ensure_ascii=False),
        quote(value),
        quote(value, safe=""),
        quote_plus(value),
        *(base64.b64encode(b"user:"[:n] + raw + b"tail").decode() for n in range(5)),
        base64.urlsafe_b64encode(b"Basic:" + raw).decode(),
    ]


@pytest.mark.parametrize("before", ["", "a", "\\", "=", "key="])
def test_every_shape_of_it_is_masked(before: str) -> None:
    register_secret("PLANTED", PLANTED)
    for shape in _shapes(PLANTED):
        text = mask(f"{before}{shape} after")
        assert "[secret PLANTED]" in text
        assert text.endswith("after")


values = st.text(st.characters(exclude_categories=["Cs"]), min_size=MIN_SECRET_LENGTH, max_size=30).filter(
    lambda text: len(text.strip()) >= MIN_SECRET_LENGTH
)
trees = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(value=values, before=st.text(max_size=10), after=st.text(max_size=10), tree=trees, ascii_only=st.booleans())
def test_no_json_text_holds_a_known_secret(value: str, before: str, after: str, tree: Any, ascii_only: bool) -> None:
    value = value.strip()
    assume(value not in "[secret PLANTED]" and "\0" not in value)
    with isolate_secrets():
        register_secret("PLANTED", value)
        given_ = {"tree": tree, f"{before}{value}": [f"{before}{value}{after}", {"deep": value}]}
        found = json.loads(mask_json(json.dumps(given_, ensure_ascii=ascii_only)))
    shown = [text.replace("[secret PLANTED]", "\0") for text in _texts(found)]
    assert not any(value in text for text in shown)
    assert any("\0" in text for text in shown)


def _texts(value: Any) -> list[str]:
    match value:
        case str():
            return [value]
        case dict():
            return [text for key, part in value.items() for text in (key, *_texts(part))]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        case list():
            return [text for part in value for text in _texts(part)]  # pyright: ignore[reportUnknownVariableType]
        case _:
            return []


def test_a_json_text_stays_json_where_a_secret_begins_like_an_escape() -> None:
    register_secret("PLANTED", "n0123456789")
    text = json.dumps({"a": "line\n0123456789", "b": "n0123456789", "c": 5})
    assert json.loads(mask_json(text)) == {"a": "line\n0123456789", "b": "[secret PLANTED]", "c": 5}


def test_a_secret_that_is_a_number_is_masked_as_a_number() -> None:
    register_secret("PIN", "4929123456781234")
    assert mask_value({"n": 4929123456781234, "m": 7}) == {"n": "[secret PIN]", "m": 7}
    assert "4929123456781234" not in mask_json('{"n":4929123456781234}')


def test_of_two_secrets_the_longer_is_masked_whole() -> None:
    register_secret("SHORT", "hunter2222")
    register_secret("LONG", "hunter2222-and-more")
    assert mask("hunter2222-and-more hunter2222") == "[secret LONG] [secret SHORT]"


def test_what_is_too_short_to_be_told_from_a_word_is_left() -> None:
    register_secret("SHORT", "x" * (MIN_SECRET_LENGTH - 1))
    register_secret("EMPTY", "")
    assert mask("xxxxxxx") == "xxxxxxx"


def test_a_name_cannot_smuggle_anything_in() -> None:
    register_secret('a "name"\n\x1b[31m' + "x" * 200, "12345678")
    assert mask("12345678").isprintable()
    assert json.loads(mask_json('["12345678"]')) == [mask("12345678")]
    assert len(mask("12345678")) < 100


def test_errors_do_not_quote_secrets() -> None:
    register_secret("PLANTED", PLANTED)
    error = ToolError(
        "tools.failed",
        f"login with {PLANTED} failed",
        place=Place(file=f"/tmp/{PLANTED}", argument=PLANTED),
        expected=f"not {PLANTED}",
        nearest=PLANTED,
        fix=f"Change {PLANTED}.",
    )
    for text in (str(error), repr(error), json.dumps(error.to_json()), str(error.args)):
        assert PLANTED not in text
        assert json.dumps(PLANTED)[1:-1] not in text
    assert describe_error(ValueError(f"bad {PLANTED}")) == "ValueError: bad [secret PLANTED]"
    half = describe_error(ValueError("x" * (MAX_DESCRIPTION - 5) + PLANTED))
    assert PLANTED[:5] not in half


def test_a_secret_is_not_cut_in_half_before_it_is_masked() -> None:
    register_secret("PLANTED", "correct-horse-battery")
    assert "correct" not in safe_text("x" * 110 + "correct-horse-battery")
    assert safe_text("correct-horse-battery") == "[secret PLANTED]"


def test_the_secrets_of_a_stretch_of_work_end_with_it() -> None:
    with isolate_secrets():
        register_secret("PLANTED", "correct-horse-battery")
        assert mask("correct-horse-battery") == "[secret PLANTED]"
    assert mask("correct-horse-battery") == "correct-horse-battery"


@pytest.mark.parametrize("part", ["eyJ-", "eyJaaaaaaaaa.", "sk-", "Bearer ", "-----BEGIN ", "1 ", "ghp_", "xoxb-"])
def test_redaction_takes_no_longer_for_texts_of_many_beginnings(part: str) -> None:
    def seconds(size: int) -> float:
        text = part * (size // len(part))
        began = time.process_time()
        redact_secrets(text, "[secret]")
        return time.process_time() - began

    # Eight times the text in at most thirty times the time: quadratic work would take 64 times as long.
    few = min(seconds(50_000) for _ in range(3))
    assert seconds(400_000) < 30 * max(few, 0.001)
