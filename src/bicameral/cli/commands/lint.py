"""`bicameral lint`: an architecture of agents, checked against the rules of the catalogue."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bicameral.cli._options import CommonOptions, common_options
from bicameral.cli._output import FAILED, OK, Output, exit_code
from bicameral.display import make_visible
from bicameral.errors import BicameralError, CatalogError, describe_error, nearest_name

if TYPE_CHECKING:
    from bicameral.catalog.frameworks import RecoveredStack
    from bicameral.catalog.lint import LintFinding, LintReport, LintRule
    from bicameral.catalog.stacks import Stack, StackFact


_COMPOSITION_ID = re.compile(r"(?:EX|ST)\d+")
_OBJECT_NAME = re.compile(r"[\w.]+:[\w.]+")
_STYLES = {"error": "bold red", "warning": "yellow", "note": "cyan"}
_MAX_CHARACTERS = 500_000
StyledLine = tuple[str, str]
"""A line and its style."""


@dataclass(frozen=True, slots=True)
class LintResult:
    """The report of one stack, or why it could not be read."""

    what: str
    report: LintReport | None = None
    error: BicameralError | None = None
    recovered: RecoveredStack | None = None
    """For code of another framework and for a trace: the stack with its evidence."""

    def to_json(self) -> dict[str, Any]:
        if self.report is None:
            return {"source": self.what, "ok": False, "error": self.error.to_json() if self.error else None}
        found = {} if self.recovered is None else {"recovered": self.recovered.to_json()}
        return {"source": self.what, **self.report.to_json(), **found}


def open_stack(what: str, folder: Path) -> Stack:
    """The stack of a file, standard input (`-`), a Python object (`module:object`), or the catalogue (`EX1`)."""
    from bicameral.catalog.stacks import compositions, parse_stack, read_stack, stack_of

    if what == "-":
        return parse_stack(_read_standard_input(), file="stdin")
    path = folder / what
    if _OBJECT_NAME.fullmatch(what) and not path.exists():
        return stack_of(import_object(what, folder))
    if _COMPOSITION_ID.fullmatch(what) and not path.exists() and what in compositions():
        return compositions()[what].stack
    return read_stack(path if folder != Path() else Path(what))


def _read_standard_input() -> str:
    try:
        text = sys.stdin.read(_MAX_CHARACTERS + 1)
    except UnicodeDecodeError:
        raise CatalogError("stack.cannot-read", "standard input is not text in UTF-8") from None
    if len(text) > _MAX_CHARACTERS:
        raise CatalogError("stack.cannot-read", f"there are more than {_MAX_CHARACTERS:,} characters")
    return text


def import_object(what: str, folder: Path) -> object:
    """The object of a module; modules of the working folder are found too."""
    module, _, name = what.partition(":")
    start = str(folder.absolute())
    if start not in sys.path:
        sys.path.insert(0, start)
    try:
        found: object = import_module(module)
    except Exception as error:
        raise CatalogError("stack.cannot-read", f"{module!r} cannot be imported: {describe_error(error)}") from None
    for part in name.split("."):
        known = [each for each in dir(found) if not each.startswith("_")]
        try:
            found = getattr(found, part)
        except AttributeError:
            raise CatalogError(
                "stack.cannot-read", f"{module!r} has no {name!r}", nearest=nearest_name(part, known)
            ) from None
    return found


def show_facts(out: Output, facts: Iterable[StackFact]) -> None:
    """Show every fact that a stack can declare, on a line each."""
    for fact in facts:
        where = "declares" if fact.kind == "statement" else "facts"
        derived = f" [{fact.derived}]" if fact.derived else ""
        default = f" [usually {fact.default:g}]" if fact.default is not None else ""
        out.print_lines([(f"{where}.{fact.name:<30} {fact.what} ({fact.expected}){derived}{default}", "")])


def show_rule(out: Output, rule: LintRule) -> None:
    """Show everything about one rule."""
    needs = sorted({name for check in rule.checks for name in check.names})
    lines = [
        (f"{rule.id}: {rule.name}", "bold"),
        (f"  {rule.severity} ({rule.family})", _STYLES[rule.severity]),
        (f"  rule: {rule.rule}", ""),
        (f"  why:  {rule.why}", ""),
        (f"  fix:  {rule.fix}", ""),
    ]
    if needs:
        lines.append((f"  asks: {', '.join(needs)}", ""))
    lines += [(f"  see:  bicameral patterns show {id}", "dim") for id in rule.patterns]
    out.print_lines(lines)


def report_lines(
    source: str, report: LintReport, *, quiet: bool, recovered: RecoveredStack | None = None
) -> Iterator[StyledLine]:
    """The findings of a report as lines, and how many there are of each severity."""
    for finding in report.findings:
        if not finding.undecided and not (quiet and finding.severity == "note"):
            yield from _finding_lines(source, finding)
    undecided = [finding for finding in report.findings if finding.undecided]
    if undecided and not quiet:
        yield "not decided, because nobody says it:", _STYLES["note"]
        wide = max(len(finding.wants[0]) for finding in undecided)
        for finding in undecided:
            what = finding.message.partition("`: ")[2]
            yield f"    {finding.wants[0]:<{wide}}  {what}  [{', '.join(finding.rules)}]", ""
    if recovered is not None and not quiet:
        yield from _recovered_lines(recovered)
    for finding in report.waived:
        yield f"waived: {finding.message}  [{', '.join(finding.rules)}]: {finding.waived}", "dim"
    yield f"{source}: {findings_summary([report])}", "bold" if report.ok else "bold red"


def _finding_lines(source: str, finding: LintFinding) -> Iterator[StyledLine]:
    place = finding.place
    if finding.basis is not None:
        # A folder has many files, and the finding is in one of them.
        source = place.file or source
    where = f"{source}:{place.line}:{place.column or 1}" if place.line is not None else source
    where = f"{where} ({place.step})" if place.step is not None else where
    rules = ", ".join(finding.rules)
    yield f"{where}: {finding.severity}: {finding.message}  [{rules}]", _STYLES[finding.severity]
    if finding.path:
        yield f"    at:  {finding.path}", "dim"
    for each in finding.evidence:
        yield f"    {each}", ""
    yield f"    why: {finding.reason}", ""
    yield f"    fix: {finding.fix}", ""


def _recovered_lines(recovered: RecoveredStack) -> Iterator[StyledLine]:
    """What could not be followed, and what such a source never shows."""
    if recovered.unresolved:
        yield "not followed:", _STYLES["note"]
        for each in recovered.unresolved:
            line = f":{each.place.line}" if each.place.line is not None else ""
            yield f"    {each.place.file}{line}: {each.what}", ""
    yield f"what {'a trace' if recovered.source == 'trace' else 'code'} cannot show:", _STYLES["note"]
    for what in recovered.cannot_show:
        yield f"    {what}", ""
    if (counts := recovered.counts) is not None:
        calls = (
            f"{counts.model_calls:,} calls of models, {counts.tool_calls:,} of tools, {counts.failed_calls:,} failed"
        )
        tokens = f"{counts.input_tokens:,} tokens in, {counts.output_tokens:,} out"
        yield f"{counts.spans:,} spans: {calls}; {tokens}", ""


def findings_summary(reports: Sequence[LintReport]) -> str:
    """The number of findings by severity."""
    found = [finding for report in reports for finding in report.findings]
    if not found:
        return "nothing to say"
    counts = {kind: sum(finding.severity == kind for finding in found) for kind in ("error", "warning", "note")}
    return ", ".join(f"{count} {kind}{'' if count == 1 else 's'}" for kind, count in counts.items() if count)


@click.command(short_help="Hold an architecture of agents against the rules of the catalogue.")
@click.argument("what", metavar="PATH|MODULE:OBJECT...", nargs=-1, required=False)
@click.option("--trace", "traces", metavar="FILE", multiple=True, help="Lint the agents behind OpenTelemetry spans.")
@click.option("--format", "form", type=click.Choice(["text", "json", "sarif"]), default="text", help="How to print it.")
@click.option("--strict", is_flag=True, help="Warnings fail too.")
@click.option("--quiet", is_flag=True, help="Leave notes out.")
@click.option("--rules", "list_rules", is_flag=True, help="List every rule.")
@click.option("--facts", "list_facts", is_flag=True, help="List everything that a stack can say of itself.")
@click.option("--explain", metavar="RULE", help="Say what a rule is about.")
@common_options
def command(
    chosen: CommonOptions,
    what: tuple[str, ...],
    traces: tuple[str, ...],
    form: str,
    strict: bool,
    quiet: bool,
    list_rules: bool,
    list_facts: bool,
    explain: str | None,
) -> int:
    """Hold stacks against every rule: YAML files, `-` for standard input, or Python objects with `architecture()`.

    EX1 to EX9 and ST1 to ST8 are stacks of the catalogue.

    A Python file or a folder is searched for agents of pydantic-ai, LangGraph and the OpenAI Agents SDK; nothing of it
    is run. --trace reads OTLP JSON or what the console exporter writes.

    The exit code is 1 if there is an error that is not waived (with --strict: or a warning), and 2 if something cannot
    be read.
    """
    out = Output(as_json=chosen.out.as_json or form == "json")
    if list_rules or list_facts or explain is not None:
        return _show_reference(out, list_rules=list_rules, list_facts=list_facts, explain=explain)
    if not what and not traces:
        raise click.UsageError("Nothing to lint: name a YAML file, a module:object, code, or '-'; or give a --trace.")
    folder = chosen.folder or Path()
    linted = [_lint_one(each, folder) for each in what] + [_lint_one(each, folder, trace=True) for each in traces]
    if len(linted) == 1 and linted[0].error is not None and form != "sarif":
        raise linted[0].error
    _show_results(out, linted, sarif=form == "sarif", quiet=quiet)
    unreadable = [each.error for each in linted if each.error is not None]
    if unreadable:
        return max(map(exit_code, unreadable))
    reports = [each.report for each in linted if each.report is not None]
    failed = any(not report.ok or (strict and report.of_severity("warning")) for report in reports)
    return FAILED if failed else OK


def _lint_one(what: str, folder: Path, *, trace: bool = False) -> LintResult:
    from bicameral.catalog.lint import lint

    try:
        if (recovered := _recover_stack(what, folder, trace=trace)) is not None:
            from bicameral.catalog.frameworks import lint_recovered

            return LintResult(what, lint_recovered(recovered), recovered=recovered)
        return LintResult(what, lint(open_stack(what, folder)))
    except BicameralError as error:
        return LintResult(what, error=error)


def _recover_stack(what: str, folder: Path, *, trace: bool) -> RecoveredStack | None:
    """The stack behind a trace, or behind a Python file or a folder; None if it is neither."""
    path = folder / what if folder != Path() else Path(what)
    if not trace and not (path.is_dir() or (what.endswith(".py") and path.is_file())):
        return None
    from bicameral.catalog.frameworks import read_code, read_trace

    return read_trace(path) if trace else read_code(path)


def _show_results(out: Output, linted: list[LintResult], *, sarif: bool, quiet: bool) -> None:
    if sarif:
        out.write_document(_sarif(linted), indent=2)
        return
    for each in linted:
        if each.report is not None:
            lines = report_lines(each.what, each.report, quiet=quiet, recovered=each.recovered)
            # Names of files come from a folder that somebody else may have filled.
            out.print_lines((make_visible(line, strict=True).replace("\n", "<000a>"), style) for line, style in lines)
        elif each.error is not None and not out.as_json:
            out.error(each.error.to_json(), str(each.error))
    reports = [each.report for each in linted if each.report is not None]
    ok = len(reports) == len(linted) and all(report.ok for report in reports)
    out.write_json({"ok": ok, "stacks": [each.to_json() for each in linted]})


def _sarif(linted: list[LintResult]) -> dict[str, Any]:
    from bicameral import __version__
    from bicameral.catalog.lint import to_sarif

    reports = [each.report for each in linted if each.report is not None]
    errors = [each.error for each in linted if each.error is not None]
    notes = [(note.place, note.what) for each in linted if each.recovered for note in each.recovered.unresolved]
    return to_sarif(reports, version=__version__, errors=errors, notes=notes)


def _show_reference(out: Output, *, list_rules: bool, list_facts: bool, explain: str | None) -> int:
    from bicameral.catalog.lint import rules
    from bicameral.catalog.stacks import FACTS, STATEMENTS

    known = rules()
    if explain is not None:
        wanted = next((id for id in known if id.upper() == explain.strip().upper()), None)
        if wanted is None:
            raise CatalogError(
                "stack.unknown-rule",
                f"there is no rule {explain[:60]!r}",
                nearest=nearest_name(explain.upper(), known),
                fix="`bicameral lint --rules` lists them.",
            )
        show_rule(out, known[wanted])
        out.write_json({"ok": True, "rule": known[wanted].to_json()})
    elif list_rules:
        lines = (f"{rule.id:<26}{rule.severity:<9}{rule.family:<14}{rule.name}" for rule in known.values())
        out.print_lines((line, "") for line in lines)
        out.write_json({"ok": True, "rules": [rule.to_json() for rule in known.values()]})
    elif list_facts:
        facts = [*FACTS.values(), *STATEMENTS.values()]
        show_facts(out, facts)
        out.write_json({"ok": True, "facts": [fact.to_json() for fact in facts]})
    return OK
