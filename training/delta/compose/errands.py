"""What errands are made of: events of daily life, letters, messages, questions that name no place, and refusals.

`data/errands_LANGUAGE.toml` holds them with their sentences. An occasion stores its gender, and the forms of
"my next …" that a sentence needs come from small tables here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Occasion:
    """A kind of event: the word by which it is searched for, its gender, and what it is called in a request."""

    key: str
    gender: str
    noun: str


@dataclass(frozen=True, slots=True)
class LetterWords:
    """A mail that is spoken of: the words of a reference to it, its accusative, and what stands behind "reply"."""

    words: str
    accusative: str
    to: str


@dataclass(frozen=True, slots=True)
class Message:
    """Something to tell somebody: the subject of a mail, the text as a sentence, and as a clause behind "that"."""

    subject: str
    text: str
    clause: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question that names no place: key words, what is to be read, its type, and ways to ask it."""

    key: str
    instruction: str
    type: str
    asked: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MailQuestion:
    """A question that a mail answers: words of that mail, words for its sender, what is to be read, and ways to ask."""

    text: str
    sender: str
    instruction: str
    type: str
    asked: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Note:
    """Something to be added to a list: words for the list, the list with its preposition, and the text."""

    list: str
    onto: str
    text: str


@dataclass(frozen=True, slots=True)
class Errand:
    """Something that no tool does, for each of several things (`{thing}`), and why it cannot be done."""

    key: str
    reason: str
    things: tuple[str, ...]
    say: tuple[str, ...]
    sloppy: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Errands:
    """All of them in one language.

    Args:
        days: A day to come as it is said, the part that names the day, and how something is moved to it; empty where
            nobody says so.
        clock: A time of day with minutes (`{h}`, `{mm}`, `{h12}`, `{half}`); `clock_whole` is one without.
        durations: A duration as it is said, and its minutes.
        places: Where an event can be, as it is said behind the noun, and the bare name.
        senders: Who writes mails, by a word and with the article.
        topics: What mails are about, by a word and with the article.
    """

    occasions: tuple[Occasion, ...]
    letters: tuple[LetterWords, ...]
    messages: tuple[Message, ...]
    replies: tuple[Message, ...]
    questions: tuple[Question, ...]
    mail_questions: tuple[MailQuestion, ...]
    notes: tuple[Note, ...]
    errands: tuple[Errand, ...]
    days: tuple[tuple[str, str, str], ...]
    clock: tuple[str, ...]
    clock_whole: tuple[str, ...]
    durations: tuple[tuple[str, int], ...]
    places: tuple[tuple[str, str], ...]
    senders: tuple[tuple[str, str], ...]
    topics: tuple[tuple[str, str], ...]

    def clock_phrases(self, hour: int, minute: int) -> tuple[str, ...]:
        """Ways to say a time of day, with the preposition."""
        values = {"h": str(hour), "mm": f"{minute:02}", "h12": str((hour - 1) % 12 + 1)}
        values["half"] = "am" if hour < 12 else "pm"
        return tuple(each.format_map(values) for each in (self.clock if minute else self.clock_whole))


def errands_of(stored: Mapping[str, Any]) -> Errands:
    """The errands of a language, from its data file."""

    def pairs(key: str) -> tuple[tuple[str, str], ...]:
        return tuple((first, second) for first, second in stored[key])

    return Errands(
        occasions=tuple(Occasion(*each) for each in stored["occasions"]),
        letters=tuple(LetterWords(*each) for each in stored["letters"]),
        messages=tuple(Message(*each) for each in stored["messages"]),
        replies=tuple(Message("", *each) for each in stored["replies"]),
        questions=tuple(_question(each) for each in stored["questions"]),
        mail_questions=tuple(_mail_question(each) for each in stored["mail_questions"]),
        notes=tuple(Note(*each) for each in stored["notes"]),
        errands=tuple(_errand(key, each) for key, each in stored["errand"].items()),
        days=tuple((said, phrase, to) for said, phrase, to in stored["days"]),
        clock=tuple(stored["clock"]),
        clock_whole=tuple(stored["clock_whole"]),
        durations=tuple((said, int(minutes)) for said, minutes in stored["durations"]),
        places=pairs("places"),
        senders=pairs("senders"),
        topics=pairs("topics"),
    )


def _question(parts: Sequence[Any]) -> Question:
    key, instruction, kind, *asked = parts
    return Question(key, instruction, kind, tuple(asked))


def _mail_question(parts: Sequence[Any]) -> MailQuestion:
    text, sender, instruction, kind, *asked = parts
    return MailQuestion(text, sender, instruction, kind, tuple(asked))


def _errand(key: str, stored: Mapping[str, Any]) -> Errand:
    return Errand(key, stored["reason"], tuple(stored["things"]), tuple(stored["say"]), tuple(stored["sloppy"]))


_GERMAN: Mapping[str, tuple[str, str, str, str, str]] = {
    "m": ("der", "den", "dem", "er", "en"),
    "f": ("die", "die", "der", "e", "e"),
    "n": ("das", "das", "dem", "es", "es"),
}
_VOWELS = frozenset("aeiouyhàâéèêîôûœ")


def occasion_words(occasion: Occasion, code: str) -> dict[str, str]:
    """The placeholders of an occasion: `{o}`, `{o_the}`, `{o_my}`, `{o_next}`, `{o_last}`, and the cases of a language.

    Example:
        >>> occasion_words(Occasion("yoga", "f", "Yogastunde"), "de")["o_next_acc"]
        'meine nächste Yogastunde'
    """
    noun, feminine = occasion.noun, occasion.gender == "f"
    match code:
        case "de":
            the, the_acc, the_dat, strong, weak = _GERMAN[occasion.gender]
            mein, meinen = ("meine", "meine") if feminine else ("mein", "meinen" if occasion.gender == "m" else "mein")
            meinem = "meiner" if feminine else "meinem"
            # In the accusative: what is put into a calendar.
            ein = meinen.removeprefix("m")
            return {
                "o": noun,
                "o_the": f"{the} {noun}",
                "o_acc": f"{the_acc} {noun}",
                "o_dat": f"{the_dat} {noun}",
                "o_a": f"{ein} {noun}",
                "o_my": f"{mein} {noun}",
                "o_my_acc": f"{meinen} {noun}",
                "o_next": f"{mein} nächst{strong} {noun}",
                "o_next_acc": f"{meinen} nächst{weak} {noun}",
                "o_next_dat": f"{meinem} nächsten {noun}",
                "o_last": f"{mein} letzt{strong} {noun}",
                "o_last_acc": f"{meinen} letzt{weak} {noun}",
                "o_last_dat": f"{meinem} letzten {noun}",
            }
        case "fr":
            elided = noun[0].lower() in _VOWELS
            the = f"l'{noun}" if elided else f"{'la' if feminine else 'le'} {noun}"
            return {
                "o": noun,
                "o_the": the,
                "o_of": f"de {the}" if elided or feminine else f"du {noun}",
                "o_to": f"à {the}" if elided or feminine else f"au {noun}",
                "o_a": f"{'une' if feminine else 'un'} {noun}",
                "o_my": f"{'ma' if feminine and not elided else 'mon'} {noun}",
                "o_next": f"{'ma prochaine' if feminine else 'mon prochain'} {noun}",
                "o_last": f"{'ma dernière' if feminine else 'mon dernier'} {noun}",
                "o_pro": "la" if feminine else "le",
            }
        case "es":
            the = f"{'la' if feminine else 'el'} {noun}"
            return {
                "o": noun,
                "o_the": the,
                "o_of": f"de {the}" if feminine else f"del {noun}",
                "o_to": f"a {the}" if feminine else f"al {noun}",
                "o_a": f"{'una' if feminine else 'un'} {noun}",
                "o_my": f"mi {noun}",
                "o_next": f"mi {'próxima' if feminine else 'próximo'} {noun}",
                "o_last": f"mi {'última' if feminine else 'último'} {noun}",
                "o_lo": "la" if feminine else "lo",
            }
        case _:
            return {
                "o": noun,
                "o_the": f"the {noun}",
                "o_my": f"my {noun}",
                "o_next": f"my next {noun}",
                "o_last": f"my last {noun}",
            }
