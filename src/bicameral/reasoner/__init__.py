"""The reasoner: rounds of plan, check and run, for requests whose way is known only when the first results are.

An intent comes in; out comes `Answered`, `Exhausted` (a bound was reached) or `GaveUp`, each with its rounds. A plan
that ends with `look(name)` is followed by another, written by a planner that was told what may be told: bounded values,
how many there are, and never a text, which stays behind as a variable. What was told has a label, and each later plan
is under it: in a strict run whatever it does with consequences is asked about.
"""

from bicameral.routing import FREE, Price

from ._bounds import Bound, Bounds, Meter, Taken
from ._failures import Failure, failure_of, said_of
from ._failures import label_of as label_of_failure
from ._history import told
from ._outcome import Answered, Exhausted, GaveUp, Reasoned, Round, Written
from ._reasoner import NOBODY, Company, Reasoner
from ._view import Shown, shown

__all__ = [
    "FREE",
    "NOBODY",
    "Answered",
    "Bound",
    "Bounds",
    "Company",
    "Exhausted",
    "Failure",
    "GaveUp",
    "Meter",
    "Price",
    "Reasoned",
    "Reasoner",
    "Round",
    "Shown",
    "Taken",
    "Written",
    "failure_of",
    "label_of_failure",
    "said_of",
    "shown",
    "told",
]
