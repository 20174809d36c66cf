"""Forms that want a worded reply about a text: summaries, main points, what somebody wants, what is to be done, titles.

The reply has the language of the instruction, and the facts of the text without greetings, fillers, signatures, older
mails and orders to the reader. Only what the text lacks is not found: another sender, another topic, nothing to do.
"""

from __future__ import annotations

import datetime as dt
import json
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from bicameral import types as t

from .facts import Language, load_words
from .forms import Reading, Situation, UnfitError, missing_reply, wrap_reply
from .matters import Subject, draw_places, held_matters, load_composing_words, load_matters, make_subject
from .sources import Document, PassageKind, Writer
from .statements import lower_first, make_fact_subject
from .values import address_of, person_name, random_day

Wanted = Literal["short", "one", "two", "points", "wish", "steps", "step_list", "title"]
_SHARES: dict[Wanted, float] = {
    "short": 0.3, "one": 0.15, "two": 0.15, "points": 0.13,
    "wish": 0.07, "steps": 0.07, "step_list": 0.06, "title": 0.07,
}  # fmt: skip
_ABSENT = 0.09
_ORDERED = 0.2
_QUOTED = 0.12


class _SummaryReading:
    """One subject in a text, or among the texts on others, and what is asked about it."""

    def __init__(self, picks: random.Random, language: Language, text_language: Language, *, held: bool) -> None:
        self.picks = picks
        self.language: Language = language
        self.text_language: Language = text_language
        self.held = held
        self.writer = Writer(text_language, picks)
        self.words = load_words(text_language)
        self.own = load_composing_words(language)
        self.day = random_day(picks, 2025, 2028)
        self.wanted: Wanted = picks.choices(list(_SHARES), list(_SHARES.values()))[0]

    # Subjects

    def matter(self, taken: Sequence[Subject] = (), names: Sequence[str] = (), sender: str = "") -> Subject:
        """A message on something else than those that are taken, by somebody else unless a sender is given."""
        known = {each.name for each in taken}
        kept = [each for each in load_matters() if (each.name in held_matters()) == self.held or taken]
        kept = [each for each in kept if self.held or each.name not in held_matters()]
        kept = [each for each in kept if each.name not in known and (not names or each.name in names)]
        senders = [each.sender.split()[0] for each in taken if each.sender]
        places = draw_places(self.picks, senders)
        return make_subject(self.picks.choice(kept), replace(places, sender=sender) if sender else places)

    def first_subject(self) -> Subject:
        """What the form is about; only messages have requests."""
        if self.wanted in ("wish", "steps", "step_list"):
            return self.matter(names=[each.name for each in load_matters() if self._has_it(each.tellings["en"])])
        if not self.held and self.picks.random() < 0.45:
            return make_fact_subject(self.picks, self.text_language)
        made = self.matter()
        return replace(made, sender="") if "notice" in made.flags and self.picks.random() < 0.6 else made

    def _has_it(self, telling: Any) -> bool:
        return bool(telling.wish) if self.wanted == "wish" else bool(telling.steps)

    # Texts

    def prose(self, subject: Subject, extra: Sequence[str] = ()) -> str:
        """The sentences of a subject in their order, with fillers and other sentences between them."""
        sentences = list(subject.tellings[self.text_language].sentences)
        fillers = self.writer.small_talk(self.picks.choice([0, 0, 1, 1, 2]))
        for each in (*fillers, *extra):
            sentences.insert(self.picks.randrange(len(sentences) + 1), each)
        cut = self.picks.randrange(1, len(sentences) + 1)
        return "\n\n".join(filter(None, (" ".join(sentences[:cut]), " ".join(sentences[cut:]))))

    def order(self) -> str:
        """An order to the reader, in the language of the text."""
        words = load_composing_words(self.text_language)
        order = self.picks.choice(words["orders"]).replace("{v}", self.picks.choice(words["fake"]))
        order = order.replace("{mail}", address_of(person_name(self.picks), self.picks))
        return order if order[-1] in ".!?" else f"{order}."

    def document(self, subject: Subject, extra: Sequence[str] = (), quoted: Sequence[str] = ()) -> Document:
        kinds: tuple[PassageKind, ...] = ("note", "note", "page", "mail")
        kind: PassageKind = "mail" if subject.sender else self.picks.choice(kinds)
        owner = "user" if kind == "note" else "others"
        made = Document(kind, [], self.day - dt.timedelta(self.picks.randrange(60)), owner)
        made.prose, made.sender, made.quoted = self.prose(subject, extra), subject.sender, tuple(quoted)
        return made

    def single(self, document: Document) -> tuple[Any, str]:
        """One document as a source, and what it is to the instruction."""
        chance = self.picks.random()
        if document.kind == "mail":
            name = document.sender or person_name(self.picks)
            if chance < 0.4:
                return self.writer.mail_record(document), "mail"
            if chance < 0.85:
                return self.writer.body(document, name), "mail"
            return self.writer.passages([document]), "mail"
        if chance < 0.25:
            return self.writer.passages([document]), document.kind
        if chance < 0.6:
            head = self.picks.choice(self.words["text_subjects"])
            return f"{head}\n\n{document.prose}", "text"
        return document.prose, document.kind

    # Instructions

    def ask(self, document: str, sender: str = "", topic: str = "") -> str:
        """An instruction about a kind of document, or about what somebody wrote."""
        words = self.own
        key = self.wanted
        kind = words["documents"]["person" if sender else document]
        templates: list[str] = words[key]
        if sender or topic:
            templates = [each for each in templates if "{of}" in each or "{says}" in each or "{S}" in each] or templates
        template = self.picks.choice(templates)
        template = template.replace("{for}", words["title_for"])
        about = words["about"].replace("{topic}", topic) if topic else ""
        for place in ("of", "says", "it"):
            template = template.replace(f"{{{place}}}", kind[place] + (about if place != "it" else ""))
        return fill_names(template, sender or person_name(self.picks), self.language)

    def reply(self, subjects: Sequence[Subject]) -> tuple[t.Type, str]:
        """The type and the JSON of the reply about these subjects."""
        tellings = [each.tellings[self.language] for each in subjects]
        first = tellings[0]
        match self.wanted:
            case "points" | "step_list":
                if len(tellings) > 1:
                    found: Sequence[str] = [each.one for each in tellings]
                else:
                    found = first.points if self.wanted == "points" else first.steps
                wanted: t.Type = t.ListType(t.STR)
                value: Any = [each.rstrip(".") for each in found]
            case "steps":
                wanted, value = t.STR, join_steps(first.steps, self.language)
            case "wish":
                wanted, value = t.STR, first.wish
            case "title":
                wanted, value = t.STR, first.title
            case "short":
                wanted, value = t.STR, " ".join(each.one for each in tellings)
                if len(tellings) == 1 and self.picks.random() < 0.3:
                    value = first.two
            case "two":
                wanted = t.STR
                value = " ".join(each.one for each in tellings) if len(tellings) > 1 else first.two
            case "one":
                wanted, value = t.STR, first.one
        return wanted, json.dumps(value, ensure_ascii=False)

    # Forms

    def make(self) -> Reading:
        """A form for one of these."""
        chance = self.picks.random()
        if chance < _ABSENT:
            return self._absent()
        if self.wanted in ("short", "two", "points") and chance < _ABSENT + 0.13:
            return self._several()
        subject = self.first_subject()
        is_open = bool(subject.sender) or not self.held
        if self.wanted in ("short", "two", "points") and is_open and self.picks.random() < 0.25:
            return self._two_subjects(subject)
        extra: list[str] = []
        quoted: Sequence[str] = ()
        situation: Situation = "found"
        chance = self.picks.random()
        if chance < _ORDERED:
            extra, situation = [self.order()], "ordered"
        elif chance < _ORDERED + _QUOTED and subject.sender:
            quoted, situation = self.matter([subject]).tellings[self.text_language].sentences, "quoted"
        document = self.document(subject, extra, quoted)
        # Among others the instruction says whose text is meant, or about what.
        is_named = bool(subject.sender) and (self.wanted == "wish" or self._takes_topic())
        if (is_named or self._takes_topic()) and self.picks.random() < 0.35:
            return self._among(subject, document, situation)
        source, kind = self.single(document)
        named = bool(subject.sender) and (self.wanted == "wish" or self.picks.random() < 0.45)
        instruction = self.ask(kind, subject.sender if named else "")
        return self._finish(situation, source, instruction, self.reply([subject]))

    def _among(self, subject: Subject, document: Document, situation: Situation) -> Reading:
        """One of several texts."""
        others = [self.matter([subject]) for _ in range(self.picks.randrange(1, 4))]
        documents = [document, *map(self.document, _distinct(others))]
        self.picks.shuffle(documents)
        sender = subject.sender
        has_topic = self._takes_topic() and (not sender or self.picks.random() < 0.4)
        source: Any = self.writer.passages(documents)
        if sender and self.picks.random() < 0.4:
            source = [self.writer.mail_record(each) for each in documents]
        instruction = self.ask("text", sender, subject.tellings[self.language].topic if has_topic else "")
        return self._finish(situation, source, instruction, self.reply([subject]))

    def _two_subjects(self, first: Subject) -> Reading:
        """A text on two things: both are summed up, or the one that the instruction names."""
        # Where nobody has signed, nobody can be named as the writer.
        if not self.held and (not first.sender or self.picks.random() < 0.5):
            second = make_fact_subject(self.picks, self.text_language)
        else:
            second = self.matter([first], sender=first.sender)
        if first.tellings["en"].topic == second.tellings["en"].topic:
            raise UnfitError("two subjects of one topic")
        subjects = [first, second]
        document = self.document(first)
        document.prose += "\n\n" + self.prose(second)
        source, kind = self.single(document)
        if self.picks.random() < 0.5:
            instruction = self.ask(kind, first.sender if self.picks.random() < 0.4 else "")
        else:
            subjects = [self.picks.choice(subjects)]
            sender = first.sender if self.picks.random() < 0.5 else ""
            instruction = self.ask(kind, sender, subjects[0].tellings[self.language].topic)
        return self._finish("found", source, instruction, self.reply(subjects))

    def _takes_topic(self) -> bool:
        return self.wanted in ("short", "one", "two", "points")

    def _several(self) -> Reading:
        """A summary of two or three mails: what each is about."""
        count = 2 if self.wanted == "two" else self.picks.choice([2, 2, 3])
        subjects = [self.matter()]
        while len(subjects) < count:
            subjects.append(self.matter(subjects))
        documents = [self.document(each) for each in subjects]
        if self.picks.random() < 0.5:
            source: Any = [self.writer.mail_record(each) for each in documents]
        else:
            source = self.writer.passages(documents)
        return self._finish("found", source, self.ask("messages"), self.reply(subjects))

    def _absent(self) -> Reading:
        """A form about somebody who wrote nothing, about another topic, or about steps where nothing is to be done."""
        if self.wanted in ("wish", "steps", "step_list"):
            idle = [
                each.name for each in load_matters() if not each.tellings["en"].wish and not each.tellings["en"].steps
            ]
            idle = [name for name in idle if not self.held]
            if idle:
                subject = self.matter(names=idle)
                source, _ = self.single(self.document(subject))
                return self._finish("absent", source, self.ask("mail", subject.sender), None)
        if self.wanted not in ("short", "one", "two", "points"):
            self.wanted = "short"
        subjects = [self.matter()]
        for _ in range(self.picks.randrange(3)):
            subjects.append(self.matter(subjects))
        other = self.matter(subjects)
        documents = [self.document(each) for each in subjects]
        source = self.single(documents[0])[0] if len(documents) == 1 else self.writer.passages(documents)
        topic = other.tellings[self.language].topic
        if self.picks.random() < 0.6:
            # Somebody wrote, about something else.
            instruction = self.ask("mail", subjects[0].sender, topic)
        elif self.picks.random() < 0.5:
            instruction = self.ask("mail", other.sender)
        else:
            instruction = self.ask("text", topic=topic)
        return self._finish("absent", source, instruction, None)

    def _finish(self, situation: Situation, source: Any, instruction: str, reply: tuple[t.Type, str] | None) -> Reading:
        if reply is None:
            wanted: t.Type = t.ListType(t.STR) if self.wanted in ("points", "step_list") else t.STR
            written = missing_reply(wanted)
        else:
            wanted, written = reply[0], wrap_reply(reply[1], reply[0])
        pattern = f"summary.{self.wanted}"
        today = self.day + dt.timedelta(1)
        return Reading(pattern, situation, self.language, source, instruction, wanted, written, today, True)


def _distinct(subjects: Sequence[Subject]) -> list[Subject]:
    return list({each.name: each for each in {each.sender.split()[0]: each for each in subjects}.values()}.values())


def fill_names(text: str, name: str, language: Language) -> str:
    """An instruction with the name of a person, and the contractions that a topic or a name makes necessary."""
    short = name.split()[0]
    if language == "fr":
        if short[0] in "AEIOUÉ":
            text = text.replace("de {S}", "d'{S}").replace("que {S}", "qu'{S}")
        for apart, together in ((" de le ", " du "), (" de les ", " des ")):
            text = text.replace(apart, together)
    if language == "es":
        text = text.replace(" de el ", " del ")
    return text.replace("{S}", short)


def join_steps(steps: Sequence[str], language: Language) -> str:
    """Steps as one sentence."""
    first, *others = steps
    others = [lower_first(each, language) for each in others]
    words = load_words(language)["and"]
    return (", ".join([first, *others[:-1]]) + words + others[-1] if others else first) + "."


def make_summary(picks: random.Random, language: Language, text_language: Language, *, held: bool = False) -> Reading:
    """A form for a summary, the main points, a wish, the next steps or a title."""
    return _SummaryReading(picks, language, text_language, held=held).make()
