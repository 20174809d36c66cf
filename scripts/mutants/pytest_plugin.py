"""The pytest plugin of a run with a mutant: it makes sure that the copy is what is tested, and notes what failed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings

SOURCE_VARIABLE = "BICAMERAL_MUTANT_SOURCE"
"""The folder of the copy that `bicameral` must be imported from."""
FAILURES_VARIABLE = "BICAMERAL_MUTANT_FAILURES"
"""The file that takes one line for each test that failed: its node id, and the kind of the error."""


def pytest_configure(config: pytest.Config) -> None:
    import bicameral

    # It may be asked for whether or not any test has it.
    config.addinivalue_line("markers", "slow: takes long")
    # What fails need not be shown at its smallest: that takes far longer than to find it.
    settings.register_profile(
        "mutants", settings.default, phases=(Phase.explicit, Phase.generate), report_multiple_bugs=False
    )
    settings.load_profile("mutants")
    wanted = os.environ[SOURCE_VARIABLE]
    if not Path(bicameral.__file__).is_relative_to(wanted):
        raise pytest.UsageError(f"bicameral is imported from {bicameral.__file__}, and not from {wanted}")


def pytest_exception_interact(
    node: pytest.Item | pytest.Collector, call: pytest.CallInfo[Any], report: pytest.TestReport | pytest.CollectReport
) -> None:
    kind = type(report).__name__ if call.excinfo is None else call.excinfo.typename
    with open(os.environ[FAILURES_VARIABLE], "a", encoding="utf-8") as file:
        file.write(json.dumps([node.nodeid, kind]) + "\n")
