"""Follow-ups: what a request of a conversation refers back to, found by rules in the person's own words.

`and in October?` repeats an earlier request with another month: the phrase of the same kind is exchanged, and the
result is a request that stands for itself. `now mail it to Kim` speaks of an earlier result. Where several readings are
possible they are given as choices, and where there is none the request is taken as it is.

Only the person's requests are read here: neither results nor plans. Every word of an understood request comes from
them, except for a preposition that a month needs.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from bicameral.planning._back_references import find_back_reference
from bicameral.planning._intent_document import Mention
from bicameral.planning._language import Language, fold, guess_language
from bicameral.planning._lexicon import DETERMINERS, PREPOSITIONS, PRONOUNS, Token, split_tokens
from bicameral.planning._mentions import find_mentions
from bicameral.text import MONTH_NUMBERS, STOP_WORDS, lazy_pattern

MAX_LOOKED_BACK = 5
"""How many requests back a follow-up may speak of."""
MAX_CHOICES = 6
_MAX_WORDS = 8
_MAX_NAME = 3

PhraseKind = Literal["time", "file", "folder", "address", "link", "amount", "quoted", "number", "name", "thing"]


@dataclass(frozen=True, slots=True)
class NewRequest:
    """The request stands for itself."""

    text: str


@dataclass(frozen=True, slots=True)
class Rewritten:
    """An earlier request with a phrase exchanged or added; `about` is the place of that request, 0 for the oldest."""

    text: str
    about: int


@dataclass(frozen=True, slots=True)
class ResultReference:
    """The request speaks of an earlier result: `word` is the word that does, `many` whether it means several things."""

    text: str
    word: str
    many: bool


@dataclass(frozen=True, slots=True)
class Unclear:
    """Several readings are possible."""

    text: str
    choices: tuple[Rewritten, ...]


FollowUp = NewRequest | Rewritten | ResultReference | Unclear


def resolve_follow_up(said: str, earlier: Sequence[str], today: dt.date) -> FollowUp:
    """What a request of a conversation means, given the requests before it.

    Args:
        said: What the person says now.
        earlier: The requests before it as they were understood, the oldest first.
        today: The day that `tomorrow` is relative to.

    Example:
        >>> resolve_follow_up("and in October?", ["How much did I spend in September?"], today)
        Rewritten(text='How much did I spend in October?', about=0)
    """
    text = " ".join(said.split())
    if not earlier:
        return NewRequest(text)
    phrase = _elliptic_phrase(text, guess_language(earlier[-1]), today)
    if phrase is None:
        found = find_back_reference(text, today)
        return NewRequest(text) if found is None else ResultReference(text, found.word, found.many)
    choices = tuple(dict.fromkeys(_readings(phrase, earlier, today)))[:MAX_CHOICES]
    match choices:
        case ():
            return NewRequest(text)
        case (only,):
            return only
        case _:
            return Unclear(text, choices)


# Elliptic phrases -----------------------------------------------------------------------------------------------------

_WEAK = (
    r"(?:(?:and|und|et|y|e|but|aber|mais|pero)\s+)?(?:only|just|nur|seulement|uniquement|solo|solamente)\s+|"
    r"(?:and|und|et|y|e)\s+"
)
"""Words before a phrase that may begin an order or a question as well: `and`, `only`."""
_STRONG = (
    r"(?:(?:and|but|ok(?:ay)?|so|then|now|also|und|aber|jetzt|dann|nun|et|mais|puis|y|pero|ahora|luego)[\s,]+){0,2}(?:"
    # English
    r"(?:what|how)\s+about|(?:do\s+)?the\s+same(?:\s+thing)?\s+(?:again\s+)?(?:for|with|but|in|on|of|from)|"
    r"same(?:\s+thing)?\s+(?:for|with|but)|do\s+(?:that|it|this)\s+(?:again\s+)?(?:for|with)|likewise\s+for|"
    r"again\s+(?:for|with|but)|i\s+mean(?:t)?|try(?:\s+it)?\s+with|"
    # German
    r"was\s+ist\s+mit|wie\s+(?:ist|steht|sieht)\s+(?:es|'s)\s+(?:mit|bei|fur)|wie\s+ist\s+das\s+(?:mit|bei)|"
    r"(?:mach\s+)?(?:bitte\s+)?(?:dasselbe|das\s+gleiche|das\s+selbe|genauso|ebenso)(?:\s+bitte)?(?:\s+noch\s*mal)?\s+"
    r"(?:fur|mit|bei|aber)|noch\s*mal\s+(?:fur|mit)|ich\s+meine?(?:\s+naturlich)?|"
    # French
    r"qu'en\s+est-il\s+(?:de|du|pour)|(?:fais\s+)?la\s+meme\s+chose(?:\s+mais)?\s+(?:pour|avec|en)|"
    r"(?:meme\s+chose|pareil|idem)(?:\s+mais)?\s+(?:pour|avec)|je\s+(?:veux|voulais)\s+dire|"
    # Spanish
    r"que\s+(?:tal|hay|pasa)\s+(?:de|con)|que\s+tal|(?:haz\s+)?lo\s+mismo(?:\s+pero)?\s+(?:para|con|en|de)|"
    r"(?:igual|idem)\s+(?:para|con)|quiero\s+decir)\s+"
)
_OPENING = lazy_pattern(rf"[\W_]*(?:(?P<strong>{_STRONG})|(?P<weak>{_WEAK}))")
_CLOSING = lazy_pattern(
    r"[\s,]*(?:\b(?:instead|then|please|again|too|as\s+well|bitte|aus|stattdessen|noch|auch|stp|svp|plutot|aussi|"
    r"por\s+favor|tambien|mejor)\b[\s,]*)*[?!.…]*\s*$"
)
_TIME_KINDS = ("day", "period")
_RELATIVE_TIME = lazy_pattern(
    r"(?:today|yesterday|tomorrow|this|last|next|heute|gestern|morgen|diese[nrsm]?|letzte[nrsm]?|nachste[nrsm]?|"
    r"vorige[nrsm]?|hier|demain|aujourd'hui|ce|cette|la\s+semaine|le\s+mois|hoy|ayer|manana|est[ae]|la\s+semana|el\s+mes)\b"
)
_IN_WORDS = frozenset("in im on am en el during während pendant durante at um a à".split())
_FOR_WORDS = frozenset("for fur pour para por".split())
_MONTH_WORDS: dict[Language, str] = {"en": "in ", "de": "im ", "fr": "en ", "es": "en "}
_NO_NOUN = lazy_pattern(
    r"(?:what|which|who|whose|when|where|why|how|is|are|was|were|do|does|did|can|could|will|would|should|there|then|"
    r"not|no|yes|please|was|wer|wie|wo|wann|warum|welche[rsn]?|ist|sind|war|kann|kannst|hat|haben|gibt|nein|ja|dann|"
    r"quel(?:le)?s?|qui|quand|comment|combien|pourquoi|est|sont|non|oui|puis|ensuite|"
    r"que|quien|cuando|donde|como|cuant[oa]s?|cual(?:es)?|es|son|hay|si|luego)\b"
)


@dataclass(frozen=True, slots=True)
class _Phrase:
    """What a follow-up names: `in October`, `travel.csv`, `Berlin`; `lead` is its preposition with its article."""

    kind: PhraseKind
    lead: str
    core: str


def _elliptic_phrase(text: str, language: Language, today: dt.date) -> _Phrase | None:
    """The phrase of a follow-up that is nothing but a phrase; None if it says something of its own."""
    folded = fold(text)
    opening = _OPENING.match(folded)
    start = opening.end() if opening else re.match(r"[\W_]*", folded).end()  # pyright: ignore[reportOptionalMemberAccess]
    closing = _CLOSING.search(folded, start)
    rest = text[start : closing.start() if closing else len(text)].strip()
    asks = text.rstrip().endswith("?")
    if not rest or len(rest.split()) > _MAX_WORDS:
        return None
    lead, core = _split_lead(rest)
    # Without an opening only a phrase that begins with a preposition is one: `in October?`, and not `October figures`.
    if not core or (opening is None and not (lead and asks)):
        return None
    kind = _kind_of(lead, core, today)
    strong = opening is not None and opening["strong"] is not None
    if kind == "thing":
        words = core.split()
        known = strong or bool(lead) or (asks and len(words) == 1)
        if not known or len(words) > _MAX_NAME or _NO_NOUN.match(fold(core)):
            return None
        if any(fold(word) in _NO_THINGS | STOP_WORDS for word in words[-1:]) or fold(words[0]) in PRONOUNS:
            return None
        if any(character in core for character in ",;:"):
            return None
    return _Phrase(kind, lead, core)


def _split_lead(rest: str) -> tuple[str, str]:
    """The preposition of a phrase, with an article after it, and what follows."""
    tokens = split_tokens(rest)
    at = 0
    if tokens and tokens[0].lower in _LEADS:
        at = 1
        if (
            len(tokens) > 2
            and tokens[1].lower in DETERMINERS
            and not _RELATIVE_TIME.match(fold(rest[tokens[1].start :]))
        ):
            at = 2
    if at >= len(tokens):
        return "", rest
    start = tokens[at].start
    return rest[:start], rest[start:]


_LEADS = PREPOSITIONS | frozenset(
    "in im am on at for from to of by with über over under above below between since until before after without about "
    "für fur von vom aus bei nach mit ohne seit bis vor unter zwischen an zu zum zur auf "
    "en pour de du des d' à a au aux avec sans dans chez par depuis avant après sur sous entre "
    "para con sin desde hasta por del al sobre bajo".split()
)


def _kind_of(lead: str, core: str, today: dt.date) -> PhraseKind:
    """The kind of a phrase: the mention that it is, or else a name or a thing."""
    if _is_month(core):
        return "time"
    bare = core.strip(" \"'“”„«»‘’‚`")
    for mention in find_mentions(lead + core, today):
        if mention.words.strip() == bare and (kind := _mention_kind(mention)) is not None:
            return kind
    if re.fullmatch(r"\d+(?:[.,]\d+)?", core):
        return "number"
    words = split_tokens(core)
    if 0 < len(words) <= _MAX_NAME and all(word.is_word and word.is_capitalised for word in words):
        return "name"
    return "thing"


def _is_month(word: str) -> bool:
    """Whether a word is the name of a month, also one that means something else as well: `May`, `March`, `mars`."""
    return fold(word) in MONTH_NUMBERS or word.lower() in MONTH_NUMBERS


def _months(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Months without a preposition, which are no days elsewhere since they may be other words."""
    for token in tokens:
        if token.is_capitalised and not token.sentence_start and _is_month(token.text):
            yield token.start, token.end


def _mention_kind(mention: Mention) -> PhraseKind | None:
    match mention.kind:
        case "day" | "period":
            return "time"
        case "file" | "folder" | "address" | "link" | "amount" | "quoted":
            return mention.kind
        case "person":
            return "name"
        case _:
            return None


# Readings -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Slot:
    """A phrase of an earlier request that another may replace: where it is, and where its preposition begins."""

    start: int
    end: int
    lead: int


def _readings(phrase: _Phrase, earlier: Sequence[str], today: dt.date) -> Iterator[Rewritten]:
    """The requests that a phrase may mean: the newest request with it, or else older ones too."""
    newest = len(earlier) - 1
    for place in range(newest, max(-1, newest - MAX_LOOKED_BACK), -1):
        request = earlier[place]
        slots = _slots(request, phrase, today)
        yield from (Rewritten(_exchange(request, slot, phrase), place) for slot in slots)
        if slots:
            return
        # A request that has nothing of the kind may get it as well, and an older one may have been meant.
        if place == newest and phrase.lead and phrase.kind not in ("file", "folder", "address", "link"):
            yield Rewritten(_append(request, phrase.lead + phrase.core), place)
        elif place == newest and phrase.kind == "time":
            yield Rewritten(_append(request, _with_month_word(phrase.core, guess_language(request))), place)


def _slots(request: str, phrase: _Phrase, today: dt.date) -> list[_Slot]:
    """The phrases of a request that are of the same kind; those with the same preposition, if there are any."""
    tokens = split_tokens(request)
    mentions = find_mentions(request, today)
    if phrase.kind == "name":
        spans = list(_names(tokens, mentions, guess_language(request)))
    elif phrase.kind == "thing":
        spans = list(_things(tokens, mentions))
    elif phrase.kind == "number":
        spans = [match.span() for match in re.finditer(r"(?<![\w.,])\d+(?:[.,]\d+)?(?![\w.,]*\w)", request)]
        spans = [span for span in spans if not _is_covered(span, mentions)]
    else:
        spans = [_whole_span(request, each) for each in mentions if _mention_kind(each) == phrase.kind]
        if phrase.kind == "time":
            spans += [span for span in _months(tokens) if not _is_covered(span, mentions)]
    found = [_Slot(start, end, _lead_start(tokens, start)) for start, end in spans]
    if phrase.lead:
        same = [slot for slot in found if _first_word(request[slot.lead : slot.start]) == _first_word(phrase.lead)]
        # A month replaces a month whatever stands before it, and `for` says nothing of its own. Any other preposition
        # before a noun does: it is another noun that has it, or none yet.
        says_more = phrase.kind == "thing" and _first_word(phrase.lead) not in _FOR_WORDS
        found = same or ([] if says_more else found)
    return found


def _whole_span(request: str, mention: Mention) -> tuple[int, int]:
    """The span of a mention, with its quotation marks."""
    start, end = mention.start, mention.end
    if mention.kind == "quoted" and start and end < len(request):
        return start - 1, end + 1
    return start, end


def _names(tokens: Sequence[Token], mentions: Sequence[Mention], language: Language) -> Iterator[tuple[int, int]]:
    """Names of people and places: mentioned people, and words with a capital letter within a sentence."""
    people = [(each.start, each.end) for each in mentions if each.kind == "person"]
    yield from people
    run: list[Token] = []
    for token in [*tokens, None]:
        inside = token is not None and token.is_word and token.is_capitalised and not token.sentence_start
        if inside and token is not None and token.lower not in PRONOUNS and not _covers(mentions, token.start):
            run.append(token)
            continue
        # German nouns have capital letters, too: a name is known by the preposition before it.
        is_name = bool(run) and (language != "de" or _lead_start(tokens, run[0].start) < run[0].start)
        if is_name and not _has_article(tokens, run[0]):
            yield run[0].start, run[-1].end
        run = []


def _has_article(tokens: Sequence[Token], token: Token) -> bool:
    place = tokens.index(token)
    # `a` is an article in English and a preposition in Spanish.
    return place > 0 and tokens[place - 1].lower in DETERMINERS - _LEADS


_NO_THINGS = _LEADS | PRONOUNS


def _things(tokens: Sequence[Token], mentions: Sequence[Mention]) -> Iterator[tuple[int, int]]:
    """Nouns after a preposition, without those that are mentions of another kind."""
    for place, token in enumerate(tokens[:-1]):
        if token.lower not in _LEADS:
            continue
        first = place + 1
        while first < len(tokens) and tokens[first].lower in DETERMINERS:
            first += 1
        noun = tokens[first] if first < len(tokens) else None
        if noun is None or not noun.is_word or noun.lower in _NO_THINGS or _covers(mentions, noun.start):
            continue
        yield noun.start, noun.end


def _covers(mentions: Sequence[Mention], place: int) -> bool:
    return any(each.start <= place < each.end for each in mentions)


def _is_covered(span: tuple[int, int], mentions: Sequence[Mention]) -> bool:
    return any(each.start < span[1] and span[0] < each.end for each in mentions)


def _lead_start(tokens: Sequence[Token], start: int) -> int:
    """Where the preposition before a phrase begins, with an article between them; the phrase itself without one."""
    before = [token for token in tokens if token.end <= start][-2:]
    for count in (1, 2):
        rest = before[-count:]
        if len(rest) == count and rest[0].lower in _LEADS and all(each.lower in DETERMINERS for each in rest[1:]):
            return rest[0].start
    return start


def _first_word(text: str) -> str:
    return fold(text.split()[0]) if text.split() else ""


def _exchange(request: str, slot: _Slot, phrase: _Phrase) -> str:
    """The request with the phrase in place of the slot.

    A preposition of the follow-up replaces the one that is there. Where only one of them has one, the phrase decides:
    `last week` has none, and a month needs one.
    """
    core, start = phrase.core, slot.start
    there = _first_word(request[slot.lead : slot.start])
    is_empty = _first_word(phrase.lead) in (_FOR_WORDS if there else _IN_WORDS)
    bare = is_empty and not _RELATIVE_TIME.match(fold(request[slot.start :]))
    if phrase.lead and not bare:
        core, start = phrase.lead + phrase.core, slot.lead
    elif phrase.kind == "time" and not phrase.lead:
        if _RELATIVE_TIME.match(fold(core)) and there in _IN_WORDS:
            start = slot.lead
        elif slot.lead == slot.start:
            core = _with_month_word(core, guess_language(request))
    return request[:start] + core + request[slot.end :]


def _with_month_word(core: str, language: Language) -> str:
    first = _first_word(core)
    return f"{_MONTH_WORDS[language]}{core}" if _is_month(first) or re.fullmatch(r"\d{4}", first) else core


def _append(request: str, phrase: str) -> str:
    """The request with a phrase at its end, before the sign that ends it."""
    end = len(request.rstrip().rstrip("?!.… "))
    return f"{request[:end]} {phrase}{request[end:]}"
