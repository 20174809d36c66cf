"""Days: phrases of a text that mean days, periods and times of day, computed from today without any model.

A text, today and the order of day and month in the user's locale come in; out come the phrases with their places, the
days they mean and what was assumed, to be shown to the person. English, German, French and Spanish are read; a month
without a year is the nearest in the direction of the verb's tense. Weeks begin on Monday; a weekday is the next such
day (today does not count), the last one where the verb says that it is over. Quoted text, links and file names are not
read. What cannot be read for certain (`may`, `march into`, `3/4`) is no date.
"""

from bicameral.days._named import (
    NamedDays as NamedDays,
    NamedTime as NamedTime,
    named_days as named_days,
    reading_steps as reading_steps,
)
from bicameral.days._vocabulary import NUMBER_WORDS as NUMBER_WORDS, WEEKDAYS as WEEKDAYS, Relation as Relation
