"""`bicameral lint`: an architecture of agents, held against the rules of the catalogue."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bicameral.errors import BicameralError, CatalogError, nearest
from bicameral.secrets import masked_json

from .._exits import FAILED, OK, exit_code
from .._options import Common, common
from .._output import Output

if TYPE_CHECKING:
    from .._lint import Linted


@click.command(short_help="Hold an architecture of agents against the rules of the catalogue.")
@click.argument("what", metavar="PATH|MODULE:OBJECT...", nargs=-1, required=False)
@click.option("--format", "form", type=click.Choice(["text", "json", "sarif"]), default="text", help="How to print it.")
@click.option("--strict", is_flag=True, help="Warnings fail too.")
@click.option("--quiet", is_flag=True, help="Leave notes out.")
@click.option("--rules", "list_rules", is_flag=True, help="List every rule.")
@click.option("--facts", "list_facts", is_flag=True, help="List everything that a stack can say of itself.")
@click.option("--explain", metavar="RULE", help="Say what a rule is about.")
@common
def command(
    chosen: Common,
    what: tuple[str, ...],
    form: str,
    strict: bool,
    quiet: bool,
    list_rules: bool,
    list_facts: bool,
    explain: str | None,
) -> int:
    """Hold stacks against every rule: YAML files, `-` for standard input, or Python objects with `architecture()`.

    EX1 to EX9 and ST1 to ST8 are stacks of the catalogue.

    The exit code is 1 if there is an error that is not waived (with --strict: or a warning), and 2 if something cannot
    be read.
    """
    out = Output(as_json=chosen.out.as_json or form == "json")
    if list_rules or list_facts or explain is not None:
        return _tell(out, list_rules=list_rules, list_facts=list_facts, explain=explain)
    if not what:
        raise click.UsageError("Nothing to lint: name a YAML file, a module:object, or '-'.")
    linted = [_linted(each, chosen.folder or Path()) for each in what]
    if len(linted) == 1 and linted[0].error is not None and form != "sarif":
        raise linted[0].error
    _show(out, linted, sarif=form == "sarif", quiet=quiet)
    unreadable = [each.error for each in linted if each.error is not None]
    if unreadable:
        return max(map(exit_code, unreadable))
    reports = [each.report for each in linted if each.report is not None]
    failed = any(not report.ok or (strict and report.of("warning")) for report in reports)
    return FAILED if failed else OK


def _linted(what: str, folder: Path) -> Linted:
    from bicameral.catalog.lint import lint

    from .._lint import Linted, open_stack

    try:
        return Linted(what, lint(open_stack(what, folder)))
    except BicameralError as error:
        return Linted(what, error=error)


def _show(out: Output, linted: list[Linted], *, sarif: bool, quiet: bool) -> None:
    from .._lint import show_report

    if sarif:
        sys.stdout.write(masked_json(json.dumps(_sarif(linted), ensure_ascii=False, indent=2)) + "\n")
        return
    for each in linted:
        if each.report is not None:
            show_report(out, each.what, each.report, quiet=quiet)
        elif each.error is not None and not out.as_json:
            out.error(each.error.to_json(), str(each.error))
    reports = [each.report for each in linted if each.report is not None]
    ok = len(reports) == len(linted) and all(report.ok for report in reports)
    out.object({"ok": ok, "stacks": [each.to_json() for each in linted]})


def _sarif(linted: list[Linted]) -> dict[str, Any]:
    from bicameral import __version__
    from bicameral.catalog.lint import to_sarif

    reports = [each.report for each in linted if each.report is not None]
    return to_sarif(reports, version=__version__, errors=[each.error for each in linted if each.error is not None])


def _tell(out: Output, *, list_rules: bool, list_facts: bool, explain: str | None) -> int:
    from bicameral.catalog.lint import rules
    from bicameral.catalog.stacks import FACTS, STATEMENTS

    from .._lint import show_facts, show_rule, show_rules

    known = rules()
    if explain is not None:
        wanted = next((id for id in known if id.upper() == explain.strip().upper()), None)
        if wanted is None:
            raise CatalogError(
                "stack.unknown-rule",
                f"there is no rule {explain[:60]!r}",
                nearest=nearest(explain.upper(), known),
                fix="`bicameral lint --rules` lists them.",
            )
        show_rule(out, known[wanted])
        out.object({"ok": True, "rule": known[wanted].to_json()})
    elif list_rules:
        show_rules(out, known.values())
        out.object({"ok": True, "rules": [rule.to_json() for rule in known.values()]})
    elif list_facts:
        facts = [*FACTS.values(), *STATEMENTS.values()]
        show_facts(out, facts)
        out.object({"ok": True, "facts": [fact.to_json() for fact in facts]})
    return OK
