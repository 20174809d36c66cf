"""Operations over what a search finds: records that a model reads from passages, added up, counted and compared.

The runtime writes the search itself where nothing is called what a plan reads (`bicameral.binding`), for the whole
request. So that statement is given, and only what follows it is learned: where a question is looked up first stays
as the other operations teach it.
"""

from __future__ import annotations

import keyword
import re
import unicodedata
from dataclasses import replace

from .domains import Day, Measure, Period
from .making import Draft, Maker, Unfit, need_sum
from .phrases import Topic
from .selections import Condition, Is, Within, comparisons, pick_period


def spent_found(make: Maker) -> Draft:
    """The question for a total in the domain's own words, for all time or for a period."""
    domain = make.domain
    if not domain.total:
        raise Unfit
    day, measure = domain.day, domain.measures[0]
    if day is None or make.picks.random() < 0.2:
        topic = Topic(domain, (), measure)
        what = make.text("found_numbers", many=domain.many, measure=measure.column)
        read = f"numbers = extract(found.passages, {what}, list[float])"
        plan = (read, "answer(sum(numbers))")
        return Draft(
            ("spent", "sum"), plan, {"": topic}, {"question": domain.total.replace("{p}", "")}, "spent", searched=True
        )
    period = pick_period(make.language, day, make.picks)
    topic = Topic(domain, (Within(day, period),), measure)
    plan = (*_dated(make, measure, day, period), "answer(sum([each.number for each in chosen]))")
    said = {"question": domain.total.replace("{p}", f" {period.text}")}
    return Draft(("spent", "sum"), plan, {"": topic}, said, "spent", searched=True)


def summed_found(make: Maker) -> Draft:
    """A total in other words, of a category or in a period."""
    domain = make.domain
    topic = make.topic(most=0, period=False)
    measure = need_sum(topic)
    if domain.day is not None and make.picks.random() < 0.6:
        period = pick_period(make.language, domain.day, make.picks)
        conditions: tuple[Condition, ...] = (Within(domain.day, period),)
        lines = _dated(make, measure, domain.day, period)
    else:
        category = make.picks.choice(domain.categories) if domain.categories else None
        if category is None:
            raise Unfit
        value = make.picks.choice(category.values)
        conditions = (Is(category, value),)
        fields = f'list[{{"{field_name(category.column)}": str, "number": float}}]'
        what = make.text("found_grouped", many=domain.many, column=category.column, measure=measure.column)
        lines = [
            f"records = extract(found.passages, {what}, {fields})",
            f'chosen = [each for each in records if each.{field_name(category.column)} == "{value}"]',
        ]
    topic = replace(topic, conditions=conditions, source="")
    plan = (*lines, "answer(sum([each.number for each in chosen]))")
    return Draft(("sum", "one"), plan, {"": topic}, result="sum", searched=True)


def counted_found(make: Maker) -> Draft:
    """How many there are in a period."""
    day = make.domain.day
    if day is None:
        raise Unfit
    period = pick_period(make.language, day, make.picks)
    topic = replace(make.topic(most=0), conditions=(Within(day, period),), source="")
    what = make.text("found_days", many=make.domain.many, day=day.column)
    tests = " and ".join(f"each {op} {value}" for _, op, value in comparisons(Within(day, period)))
    plan = (
        f"days = extract(found.passages, {what}, list[date])",
        f"chosen = [each for each in days if {tests}]",
        "answer(len(chosen))",
    )
    return Draft(("count", "one"), plan, {"": topic}, result="count", searched=True)


def unfinished_found(make: Maker) -> Draft:
    """What is still to be done, in the domain's own words."""
    domain = make.domain
    if not domain.todo:
        raise Unfit
    what = make.text("found_flag", many=domain.many, name=domain.name.column, flag=domain.flags[0].column)
    plan = (
        f'records = extract(found.passages, {what}, list[{{"name": str, "done": bool}}])',
        "answer([each.name for each in records if each.done == False])",
    )
    topic = Topic(domain)
    return Draft(("everyday",), plan, {"": topic}, {"question": domain.todo}, searched=True)


def greatest_found(make: Maker) -> Draft:
    """The one with the largest number, in the domain's own words."""
    domain = make.domain
    if not domain.most:
        raise Unfit
    what = make.text("found_named", many=domain.many, name=domain.name.column, measure=domain.measures[0].column)
    plan = (
        f'records = extract(found.passages, {what}, list[{{"name": str, "number": float}}])',
        "most = max([each.number for each in records])",
        "answer([each.name for each in records if each.number == most])",
    )
    return Draft(("everyday",), plan, {"": Topic(domain)}, {"question": domain.most}, searched=True)


def compared_found(make: Maker) -> Draft:
    """Which of two parts comes to more."""
    domain = make.domain
    fitting = [each for each in domain.categories if len(each.values) > 1]
    if not fitting:
        raise Unfit
    category = make.picks.choice(fitting)
    one, other = make.picks.sample(category.values, 2)
    base = replace(make.topic(most=0, period=False), source="")
    measure = need_sum(base)
    topics = {
        "a_": replace(base, conditions=(Is(category, one),)),
        "b_": replace(base, conditions=(Is(category, other),)),
    }
    what = make.text("found_pair", many=domain.many, measure=measure.column, one=one, other=other)
    yes, no = (make.text(key, x="{totals.first}", y="{totals.second}") for key in ("larger", "smaller"))
    plan = (
        f'totals = extract(found.passages, {what}, {{"first": float, "second": float}})',
        "if totals.first > totals.second:",
        f"    answer({yes})",
        "else:",
        f"    answer({no})",
    )
    return Draft(("compare",), plan, {**topics, "": base}, searched=True)


def _dated(make: Maker, measure: Measure, day: Day, period: Period) -> list[str]:
    """Statements that read records with their days and pick those of a period as `chosen`."""
    what = make.text("found_dated", many=make.domain.many, day=day.column, measure=measure.column)
    tests = " and ".join(f"each.day {op} {value}" for _, op, value in comparisons(Within(day, period)))
    return [
        f'records = extract(found.passages, {what}, list[{{"day": date, "number": float}}])',
        f"chosen = [each for each in records if {tests}]",
    ]


def field_name(column: str) -> str:
    """A column as the name of a field: letters without accents, and no word of the language."""
    folded = unicodedata.normalize("NFKD", column.lower()).encode("ascii", "ignore").decode()
    plain = re.sub(r"\W+", "_", folded).strip("_")
    return plain if plain.isidentifier() and not keyword.iskeyword(plain) else "group"
