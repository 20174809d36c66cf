"""Recipients: whether a request that orders to send something says to whom.

The object of `mail` and `email` is whoever gets the mail, unless it is a thing that can only be sent (`mail the
minutes`); the object of `send` and `forward` is a thing, unless another object follows it. A recipient may also be
named elsewhere: as the one who wants something (`Hugo needs the plan, forward it`), as a group of people for whom a
mail is (`for the tenants`), or by the order before. Where the rules are in doubt, nobody is asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from bicameral.planning._intent_document import Mention
from bicameral.planning._lexicon import (
    DETERMINERS,
    EACH_WORDS,
    GROUP_NOUNS,
    MAIL_NOUNS,
    MAIL_VERBS,
    NO_PERSON,
    NOUN_ENDINGS,
    PEOPLE_NOUNS,
    POLITE,
    PRONOUNS,
    RELATIONS,
    SEND_VERBS,
    SENT_THINGS,
    STOP_TOKENS,
    TO_WORDS,
    Token,
    noun_phrase,
    split_tokens,
)

_REPLY_WORDS = frozenset("reply replies answer antwort réponse respuesta back zurück".split())
_PEOPLE = GROUP_NOUNS | RELATIONS | PEOPLE_NOUNS
# What belongs to the verb and not to its object: `mail out the minutes`, `send the photos around`.
_PARTICLES = frozenset("out around over off along raus rum ab weg mit weiter zu".split())
# `forward it there`, after an address that was looked up.
_GOAL_ADVERBS = frozenset("there dorthin dahin hin ans allí alli ahí ahi".split())
# Articles and German particles in the form of a preposition of address.
_NO_GOALS = frozenset("a zu for with mit".split())
_ENGLISH = frozenset({"send", "forward", "email", "e-mail"})
_WANTS = frozenset(
    "wants want wanted needs need should must expects waits would "
    "will möchte moechte mag braucht brauchen hätte haette soll sollen sollte muss müssen wartet wollen "
    "veut veulent voudrait doit doivent attend attendent aimerait devrait "
    "quiere quieren necesita necesitan debe deben espera esperan quisiera debería".split()
)
_FOR = frozenset("for für fuer pour para".split())
_ITS = frozenset("it em them sie es ihn le la les ca ça lo los las das".split())


def unaddressed_objects(tokens: Sequence[Token], mentions: Sequence[Mention]) -> Iterator[str]:
    """What a request orders to be sent without saying to whom: the words of each such object, `it` for a pronoun.

    Example:
        >>> list(unaddressed_objects(split_tokens("Forward the offer"), ()))
        ['the offer']
        >>> list(unaddressed_objects(split_tokens("Mail its customer"), ()))
        []
    """
    if any(each.kind in ("person", "address") for each in mentions) or _names_receiver(tokens):
        return
    for place in _sending_orders(tokens):
        rest = sentence_rest(tokens, place)
        phrase = _without_particles(noun_phrase(tokens, place + 1))
        # After an English verb `an` is an article.
        goals = rest if tokens[place].lower not in _ENGLISH else [token for token in rest if token.lower != "an"]
        if (
            not phrase
            or _is_addressed(goals, phrase)
            or _is_told_before(tokens, place, phrase)
            or {token.lower for token in rest} & _REPLY_WORDS
        ):
            continue
        if tokens[place].lower in MAIL_VERBS and not _is_sent_thing(tokens[place], rest, phrase):
            continue
        if phrase[-1].lower in MAIL_NOUNS and any(token.lower in PEOPLE_NOUNS for token in tokens):
            # A mail in a sentence about people is for them.
            continue
        yield _object_text(phrase)


def names_recipient(request: str, mentions: Sequence[Mention]) -> bool:
    """Whether a request may say who gets something: by name, by a relation, as a group, or by an order's object.

    Example:
        >>> names_recipient("Write to everyone who has not paid", ()), names_recipient("Pass on the offer", ())
        (True, False)
    """
    if any(each.kind in ("person", "address") for each in mentions):
        return True
    tokens = split_tokens(request)
    said = {token.lower for token in tokens}
    if said & (_PEOPLE | EACH_WORDS | PRONOUNS | _GOAL_ADVERBS) or _names_receiver(tokens):
        return True
    # `to` before the verb is none of address: `I would like to forward the offer`.
    start = next((place for place, token in enumerate(tokens) if token.lower in _SENDING), 0)
    return _has_goal(tokens[start:]) or any(
        tokens[place].lower in MAIL_VERBS and not _is_sent_thing(tokens[place], (), noun_phrase(tokens, place + 1))
        for place in _sending_orders(tokens)
    )


_SENDING = SEND_VERBS | frozenset(
    "fwd leite leit weiterleiten senden schicken mailen envoyer transférer transferer enviar mandar reenviar".split()
)


def sentence_rest(tokens: Sequence[Token], place: int) -> Sequence[Token]:
    """The tokens after a place, up to the end of its sentence."""
    end = place + 1
    while end < len(tokens) and not tokens[end].sentence_start:
        end += 1
    return tokens[place + 1 : end]


def phrase_text(tokens: Sequence[Token]) -> str:
    """The words of neighbouring tokens, with the blanks between them as one."""
    parts = [
        token.text + (" " if after is not None and after.start > token.end else "")
        for token, after in zip(tokens, [*tokens[1:], None], strict=True)
    ]
    return "".join(parts)


def _sending_orders(tokens: Sequence[Token]) -> list[int]:
    return [
        place
        for place, token in enumerate(tokens)
        if token.clause_start
        and (
            token.lower in SEND_VERBS
            or (token.lower in ("leite", "leit") and any(each.lower == "weiter" for each in tokens[place:]))
        )
    ]


def _is_addressed(rest: Sequence[Token], phrase: Sequence[Token]) -> bool:
    """Whether somebody stands after the order: a pronoun, a group, `to …`, or an object before the object."""
    said = {token.lower for token in rest}
    return (
        bool(said & (PRONOUNS | GROUP_NOUNS | RELATIONS | EACH_WORDS | _GOAL_ADVERBS))
        or _has_two_objects(phrase)
        or _has_goal(rest)
        or _has_second_object(rest)
    )


def _has_two_objects(phrase: Sequence[Token]) -> bool:
    """`send the borrowers a list`, `mail owners their share`, `schick sie Petra`: the first one gets the second."""
    # `x` is short for `por`: what follows it is no object.
    end = next((place for place, token in enumerate(phrase) if token.lower in ("x", "wegen")), len(phrase))
    determiners = [place for place, token in enumerate(phrase[:end]) if token.lower in DETERMINERS]
    if len(determiners) > 1 or any(place > 0 for place in determiners):
        return True
    # `sie` is no article, so that the word after it is another object; so is a name after `correo`.
    return any(first.lower in _BEFORE_NAME and _may_be_name(second) for first, second in pairwise(phrase))


_BEFORE_NAME = frozenset({"sie", "es", "ihn", "correo", "mail", "mensaje", "message"})


def _is_told_before(tokens: Sequence[Token], place: int, phrase: Sequence[Token]) -> bool:
    """`When am I free? Schick das Petra`: after a sentence `das` may stand for it, so that a name may follow."""
    return (
        [token.lower for token in phrase[:-1]] == ["das"]
        and any(token.sentence_start for token in tokens[1 : place + 1])
        and _may_be_name(phrase[-1])
        and phrase[-1].lower not in SENT_THINGS
    )


def _has_second_object(tokens: Sequence[Token]) -> bool:
    """Whether a mail is named after something else: `send the borrowers in tools.csv a mail`."""
    return any(token.lower in MAIL_NOUNS and place > _FIRST_OBJECT for place, token in enumerate(tokens))


_FIRST_OBJECT = 2


def _has_goal(tokens: Sequence[Token]) -> bool:
    """Whether something follows `to`, `an`, `à`; an article is none of them unless a name follows it."""
    return any(
        token.lower in TO_WORDS
        and (token.lower not in _NO_GOALS or (token.text == "a" and after is not None and _may_be_name(after)))
        for token, after in zip(tokens, [*tokens[1:], None], strict=True)
    )


def _is_sent_thing(verb: Token, rest: Sequence[Token], phrase: Sequence[Token]) -> bool:
    """Whether the object of `mail` can only be what is sent. `mail plumber price?` is no order."""
    if rest and rest[-1].text == "?" and verb.sentence_start:
        return False
    words = _without_particles(phrase)
    return bool(words) and (words[-1].lower in SENT_THINGS or words[-1].lower in _ITS)


def _without_particles(phrase: Sequence[Token]) -> Sequence[Token]:
    """A phrase without what belongs to the verb before and after it, and without politeness."""
    first, last = 0, len(phrase)
    while first < last and phrase[first].lower in _PARTICLES | POLITE:
        first += 1
    while first < last and phrase[last - 1].lower in _PARTICLES | POLITE:
        last -= 1
    return phrase[first:last]


def _object_text(phrase: Sequence[Token]) -> str:
    return "it" if all(token.lower in _ITS for token in phrase) else phrase_text(phrase)


def _names_receiver(tokens: Sequence[Token]) -> bool:
    """Whether somebody wants or needs something, or an order before was for people: `write to each, and send …`."""
    for token, after in pairwise(tokens):
        if after.lower in _WANTS and (token.lower in _PEOPLE or _may_be_name(token, at_start=True)):
            return True
        if token.lower in TO_WORDS and token.lower not in _NO_GOALS and after.lower in EACH_WORDS:
            return True
    return any(
        token.lower in _FOR and any(each.lower in _PEOPLE for each in noun_phrase(tokens, place + 1))
        for place, token in enumerate(tokens)
    )


def _may_be_name(token: Token, *, at_start: bool = False) -> bool:
    return (
        token.is_word
        and token.is_capitalised
        and (at_start or not token.sentence_start)
        and len(token.text) > 1
        and token.lower not in STOP_TOKENS
        and token.lower not in NO_PERSON
        and not token.lower.endswith(NOUN_ENDINGS)
    )
