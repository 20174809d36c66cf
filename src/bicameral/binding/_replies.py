"""Replies of a person who was asked what words mean, where these are a name and no number of the list.

A reply is looked up among all candidates, also those that were not shown. The name of a suspicious one is not enough:
it is chosen by its number, beside the warning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import PurePosixPath

from bicameral.binding._candidates import Candidate, Kind
from bicameral.binding._matching import MOST_SHOWN, Ambiguous, Bound, How, match_words
from bicameral.binding._screening import candidate_suspicions, name_suspicions
from bicameral.binding._words import fold, words_of

LONGEST_REPLY = 300
"""Characters of a reply; more is no name of anything."""

_ADDRESS = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+", re.ASCII)
_QUOTES = "\"'`*“”„‚‘’«» \t"
_BY_NAME: frozenset[How] = frozenset({"exact", "normalised", "stem", "part", "synonym"})
_NEARNESS = 0.6


def find_replied(reply: str, kind: Kind, candidates: Sequence[Candidate], *, exact: bool) -> Candidate | None:
    """The only candidate that a reply names, or None.

    Args:
        reply: What the person typed.
        kind: The kind of reference.
        candidates: Everything that may be meant.
        exact: Whether only a whole name counts. Otherwise a reply is understood by its name as a request is.
    """
    text = reply.strip(_QUOTES)
    plain = [each for each in candidates if not candidate_suspicions(each)]
    for named in _stages(text, plain):
        if named:
            return named[0] if len(named) == 1 else None
    if exact or kind == "person" or len(text) > LONGEST_REPLY or not words_of(text):
        return None
    match = match_words(text, candidates, kind)
    return match.candidate if isinstance(match, Bound) and match.how in _BY_NAME else None


def _stages(text: str, candidates: Sequence[Candidate]) -> Iterator[Sequence[Candidate]]:
    """The candidates that are called so, by the whole value first and by the words of the name last."""
    path = str(PurePosixPath(text)) if text else ""
    yield [each for each in candidates if str(each.value) in (text, path)]
    yield [each for each in candidates if fold(text) in {fold(str(each.value)), *map(fold, each.names)}]
    words = words_of(text)
    yield [each for each in candidates if words and words in {words_of(name) for name in _plain_names(each)}]


def _plain_names(candidate: Candidate) -> Iterator[str]:
    for name in candidate.names:
        yield name
        if candidate.kind in ("file", "table"):
            yield PurePosixPath(name).stem


def nearest_to_reply(reply: str, kind: Kind, candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """The candidates that share something with a reply, or are spelled like it."""
    text = reply.strip(_QUOTES)[:LONGEST_REPLY]
    if not words_of(text):
        return ()
    match = match_words(text, candidates, kind)
    near = (
        (match.candidate,)
        if isinstance(match, Bound)
        else match.candidates
        if isinstance(match, Ambiguous)
        else match.near
    )
    spelled = {" ".join(words_of(name)): each for each in candidates for name in _plain_names(each)}
    alike = get_close_matches(" ".join(words_of(text)), list(spelled), MOST_SHOWN, _NEARNESS)
    return tuple({id(each): each for each in (*near, *(spelled[name] for name in alike))}.values())[:MOST_SHOWN]


def typed_address(reply: str) -> str | None:
    """The mail address that a person typed, or None. One with letters of other alphabets is not taken."""
    text = reply.strip(_QUOTES)
    return text if _ADDRESS.fullmatch(text) and not name_suspicions(text) else None
