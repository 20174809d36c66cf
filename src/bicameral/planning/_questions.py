"""Questions: what a request leaves open, and the dialogue in which a person's answers fill it.

Asked is what no later step can find out: a recipient, a text that nothing names, how old is old before something is
deleted, what tidying up is to mean. A request that only names no place ("When does the ferry leave?") is not asked
about: a search finds the place. Where the rules are in doubt they do not ask.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from bicameral.errors import IntentError
from bicameral.planning._clauses import only_asks
from bicameral.planning._intent import (
    CONCRETE,
    asked_effects,
    named_dates,
    required_effects,
    required_output,
    tool_vocabulary,
    validate_request,
)
from bicameral.planning._intent_document import GivenAnswer, Intent, IntentOutput, IntentStep, Mention, OpenQuestion
from bicameral.planning._language import Language, guess_language
from bicameral.planning._lexicon import (
    AGE_WORDS,
    CONTAINERS,
    DELETABLE,
    DELETE_VERBS,
    DETERMINERS,
    EVERYTHING,
    FILE_NOUNS,
    PATTERN_OPENERS,
    PREPOSITIONS,
    PRONOUNS,
    SEND_VERBS,
    STOP_TOKENS,
    TEXT_ADJECTIVES,
    TEXT_PARTS,
    TEXT_VERBS,
    TIDY_VERBS,
    Token,
    noun_phrase,
    split_tokens,
)
from bicameral.planning._mentions import find_mentions
from bicameral.planning._recipients import phrase_text, sentence_rest, unaddressed_objects
from bicameral.text import STOP_WORDS, lazy_pattern, split_words, text_stems
from bicameral.tools import Registry

MAX_TURNS = 6
"""The most questions in one dialogue: a person who answers so often without an end should say it anew."""
_POINTER_WORDS = frozenset({"it", "this", "that", "them", "these", "those", "him", "her"})
_VAGUE_WORDS = frozenset({"stuff", "thing", "things", "something", "somehow", "whatever", "usual", "etc"})
_PLACE_KINDS = frozenset({"file", "folder", "table", "link", "mail", "event"})
# Only whether the request names a day matters to most questions, not which one.
_ANY_DAY = dt.date(2025, 1, 1)
_NO_ANSWER = frozenset({"", "?", "stop", "cancel", "quit", "abbrechen", "annuler", "cancelar"})


def open_questions(request: str, mentions: Sequence[Mention] | None = None) -> tuple[OpenQuestion, ...]:
    """Questions to the person about what a request leaves open.

    Args:
        mentions: What the request mentions, if it is known.

    Example:
        >>> [each.question for each in open_questions("Forward the offer")]
        ['To whom should the offer go?']
    """
    if (unclear := _unclear(request)) is not None:
        return (unclear,)
    known = find_mentions(request, _ANY_DAY) if mentions is None else mentions
    tokens = split_tokens(request)
    rules = (_missing_recipient, _missing_place, _missing_age, _missing_scope, _unclear_tidying, _missing_start)
    found = [question for rule in rules for question in rule(tokens, known)]
    # One question a topic: the answer to it may settle the others.
    return tuple({each.about: each for each in reversed(found)}.values())[::-1]


def _unclear(request: str) -> OpenQuestion | None:
    said = split_words(request)
    named = [
        word for word in said if word not in STOP_WORDS and word not in _POINTER_WORDS and word not in _VAGUE_WORDS
    ]
    # A question says by its own words what is to be done: "When is the dentist?" leaves nothing open.
    asks = request.rstrip().endswith("?") or (said[:1] and said[0] in _QUESTION_WORDS)
    if len(named) < (1 if asks else 2) and not CONCRETE.search(request) and not _has_foreign_words(request, named):
        text = request.strip()
        return OpenQuestion(about="task", question=f"What exactly should be done? {text!r} does not say.", words=text)
    first = next((i for i, word in enumerate(said) if word in _POINTER_WORDS), None)
    is_early = first is not None and first <= 1 and len(said) > first + 1
    if first is not None and is_early and not CONCRETE.search(request) and not _is_no_pointer(said, first):
        return OpenQuestion(about="referent", question=f"What does {said[first]!r} refer to?", words=said[first])
    return _unclear_pronoun(request)


_QUESTION_WORDS = frozenset("what which who whose when where why how".split())
_TIME_NOUNS = frozenset(
    "year month week weekend quarter morning afternoon evening night summer winter spring autumn season time "
    "monday tuesday wednesday thursday friday saturday sunday".split()
)
_BEFORE_CLAUSE = frozenset("check see note ensure verify remember confirm say know think everything anything".split())
_ASKING_VERBS = frozenset("is was will would does did has can could are were".split())


def _is_no_pointer(said: Sequence[str], place: int) -> bool:
    """Whether `this`, `that` or `it` points at nothing: a time, a clause that follows, the `it` of `is it cold`."""
    word, before, after = said[place], said[place - 1] if place else "", said[place + 1]
    if word in ("this", "that") and after.removesuffix("'s").removesuffix("s") in _TIME_NOUNS:
        return True
    if word == "that" and before:
        # `members that paid`: a plural before it is no verb; `check that …` has a clause for its object.
        plural = before.endswith("s") and not before.endswith(("ss", "us", "is", "'s"))
        return before in _BEFORE_CLAUSE or (plural and before.removesuffix("s") not in _QUESTION_WORDS)
    if word in ("those", "these"):
        # What they are is said by the words that follow: `those files in the folder …`, `among those I follow`.
        return any(each in _DEFINING for each in said[place + 1 :])
    # What is asked about changes nothing, and the words of the question say where to look.
    return word == "it" and before in _ASKING_VERBS and len(said) > _SHORT_QUESTION


_DEFINING = frozenset("in of from with whose that which who i we under".split())
_SHORT_QUESTION = 3
# Pronouns of French and Spanish that stand for a thing, after an order: `transfère-le`, `reenvía eso`. German ones are
# articles as well.
_PRONOUN_OBJECT = lazy_pattern(
    r"\W*(?:transf[eè]re|envoie|supprime|efface|imprime|range|lis|reenv[ií]a|env[ií]a|manda|borra|elimina|"
    r"fais\s+suivre)(?:-(?P<clitic>les?|la)\b|\s+(?P<word>[cç]a|cela|ceci|eso|esto|ello)\b)(?!\s*[:,])[^.!?;:,\n]*[.!]?\s*",
    re.IGNORECASE,
)


# The same with a noun: `fais suivre ce mail`, `borra ese archivo`, `lösch diese Datei`. Nothing after it says which.
_POINTED_OBJECT = lazy_pattern(
    r"\W*\w+\s+(?:(?:suivre|bitte|por\s+favor)\s+)?(?P<word>(?:ce|cet|cette|ces|ese|esa|esos|esas|diese[nrs]?)\s+"
    r"(?!(?:mois|semaine|ann[eé]e|matin|soir|midi|apr[eè]s-midi|nuit|week-end|trimestre|\w+di|mes|semana|a[ñn]o|tarde|noche|"
    r"ma[ñn]ana|d[ií]a|woche|monat|jahr|quartal|wochenende|abend|morgen|\w+tag)\b)[^\W\d]+)"
    r"(?:\s+(?:(?:à|a|au|aux|al|an|ans)\s+.*|weiter|ab|weg|stp|svp|bitte|por\s+favor|otra\s+vez))?\s*[.!]?\s*",
    re.IGNORECASE,
)
# A person who was not named before: `Schreib ihr, dass …`, `Dis-lui que …`. Spanish names him after it: `Dile a Ana`.
_POINTED_PERSON = lazy_pattern(
    r"\W*(?:(?:schreib|sag|frag|antwort|schick)e?\s+(?:bitte\s+)?|(?:[eé]cris|dis|r[eé]ponds|demande)-)"
    r"(?P<word>ihm|ihr(?!\s+[A-ZÄÖÜ])|ihnen|lui|leur)\b(?!\s*:)[^.!?;:\n]*[.!]?\s*",
    re.IGNORECASE,
)


def _unclear_pronoun(request: str) -> OpenQuestion | None:
    forms = (_PRONOUN_OBJECT, _POINTED_OBJECT, _POINTED_PERSON)
    found = next((match for form in forms if (match := form.fullmatch(request))), None)
    if found is None or CONCRETE.search(request):
        return None
    word = found.groupdict().get("clitic") or found["word"]
    return OpenQuestion(about="referent", question=f"What does {word!r} refer to?", words=word)


def _has_foreign_words(request: str, named: Sequence[str]) -> bool:
    """Whether a request has words that the English rules cannot see, such as those of another script."""
    letters = sum(char.isalpha() and not char.isascii() for char in request)
    return bool(letters) and letters >= sum(map(len, named))


def is_explicit(request: str, registry: Registry) -> bool:
    """Whether a request needs no model to be understood: it names things, uses known words, and leaves nothing open."""
    said = split_words(request)
    if open_questions(request) or set(said) & _VAGUE_WORDS or len(said) > 60:
        return False
    if asks_about_named(request) and not asked_effects(request, registry):
        return True
    known = set(text_stems(request)) & tool_vocabulary(registry)
    return len(known) >= (1 if CONCRETE.search(request) else 3)


_NAMED_PLACE = lazy_pattern(r"https?://\S+|(?<![\w@.])[\w./-]*\w\.[A-Za-z]{2,5}\b(?!@)")
_MOST_WORDS = 20
_LANGUAGES: tuple[Language, ...] = ("en", "de", "fr", "es")


def asks_about_named(request: str) -> bool:
    """Whether a short request only asks for an answer from a file or a page that it names, in any of the languages.

    Example:
        >>> asks_about_named("Zeig mir bitte todo.txt."), asks_about_named("Zeig mir die Rechnung")
        (True, False)
    """
    if _NAMED_PLACE.search(request) is None or len(request.split()) > _MOST_WORDS:
        return False
    language = guess_language(request)
    # A short request in another language may have no word that tells it from an English one: `Muéstrame notas.txt`.
    return any(only_asks(request, each) for each in (_LANGUAGES if language == "en" else (language,)))


# The rules ------------------------------------------------------------------------------------------------------------


def _orders(tokens: Sequence[Token], verbs: frozenset[str]) -> Iterator[int]:
    """Where one of these verbs is an order."""
    return (place for place, token in enumerate(tokens) if token.clause_start and token.lower in verbs)


def _missing_recipient(tokens: Sequence[Token], mentions: Sequence[Mention]) -> Iterator[OpenQuestion]:
    """An order to send, and nobody it could go to."""
    for what in unaddressed_objects(tokens, mentions):
        words = "" if what == "it" else what
        yield OpenQuestion(about="recipient", question=f"To whom should {what} go?", words=words)


def _missing_place(tokens: Sequence[Token], mentions: Sequence[Mention]) -> Iterator[OpenQuestion]:
    """Orders about lines, duplicates or "the file", where no word could be the name of a text."""
    if any(each.kind in _PLACE_KINDS for each in mentions) or not tokens:
        return
    orders = [*_orders(tokens, TEXT_VERBS)]
    if not orders:
        return
    parts = [token for token in tokens if token.lower in TEXT_PARTS]
    files = [token for token in tokens if token.lower in FILE_NOUNS]
    spans = [(each.start, each.end) for each in mentions]
    rest = _unexplained_words(tokens, spans)
    if parts and not files and not rest:
        yield OpenQuestion(about="file", question="Which file or text is meant?", words=phrase_text(parts[:1]))
    elif files and not rest and not parts and files[0].lower not in _PLURAL_FILES:
        yield OpenQuestion(about="which", question=f"Which {files[0].text} is meant?", words=files[0].text)


_PLURAL_FILES = frozenset("files documents dateien fichiers archivos".split())


_EXPLAINED = STOP_TOKENS | TEXT_VERBS | TEXT_PARTS | TEXT_ADJECTIVES | FILE_NOUNS | PATTERN_OPENERS


def _unexplained_words(tokens: Sequence[Token], spans: Sequence[tuple[int, int]]) -> list[Token]:
    """The words that may name a text: no verb, no part of a text, and not what is searched for in it."""
    found: list[Token] = []
    searched = False
    ends = iter([*sorted(spans), (len(tokens) and tokens[-1].end + 1, 0)])
    span = next(ends)
    for token in tokens:
        while span[1] and span[1] <= token.start:
            span = next(ends)
        if token.clause_start:
            searched = False
        if token.lower in PATTERN_OPENERS:
            searched = True
        elif token.lower in ("in", "of", "from", "aus", "von", "dans", "de", "en"):
            searched = False
        quoted = span[0] <= token.start < span[1]
        if token.text[0].isalpha() and not searched and not quoted and token.lower not in _EXPLAINED:
            found.append(token)
    return found


def _missing_age(tokens: Sequence[Token], mentions: Sequence[Mention]) -> Iterator[OpenQuestion]:
    """Something old is to be deleted, and nothing says how old."""
    if any(each.kind in ("day", "period") for each in mentions) or any(token.text[0].isdigit() for token in tokens):
        return
    for place in _orders(tokens, DELETE_VERBS):
        phrase = noun_phrase(tokens, place + 1)
        said = {token.lower for token in phrase}
        if said & AGE_WORDS and not {token.lower for token in sentence_rest(tokens, place)} & _BOUNDS:
            what = phrase_text(phrase)
            yield OpenQuestion(
                about="age", question=f"How old must {what} be to be deleted? That cannot be undone.", words=what
            )


_BOUNDS = frozenset("than before since until year month week als vor seit depuis avant antes desde que".split())


def _missing_scope(tokens: Sequence[Token], mentions: Sequence[Mention]) -> Iterator[OpenQuestion]:
    """Everything of a kind is to be deleted, wherever it is."""
    if mentions:
        return
    for place in _orders(tokens, DELETE_VERBS):
        phrase = noun_phrase(tokens, place + 1)
        said = {token.lower for token in phrase}
        other = said - EVERYTHING - DETERMINERS - DELETABLE - PRONOUNS
        bounded = any(token.lower in PREPOSITIONS for token in sentence_rest(tokens, place))
        # `delete them all` speaks of what was named before.
        if said & EVERYTHING and not other and not bounded and not said & _POINTER_WORDS:
            what = phrase_text(phrase)
            yield OpenQuestion(
                about="scope", question=f"What exactly is {what}, and where? Deleting cannot be undone.", words=what
            )


def _unclear_tidying(tokens: Sequence[Token], mentions: Sequence[Mention]) -> Iterator[OpenQuestion]:
    """A place is to be tidied up, and nothing says how."""
    for place in _orders(tokens, TIDY_VERBS):
        rest = sentence_rest(tokens, place)
        said = {token.lower for token in rest}
        if not said & CONTAINERS or said & _MANNER or _has_destination(tokens[place], rest):
            continue
        # A colon or another sentence says what is to be done; so does another order after `and`.
        if any(token.clause_start for token in tokens[place + 1 :]) or any(each.kind == "file" for each in mentions):
            continue
        verb = phrase_text(tokens[place : place + 1 + (rest[0].lower == "up" if rest else 0)])
        question = f"What does {verb!r} mean here: what is to be deleted, moved or kept?"
        yield OpenQuestion(about="meaning", question=question, words=phrase_text(tokens[place:]))


_MANNER = frozenset("by per into nach par por indem en into".split())


def _has_destination(verb: Token, rest: Sequence[Token]) -> bool:
    """`Räum … in den Ordner ein`, `Range … dans le dossier`: things are put somewhere, and nothing is tidied up."""
    words = [token.lower for token in rest]
    if verb.lower == "range":
        return "dans" in words
    puts = any(pair[0] == "in" and pair[1] in _ACCUSATIVES for pair in pairwise(words))
    return verb.lower.startswith(("räum", "raeum")) and (puts or "ein" in words[-2:])


_ACCUSATIVES = frozenset("den die das meinen meine mein".split())


def _missing_start(tokens: Sequence[Token], mentions: Sequence[Mention]) -> Iterator[OpenQuestion]:
    """`since then`, `since last time`: a time that the request does not name."""
    if any(each.kind in ("day", "period") for each in mentions):
        return
    for place, token in enumerate(tokens[:-1]):
        after = [each.lower for each in tokens[place + 1 : place + 4]]
        vague = after[:1] in (["then"], ["damals"], ["lors"], ["entonces"]) or after[:2] == ["last", "time"]
        if token.lower in ("since", "seit", "depuis", "desde") and (vague or after == ["the", "last", "time"]):
            yield OpenQuestion(about="since", question="Since when?", words=phrase_text(tokens[place : place + 4]))


# Steps with parameters ------------------------------------------------------------------------------------------------

_PLACE_PARAMETERS = frozenset(
    "path file files folder table source input from in url link text lines rows document mail mailbox address".split()
)


def step_questions(intent: Intent) -> tuple[OpenQuestion, ...]:
    """What steps with parameters leave open: the text that they work on, and the recipient of what is sent."""
    said = {name for step in intent.steps for name in step.parameters}
    words = [set(step.action.lower().replace("_", "-").split("-")) for step in intent.steps]
    actions = set[str]().union(*words)
    found: list[OpenQuestion] = []
    kinds = {each.kind for each in intent.mentions}
    if (
        actions & (TEXT_PARTS | {"grep", "uniq", "dedupe"})
        and not said & _PLACE_PARAMETERS
        and not kinds & _PLACE_KINDS
    ):
        step = next(step for step, own in zip(intent.steps, words, strict=True) if own & (TEXT_PARTS | TEXT_VERBS))
        found.append(OpenQuestion(about="file", question="Which file or text is meant?", words=step.action))
    sends = actions & SEND_VERBS or intent.output.kind == "mail"
    if sends and not (said & {"to", "recipient", "recipients"} or intent.output.to or kinds & {"person", "address"}):
        found.append(OpenQuestion(about="recipient", question="To whom should it be sent?"))
    if intent.output.kind == "file" and intent.output.path is None and not (said & {"path", "file"} or "file" in kinds):
        found.append(OpenQuestion(about="file", question="Into which file should the result be written?"))
    return tuple({each.about: each for each in reversed(found)}.values())[::-1]


# Understanding and dialogue -------------------------------------------------------------------------------------------


def understand(request: str, registry: Registry, today: dt.date) -> Intent:
    """The intent of a request by rules alone: one step, effects, days, mentions, output and open questions."""
    text = validate_request(request)
    effects, mentions = asked_effects(text, registry), find_mentions(text, today)
    required = required_effects(text, effects)
    return Intent(
        request=text,
        steps=(IntentStep(action=text),),
        output=IntentOutput.model_validate(required_output(text, required)),
        effects=effects,
        required=required,
        dates=named_dates(text, today),
        mentions=mentions,
        questions=open_questions(text, mentions),
    )


def complete_intent(intent: Intent, registry: Registry, today: dt.date) -> Intent:
    """An intent that a person wrote, with what rules find in its request and its steps.

    What the document says stays. Effects are added and never taken away: the words of the request count as well.
    """
    plain = understand(_with_stated_values(intent), registry, today)
    effects = tuple(
        effect for effect in _EFFECTS if effect in {*intent.effects, *plain.effects, *_output_effects(intent)}
    )
    filled = intent.model_copy(
        update={
            "request": plain.request,
            "effects": effects,
            "required": intent.required or plain.required,
            "dates": intent.dates or plain.dates,
            "mentions": plain.mentions,
        }
    )
    open_now = step_questions(filled) if filled.is_structured and filled.steps else plain.questions
    answered = {each.about for each in filled.answers}
    questions = {each.about: each for each in (*intent.questions, *open_now) if each.about not in answered}
    return filled.model_copy(update={"questions": tuple(questions.values())})


def _with_stated_values(intent: Intent) -> str:
    """The request with what the person wrote into steps, constraints and output, and not into the request.

    A plan may use only what the request names: a recipient that the person changed in the document must count as named.
    """
    values = [value for step in intent.steps for value in step.parameters.values()]
    flat = [each for value in values for each in (value if isinstance(value, tuple) else (value,))]
    stated = [
        *(each for each in flat if isinstance(each, str)),
        *intent.constraints,
        intent.output.path,
        *intent.output.to,
    ]
    request = intent.request
    added = [each for each in dict.fromkeys(stated) if each and each.casefold() not in request.casefold()]
    return f"{request}\n({'; '.join(added)})" if added else request


_EFFECTS = ("write", "send", "irreversible")


def _output_effects(intent: Intent) -> set[str]:
    return {"mail": {"send"}, "file": {"write"}, "calendar": {"write"}}.get(intent.output.kind, set())


def continue_intent(
    intent: Intent, answers: Mapping[str, str] | Sequence[str], registry: Registry, today: dt.date
) -> Intent:
    """The intent with the person's answers to its open questions, understood again by rules.

    An answer becomes part of the request. Its question is not asked again; the answer may raise another one. An empty
    answer, `?` or `stop` answers nothing.

    Args:
        answers: The answers in the order of the questions, or by what they are about (`{"recipient": "Kim"}`).

    Example:
        >>> whole = continue_intent(intent, {"recipient": "kim@example.com"}, registry, today)
        >>> whole.questions
        ()
    """
    given: list[GivenAnswer] = []
    for place, question in enumerate(intent.questions):
        reply = answers.get(question.about, "") if isinstance(answers, Mapping) else "".join(answers[place : place + 1])
        if not is_stop(reply):
            given.append(GivenAnswer(about=question.about, question=question.question, answer=reply.strip()))
    if not given:
        return intent
    request = "\n".join([intent.request, *(f"({each.answer})" for each in given)])
    plain = understand(request, registry, today)
    known = (*intent.answers, *given)
    update = {
        "request": plain.request,
        "effects": plain.effects,
        "required": plain.required,
        "dates": plain.dates,
        "mentions": plain.mentions,
        "answers": known,
        "questions": remaining_questions(plain, known),
    }
    if not intent.is_structured:
        return plain.model_copy(update=update | {"by": intent.by})
    return complete_intent(intent.model_copy(update=update | {"questions": ()}), registry, today)


def remaining_questions(intent: Intent, answers: Sequence[GivenAnswer]) -> tuple[OpenQuestion, ...]:
    """The questions of an intent that were not answered before."""
    answered = {each.about for each in answers}
    return tuple(each for each in intent.questions if each.about not in answered)


def is_stop(reply: str) -> bool:
    """Whether a reply to a question ends the dialogue: an empty one, `?`, `stop`."""
    return reply.strip().lower() in _NO_ANSWER


def questions_error(questions: Sequence[OpenQuestion]) -> IntentError:
    """The error for questions that nobody answers."""
    return IntentError(
        "intent.questions",
        "the request leaves open: " + " ".join(each.question for each in questions),
        fix="Say it in the request, or run it interactively.",
    )
