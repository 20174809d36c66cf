"""Meaning: the candidates whose names mean something near the words, as suggestions where no rule fits.

Nearness of meaning proposes and never decides. Vectors tell what is related from what is not, but opposites and
siblings are as near to each other as synonyms: with MiniLM *husband* and `wife` (0.87), *inflow* and `outflow` (0.90)
are nearer than *automobile* and `car` (0.86) or *rainfall* and `precipitation` (0.83), so that no score and no margin
binds the one kind without the other (`benchmarks.binding --encoder minilm` has the figures). A name that somebody
stuffed with near words therefore wins nothing by it: it is at most one line of a list, and whoever chooses from that
list gives the choice a label as always.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from threading import Lock
from typing import TYPE_CHECKING

from bicameral.binding._candidates import Candidate, Kind
from bicameral.binding._fits import parse_mention
from bicameral.binding._screening import candidate_suspicions
from bicameral.binding._words import words_of
from bicameral.errors import BicameralError

if TYPE_CHECKING:
    from bicameral.models import ModelStore
    from bicameral.retrieval import LocalEmbedder

SUGGESTED_KINDS: frozenset[Kind] = frozenset({"file", "table", "folder", "mail", "event"})
"""The kinds for which names are suggested. Names of people and cells mean nothing that a vector could tell, and of the
columns of a table a model sees all anyway."""
SUGGESTED_SCORE = 0.45
"""How near a name must be. Of names that mean the same, seven in ten are (development half of the benchmark); where
nothing of the kind is there, one world in eight has a name that is."""
MOST_SUGGESTED = 3
"""Suggestions for one mention: more of them only tempt whoever chooses."""
MOST_ENCODED = 600
"""With more candidates nothing is suggested: an encoder takes about a millisecond for each."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """A text as a vector of length 1.

    Args:
        vector: The direction of its meaning.
        known: Whether the encoder knows all words as words. Others are put together from pieces of spelling, and two
            such texts are near because they are spelled alike: *Hunde* and `Stunde`.
    """

    vector: Sequence[float]
    known: bool = True


Encoder = Callable[[Sequence[str]], Sequence[Encoded] | None]
"""Turns texts into vectors; None where it cannot be used."""


class LocalEncoder:
    """The embedding model of this machine as an encoder.

    Nothing is loaded before the first texts, and nothing is ever fetched: where a package or the weights are missing,
    or the weights are damaged, there are no vectors, and binding goes on without them. `bicameral doctor` says so.

    Args:
        store: Where the weights are looked for; by default the user's store.
    """

    def __init__(self, store: ModelStore | None = None) -> None:
        self._store = store
        self._loading = Lock()
        self._embedder: LocalEmbedder | None = None
        self._missing = False

    def __call__(self, texts: Sequence[str]) -> Sequence[Encoded] | None:
        """The vectors of texts. It takes long the first time: call it in a thread."""
        # Two plans may be bound at once. The second waits for the weights instead of loading them again.
        with self._loading:
            if self._missing:
                return None
            try:
                embedder = self._embedder = self._embedder or self._open()
                rows = embedder.vectors(texts)
                words = tuple(dict.fromkeys(word for text in texts for word in words_of(text)))
                pieces = dict(zip(words, embedder.lengths(words), strict=True))
            except (BicameralError, ImportError, OSError):
                # Tried once: what is missing stays missing while this process runs.
                self._missing = True
                return None
        return [
            Encoded([float(number) for number in row], all(pieces[word] == 1 for word in words_of(text)))
            for text, row in zip(texts, rows, strict=True)
        ]

    def _open(self) -> LocalEmbedder:
        from bicameral.retrieval import LocalEmbedder

        return LocalEmbedder(store=self._store, offline=True)


def suggest_candidates(
    words: str, candidates: Sequence[Candidate], kind: Kind, encoder: Encoder
) -> tuple[Candidate, ...]:
    """The few candidates whose names are nearest in meaning to the words, the nearest first; often none.

    A suspicious name is not among them, and neither is one without the numbers of the words: another year is another
    thing, however near it is.

    Args:
        words: The words of the request.
        candidates: What the world offers.
        kind: The kind of reference.
        encoder: Gives the vectors; it blocks while it does.
    """
    query = parse_mention(words)
    if kind not in SUGGESTED_KINDS or not query.required or len(candidates) > MOST_ENCODED:
        return ()
    numbers = {term for term in query.required if term.isdecimal()}
    usable = [
        each for each in candidates if numbers <= set(words_of(each.name)) and _text(each) and not _suspicious(each)
    ]
    encoded = encoder([" ".join(query.required), *map(_text, usable)]) if usable else None
    if encoded is None:
        return ()
    asked, *named = encoded
    scores = [_nearness(asked, each) for each in named]
    ranked = sorted(zip(scores, usable, strict=True), key=lambda each: -each[0])
    return tuple(candidate for score, candidate in ranked[:MOST_SUGGESTED] if score >= SUGGESTED_SCORE)


def _nearness(asked: Encoded, named: Encoded) -> float:
    if not asked.known and not named.known:
        # Both may be in a language that the encoder was not trained on: MiniLM knows English alone.
        return 0.0
    return sum(float(one) * float(other) for one, other in zip(asked.vector, named.vector, strict=True))


def _suspicious(candidate: Candidate) -> bool:
    return bool(candidate_suspicions(candidate))


def _text(candidate: Candidate) -> str:
    name = PurePosixPath(candidate.name).stem if candidate.kind in ("file", "table") else candidate.name
    return " ".join(words_of(name))
