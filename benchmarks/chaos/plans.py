"""The runs of the storm: a mix of everything that a run can be in the middle of when it loses its worker.

Each effect of a plan has a name of its own (`what`), which begins with the run's ticket: so the ledger can tell an
effect that happened twice from two effects.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from bicameral.durable import Submission
from bicameral.errors import PlanError
from bicameral.patterns.kernel import PatternWork
from bicameral.plans import Plan, check, parse
from bicameral.tools import Registry

REPLY = 7
"""What whoever is asked for a number says."""


@dataclass(frozen=True, slots=True)
class Errand:
    """A run to be: its ticket, of what kind it is, and the plan or the pattern."""

    ticket: str
    kind: str
    work: Plan | PatternWork

    @property
    def submission(self) -> Submission:
        if isinstance(self.work, PatternWork):
            return Submission(work=self.work, key=self.ticket)
        return Submission(plan=self.work, key=self.ticket)


def errands(many: int, registry: Registry, seed: int = 0) -> list[Errand]:
    """So many runs, of every kind in turn, in an order that looks like none."""
    choose = random.Random(seed)
    kinds = [list(KINDS)[number % len(KINDS)] for number in range(many)]
    choose.shuffle(kinds)
    return [_errand(f"t{number}", kind, number, registry) for number, kind in enumerate(kinds)]


def _errand(ticket: str, kind: str, number: int, registry: Registry) -> Errand:
    source = KINDS[kind](ticket, number)
    parsed = parse(source, registry)
    report = check(parsed.plan, registry, places=parsed.places)
    if not report.ok:
        raise PlanError("plan.invalid", f"a plan of the benchmark ({kind}) does not check: {report.errors}")
    return Errand(ticket, kind, parsed.plan)


def _reads(ticket: str, number: int) -> str:
    """Eight reads side by side, and an effect with what they say."""
    reads = [f"p{place} = read_page({number * 8 + place})" for place in range(8)]
    titles = ", ".join(f"p{place}.title" for place in range(8))
    return "\n".join([*reads, f"done = note('{ticket}/titles', ' / '.join([{titles}]))", f"answer([done, {titles}])"])


def _loop(ticket: str, number: int) -> str:
    """An effect for each row, one after the other."""
    return f"""
rows = read_rows({number}, {3 + number % 4})
done = []
for row in rows:
    receipt = note(f'{ticket}/row/{{row.id}}', row.note)
    done.append(receipt)
answer(done)
"""


def _when(ticket: str, number: int) -> str:
    """One effect or another, as a page says."""
    return f"""
page = read_page({number})
if page.count > 10:
    receipt = note('{ticket}/many', page.text)
else:
    receipt = note('{ticket}/few', page.title)
last = note('{ticket}/last', receipt)
answer({{"receipt": receipt, "last": last, "title": page.title}})
"""


def _approved(ticket: str, number: int) -> str:
    """A payment of an amount that a stranger wrote, so that a person is asked; effects before and after it."""
    return f"""
first = note('{ticket}/before', 'begun')
rows = read_rows({number}, 1)
paid = pay('{ticket}/pay', 'ann@example.com', rows[0].amount)
last = note('{ticket}/after', paid)
answer([first, paid, last])
"""


def _approved_loop(ticket: str, number: int) -> str:
    """Several payments, for which there is one question."""
    return f"""
rows = read_rows({number}, 3)
for row in rows:
    pay(f'{ticket}/pay/{{row.id}}', 'bo@example.com', row.amount)
answer(len(rows))
"""


def _large(ticket: str, number: int) -> str:
    """Values that do not go into a row of a table."""
    return f"""
text = read_large({number}, {40_000 + number * 10})
other = read_large({number + 1}, 20000)
kept = note('{ticket}/large', text)
answer({{"kept": kept, "start": text[:40], "lines": len(other.splitlines())}})
"""


def _stamps(ticket: str, number: int) -> str:
    """Effects that cannot be repeated, between ones that can."""
    return f"""
first = stamp('{ticket}/stamp/1', 'one')
page = read_page({number})
second = stamp('{ticket}/stamp/2', page.title)
third = note('{ticket}/noted', second)
answer([first, second, third])
"""


def _asked(ticket: str, number: int) -> str:
    """A number that only a person knows."""
    return f"""
before = note('{ticket}/before', 'begun')
many = ask('How many?', int)
rows = read_rows({number}, 4)
done = []
for row in rows:
    receipt = note(f'{ticket}/row/{{row.id}}', f'{{many}} of {{row.note}}')
    done.append(receipt)
answer({{"many": many, "done": done, "before": before}})
"""


def _hidden(ticket: str, number: int) -> str:
    """What is done depends on a stranger's words, so that a person is asked, and the answer carries them."""
    return f"""
page = read_page({number})
receipt = ''
if 'red' in page.text:
    receipt = note('{ticket}/red', 'a page with red')
rows = read_rows({number}, 5)
total = sum([row.amount for row in rows])
answer({{"receipt": receipt, "total": total, "large": [row.note for row in rows if row.amount > 30]}})
"""


KINDS: dict[str, Callable[[str, int], str]] = {
    "reads": _reads,
    "loop": _loop,
    "when": _when,
    "approved": _approved,
    "approved-loop": _approved_loop,
    "large": _large,
    "stamps": _stamps,
    "asked": _asked,
    "hidden": _hidden,
}
