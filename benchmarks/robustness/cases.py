"""All cases of the benchmark."""

from __future__ import annotations

from .case import Case as Case
from .cases_calendar import CALENDAR_CASES
from .cases_files import FILE_CASES
from .cases_mail import MAIL_CASES
from .cases_tables import TABLE_CASES

CASES: tuple[Case, ...] = (*FILE_CASES, *TABLE_CASES, *MAIL_CASES, *CALENDAR_CASES)
"""Written for this benchmark alone: none is in another evaluation set, in a prompt or in training data, and nothing is
tuned on them."""
