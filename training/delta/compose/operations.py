"""The operations by name: what is done with the rows of a domain, as a plan, and which sentences ask for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from . import results, sources, tables
from .making import Draft, Maker, Result

Operation = Callable[[Maker], Draft]


def _answering(work: Callable[[Maker], Result]) -> Operation:
    return lambda make: results.answered(make, work)


_ANSWERED: Mapping[Callable[[Maker], Result], float] = {
    results.count: 3,
    results.total: 3,
    results.average: 2,
    results.names: 3,
    results.top: 2,
    results.above_mean: 1.5,
    results.values: 1.5,
    results.columns: 1.5,
    results.ordered: 1.5,
    results.grouped: 3,
    results.extreme: 3,
    results.newest: 2.5,
    results.leading_group: 2,
    results.share: 2.5,
    results.scaled: 2,
}
_OTHERS: Mapping[Operation, float] = {
    results.mailed: 5,
    results.written: 5,
    results.appended: 2.5,
    results.attached: 2,
    results.asked_recipient: 3.2,
    results.asked_file: 1.8,
    tables.spent: 2,
    tables.unfinished: 4,
    tables.greatest: 2.5,
    tables.exists: 1.5,
    tables.count_and_sum: 1.5,
    tables.extreme_both: 2,
    tables.sorted_out: 2,
    tables.spread: 1,
    tables.difference: 2,
    tables.compare: 2.5,
    tables.two_periods: 3,
    tables.if_sum: 4,
    tables.if_any: 4,
    tables.each_noted: 2,
    tables.each_mailed: 2.5,
    tables.groups_noted: 1.5,
    tables.asked_limit: 1.8,
    tables.asked_category: 1.8,
    tables.refused: 19,
    sources.mails_and_rows: 1.5,
    sources.events_and_rows: 1.5,
    sources.mails_noted: 1,
    sources.mails_added_up: 1.5,
    sources.budget: 2,
    sources.rated: 1.5,
    sources.joined: 6,
    sources.looked_up: 7,
}

OPERATIONS: Mapping[str, tuple[float, Operation]] = {
    **{f"answer_{work.__name__}": (weight, _answering(work)) for work, weight in _ANSWERED.items()},
    **{operation.__name__: (weight, operation) for operation, weight in _OTHERS.items()},
}
"""The operations by name, with their weights: every seventh block is a refusal, every fifteenth a question."""
