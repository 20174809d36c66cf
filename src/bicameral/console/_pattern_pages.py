"""The catalogue of patterns: search, the page of each, what it would cost, and a form to run one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError
from starlette.responses import Response

from bicameral.console._pages import PageCall, page_route, path_part
from bicameral.console._records import redirect_to_run
from bicameral.durable import RunView
from bicameral.errors import BicameralError, CatalogError, ServerError
from bicameral.server.surface import HttpError, SubmitRequest, build_submission, public_error, submit_run

if TYPE_CHECKING:
    from bicameral.catalog import Knob, PatternFacts, Size
    from bicameral.config import Config
    from bicameral.console._estimates import EstimateTable

MAX_SEARCH = 200
MAX_HITS = 24
"""Patterns that a search shows: those after them fit hardly."""
MAX_SETTING = 100
"""Characters of a size or a knob."""
SIZE_PREFIX, KNOB_PREFIX = "size.", "knob."
"""How the fields of sizes and knobs are called."""


@dataclass(frozen=True, slots=True)
class Runnable:
    """Which patterns can be run at all, and which of them on a text alone."""

    classes: Mapping[str, str]
    on_text: Sequence[str]
    product: Mapping[str, str]


def find_runnable() -> Runnable:
    """The patterns that can be run; the first call imports all of them."""
    from bicameral.patterns import PRODUCT, implemented_classes, text_patterns

    return Runnable(implemented_classes(), text_patterns(), PRODUCT)


async def pattern_list(call: PageCall) -> Response:
    """The patterns that fit a search and the filters, as cards."""
    from bicameral.catalog import CATEGORIES

    filters = {name: call.query(name)[:MAX_SEARCH].strip() for name in ("q", "category", "can")}
    runnable = await asyncio.to_thread(find_runnable)
    found = await asyncio.to_thread(_find_patterns, filters, runnable)
    template = "pattern_cards.html" if call.is_partial else "patterns.html"
    return call.page(template, found=found, runnable=runnable, filters=filters, categories=tuple(CATEGORIES))


def _find_patterns(filters: Mapping[str, str], runnable: Runnable) -> list[PatternFacts]:
    from bicameral.catalog import catalog

    known, search = catalog(), filters["q"]
    hits = [hit.pattern for hit in known.search(search, limit=len(known.patterns))] if search else None
    found = list(known.patterns.values()) if hits is None else hits
    able = {"run": runnable.classes, "text": runnable.on_text}.get(filters["can"], known.patterns)
    fitting = [each for each in found if each.id in able and filters["category"] in ("", each.category)]
    return fitting[:MAX_HITS] if search else fitting


@dataclass(frozen=True, slots=True)
class RunForm:
    """The form to run a pattern: its knobs, and what was typed into it."""

    knobs: Mapping[str, Knob]
    typed: Mapping[str, str] = field(default_factory=dict[str, str])
    request: str = ""
    error: BicameralError | None = None


@dataclass(frozen=True, slots=True)
class EstimateForm:
    """The sizes and knobs that an estimate counts with, what was typed, and the estimate or what is wrong."""

    sizes: Mapping[str, Size]
    knobs: Mapping[str, Knob]
    typed: Mapping[str, str]
    table: EstimateTable | None = None
    error: BicameralError | None = None


async def pattern_page(call: PageCall) -> Response:
    """Everything about one pattern; for htmx only the estimate with the sizes and knobs of the form."""
    pattern = await _pattern_of(call)
    form = await asyncio.to_thread(estimate_form, pattern, call.query, call.context.config)
    if call.is_partial:
        return call.page("pattern_estimate.html", pattern=pattern, form=form)
    run_form = await asyncio.to_thread(_run_form, pattern.id)
    return await _show_pattern(call, pattern, form, run_form)


async def _pattern_of(call: PageCall) -> PatternFacts:
    from bicameral.catalog import catalog

    try:
        return await asyncio.to_thread(catalog().pattern, call.path("pattern"))
    except CatalogError as error:
        raise HttpError(404, error) from None


async def _show_pattern(
    call: PageCall, pattern: PatternFacts, form: EstimateForm, run_form: RunForm | None, status: int = 200
) -> Response:
    from bicameral.catalog import ENFORCEMENT_WORDS, catalog
    from bicameral.catalog.diagrams import pattern_diagram

    known = catalog()
    return call.page(
        "pattern.html",
        status=status,
        pattern=pattern,
        diagram=pattern_diagram(pattern),
        requirements=known.requirements_of(pattern.id),
        needed_by=sorted({each.pattern for each in known.needed_by(pattern.id)}),
        conflicts=known.conflicts_of(pattern.id),
        mechanisms=[known.mechanisms[id] for id in pattern.mechanisms if id in known.mechanisms],
        names={id: each.name for id, each in known.patterns.items()},
        enforcement=ENFORCEMENT_WORDS,
        runnable=await asyncio.to_thread(find_runnable),
        form=form,
        run_form=run_form,
    )


def estimate_form(pattern: PatternFacts, query: Callable[[str], str], config: Config) -> EstimateForm:
    """The estimate of a pattern with what the address says of sizes and knobs."""
    from bicameral.catalog import SIZES
    from bicameral.catalog.costs import estimate
    from bicameral.config import TokenSpeeds, tier_rates
    from bicameral.console._estimates import estimate_table

    names = pattern.cost.names
    sizes = {name: size for name, size in SIZES.items() if name in names}
    knobs = {name: knob for name, knob in pattern.knobs.items() if name in names}
    fields = [*(f"{SIZE_PREFIX}{name}" for name in sizes), *(f"{KNOB_PREFIX}{name}" for name in knobs)]
    typed = {name: text for name in fields if (text := query(name)[: MAX_SETTING + 1].strip())}
    form = EstimateForm(sizes, knobs, typed)
    try:
        numbers = {name: _number(name, text) for name, text in typed.items()}
        measured = {name: numbers[f"{SIZE_PREFIX}{name}"] for name in sizes if f"{SIZE_PREFIX}{name}" in numbers}
        given = {name: numbers[f"{KNOB_PREFIX}{name}"] for name in knobs if f"{KNOB_PREFIX}{name}" in numbers}
        rates = tier_rates(config, (), TokenSpeeds())
        found = estimate([{pattern.id: given}], measured, rates)
        return replace(form, table=estimate_table(found, config, rates))
    except CatalogError as error:
        return replace(form, error=error)


def _number(name: str, text: str) -> float:
    try:
        if len(text) <= MAX_SETTING:
            return float(text)
    except ValueError:
        pass
    what = name.partition(".")[2]
    raise CatalogError("catalog.bad-number", f"{what} is {text[:40]!r}", expected="a number")


def _run_form(id: str, **typed: Any) -> RunForm | None:
    """The form to run a pattern; None if it needs more than a text."""
    from bicameral.patterns import text_pattern_knobs, text_patterns

    return RunForm(text_pattern_knobs(id), **typed) if id in text_patterns() else None


async def run_pattern(call: PageCall) -> Response:
    """Submit a request to a pattern; what is wrong with it is said beside the form, with everything that was typed."""
    pattern = await _pattern_of(call)
    known = await asyncio.to_thread(_run_form, pattern.id)
    if known is None:
        error = CatalogError("pattern.needs-more", f"{pattern.id} needs more than a request")
        raise HttpError(409, error)
    sent = datetime.now(UTC)
    typed = {name: call.field(f"{KNOB_PREFIX}{name}").strip() for name in known.knobs}
    form = RunForm(known.knobs, {name: text for name, text in typed.items() if text}, call.field("request"))
    try:
        view = await _submit(call, pattern.id, form)
    except (CatalogError, HttpError) as error:
        public = error if isinstance(error, HttpError) else HttpError(422, error)
        if public.status not in (409, 422):
            raise
        estimated = await asyncio.to_thread(estimate_form, pattern, call.query, call.context.config)
        shown = replace(form, error=public_error(public).error)
        return await _show_pattern(call, pattern, estimated, shown, public.status)
    return redirect_to_run(call, view, sent, f"/patterns/{path_part(pattern.id)}")


async def _submit(call: PageCall, id: str, form: RunForm) -> RunView:
    from bicameral.patterns import MODEL_PREFIX, parse_pattern_knobs, text_pattern

    if long := [name for name, text in form.typed.items() if len(text) > MAX_SETTING]:
        message, most = f"{long[0]} is too long", f"at most {MAX_SETTING} characters"
        raise HttpError(422, ServerError("server.bad-request", message, expected=most))
    strategy = text_pattern(id, parse_pattern_knobs(id, [f"{name}={text}" for name, text in form.typed.items()]))
    try:
        wanted = SubmitRequest(request=form.request.strip(), model=f"{MODEL_PREFIX}{id}")
    except ValidationError as error:
        is_long = error.errors()[0]["type"] == "string_too_long"
        message = "this is too long" if is_long else "a request is needed, of characters that a person can type"
        raise HttpError(422, ServerError("server.bad-request", message)) from None
    key = call.submission_key(id, wanted.request, *(f"{name}={text}" for name, text in form.typed.items()))
    submission = await build_submission(wanted, call.context, call.token.user, key)
    return await submit_run(call.context, replace(submission, strategy=strategy))


pattern_routes = [
    page_route("/patterns", pattern_list, "see", "run"),
    page_route("/patterns/{pattern}", pattern_page, "see", "run"),
    page_route("/patterns/{pattern}/run", run_pattern, "run", method="POST"),
]
