"""Operations over one table with sentences of their own: comparisons, conditions, loops, questions, refusals."""

from __future__ import annotations

from dataclasses import replace

from .making import Draft, Maker, Unfit, cells, need_category, need_measure, need_sum, quoted
from .phrases import Topic
from .selections import Condition, Has, Is, Within, pick_period, select_rows
from .wording import capitalise


def spent(make: Maker) -> Draft:
    """The question in the domain's own words, for all time or for a period."""
    domain = make.domain
    if not domain.total:
        raise Unfit
    conditions: tuple[Condition, ...] = ()
    said = ""
    if domain.day is not None and make.picks.random() < 0.75:
        period = pick_period(make.language, domain.day, make.picks)
        conditions, said = (Within(domain.day, period),), f" {period.text}"
    topic = Topic(domain, conditions, domain.measures[0])
    lines, rows = make.rows(topic)
    plan = (*lines, f"answer(sum({cells(domain.measures[0].column, rows)}))")
    return Draft(("spent", "sum"), plan, {"": topic}, {"question": domain.total.replace("{p}", said)}, "spent")


def unfinished(make: Maker) -> Draft:
    """What is still to be done, in the domain's own words."""
    domain = make.domain
    if not domain.todo:
        raise Unfit
    topic = Topic(domain, (Has(domain.flags[0], wanted=False),))
    lines, rows = make.rows(topic)
    said = {"question": domain.todo}
    way = make.picks.random()
    if way < 0.5:
        return Draft(("everyday",), (*lines, f"answer({cells(domain.name.column, rows)})"), {"": topic}, said)
    lines.append(f"names = {cells(domain.name.column, rows)}")
    if way < 0.75:
        to, address = make.recipient()
        send = f'send_mail([{address}], {make.subject()}, "\\n".join(names))'
        done = make.text("mailed_lines", n="{len(names)}", to=to)
        return Draft(("everyday_mail",), (*lines, send, f"answer({done})"), {"": topic}, said | {"to": to})
    done = make.text("wrote_lines", n="{len(names)}", file="<txt>")
    plan = (*lines, 'write_lines("<txt>", names)', f"answer({done})")
    return Draft(("everyday_write",), plan, {"": topic}, said | {"file": "<txt>"})


def greatest(make: Maker) -> Draft:
    """The row with the largest number, in the domain's own words."""
    domain = make.domain
    if not domain.most:
        raise Unfit
    best = f'best = max(rows, key=lambda row: row[column("{domain.measures[0].column}")])'
    topic = Topic(domain)
    plan = (make.read(topic), best, f'answer(best[column("{domain.name.column}")])')
    return Draft(("everyday",), plan, {"": topic}, {"question": domain.most})


def exists(make: Maker) -> Draft:
    topic = make.topic(least=1)
    lines, rows = make.rows(topic)
    return Draft(("exists",), (*lines, f"answer(len({rows}) > 0)"), {"": topic})


def count_and_sum(make: Maker) -> Draft:
    topic = make.topic()
    measure = need_sum(topic).column
    lines, rows = make.rows(topic)
    told = make.text("count_and_sum", n=f"{{len({rows})}}", many=make.domain.many, measure=measure, x="{total}")
    return Draft(("count_and_sum",), (*lines, f"total = sum({cells(measure, rows)})", f"answer({told})"), {"": topic})


def extreme_both(make: Maker) -> Draft:
    """The row with the largest or smallest number, and that number."""
    topic = make.ranked_topic()
    column = need_measure(topic).column
    function, frame = make.picks.choice((("max", "largest_both"), ("min", "smallest_both")))
    lines, rows = make.rows(topic)
    lines.append(f'best = {function}({rows}, key=lambda row: row[column("{column}")])')
    told = f"f\"{{best[column('{make.domain.name.column}')]}}: {{best[column('{column}')]}}\""
    return Draft((frame,), (*lines, f"answer({told})"), {"": topic})


def sorted_out(make: Maker) -> Draft:
    """Names in one file or another one, by a number."""
    topic = make.ranked_topic()
    column = need_measure(topic).column
    lines, rows = make.rows(topic)
    name = f'row[column("{make.domain.name.column}")]'
    plan = (
        *lines,
        f"for row in {rows}:",
        f'    if row[column("{column}")] > <big>:',
        f'        append_text("<txt>", {name})',
        "    else:",
        f'        append_text("<txt2>", {name})',
        f"answer({make.text('sorted_out', n=f'{{len({rows})}}')})",
    )
    return Draft(("sorted_out",), plan, {"": topic}, {"file": "<txt>", "other_file": "<txt2>"})


def spread(make: Maker) -> Draft:
    topic = make.topic(most=1)
    column = need_measure(topic).column
    lines, rows = make.rows(topic)
    lines += [f"highest = max({cells(column, rows)})", f"lowest = min({cells(column, rows)})"]
    return Draft(("range",), (*lines, "answer(highest - lowest)"), {"": topic})


def _two_groups(make: Maker) -> tuple[Topic, Topic, list[str]]:
    """Two parts of a table that exclude each other, and the statements that pick them as `first` and `second`."""
    base = make.topic(most=0)
    pairs: list[tuple[Condition, Condition]] = [
        (Is(category, first), Is(category, second))
        for category in make.domain.categories
        if len(category.values) > 1
        for first, second in [make.picks.sample(category.values, 2)]
    ]
    pairs += [(Has(flag, wanted := make.picks.random() < 0.5), Has(flag, not wanted)) for flag in make.domain.flags]
    if not pairs:
        raise Unfit
    one, other = make.picks.choice(pairs)
    first, _ = select_rows("rows", (one,), ("first",))
    second, _ = select_rows("rows", (other,), ("second",))
    topics = replace(base, conditions=(one,)), replace(base, conditions=(other,))
    return *topics, [make.read(base), *first, *second]


def difference(make: Maker) -> Draft:
    one, other, lines = _two_groups(make)
    column = need_sum(one).column
    lines += [f"one = sum({cells(column, 'first')})", f"other = sum({cells(column, 'second')})"]
    topics = {"a_": one, "b_": other, "": replace(one, conditions=())}
    return Draft(("difference", "one"), (*lines, "answer(one - other)"), topics, result="difference")


def compare(make: Maker) -> Draft:
    one, other, lines = _two_groups(make)
    topics = {"a_": one, "b_": other, "": replace(one, conditions=())}
    frame, tests = "compare_count", ["one = len(first)", "other = len(second)"]
    if one.measure is not None and make.picks.random() < 0.6:
        column = need_sum(one).column
        frame, tests = "compare", [f"one = sum({cells(column, 'first')})", f"other = sum({cells(column, 'second')})"]
    yes, no = (make.text(key, x="{one}", y="{other}") for key in ("larger", "smaller"))
    plan = (*lines, *tests, "if one > other:", f"    answer({yes})", "else:", f"    answer({no})")
    return Draft((frame,), plan, topics)


def two_periods(make: Maker) -> Draft:
    topic = make.topic(most=0)
    day, column = topic.domain.day, need_sum(topic).column
    if day is None or day.tense == "future":
        raise Unfit
    now, before = make.picks.choice(make.language.two_periods)
    lines = [make.read(topic)]
    for name, period in (("first", now), ("second", before)):
        made, _ = select_rows("rows", (Within(day, period),), (name,))
        lines += made
    lines += [f"one = sum({cells(column, 'first')})", f"other = sum({cells(column, 'second')})"]
    said = {"p1": now.text, "p2": before.text}
    if make.picks.random() < 0.65:
        return Draft(("both_periods",), (*lines, "answer(one - other)"), {"": topic}, said)
    return Draft(("period_ratio",), (*lines, "answer(round(one / other, 2))"), {"": topic}, said)


def if_sum(make: Maker) -> Draft:
    topic = make.topic(most=1)
    measure = need_sum(topic)
    lines, rows = make.rows(topic)
    lines.append(f"total = sum({cells(measure.column, rows)})")
    below = f"    answer({make.text('below', x='{total}')})"
    title = make.title("sum", topic, "total")
    if make.picks.random() < 0.5:
        to, address = make.recipient()
        done = make.text("mailed", to=to)
        does, frame, said = f"send_mail([{address}], {make.subject()}, {title})", "if_sum_mail", {"to": to}
    else:
        done = make.text("wrote", file="<txt>")
        does, frame, said = f'write_text("<txt>", {title})', "if_sum_note", {"file": "<txt>"}
    plan = (*lines, "if total > <big>:", f"    {does}", f"    answer({done})", "else:", below)
    return Draft((frame,), plan, {"": topic}, said)


def if_any(make: Maker) -> Draft:
    topic = make.topic(most=2, least=1)
    lines, rows = make.rows(topic)
    if make.picks.random() < 0.5:
        to, address = make.recipient()
        lines.append(f"names = {cells(make.domain.name.column, rows)}")
        does = f'send_mail([{address}], {make.subject()}, "\\n".join(names))'
        done, none = make.text("mailed_lines", n="{len(names)}", to=to), make.text("none")
        plan = (*lines, "if len(names) > 0:", f"    {does}", f"    answer({done})", "else:", f"    answer({none})")
        return Draft(("if_any_mail",), plan, {"": topic}, {"to": to})
    does = f'write_lines("<txt>", {cells(make.domain.name.column, rows)})'
    done = make.text("wrote_lines", n=f"{{len({rows})}}", file="<txt>")
    test = f"if len({rows}) > <n>:"
    plan = (*lines, test, f"    {does}", f"    answer({done})", "else:", f"    answer(len({rows}))")
    return Draft(("if_many_write",), plan, {"": topic}, {"file": "<txt>"})


def each_noted(make: Maker) -> Draft:
    topic = make.topic(most=2)
    lines, rows = make.rows(topic)
    told = f"f\"{{row[column('{make.domain.name.column}')]}}: {{row[column('{need_measure(topic).column}')]}}\""
    done = make.text("appended_lines", n=f"{{len({rows})}}", file="<txt>")
    plan = (*lines, f"for row in {rows}:", f'    append_text("<txt>", {told})', f"answer({done})")
    return Draft(("note_each",), plan, {"": topic}, {"file": "<txt>"})


def each_mailed(make: Maker) -> Draft:
    topic = make.topic(most=2, least=1)
    if not make.domain.contact:
        raise Unfit
    lines, rows = make.rows(topic)
    frame, body = "remind_each", '"<topic>"'
    if topic.measure is not None and make.picks.random() < 0.5:
        column = topic.measure.column
        frame, body = "mail_each", f"f\"{capitalise(column)}: {{row[column('{column}')]}}\""
    send = f'    send_mail([row[column("{make.domain.contact}")]], {make.subject()}, {body})'
    done = make.text("mailed_each", n=f"{{len({rows})}}")
    return Draft((frame,), (*lines, f"for row in {rows}:", send, f"answer({done})"), {"": topic})


def groups_noted(make: Maker) -> Draft:
    topic = make.topic(most=1)
    by, column = need_category(topic).column, need_sum(topic).column
    lines, rows = make.rows(topic)
    lines.append(f'grouped = group_rows({rows}, column("{by}"), column("{column}"), how="sum")')
    told = f"f\"{{row[column('{by}')]}}: {{row[column('{column}')]}}\""
    done = make.text("appended_lines", n="{len(grouped)}", file="<txt>")
    plan = (*lines, "for row in grouped:", f'    append_text("<txt>", {told})', f"answer({done})")
    return Draft(("note_groups",), plan, {"": topic}, {"file": "<txt>"})


def asked_limit(make: Maker) -> Draft:
    topic = make.topic(most=0)
    column = need_measure(topic).column
    plan = (
        f"limit = ask({make.text('ask_limit', measure=column)})",
        make.read(topic),
        f'above = filter_rows(rows, column("{column}"), ">", float(limit))',
        f"answer({cells(make.domain.name.column, 'above')})",
    )
    return Draft(("ask_limit",), plan, {"": topic})


def asked_category(make: Maker) -> Draft:
    topic = make.topic(most=0)
    by, column = need_category(topic).column, need_sum(topic).column
    plan = (
        f"wanted = ask({make.text('ask_category', cat=by)})",
        make.read(topic),
        f'chosen = filter_rows(rows, column("{by}"), "==", wanted)',
        f"answer(sum({cells(column, 'chosen')}))",
    )
    return Draft(("ask_category",), plan, {"": topic})


def refused(make: Maker) -> Draft:
    effect = make.picks.choice(make.language.effects)
    return Draft((f"effect.{effect.key}",), (f"cannot({quoted(effect.reason)})",), {"": make.topic()})
