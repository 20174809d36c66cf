"""What a person has looked at and vouched for."""

from __future__ import annotations

from bicameral.labels import Label, Source, join_all


def endorsed(*labels: Label) -> Label:
    """The label of something under these labels once a person has approved it: his word, seen by whom it was before."""
    return Label({Source("user", "endorsed")}, join_all(labels).readers)


def strangers_in(label: Label) -> tuple[str, ...]:
    """The strangers' texts that are in a label, as a person reads them."""
    return tuple(str(source) for source in sorted(label.sources) if source.trust == "third_party")
