"""Labels in short: whether anybody else had a hand in a value, which tools it came from, how many may see it."""

from __future__ import annotations

from bicameral.labels import PUBLIC, USER, Label, Readers

from ._safe import Fact


def summary(prefix: str, label: Label) -> dict[str, Fact]:
    """What is told of a label. The names of readers, parts and steps are not.

    Example:
        >>> summary("bicameral.result", Label({Source("third_party", "read_mail", "body")}))
        {'bicameral.result.trusted': False, 'bicameral.result.sources': 1, …}
    """
    return {
        f"{prefix}.trusted": label.trusted,
        f"{prefix}.sources": len(label.sources),
        f"{prefix}.source_tools": tuple(sorted({source.tool for source in label.sources})),
        f"{prefix}.readers": _readers(label.readers),
    }


def _readers(readers: Readers) -> str:
    if readers is PUBLIC:
        return "public"
    others = len(readers - {USER})
    return str(others + 1) if others else "user"
