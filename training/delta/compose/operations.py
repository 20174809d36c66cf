"""The operations by name: what is done with the rows of a domain, as a plan, and which sentences ask for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from . import appointments, branches, letters, results, searches, sources, tables
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
    letters.questioned: 8,
    letters.mail_fact: 4.5,
    letters.mail_fact_used: 2.2,
    letters.mail_senders: 2.2,
    letters.told: 3,
    letters.drafted: 3,
    letters.replied: 3,
    letters.forwarded: 2.2,
    letters.mail_against_rows: 2.2,
    appointments.next_event: 4.5,
    appointments.last_event: 2.2,
    appointments.events_counted: 2.2,
    appointments.events_mailed: 2.2,
    appointments.event_added: 4.5,
    appointments.event_moved: 3,
    appointments.event_shifted: 2.2,
    appointments.event_cancelled: 3,
    appointments.free_day: 2.5,
    appointments.rows_entered: 2.2,
    appointments.fact_free: 2.2,
    appointments.asked_moment: 2.2,
    branches.if_either: 4,
    branches.which_group: 2.2,
    branches.which_period: 3,
    branches.budget_left: 2.2,
    branches.passed_days: 3,
    branches.top_with_values: 2.5,
    branches.file_each: 2.2,
    branches.refused_errand: 14,
    branches.contradictory: 3,
    searches.spent_found: 4,
    searches.summed_found: 4,
    searches.counted_found: 3,
    searches.unfinished_found: 3,
    searches.greatest_found: 2.5,
    searches.compared_found: 2.5,
}

_FEW: Mapping[Operation, float] = {
    letters.asked_reply: 1.2,
    letters.asked_forward: 1.2,
    letters.asked_since: 1,
    letters.asked_attachment: 0.3,
    letters.mail_day: 1.5,
    letters.noted: 2,
    appointments.asked_event: 0.3,
    appointments.event_found: 1,
}
"""Operations with few words of their own: there are not so many different blocks of them."""

_LEAST = 2.2
"""Of 7,000 blocks an operation with this weight has some 15 in each language: 200 pairs and more."""

OPERATIONS: Mapping[str, tuple[float, Operation]] = {
    **{f"answer_{work.__name__}": (max(weight, _LEAST), _answering(work)) for work, weight in _ANSWERED.items()},
    **{operation.__name__: (max(weight, _LEAST), operation) for operation, weight in _OTHERS.items()},
    **{operation.__name__: (weight, operation) for operation, weight in _FEW.items()},
}
"""The operations by name, with their weights: every seventh block is a refusal, every fifteenth a question."""
