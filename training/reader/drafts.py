"""Forms that want a reply to a message in the words of the instruction, or the text in another language."""

from __future__ import annotations

import datetime as dt
import json
import random
from typing import Any

from bicameral import types as t

from .facts import LANGUAGES, Language, load_words
from .forms import Reading, wrap_reply
from .matters import Telling, draw_places, load_composing_words, training_matter
from .sources import Document, Writer
from .statements import make_fact_subject
from .summaries import fill_names
from .values import random_day


def make_draft(picks: random.Random, language: Language, text_language: Language) -> Reading:
    """A reply to a message, in one or two sentences, that says what the instruction says."""
    words, places = load_composing_words(language), draw_places(picks)
    subject = training_matter(picks)
    say, write = (places.fill(each, language) for each in picks.choice(words["replies"]))
    in_one = picks.random() < 0.4
    instruction = picks.choice(words["reply_one" if in_one else "reply"]).replace("{say}", say)
    if in_one:
        # Only English writes I with a capital within a sentence; the other languages have small letters there.
        write = write[0].lower() + write[1:] if language == "en" and write.startswith("Unfortunately") else write
        written = words["greeting"] + write
    else:
        written = f"{words['thanks']} {write[0].upper()}{write[1:]}"
    written = written.replace("{S}", subject.sender.split()[0])
    instruction = fill_names(instruction, subject.sender, language)
    writer, day = Writer(text_language, picks), random_day(picks, 2025, 2028)
    letter = Document("mail", [], day, "others", sender=subject.sender)
    letter.prose = " ".join(subject.tellings[text_language].sentences)
    source: Any = writer.mail_record(letter) if picks.random() < 0.5 else writer.body(letter, subject.sender)
    return _finish("draft", language, source, instruction, written, day)


def make_translation(picks: random.Random, language: Language, text_language: Language) -> Reading:
    """Some sentences in another language."""
    others: list[Language] = [each for each in LANGUAGES if each != text_language]
    target = picks.choice(others)
    words = load_composing_words(language)
    instruction = picks.choice(words["translated"][target])
    chance = picks.random()
    if chance < 0.5:
        subject = make_fact_subject(picks, text_language)
        source, written = _parallel(picks, subject.tellings[text_language], subject.tellings[target])
    elif chance < 0.75:
        subject = training_matter(picks)
        source, written = _parallel(picks, subject.tellings[text_language], subject.tellings[target])
    else:
        ours, theirs = load_words(text_language), load_words(target)
        pairs = list(zip(ours["filler"], theirs["filler"], strict=True))
        for kind in ("complaint", "praise", "question", "notice"):
            pairs += zip(ours["judged"][kind], theirs["judged"][kind], strict=True)
        chosen = picks.sample(pairs, picks.choice([1, 1, 2, 3]))
        source, written = (" ".join(part) for part in zip(*chosen, strict=True))
    return _finish("translation", language, source, instruction, written, random_day(picks, 2025, 2028))


def _parallel(picks: random.Random, ours: Telling, theirs: Telling) -> tuple[str, str]:
    """A part of a subject in two languages: sentences of a message, or plain statements."""
    count = picks.randrange(1, len(ours.points) + 1)
    if picks.random() < 0.5 and theirs.wish:
        return " ".join(ours.sentences[:count]), " ".join(theirs.sentences[:count])
    return " ".join(ours.points[:count]), " ".join(theirs.points[:count])


def _finish(kind: str, language: Language, source: Any, instruction: str, written: str, day: dt.date) -> Reading:
    reply = wrap_reply(json.dumps(written, ensure_ascii=False), t.STR)
    return Reading(kind, "found", language, source, instruction, t.STR, reply, day + dt.timedelta(1), True)
