"""The options `--live` and `--record`, and what they mean for each test; `recordings` has the rest."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence

import pytest

from recordings import RECORDER, ROOT, Mode, install

_PASSED = pytest.StashKey[bool]()
_DIFFERS = "a reply differs"


class Whole:
    """Which test modules are recorded as a whole, so that what they no longer ask for can be dropped."""

    def __init__(self) -> None:
        self.asked: dict[str, set[str]] = {}
        self.partial: set[str] = set()


WHOLE = Whole()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("models")
    group.addoption("--live", action="store_true", help="ask the real models, and compare with what is recorded")
    group.addoption("--record", action="store_true", help="ask the real models, and record their replies")


def pytest_configure(config: pytest.Config) -> None:
    live, record = bool(config.getoption("live")), bool(config.getoption("record"))
    if live and record:
        raise pytest.UsageError("--live compares with what is recorded, and --record replaces it: choose one")
    if record and (hasattr(config, "workerinput") or config.getoption("numprocesses", None)):
        raise pytest.UsageError("--record needs one process: leave out -n")
    mode: Mode = "record" if record else "live" if live else "replay"
    RECORDER.mode = mode
    install()


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    WHOLE.partial.update(_module(item) for item in items if item.get_closest_marker("model"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if RECORDER.mode == "replay" and item.get_closest_marker("only_live"):
        pytest.skip("it asks the models themselves, at length: use --live")
    RECORDER.begin_test(_module(item), live=item.get_closest_marker("live") is not None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    item.stash[_PASSED] = report.passed and item.stash.get(_PASSED, True)
    if report.when == "teardown" and RECORDER.mode == "record":
        _keep(item, passed=item.stash[_PASSED])
    return report


def _keep(item: pytest.Item, *, passed: bool) -> None:
    if not passed:
        WHOLE.partial.add(RECORDER.module)
    elif item.get_closest_marker("model"):
        RECORDER.keep()
        WHOLE.asked.setdefault(RECORDER.module, set()).update(RECORDER.asked)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if any("::" in name for name in session.config.args):
        return
    for module in WHOLE.asked.keys() - WHOLE.partial:
        RECORDER.begin_test(module, live=False)
        RECORDER.keep(only=WHOLE.asked[module])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Differences from another kind of machine, which fail no test."""
    reports = (report for each in terminalreporter.stats.values() for report in each)
    told = [
        text
        for report in reports
        if isinstance(report, pytest.TestReport) and report.when == "teardown"
        for name, text in report.user_properties
        if name == _DIFFERS
    ]
    if told:
        terminalreporter.section("replies that differ from those of another kind of machine")
        for text in told:
            terminalreporter.write_line(str(text))


@pytest.fixture(autouse=True)
def replies_as_recorded(request: pytest.FixtureRequest) -> Iterator[None]:
    """No test may load weights or get a reply that it was not to get."""
    yield
    try:
        RECORDER.verify()
    finally:
        node: pytest.Item = request.node
        node.user_properties += [(_DIFFERS, text) for text in RECORDER.differences]


def _module(item: pytest.Item) -> str:
    return item.path.relative_to(ROOT).as_posix() if item.path.is_relative_to(ROOT) else item.path.name
