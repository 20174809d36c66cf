"""The answers of the travel suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from . import Answer

ANSWERS: Mapping[str, Sequence[Answer]] = {}
