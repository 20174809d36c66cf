"""Chunks: exact places, nothing left out, cut where the text itself is cut."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st
from retrieval_world import MINE, STRANGER

from bicameral.errors import RetrievalError
from bicameral.retrieval import Chunk, Chunking, TextDocument, estimate_tokens, split_document, text_fingerprint
from bicameral.retrieval._text import split_sections

SMALL = Chunking(tokens=24, overlap=8)

# Made of what the reader looks for, so that its rules meet in every order.
marked = st.lists(
    st.sampled_from(
        [
            *(
                f"{line}\n"
                for line in ("# A", "## B", "####### no", "Title", "===", "---", "```", "~~~", "- item", "1. first")
            ),
            "\n",
            "\n\n",
            " ",
            "\t",
            "\r\n",
            "A sentence. ",
            "e.g. this one. ",
            "Is it? ",
            "日本語。",
            "word ",
            "x" * 40,
            "| a | b |\n",
            "#hash",
            "\u2028",
            "\x0c",
            "…",
            "![a](b)",
        ]
    ),
    max_size=60,
).map("".join)
texts = marked | st.text(st.characters(exclude_categories=["Cs"]), max_size=400)
settings = st.integers(16, 60).flatmap(lambda n: st.builds(Chunking, st.just(n), st.integers(0, n // 2)))


def chunks_of(text: str, chunking: Chunking = SMALL) -> list[Chunk]:
    return split_document(TextDocument("d", text, MINE), estimate_tokens, chunking)


@given(text=texts, chunking=settings)
def test_every_character_that_is_no_space_is_in_a_chunk(text: str, chunking: Chunking) -> None:
    covered: set[int] = set()
    for chunk in chunks_of(text, chunking):
        covered.update(range(*chunk.span))
    assert all(character.isspace() for at, character in enumerate(text) if at not in covered)


@given(text=texts, chunking=settings)
def test_a_chunk_is_its_span_its_fingerprint_and_its_documents_label(text: str, chunking: Chunking) -> None:
    document = TextDocument("d", text, STRANGER)
    for chunk in split_document(document, estimate_tokens, chunking):
        assert chunk.text == text[chunk.start : chunk.end]
        assert chunk.text == chunk.text.strip() != ""
        assert chunk.fingerprint == text_fingerprint(chunk.text)
        assert (chunk.document, chunk.document_fingerprint) == ("d", document.fingerprint)
        assert chunk.label is STRANGER


@given(text=texts, chunking=settings)
def test_chunks_come_in_order_and_each_brings_something_new(text: str, chunking: Chunking) -> None:
    chunks = chunks_of(text, chunking)
    for before, after in pairwise(chunks):
        assert before.start < after.start
        assert before.end < after.end


@given(text=texts, chunking=settings)
def test_no_chunk_is_longer_than_what_was_asked_for(text: str, chunking: Chunking) -> None:
    for chunk in chunks_of(text, chunking):
        # Lengths are rounded up sentence by sentence; a chunk as a whole is never longer than their sum.
        most = chunking.tokens + (chunking.tokens // 4 if chunk.headings else 0)
        assert estimate_tokens([chunk.text])[0] <= most
        assert len(chunk.text) <= 8 * most


@given(text=texts)
def test_the_same_text_gives_the_same_chunks(text: str) -> None:
    assert chunks_of(text) == chunks_of(text)


def test_a_chunk_never_reaches_over_a_heading() -> None:
    text = "# One\nalpha beta.\n\n## Two\ngamma delta.\n\n# Three\nepsilon.\n"
    found = [(chunk.headings, chunk.text) for chunk in chunks_of(text)]
    assert found == [
        (("One",), "# One\nalpha beta."),
        (("One", "Two"), "## Two\ngamma delta."),
        (("Three",), "# Three\nepsilon."),
    ]


def test_a_heading_with_nothing_below_it_goes_with_what_follows() -> None:
    (chunk,) = chunks_of("# Title\n\n## Part\n\nbody")
    assert (chunk.headings, chunk.start) == (("Title", "Part"), 0)


def test_a_heading_is_not_left_alone_by_a_sentence_that_fills_a_chunk() -> None:
    chunks = chunks_of(f"# A short title\n{'word ' * 16}end. Next one.")
    assert [chunk.text.split()[-1] for chunk in chunks] == ["end.", "one."]


def test_underlined_headings_count_and_rules_do_not() -> None:
    text = "Title\n=====\none\n\nPart\n----\ntwo\n\n---\n\nthree"
    assert [chunk.headings for chunk in chunks_of(text)] == [("Title",), ("Title", "Part")]


@pytest.mark.parametrize("fence", ["```", "~~~~"])
def test_a_hash_in_code_is_no_heading(fence: str) -> None:
    text = f"# Real\n{fence}sh\n# not a heading\nmake\n{fence}\n# Next\nword"
    assert [chunk.headings for chunk in chunks_of(text)] == [("Real",), ("Next",)]


def test_the_cut_is_made_between_sentences_and_the_next_chunk_repeats_the_last() -> None:
    sentences = [f"Sentence {word} has exactly six words. " for word in ("one", "two", "three", "four", "five")]
    first, second = chunks_of("".join(sentences), Chunking(tokens=24, overlap=10))
    assert first.text == "".join(sentences[:3]).strip()
    assert second.text == "".join(sentences[2:]).strip()


def test_a_paragraph_is_kept_together_where_that_leaves_the_chunk_half_full() -> None:
    one, two = "word " * 12, "other " * 12
    first, second = chunks_of(f"{one.strip()}.\n\n{two.strip()}.", Chunking(tokens=24, overlap=0))
    assert first.text == f"{one.strip()}."
    assert second.text == f"{two.strip()}."


@pytest.mark.parametrize(
    "text", ["See e.g. the list.", "Dr. Who came.", "It cost 3.50 euros.", "J. Doe signed.", "He said “go.” Twice."]
)
def test_a_full_stop_inside_a_sentence_does_not_end_it(text: str) -> None:
    found = f"One. {text} Two!"
    (section,) = split_sections(found)
    sentences = [found[unit.start : unit.end].strip() for unit in section.units]
    assert sentences[0] == "One."
    assert " ".join(sentences[1:-1]) == text
    assert len(sentences) == (4 if "Twice" in text else 3)


def test_a_word_without_spaces_is_cut_all_the_same() -> None:
    chunks = chunks_of("x" * 5_000)
    assert "".join(chunk.text for chunk in chunks) == "x" * 5_000
    assert max(len(chunk.text) for chunk in chunks) <= 8 * SMALL.tokens


@pytest.mark.parametrize(
    "text",
    [
        "." * 200_000,
        ". " * 100_000,
        "# " * 100_000,
        "#" * 200_000,
        " " * 200_000 + "x",
        "```\n" * 50_000,
        "\n" * 200_000,
        "```\n" + " \n" * 100_000,
        "a.b." * 50_000,
        "-" * 200_000,
        "[" * 200_000,
        "a," * 100_000,
    ],
)
def test_no_text_takes_more_time_than_its_length(text: str) -> None:
    started = time.perf_counter()
    chunks_of(text, Chunking())
    assert time.perf_counter() - started < 5


@pytest.mark.parametrize(("tokens", "overlap"), [(15, 0), (20, 11), (20, -1), (True, 0), ("20", 0), (20, 2.0)])
def test_settings_that_make_no_sense_are_refused(tokens: int, overlap: int) -> None:
    with pytest.raises(RetrievalError) as caught:
        Chunking(tokens, overlap)
    assert caught.value.code == "retrieval.bad-setting"


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "x" * 201, "\x00", "\ud800", 3, None])
def test_an_id_that_cannot_be_written_down_is_refused(name: str) -> None:
    with pytest.raises(RetrievalError) as caught:
        TextDocument(name, "text")
    assert caught.value.code == "retrieval.bad-document"


@pytest.mark.parametrize("text", ["half \ud83d", None, b"bytes"])
def test_what_is_no_text_is_refused(text: str) -> None:
    with pytest.raises(RetrievalError) as caught:
        TextDocument("d", text)
    assert caught.value.code == "retrieval.bad-document"


def test_what_only_looks_like_a_label_is_refused() -> None:
    class Fake:
        trusted = True

    with pytest.raises(RetrievalError) as caught:
        TextDocument("d", "text", Fake())  # pyright: ignore[reportArgumentType]
    assert caught.value.code == "retrieval.bad-document"


def test_a_document_without_a_label_counts_as_a_strangers() -> None:
    assert not TextDocument("d", "text").label.trusted
