"""Operations over one table with two ways to go on, a direction, or something for each row; and honest endings."""

from __future__ import annotations

from dataclasses import replace

from .errands import occasion_words
from .making import Draft, Maker, Unfit, cells, need_day, need_measure, need_sum, quoted
from .phrases import Topic
from .selections import Is, Within, select_rows
from .wording import capitalise, tidy


def if_either(make: Maker) -> Draft:
    """A total or a number of rows on either side of a limit, with something to be done on both."""
    topic = make.topic(most=1)
    lines, rows = make.rows(topic)
    if make.picks.random() < 0.6:
        lines.append(f"total = sum({cells(need_sum(topic).column, rows)})")
        frame, title, limit = "sum", make.title("sum", topic, "total"), "<big>"
    else:
        lines.append(f"total = len({rows})")
        frame, title, limit = "count", make.title("count", topic, "total"), "<n>"
    first, second = 'person("<person>")', 'person("<person2>")'
    send = f"    send_mail([{first}], {make.subject()}, {title})"
    said = {"to": "<person>"}
    if make.picks.random() < 0.5:
        other = f"    send_mail([{second}], {make.subject()}, {title})"
        done, way, said = make.text("mailed", to="<person2>"), "mail", said | {"other": "<person2>"}
    else:
        other = f'    write_text("<txt>", {title})'
        done, way, said = make.text("wrote", file="<txt>"), "write", said | {"file": "<txt>"}
    plan = (
        *lines,
        f"if total > {limit}:",
        send,
        f"    answer({make.text('mailed', to='<person>')})",
        "else:",
        other,
        f"    answer({done})",
    )
    return Draft((f"either_{frame}_{way}",), plan, {"": topic}, said)


def which_group(make: Maker) -> Draft:
    """Which of two values of a category has more."""
    base = make.topic(most=0)
    fitting = [each for each in make.domain.categories if len(each.values) > 1]
    if not fitting:
        raise Unfit
    category = make.picks.choice(fitting)
    one, other = make.picks.sample(category.values, 2)
    lines = [make.read(base)]
    for name, value in (("first", one), ("second", other)):
        lines += select_rows("rows", (Is(category, value),), (name,))[0]
    column = need_sum(base).column
    plan = (
        *lines,
        f"one = sum({cells(column, 'first')})",
        f"other = sum({cells(column, 'second')})",
        "if one > other:",
        f'    answer(f"{one}: {{one}}")',
        "else:",
        f'    answer(f"{other}: {{other}}")',
    )
    return Draft(("which_group",), plan, {"": replace(base, category=category)}, {"v1": one, "v2": other})


def which_period(make: Maker) -> Draft:
    """In which of two periods there was more, or how much less there was in one than in the other."""
    topic = make.topic(most=0)
    day, column = topic.domain.day, need_sum(topic).column
    if day is None or day.tense == "future":
        raise Unfit
    now, before = make.picks.choice(make.language.two_periods)
    lines = [make.read(topic)]
    for name, period in (("first", now), ("second", before)):
        lines += select_rows("rows", (Within(day, period),), (name,))[0]
    lines += [f"one = sum({cells(column, 'first')})", f"other = sum({cells(column, 'second')})"]
    said = {"p1": now.text, "p2": before.text}
    if make.picks.random() < 0.5:
        return Draft(("period_less",), (*lines, "answer(other - one)"), {"": topic}, said)
    plan = (
        *lines,
        "if one > other:",
        f'    answer(f"{capitalise(now.text)}: {{one}}")',
        "else:",
        f'    answer(f"{capitalise(before.text)}: {{other}}")',
    )
    return Draft(("period_winner",), plan, {"": topic}, said)


def budget_left(make: Maker) -> Draft:
    """What is left of a budget that stands somewhere, or by how much it is exceeded."""
    topic = make.topic(most=1)
    lines, rows = make.rows(topic)
    measure = need_measure(topic)
    if measure.kind != "money":
        raise Unfit
    many = make.domain.many
    frame, left = make.picks.choice((("budget_left", "limit - total"), ("budget_over", "total - limit")))
    plan = (
        f"found = find({make.text('budget_words', many=many)})",
        f"limit = extract(found.passages, {make.text('budget_asked', many=many)}, float)",
        *lines,
        f"total = sum({cells(measure.column, rows)})",
        f"answer({left})",
    )
    return Draft((frame,), plan, {"": topic})


def passed_days(make: Maker) -> Draft:
    """Rows whose day has passed, or is still to come."""
    topic = make.topic(most=1, period=False)
    column = need_day(topic)
    lines, rows = make.rows(topic)
    when, op = make.picks.choice((("passed", "<"), ("ahead", ">=")))
    if when == "ahead" and topic.domain.day is not None and topic.domain.day.tense == "past":
        raise Unfit
    # A call within a condition might not be made, so that the day has a line of its own.
    lines += ["day = today()", f'due = filter_rows({rows}, column("{column}"), "{op}", day)']
    way = make.picks.random()
    if way < 0.4:
        return Draft((f"{when}_list",), (*lines, f"answer({cells(make.domain.name.column, 'due')})"), {"": topic})
    if way < 0.7:
        return Draft((f"{when}_count",), (*lines, "answer(len(due))"), {"": topic})
    to, address = make.recipient()
    lines.append(f"names = {cells(make.domain.name.column, 'due')}")
    send = f'send_mail([{address}], {make.subject()}, "\\n".join(names))'
    done = make.text("mailed_lines", n="{len(names)}", to=to)
    return Draft((f"{when}_mail",), (*lines, send, f"answer({done})"), {"": topic}, {"to": to})


def top_with_values(make: Maker) -> Draft:
    """The first so many rows with their numbers, to somebody or into a file."""
    topic = make.ranked_topic()
    column = need_measure(topic).column
    lines, rows = make.rows(topic)
    shown = f"f\"{{row[column('{make.domain.name.column}')]}}: {{row[column('{column}')]}}\""
    lines += [
        f'ordered = sort_rows({rows}, column("{column}"), descending=True)',
        f"lines = [{shown} for row in ordered[:<n>]]",
    ]
    if make.picks.random() < 0.5:
        to, address = make.recipient()
        send = f'send_mail([{address}], {make.subject()}, "\\n".join(lines))'
        done = make.text("mailed_lines", n="{len(lines)}", to=to)
        return Draft(("top_mail",), (*lines, send, f"answer({done})"), {"": topic}, {"to": to})
    done = make.text("wrote_lines", n="{len(lines)}", file="<txt>")
    plan = (*lines, 'write_lines("<txt>", lines)', f"answer({done})")
    return Draft(("top_write",), plan, {"": topic}, {"file": "<txt>"})


def file_each(make: Maker) -> Draft:
    """A file for each row, called like the row."""
    topic = make.topic(most=1)
    column = need_measure(topic).column
    lines, rows = make.rows(topic)
    name = f"{{row[column('{make.domain.name.column}')]}}"
    plan = (
        *lines,
        f"for row in {rows}:",
        f'    write_text(f"{name}.txt", f"{capitalise(column)}: {{row[column(\'{column}\')]}}")',
        f"answer({make.text('wrote_files', n=f'{{len({rows})}}')})",
    )
    return Draft(("file_each",), plan, {"": topic})


# Honest endings -----------------------------------------------------------------------------------------------------


def refused_errand(make: Maker) -> Draft:
    """Something of daily life that no tool does."""
    errand = make.picks.choice(make.language.errands.errands)
    thing = make.picks.choice(errand.things)
    return Draft((f"errand.{errand.key}",), (f"cannot({quoted(errand.reason)})",), {}, {"thing": thing})


def contradictory(make: Maker) -> Draft:
    """A request whose parts exclude each other."""
    code = make.language.code
    kind = make.picks.choice(("kept", "order", "unsent", "backwards"))
    topics: dict[str, Topic] = {}
    said: dict[str, str] = {}
    match kind:
        case "kept":
            said = occasion_words(make.picks.choice(make.language.errands.occasions), code)
        case "order":
            topics = {"": make.ranked_topic()}
            need_measure(topics[""])
        case "unsent":
            message = make.picks.choice(make.language.errands.messages)
            said = {"to": make.recipient()[0], "clause": message.clause}
        case _:
            occasion = make.picks.choice(make.language.errands.occasions)
            said = occasion_words(occasion, code) | {"day": make.picks.choice(make.language.errands.days)[0]}
            hour = make.picks.randint(12, 20)
            said |= {"from": f"{hour}:00", "until": f"{hour - make.picks.randint(1, 3)}:30"}
    reason = quoted(tidy(make.language.texts[f"contradiction_{kind}"], code))
    return Draft((f"contradiction_{kind}",), (f"cannot({reason})",), topics, said)
