"""Forms that want a judgement on a message, yes or no or one of some choices, or a count of what a text names."""

from __future__ import annotations

import datetime as dt
import json
import random
from typing import Any, Literal

from bicameral import types as t

from .facts import Language, load_words
from .forms import Reading, wrap_reply
from .matters import (
    Subject,
    draw_places,
    held_matters,
    load_composing_words,
    load_matters,
    make_subject,
    training_matter,
)
from .sources import Document, Writer
from .summaries import fill_names
from .values import items_value, person_name, random_day

Question = Literal["urgent", "spam", "about", "complains", "wish", "mood", "category"]
_QUESTIONS: tuple[Question, ...] = ("urgent", "spam", "about", "complains", "wish", "mood", "category")
_LIKE: dict[str, frozenset[str]] = {
    "repair": frozenset({"appointment", "favour"}),
    "favour": frozenset({"travel", "private"}),
    "complaint": frozenset({"order", "private", "repair"}),
    "private": frozenset({"favour", "club"}),
    "invitation": frozenset({"appointment", "private"}),
    "travel": frozenset({"favour", "order", "appointment", "private"}),
    "school": frozenset({"travel", "appointment", "club"}),
    "club": frozenset({"bill", "private"}),
    "appointment": frozenset({"club", "school", "work"}),
    "bill": frozenset({"order", "work", "complaint"}),
    "work": frozenset({"appointment", "invitation", "repair"}),
    "order": frozenset({"complaint", "bill"}),
    "advertising": frozenset({"order"}),
}
"""Categories that would fit nearly as well, and are no choice beside the right one."""


def make_judgement(picks: random.Random, language: Language, text_language: Language) -> Reading:
    """What kind of message it is, or whether it is of that kind."""
    kinds = ("complaint", "praise", "question", "notice")
    own, words = load_words(language)["judged"], load_words(text_language)["judged"]
    kind = picks.choice(kinds)
    day = random_day(picks, 2025, 2028)
    writer = Writer(text_language, picks)
    letter = Document("mail", picks.sample(words[kind], picks.choice([1, 1, 2, 3])), day, "others")
    source: Any = picks.choice(
        [
            lambda: " ".join(letter.lines),
            lambda: writer.body(letter, person_name(picks)),
            lambda: writer.mail_record(letter),
        ]
    )()
    asked = picks.choice(["kind", "complaint", "praise", "question", "mood"])
    if asked == "mood":
        composing = load_composing_words(language)
        choices = tuple(composing["moods"])
        right = choices[{"praise": 0, "complaint": 1}.get(kind, 2)]
        return _finish(
            "mood", language, source, picks.choice(composing["asks_mood"]), t.LiteralType(choices), right, day
        )
    instruction = picks.choice(own[f"asks_{asked}"])
    if asked == "kind":
        choices = tuple(own["kinds"])
        return _finish(asked, language, source, instruction, t.LiteralType(choices), choices[kinds.index(kind)], day)
    return _finish(asked, language, source, instruction, t.BOOL, asked == kind, day)


def make_matter_judgement(picks: random.Random, language: Language, text_language: Language) -> Reading:
    """Whether a message is urgent, spam, a complaint, a request or about a topic; its mood or category."""
    words, writer = load_composing_words(language), Writer(text_language, picks)
    question = picks.choice(_QUESTIONS)
    truth = picks.random() < 0.5
    subject = _choose(picks, question, truth)
    sentences = list(subject.tellings[text_language].sentences)
    day = random_day(picks, 2025, 2028)
    wanted: t.Type = t.BOOL
    right: bool | str = truth
    topic = ""
    match question:
        case "urgent":
            hints = load_composing_words(text_language)["hurries" if truth else "calms"]
            if (
                truth != ("urgent" in subject.flags)
                or (truth and picks.random() < 0.3)
                or (not truth and picks.random() < 0.6)
            ):
                sentences.append(picks.choice(hints))
        case "about":
            topic = (subject if truth else _other(picks, subject)).tellings[language].topic
        case "mood":
            choices = tuple(words["moods"])
            wanted, right = t.LiteralType(choices), choices[0 if "glad" in subject.flags else 1]
        case "category":
            unlike = [each for each in words["categories"] if each not in {subject.category, *_LIKE[subject.category]}]
            names = [subject.category, *picks.sample(unlike, picks.randrange(2, 5))]
            picks.shuffle(names)
            wanted = t.LiteralType(tuple(words["categories"][each] for each in names))
            right = words["categories"][subject.category]
        case _:
            pass
    sentences += writer.small_talk(picks.choice([0, 0, 1]))
    letter = Document("mail", [], day, "others", sender=subject.sender, prose=" ".join(sentences))
    source: Any = writer.mail_record(letter) if picks.random() < 0.5 else writer.body(letter, subject.sender)
    instruction = picks.choice(words[f"asks_{question}"]).replace("{topic}", topic)
    return _finish(question, language, source, fill_names(instruction, subject.sender, language), wanted, right, day)


def _choose(picks: random.Random, question: Question, truth: bool) -> Subject:
    """A message of which the answer is clear."""
    matters = [each for each in load_matters() if each.name not in held_matters()]
    match question:
        case "urgent":
            matters = [
                each for each in matters if each.category != "advertising" and (truth or "urgent" not in each.flags)
            ]
        case "spam":
            matters = [each for each in matters if (each.category == "advertising") is truth]
        case "complains":
            # A reminder may be read as a complaint.
            matters = [each for each in matters if (each.category == "complaint") is truth and each.category != "bill"]
        case "wish":
            asked = {each.name: bool(each.tellings["en"].wish or each.tellings["en"].steps) for each in matters}
            matters = [each for each in matters if asked[each.name] is truth and each.category != "advertising"]
        case "category":
            matters = [each for each in matters if each.category != "other"]
        case "mood":
            matters = [each for each in matters if each.category == "complaint" or "glad" in each.flags]
        case _:
            pass
    return make_subject(picks.choice(matters), draw_places(picks))


def _other(picks: random.Random, subject: Subject) -> Subject:
    other = subject
    while other.name == subject.name:
        other = training_matter(picks)
    return other


def make_count(picks: random.Random, language: Language, text_language: Language) -> Reading:
    """How many people a text names."""
    words, writer = load_composing_words(text_language), Writer(text_language, picks)
    names: dict[str, str] = {}
    for _ in range(picks.randrange(2, 9)):
        name = person_name(picks)
        names.setdefault(name.split()[0], name)
    while len(names) < 2:
        name = person_name(picks)
        names.setdefault(name.split()[0], name)
    day = random_day(picks, 2025, 2028)
    if picks.random() < 0.6:
        told = items_value(list(names.values()), text_language, picks).written
        text = writer.prose([picks.choice(words["coming"]).replace("{names}", told)])
    else:
        mark = picks.choice(["- ", "* ", ""])
        head, filler = picks.choice(writer.words["headings"]), picks.choice(writer.words["filler"])
        text = "\n".join([head, *(f"{mark}{name}" for name in names.values()), "", filler])
    instruction = picks.choice(load_composing_words(language)["count_people"])
    return _finish("count", language, text, instruction, t.INT, len(names), day)


def _finish(
    kind: str,
    language: Language,
    source: Any,
    instruction: str,
    wanted: t.Type,
    value: bool | int | str,
    day: dt.date,
) -> Reading:
    reply = wrap_reply(json.dumps(value, ensure_ascii=False), wanted)
    return Reading(f"judged.{kind}", "found", language, source, instruction, wanted, reply, day, True)
