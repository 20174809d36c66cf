"""What cannot be seen in a text is found in one place, and made visible in one way."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given, strategies as st

from bicameral.display import escape_json, fold_lines, has_hidden, hidden_kind, hidden_places, make_visible

HIDDEN = {
    "control": "\x00\x07\x1b\x7f\x85\x9b\r\x0b\x0c",
    "direction": "\u200e\u200f\u061c\u202a\u202e\u2066\u2069",
    "invisible": (
        "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b\u180e\u180f\u200b\u200c\u200d\u2028\u2029\u2060\u2061\u206a\u2800\u3164"
        "\ufe00\ufe0f\ufeff\uffa0\ufff9\ufffb\ue000\ufdd0\uffff\ud800\u0378\U0001d159\U0001d173\U000e0001\U000e0041"
        "\U000e0100\U000e01ef\U000f0000\U0010ffff"
    ),
    "blank": "\u1680\u2000\u2003\u200a\u205f",
}


@pytest.mark.parametrize(("kind", "characters"), HIDDEN.items())
def test_every_kind_of_hidden_character_is_found_and_written_out(kind: str, characters: str) -> None:
    for each in characters:
        assert hidden_kind(each) == kind, f"U+{ord(each):04X}"
        assert hidden_places(f"a{each}b") == {1: kind}
        assert make_visible(f"a{each}b") == f"a<{ord(each):04x}>b"


@pytest.mark.parametrize(
    "text",
    [
        "Grüße, été, Việt Nam, naïve",
        "I ❤️ it 👨\u200d👩\u200d👧 👍🏽 1️⃣ 🏳️\u200d🌈",
        "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
        "می\u200cخواهم",
        "क्\u200dष",
        "שָׁלוֹם עֲלֵיכֶם",
        "10\u00a0% et 1\u202f000\u2009€",
        "東京\u3000です",
        "a line\nand\tanother",
        "\u0600\u06dd",
    ],
)
def test_what_languages_and_emoji_are_written_with_is_ordinary(text: str) -> None:
    assert not has_hidden(text)
    assert make_visible(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "a\u200db",
        "a\ufe0f",
        "❤\ufe0f\ufe0f",
        "👨\u200d",
        "x\u200cy",
        "\U0001f3f4\U000e0065\U000e0076\U000e0069\U000e006c\U000e007f",
        "\u0301a",
        "e" + "\u0301" * 5,
        "葛\U000e0100",
    ],
)
def test_the_same_characters_elsewhere_are_hidden(text: str) -> None:
    assert has_hidden(text)


def test_in_a_name_nothing_but_plain_characters_is_ordinary() -> None:
    assert make_visible("ann\u00a0@example.com", strict=True) == "ann<00a0>@example.com"
    assert make_visible("می\u200cخواهم", strict=True) == "می<200c>خواهم"


@given(st.text())
def test_what_is_visible_has_nothing_hidden_and_stays_as_it_is(text: str) -> None:
    shown = make_visible(text)
    assert not has_hidden(shown)
    assert make_visible(shown) == shown
    assert all(
        unicodedata.category(each) not in ("Cc", "Cs", "Co", "Cn", "Zl", "Zp")
        for each in shown.replace("\n", "").replace("\t", "")
    )


@given(
    st.recursive(
        st.text() | st.integers() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_escaped_json_is_the_same_value_and_inert(value: object) -> None:
    text = escape_json(json.dumps(value, ensure_ascii=False))
    assert json.loads(text) == value
    assert not any(hidden_kind(each) in ("control", "direction") for each in text)


def test_a_long_text_is_folded_in_the_middle_with_its_size() -> None:
    lines = [f"line {number}" for number in range(4000)]
    shown = fold_lines(lines, 9, "\n".join(lines), "v shows all")
    assert shown[:6] == lines[:6]
    assert shown[-3:] == lines[-3:]
    assert shown[6].startswith("… 3,991 more lines, 39 kB in all; sha256 ")
    assert shown[6].endswith("; v shows all")
    assert fold_lines(lines, 4000, "") == lines


def test_texts_that_differ_only_in_what_is_folded_do_not_look_the_same() -> None:
    one = [f"line {number}" for number in range(100)]
    other = [*one[:50], "pay Eve", *one[51:]]
    assert fold_lines(one, 6, "\n".join(one)) != fold_lines(other, 6, "\n".join(other))
