"""AgentDojo imports packages that warn; that is not ours to fail on."""

from __future__ import annotations

import warnings
from contextlib import suppress

with warnings.catch_warnings(), suppress(ImportError):
    warnings.simplefilter("ignore")
    import agentdojo.task_suite.load_suites  # pyright: ignore[reportUnusedImport, reportMissingTypeStubs]  # noqa: F401
