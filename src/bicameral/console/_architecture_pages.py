"""Architectures of agents: the linter over a stack in YAML, and the advisor, who makes a stack of facts."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, cast

from starlette.responses import Response

from bicameral.console._pages import PageCall, page_route
from bicameral.display import cell_text
from bicameral.errors import BicameralError, CatalogError

if TYPE_CHECKING:
    from bicameral.catalog.advice import Advice, FactQuestion
    from bicameral.catalog.lint import LintFinding, LintReport, LintRule
    from bicameral.console._estimates import EstimateTable

MAX_STACK_CHARS = 60_000
"""Characters of a stack. What is read of it is bounded as well; the parser is quick for so many, whatever they are."""
MAX_FINDINGS = 200
MAX_EXCERPT = 160
MAX_FACT = 2_000
"""Characters of one fact."""
MAX_NAMES = 50
"""Names in a fact that is a list."""
MAX_OPEN = 8
"""Open questions that are shown."""
FIRST_STACK = """\
name: Mail triage
patterns: [R4, V9, V14]
tools: {count: 6}
legs: [private_data, untrusted_content]
"""
"""What stands in the linter to begin with."""


@dataclass(frozen=True, slots=True)
class LintView:
    """A stack as it was typed, with what the linter finds in it, or why it cannot be read."""

    text: str
    report: LintReport | None = None
    findings: Sequence[LintFinding] = ()
    undecided: Sequence[LintFinding] = ()
    rules: Mapping[str, LintRule] | None = None
    error: BicameralError | None = None

    @property
    def left_out(self) -> int:
        """Findings that are not shown."""
        found = 0 if self.report is None else len(self.report.findings)
        return found - len(self.findings) - len(self.undecided)

    def excerpt(self, line: int | None) -> str:
        """The line of the text that a finding is about."""
        lines = self.text.splitlines()
        return lines[line - 1].strip()[:MAX_EXCERPT] if line is not None and 0 < line <= len(lines) else ""

    def count(self, severity: str) -> int:
        """Findings of one severity."""
        return 0 if self.report is None else sum(each.severity == severity for each in self.report.findings)


async def linter_page(call: PageCall) -> Response:
    """The linter, with an example of the catalogue if the address names one."""
    from bicameral.catalog.stacks import composition_yaml, compositions

    example = call.query("example")
    known = await asyncio.to_thread(compositions)
    text = await asyncio.to_thread(composition_yaml, example) if example in known else FIRST_STACK
    return await _show_linter(call, text, example)


async def lint_stack(call: PageCall) -> Response:
    """What the linter finds in the stack that was typed."""
    return await _show_linter(call, call.field("stack"))


async def _show_linter(call: PageCall, text: str, example: str = "") -> Response:
    from bicameral.catalog.stacks import compositions

    with call.context.plans.slot():
        view = await asyncio.to_thread(lint_text, text)
    if call.is_partial:
        return call.page("lint_findings.html", view=view)
    found = await asyncio.to_thread(compositions)
    examples = {id: each.name for id, each in found.items()}
    return call.page("architecture.html", view=view, examples=examples, example=example, most=MAX_STACK_CHARS)


def lint_text(text: str) -> LintView:
    """The findings in a stack."""
    from bicameral.catalog.lint import lint, rules_for_stack
    from bicameral.catalog.stacks import parse_stack

    view = LintView(text)
    try:
        if len(text) > MAX_STACK_CHARS:
            expected = f"at most {MAX_STACK_CHARS:,}"
            message = f"the stack has {len(text):,} characters"
            raise CatalogError("stack.too-large", message, expected=expected)
        stack = parse_stack(text)
        report = lint(stack)
    except BicameralError as error:
        return replace(view, error=error)
    decided = [each for each in report.findings if not each.undecided][:MAX_FINDINGS]
    undecided = [each for each in report.findings if each.undecided][:MAX_FINDINGS]
    return replace(view, report=report, findings=decided, undecided=undecided, rules=rules_for_stack(stack))


@dataclass(frozen=True, slots=True)
class AdviceForm:
    """The facts as they were typed, and what is wrong with some."""

    typed: Mapping[str, str]
    runtime: Literal["bicameral", "other"]
    faults: Mapping[str, BicameralError]


@dataclass(frozen=True, slots=True)
class AdviceView:
    """What the advisor says of the facts."""

    advice: Advice
    yaml: str
    table: EstimateTable
    over_budget: Sequence[str]


async def advisor_page(call: PageCall) -> Response:
    """The form for facts, and the advice on what is known without any."""
    return await _show_advice(call, AdviceForm({}, "bicameral", {}))


async def give_advice(call: PageCall) -> Response:
    """The advice on the facts of the form."""
    from bicameral.catalog.advice import questions

    given = {name: call.field(f"fact.{name}").strip() for name in questions()}
    runtime = cast("Any", call.field("runtime")) if call.field("runtime") in ("bicameral", "other") else "bicameral"
    return await _show_advice(call, AdviceForm({name: text for name, text in given.items() if text}, runtime, {}))


async def _show_advice(call: PageCall, form: AdviceForm) -> Response:
    from bicameral.catalog import catalog
    from bicameral.catalog.advice import questions

    with call.context.plans.slot():
        form, view = await asyncio.to_thread(_advise, call, form)
    names = {id: each.name for id, each in catalog().patterns.items()}
    facts: dict[str, Any] = {"form": form, "view": view, "names": names, "asked": questions(), "most_open": MAX_OPEN}
    facts["cell_text"] = cell_text
    if call.is_partial:
        return call.page("advice_given.html", **facts)
    return call.page("advice.html", groups=_question_groups(), **facts)


def _question_groups() -> dict[str, list[FactQuestion]]:
    from bicameral.catalog.advice import questions

    groups: dict[str, list[FactQuestion]] = {}
    for question in questions().values():
        groups.setdefault(question.group, []).append(question)
    return groups


def _advise(call: PageCall, form: AdviceForm) -> tuple[AdviceForm, AdviceView | None]:
    """The form with its faults, and the advice on the facts that can be read."""
    from bicameral.catalog.advice import TaskFacts, advise
    from bicameral.config import TokenSpeeds, tier_rates
    from bicameral.console._estimates import estimate_table

    known: dict[str, Any] = {}
    faults: dict[str, BicameralError] = {}
    for name, text in form.typed.items():
        try:
            known[name] = _read_fact(name, text)
        except BicameralError as error:
            faults[name] = error
    config = call.context.config
    try:
        rates = tier_rates(config, (), TokenSpeeds())
        advice = advise(TaskFacts(**known), runtime=form.runtime, rates=rates)
        table = estimate_table(advice.estimate, config, rates)
        view = AdviceView(advice, advice.yaml(), table, advice.over_budget)
    except BicameralError as error:
        return replace(form, faults=faults | {"": error}), None
    return replace(form, faults=faults), view


def _read_fact(name: str, text: str) -> Any:
    from bicameral.catalog.advice import parse_fact

    if len(text) > MAX_FACT:
        raise CatalogError("catalog.bad-fact", f"{name} is too long", expected=f"at most {MAX_FACT:,} characters")
    value: object = parse_fact(name, text)
    if isinstance(value, tuple) and len(cast("tuple[str, ...]", value)) > MAX_NAMES:
        raise CatalogError("catalog.bad-fact", f"{name} has too many names", expected=f"at most {MAX_NAMES}")
    return cast("Any", value)


architecture_routes = [
    page_route("/architecture", linter_page, "see", "run"),
    page_route("/architecture", lint_stack, "see", "run", method="POST"),
    page_route("/architecture/advice", advisor_page, "see", "run"),
    page_route("/architecture/advice", give_advice, "see", "run", method="POST"),
]
