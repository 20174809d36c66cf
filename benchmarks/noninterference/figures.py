"""The figures of many tried plans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from .trial import Tried


def figures(tried: Sequence[Tried]) -> dict[str, int]:
    """What the plans showed, as the one JSON object that the benchmark prints."""
    kinds = Counter(violation.kind for each in tried for violation in each.violations)
    return {
        "plans": len(tried),
        "effective": sum(each.effective for each in tried),
        "leaks": sum(count for kind, count in kinds.items() if kind != "unsound"),
        "unsound": kinds["unsound"],
        "integrity_pairs": sum(each.integrity_pairs for each in tried),
        "confidentiality_pairs": sum(each.confidentiality_pairs for each in tried),
        "asked": sum(each.asked for each in tried),
        "resumed": sum(each.resumed for each in tried),
        "composed": sum(each.composed for each in tried),
        "directed_by_secrets": sum(each.directed > 0 for each in tried),
    }
