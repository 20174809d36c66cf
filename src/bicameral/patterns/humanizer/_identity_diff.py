"""What differs between two versions of an identity by meaning: lines that are gone, new, or only said otherwise.

Small edits add up. So a version is compared with the first one as well, which the owner once wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bicameral.patterns.humanizer._identity_store import IDENTITY_GROUPS, Identity
from bicameral.patterns.humanizer._skill_store import content_words, word_similarity
from bicameral.retrieval import Embedder

SAME_MEANING = 0.75
"""From this similarity on one line counts as another one in other words."""


@dataclass(frozen=True, slots=True)
class IdentityDiff:
    """How far one identity is from another.

    Args:
        reworded: Lines that say nearly the same, as pairs of the old and the new one.
        distance: 0 if they say the same, 1 if no line of one has its like in the other.
    """

    added: tuple[str, ...]
    removed: tuple[str, ...]
    reworded: tuple[tuple[str, str], ...]
    distance: float


def compare_identities(before: Identity, after: Identity, embedder: Embedder | None = None) -> IdentityDiff:
    """Compare two identities group by group, by meaning with an embedder and otherwise by words.

    Example:
        >>> diff = compare_identities(store.version(0).identity, store.version(9).identity, embedder)
        >>> print(diff.distance, *diff.removed)
    """
    added: list[str] = []
    removed: list[str] = []
    reworded: list[tuple[str, str]] = []
    lines, far = 0, 0.0
    for group in IDENTITY_GROUPS:
        old, new = before.lines(group), after.lines(group)
        lines += len(old) + len(new)
        gone = [line for line in old if line not in new]
        come = [line for line in new if line not in old]
        for likeness, one, other in _pairs_by_likeness(gone, come, embedder):
            # The best pairs first, and each line in one of them.
            if one in gone and other in come:
                gone.remove(one)
                come.remove(other)
                reworded.append((one, other))
                far += 2 * (1 - likeness)
        removed += gone
        added += come
        far += len(gone) + len(come)
    return IdentityDiff(tuple(added), tuple(removed), tuple(reworded), far / lines if lines else 0.0)


def _pairs_by_likeness(
    old: Sequence[str], new: Sequence[str], embedder: Embedder | None
) -> list[tuple[float, str, str]]:
    """The pairs of lines with the same meaning, the most alike first."""
    if not old or not new:
        return []
    if embedder is None:
        words = {line: content_words(line) for line in (*old, *new)}
        pairs = [(word_similarity(words[one], words[other]), one, other) for one in old for other in new]
    else:
        vectors = embedder.vectors([*old, *new])
        pairs = [
            (min(1.0, float(vectors[row] @ vectors[len(old) + column])), one, other)
            for row, one in enumerate(old)
            for column, other in enumerate(new)
        ]
    return sorted((pair for pair in pairs if pair[0] >= SAME_MEANING), key=lambda pair: -pair[0])
