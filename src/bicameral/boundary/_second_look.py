"""The second look at a text in which the quarantined model found nothing: the sentences that mention what is asked for.

A small model overlooks a fact among other sentences and passages that it finds when it reads the sentence alone. So the
sentences with every word for the subject of the question are read once more, a few at most, without the others. That
takes their context away, so a value is accepted only if

- it stands in the sentence word for word,
- no sentence beside it, and no other that mentions the subject, has another value of its kind: it may be the newer one,
- the sentence has no instructions to its reader.

A fact of another thing is not reached at all: its sentence lacks a word of the question.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from bicameral import types as t
from bicameral.boundary._relevance import LIST_LINE, Question, find_other_value, parse_question
from bicameral.boundary._support import find_facts, find_support
from bicameral.boundary.shield import ALERT_SCORE, screen
from bicameral.text import has_form_of, index_words

MAX_EXCERPTS = 2
"""Excerpts that are read for one form."""
_MAX_SEARCHED = 24_000
_MAX_SENTENCES = 400
_MAX_SENTENCE = 600
_SENTENCE_END = re.compile(r"\n+|(?<=[.!?])[ \t]+(?=[^\W_]|[\"'«¿¡(])")
_TEXT_FIELDS: Final = ("text", "body")
_HEAD_FIELDS: Final = ("title", "subject", "from", "sender", "day")
_FROM_OTHERS: Final = ("mail", "page")
"""Kinds of passages that anybody may have written; they are read after the others."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A sentence of a source that mentions what is asked for.

    Args:
        shown: What the model reads: the passage with this sentence as its text.
        sentence: The sentence.
        beside: The sentences before and after it, and the others that mention the subject.
    """

    shown: Any
    sentence: str
    beside: tuple[str, ...]

    def states(self, value: Any, wanted: t.Type) -> bool:
        """Whether each fact of a value stands here word for word, and nothing beside it speaks against it."""
        from bicameral.boundary._evidence import Evidence  # its patterns take time to compile

        facts = find_facts(value, wanted)
        evidence = Evidence(self.sentence)
        return bool(facts) and all(
            find_support(fact, evidence) == "verbatim"
            and not any(find_other_value(fact, sentence) for sentence in self.beside)
            for fact in facts
        )


def find_excerpts(source: Any, instruction: str, wanted: t.Type) -> list[Excerpt]:
    """The excerpts of a source to read again; none for a form whose values cannot be looked for in a text.

    Args:
        source: What was read: a text, a record with a text, or a list of them.
        instruction: What is looked for.
        wanted: The type of the value. A list from one sentence would lack the items of the others.
    """
    question = parse_question(instruction)
    if question.is_empty or not _is_searchable(wanted):
        return []
    records: Sequence[Any] = cast("Sequence[Any]", source) if isinstance(source, list | tuple) else [source]
    found = [excerpt for record in records for excerpt in _excerpts_of(record, question)]
    # The model has read that already, and would say the same.
    found = [excerpt for excerpt in found if excerpt.shown not in (source, [source])]
    # A stable sort: the best passages of a search come first.
    found.sort(key=lambda each: _is_from_others(each.shown))
    return found[:MAX_EXCERPTS]


def _is_searchable(wanted: t.Type) -> bool:
    match wanted:
        case t.OptionalType(item=item):
            return _is_searchable(item)
        case t.StrType() | t.IntType() | t.FloatType() | t.DateType() | t.DateTimeType() | t.TimeType():
            return True
        case t.RecordType(fields=fields):
            return all(_is_searchable(field.type) for field in fields)
        case _:
            return False


def _excerpts_of(record: Any, question: Question) -> Iterator[Excerpt]:
    name = next((each for each in _TEXT_FIELDS if isinstance(_part(record, each), str)), "")
    text = record if isinstance(record, str) else _part(record, name)
    if not isinstance(text, str):
        return
    pieces = [piece for piece in _SENTENCE_END.split(text[:_MAX_SEARCHED]) if piece.strip()][:_MAX_SENTENCES]
    headings = [piece for piece in pieces if piece.startswith("#")]
    sentences = [piece for piece in pieces if not piece.startswith("#")]
    head = index_words("\n".join([*headings, *(str(_part(record, each) or "") for each in _HEAD_FIELDS)]))
    close = [at for at, sentence in enumerate(sentences) if _mentions_all(question, sentence, head)]
    for at in close:
        sentence = sentences[at]
        if len(sentence) > _MAX_SENTENCE or screen(sentence).score >= ALERT_SCORE:
            continue
        near = {*(other for other in (at - 1, at + 1) if 0 <= other < len(sentences)), *close} - {at}
        # Where each line is a fact of its own, the next line is about another thing.
        beside = tuple(
            sentences[other]
            for other in sorted(near)
            if other in close or not (LIST_LINE.match(sentence) and LIST_LINE.match(sentences[other]))
        )
        shown = "\n\n".join([*headings[:1], sentence])
        yield Excerpt(shown if isinstance(record, str) else [{**record, name: shown}], sentence, beside)


def _mentions_all(question: Question, sentence: str, head: Sequence[str]) -> bool:
    """Whether a sentence, with the title above it, has every word for the subject, and at least one of them itself."""
    own = frozenset(index_words(sentence))
    known = own | frozenset(head)
    subjects = question.subjects
    return all(has_form_of(known, word) for word in subjects) and any(has_form_of(own, word) for word in subjects)


def _part(record: Any, name: str) -> Any:
    return cast("dict[str, Any]", record).get(name) if isinstance(record, dict) else None


def _is_from_others(shown: Any) -> bool:
    return isinstance(shown, list) and _part(cast("list[Any]", shown)[0], "kind") in _FROM_OTHERS
