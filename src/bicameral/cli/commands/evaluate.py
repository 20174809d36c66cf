"""`bicameral evaluate`: a suite of cases is put to an agent or a pattern, and held against a baseline."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from bicameral.cli._options import CommonOptions, common_options, model_option
from bicameral.cli._output import FAILED, GATE_FAILED, INTERRUPTED, OK, TERMINATED, Output, Terminated
from bicameral.cli._plain_values import render_table
from bicameral.cli.commands.patterns import complete_pattern
from bicameral.display import make_visible, to_plain_json
from bicameral.errors import EvaluationError

if TYPE_CHECKING:
    from bicameral.agent import Agent
    from bicameral.evaluation import (
        Baseline,
        CaseResult,
        Evaluation,
        GateResult,
        Progress,
        Report,
        Subject,
        Suite,
        Summary,
    )

_FILE = click.Path(dir_okay=False, path_type=Path)
_MAX_SHOWN = 20
_MAX_OUTPUT = 200
_COUNT = click.IntRange(min=1)


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How the cases are run."""

    repeats: int
    parallel: int
    seed: int
    limit: int | None
    seconds: float | None
    results: Path | None


@dataclass(frozen=True, slots=True)
class GateOptions:
    """What the results are held against, and where they are accepted."""

    baseline: Path | None
    seal: str | None
    is_gate: bool
    tolerance: float
    minimum: int
    required: tuple[str, ...]
    save: Path | None
    reason: str
    by: str

    def __post_init__(self) -> None:
        if self.is_gate and self.baseline is None:
            raise click.UsageError("--gate needs --baseline FILE.")
        if self.save is not None and not self.reason.strip():
            raise click.UsageError('--save needs --reason "…": why these results are accepted is stored with them.')

    def read_baseline(self) -> Baseline | None:
        """The baseline that counts. Read before anything runs: a damaged one must not cost a whole run."""
        from bicameral.evaluation import Baseline

        return None if self.baseline is None else Baseline.read(self.baseline, known=self.seal)

    def read_saved(self) -> Baseline | None:
        """The promotions that stand already in the file that gets another one."""
        from bicameral.evaluation import Baseline

        return Baseline.read(self.save) if self.save is not None and self.save.exists() else None


@click.command("evaluate")
@click.argument("suite", type=_FILE)
@click.option("--pattern", "pattern", metavar="ID", shell_complete=complete_pattern, help="Evaluate this pattern.")
@click.option("--knob", "knobs", multiple=True, metavar="NAME=VALUE", help="Set a knob of it; may be repeated.")
@click.option("--subject", "named", metavar="MODULE:OBJECT", help="Evaluate this pattern, role or function.")
@click.option("--plan", "is_plan", is_flag=True, help="Evaluate plans: each case is a request, as for `run` (default).")
@click.option("--strategy", metavar="NAME", help="Evaluate the agent with this strategy instead of plans.")
@click.option("--against", metavar="ID", shell_complete=complete_pattern, help="Compare with this pattern, or `plan`.")
@click.option("--repeats", type=_COUNT, default=1, show_default=True, help="Run each case so often.")
@click.option("--parallel", type=_COUNT, default=1, show_default=True, help="Run so many cases at the same time.")
@click.option("--seed", type=int, default=0, show_default=True, help="The seed of the first repeat.")
@click.option("--limit", type=_COUNT, help="Run only the first so many cases; the others are reported as not run.")
@click.option("--seconds", type=click.FloatRange(min=0, min_open=True), help="The time for one case.")
@click.option("--results", type=_FILE, help="Append each result to this file, and go on from what is in it.")
@click.option("--baseline", type=_FILE, help="Hold the results against this baseline.")
@click.option("--seal", help="The seal that the baseline must have; `--save` prints it.")
@click.option("--gate", "is_gate", is_flag=True, help="Exit with 6 unless the results pass.")
@click.option("--tolerance", type=float, default=0.02, show_default=True, help="How much a category may lose, to 0.05.")
@click.option("--minimum", type=_COUNT, default=1, show_default=True, help="The least number of cases.")
@click.option("--require", "required", multiple=True, metavar="CATEGORY", help="There must be cases of this category.")
@click.option("--save", type=_FILE, help="Accept the results: append them to this baseline file.")
@click.option("--reason", default="", help="Why they are accepted.")
@click.option("--by", default="", help="Who accepts them; by default the user of this machine.")
@model_option
@common_options
def command(
    chosen: CommonOptions,
    suite: Path,
    pattern: str | None,
    knobs: tuple[str, ...],
    named: str | None,
    is_plan: bool,
    strategy: str | None,
    against: str | None,
    repeats: int,
    parallel: int,
    seed: int,
    limit: int | None,
    seconds: float | None,
    results: Path | None,
    baseline: Path | None,
    seal: str | None,
    is_gate: bool,
    tolerance: float,
    minimum: int,
    required: tuple[str, ...],
    save: Path | None,
    reason: str,
    by: str,
) -> int:
    """Put every case of SUITE (YAML, or JSON Lines) to an agent or a pattern, and report what was right.

    Errors count as wrong, and what was not run is listed as such. With --baseline the results are held against those
    that were accepted before: a category may lose at most --tolerance, critical cases nothing, and a suite, a model or
    a judge that has changed does not pass. --save accepts the results.

    The exit code is 0 if the cases were run and, with --gate, the results pass; 6 if they do not pass or cannot be
    accepted; 2 if the suite or the baseline is unusable; 1 if every case ended with an error.
    """
    if sum((pattern is not None, named is not None, strategy is not None, is_plan)) > 1:
        raise click.UsageError("--pattern, --subject, --strategy and --plan exclude each other.")
    run = RunOptions(repeats, parallel, seed, limit, seconds, results)
    gate = GateOptions(baseline, seal, is_gate, tolerance, minimum, required, save, reason, by or _user_name())
    evaluated = SubjectOptions(pattern, knobs, named, None if is_plan else strategy, chosen.folder or Path())
    return _evaluate(chosen, suite, evaluated, against, run, gate)


def _user_name() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "unknown"


@dataclass(frozen=True, slots=True)
class SubjectOptions:
    """What is evaluated."""

    pattern: str | None
    knobs: tuple[str, ...]
    named: str | None
    strategy: str | None
    folder: Path

    def open(self, agent: Agent) -> Subject[Any, Any]:
        """The subject, with the models and tools of the agent."""
        from bicameral.cli.commands.lint import import_object
        from bicameral.evaluation import subject_of
        from bicameral.patterns import parse_pattern_knobs, text_pattern
        from bicameral.patterns.strategies import DEFAULT_STRATEGY

        if self.pattern is not None:
            found = text_pattern(self.pattern, parse_pattern_knobs(self.pattern, self.knobs))
            return found.as_subject(agent.runtime())
        if self.named is not None:
            return subject_of(_checked_subject(import_object(self.named, self.folder), self.named), agent.runtime())
        return agent.as_subject(strategy=self.strategy or DEFAULT_STRATEGY)


def _checked_subject(found: Any, named: str) -> Any:
    """What was named, if it can be evaluated; of a function such as `build` of a stack's module, what it makes."""
    import inspect

    from bicameral.evaluation import Subject

    if inspect.isfunction(found) and not inspect.iscoroutinefunction(found):
        needed = [each.name for each in inspect.signature(found).parameters.values() if each.default is each.empty]
        if needed:
            raise EvaluationError(
                "evaluation.bad-subject",
                f"{named!r} needs {', '.join(needed)}",
                fix="Name a function without parameters that calls it, or what it has made.",
            )
        found = found()
    known = isinstance(found, Subject) or hasattr(found, "as_subject") or inspect.iscoroutinefunction(found)
    if known and not isinstance(cast("object", found), type):
        return cast("Any", found)
    raise EvaluationError(
        "evaluation.bad-subject",
        f"{named!r} cannot be evaluated",
        expected="a pattern, a role, a `Subject`, an async function of a labelled input, or a function that makes one",
    )


def _evaluate(
    chosen: CommonOptions,
    file: Path,
    evaluated: SubjectOptions,
    against: str | None,
    run: RunOptions,
    gate_options: GateOptions,
) -> int:
    import asyncio

    from bicameral.cli._command_agent import fetch_missing_weights, open_agent, run_until_terminated
    from bicameral.evaluation import read_suite

    suite = read_suite(file)
    baseline, saved = gate_options.read_baseline(), gate_options.read_saved()
    config = chosen.config()
    fetch_missing_weights(chosen.out, config, ["privileged", "quarantined"])
    begun: list[Evaluation[Any, Any]] = []

    async def evaluate_all() -> None:
        async with open_agent(config) as agent:
            with agent.spending():
                subjects = [evaluated.open(agent)]
                if against is not None:
                    other = None if against == "plan" else against
                    subjects.append(SubjectOptions(other, (), None, None, evaluated.folder).open(agent))
                for number, subject in enumerate(subjects):
                    begun.append(_prepare(chosen.out, suite, subject, run, is_first=number == 0))
                    await begun[-1].run()

    code = OK
    try:
        asyncio.run(run_until_terminated(evaluate_all()))
    except KeyboardInterrupt:
        code = INTERRUPTED
    except Terminated:
        code = TERMINATED
    if not begun:
        return code
    if code != OK:
        chosen.out.say("stopped: what follows is partial")
    reports = [each.report() for each in begun]
    return _Conclusion(chosen.out, reports, baseline, saved, gate_options).finish(code)


def _prepare(
    out: Output, suite: Suite[Any, Any], subject: Subject[Any, Any], run: RunOptions, *, is_first: bool
) -> Evaluation[Any, Any]:
    from bicameral.evaluation import Evaluation

    out.say(f"{subject.name}: {len(suite.cases)} cases of {suite.name!r}")
    return Evaluation(
        subject,
        suite,
        repeats=run.repeats,
        parallel=run.parallel,
        seed=run.seed,
        limit=run.limit,
        seconds=run.seconds,
        # The file is of one subject.
        results=run.results if is_first else None,
        watch=_progress(out),
    )


def _progress(out: Output) -> Callable[[Progress], None]:
    def say(progress: Progress) -> None:
        result = progress.result
        out.say(f"{progress.done}/{progress.total} {result.case}: {_verdict(result)} ({result.taken.seconds:.1f} s)")

    return say


def _verdict(result: CaseResult[Any]) -> str:
    if result.ending != "answered":
        return f"{result.ending} [{result.error}]"
    return "right" if result.correct else "wrong" if result.score == 0 else f"score {result.score:.2f}"


@dataclass
class _Conclusion:
    """The end of the command: the report, the gate, and the promotion."""

    out: Output
    reports: list[Report[Any]]
    baseline: Baseline | None
    saved: Baseline | None
    options: GateOptions

    def finish(self, code: int) -> int:
        from bicameral.evaluation import compare_reports, gate

        report, options = self.reports[0], self.options
        self.out.show(render_report(report, self.out.width))
        facts: dict[str, Any] = {"report": _report_json(report)}
        if len(self.reports) == 2 and code == OK:
            compared = compare_reports(self.reports[1], report)
            self.out.show(f"\n{compared.text}")
            facts |= {"comparison": compared.to_json(), "against": _report_json(self.reports[1])}
        if self.baseline is not None:
            found = gate(report, self.baseline, options.tolerance, minimum=options.minimum, required=options.required)
            self.out.show(render_gate(found))
            facts["gate"] = found.to_json()
            if options.is_gate and not found.passed:
                code = code or GATE_FAILED
        if code == OK and report.total.failed == report.total.attempts:
            code = FAILED
        if code == OK and options.save is not None:
            code = self._save(report, facts)
        self.out.write_json({"ok": code == OK, **facts})
        return code

    def _save(self, report: Report[Any], facts: dict[str, Any]) -> int:
        from bicameral.evaluation import Baseline

        options = self.options
        assert options.save is not None
        try:
            made = Baseline.promote(report, by=options.by, reason=options.reason, previous=self.saved)
        except EvaluationError as error:
            if error.code != "evaluation.cannot-promote":
                raise
            self.out.say(f"error: {error}", style="red")
            facts["error"] = error.to_json()
            return GATE_FAILED
        made.write(options.save)
        self.out.say(f"accepted as promotion {made.accepted.number} of {options.save}, seal {made.seal}")
        facts["baseline"] = {"file": str(options.save), "number": made.accepted.number, "seal": made.seal}
        return OK


def _report_json(report: Report[Any]) -> dict[str, Any]:
    shown = {(each.case, each.repeat): _output_text(each) for each in report.wrong}
    facts = report.to_json()
    for each in facts["results"]:
        if (text := shown.get((each["case"], each["repeat"]))) is not None:
            each["output"] = text
    return facts


def _output_text(result: CaseResult[Any]) -> str | None:
    """The beginning of a wrong output, for the person who wrote the case."""
    from bicameral.labels import open_labelled

    if result.output is None:
        return None
    value = open_labelled(result.output)
    text = value if isinstance(value, str) else json.dumps(to_plain_json(value), ensure_ascii=False)
    # Somebody else may have written it, and a person reads it in a list.
    return make_visible(text if len(text) <= _MAX_OUTPUT else f"{text[:_MAX_OUTPUT]}…")


def render_report(report: Report[Any], width: int) -> str:
    """A report as text: a table of the categories, and what was wrong."""
    rows = [_row(name, found) for name, found in report.categories.items()]
    rows.append(_row("all", report.total))
    lines = [f"{report.subject} on {report.suite.name!r}" + (", partial" if report.is_partial else ""), ""]
    lines.append(render_table(rows, width))
    wrong = report.wrong
    if wrong:
        lines += ["", f"Not right ({len(wrong)}):"]
    for each in wrong[:_MAX_SHOWN]:
        repeat = f", repeat {each.repeat + 1}" if report.repeats > 1 else ""
        lines.append(
            f"  {each.case} ({each.category}{', critical' if each.critical else ''}{repeat}): {_verdict(each)}"
        )
        if (text := _output_text(each)) is not None:
            lines.append(f"    came: {' '.join(text.split())}")
    if len(wrong) > _MAX_SHOWN:
        lines.append(f"  and {len(wrong) - _MAX_SHOWN} more")
    return "\n".join(lines)


def _row(name: str, found: Summary) -> dict[str, Any]:
    run = found.attempts - found.not_run
    interval = "" if found.interval is None else f"{found.interval[0]:.0%} to {found.interval[1]:.0%}"
    return {
        "category": name,
        "right": f"{found.correct} of {run}" + (f" ({found.not_run} not run)" if found.not_run else ""),
        "95 % interval": interval,
        "errors": found.failed,
        "calls": found.taken.calls,
        "tokens": found.taken.tokens,
        "cost": "" if not found.taken.money else f"{found.taken.money:.4f}",
        "median": "" if found.median_seconds is None else f"{found.median_seconds:.1f} s",
    }


def render_gate(found: GateResult) -> str:
    """What the gate says, as text."""
    lines = ["", "The gate: " + ("passed" if found.passed else f"{len(found.failures)} reasons not to pass")]
    lines += [f"  {each.kind}: {each.message}" for each in found.failures]
    changed = [
        f"{name} {each.change:+.1%}"
        for name, each in found.categories.items()
        if each.change is not None and each.change
    ]
    if changed:
        lines.append(f"  changed: {', '.join(changed)}")
    if found.worse:
        lines.append(f"  worse than accepted: {', '.join(found.worse[:_MAX_SHOWN])}")
    if found.better:
        lines.append(f"  better than accepted: {', '.join(found.better[:_MAX_SHOWN])}")
    return "\n".join(lines)
