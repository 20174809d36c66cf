"""Results: a count, a sum, a list of names, rows in order; and telling, mailing, writing or appending them."""

from __future__ import annotations

from collections.abc import Callable

from .making import (
    Draft,
    Maker,
    Result,
    cells,
    need_category,
    need_day,
    need_measure,
    need_sum,
    quoted,
)
from .selections import Has
from .wording import capitalise


def count(make: Maker) -> Result:
    topic = make.topic(most=3)
    lines, rows = make.rows(topic)
    return Result("count", "number", tuple(lines), f"len({rows})", topic)


def total(make: Maker) -> Result:
    topic = make.topic(most=3)
    lines, rows = make.rows(topic)
    return Result("sum", "number", (*lines, f"total = sum({cells(need_sum(topic).column, rows)})"), "total", topic)


def average(make: Maker) -> Result:
    topic = make.topic()
    lines, rows = make.rows(topic)
    return Result(
        "mean", "number", (*lines, f"average = mean({cells(need_measure(topic).column, rows)})"), "average", topic
    )


def names(make: Maker) -> Result:
    topic = make.topic(most=3, least=1)
    lines, rows = make.rows(topic)
    lines.append(f"names = {cells(make.domain.name.column, rows)}")
    return Result("list", "lines", tuple(lines), "names", topic, several=True)


def top(make: Maker) -> Result:
    topic = make.ranked_topic()
    lines, rows = make.rows(topic)
    lines.append(f'ordered = sort_rows({rows}, column("{need_measure(topic).column}"), descending=True)')
    lines.append(f"names = {cells(make.domain.name.column, 'ordered[:<n>]')}")
    return Result("top", "lines", tuple(lines), "names", topic, several=True)


def above_mean(make: Maker) -> Result:
    topic = make.topic(most=1)
    column = need_measure(topic).column
    lines, rows = make.rows(topic)
    lines.append(f"average = mean({cells(column, rows)})")
    lines.append(f'above = filter_rows({rows}, column("{column}"), ">", average)')
    lines.append(f"names = {cells(make.domain.name.column, 'above')}")
    return Result("above_mean", "lines", tuple(lines), "names", topic, several=True)


def values(make: Maker) -> Result:
    topic = make.topic(most=1)
    lines, rows = make.rows(topic)
    lines.append(f"names = unique_lines({cells(need_category(topic).column, rows)})")
    return Result("values", "lines", tuple(lines), "names", topic, several=True)


def columns(make: Maker) -> Result:
    topic = make.topic()
    lines, rows = make.rows(topic)
    shown = f'column("{make.domain.name.column}"), column("{need_measure(topic).column}")'
    return Result(
        "columns", "rows", (*lines, f"table = select_columns({rows}, [{shown}])"), "table", topic, several=True
    )


def ordered(make: Maker) -> Result:
    topic = make.topic(most=1)
    lines, rows = make.rows(topic)
    if make.picks.random() < 0.5 and topic.domain.day is not None:
        line = f'ordered = sort_rows({rows}, column("{need_day(topic)}"))'
        return Result("sorted_day", "rows", (*lines, line), "ordered", topic, several=True)
    line = f'ordered = sort_rows({rows}, column("{need_measure(topic).column}"), descending=True)'
    return Result("sorted", "rows", (*lines, line), "ordered", topic, several=True)


def grouped(make: Maker) -> Result:
    topic = make.topic(most=1)
    by = need_category(topic).column
    how, frame = make.picks.choice(
        (("sum", "group"), ("sum", "group"), ("count", "group_count"), ("mean", "group_mean"))
    )
    measured = need_sum if how == "sum" else need_measure
    column = make.domain.name.column if how == "count" else measured(topic).column
    lines, rows = make.rows(topic)
    lines.append(f'grouped = group_rows({rows}, column("{by}"), column("{column}"), how="{how}")')
    return Result(frame, "rows", tuple(lines), "grouped", topic, several=True)


def extreme(make: Maker) -> Result:
    """The name of the row with the largest or smallest number, or that number."""
    topic = make.ranked_topic()
    column = need_measure(topic).column
    function, frame = make.picks.choice((("max", "largest"), ("min", "smallest")))
    lines, rows = make.rows(topic)
    if make.picks.random() < 0.3:
        return Result(
            f"{frame}_value", "number", (*lines, f"found = {function}({cells(column, rows)})"), "found", topic
        )
    lines.append(f'best = {function}({rows}, key=lambda row: row[column("{column}")])')
    return Result(frame, "text", tuple(lines), f'best[column("{make.domain.name.column}")]', topic)


def newest(make: Maker) -> Result:
    topic = make.topic(most=1, period=False)
    column = need_day(topic)
    lines, rows = make.rows(topic)
    if make.picks.random() < 0.25:
        return Result("last_day", "number", (*lines, f"found = max({cells(column, rows)})"), "found", topic)
    frame, last = make.picks.choice((("newest", ", descending=True"), ("oldest", "")))
    lines.append(f'ordered = sort_rows({rows}, column("{column}"){last})')
    lines.append("first = ordered[0]")
    return Result(frame, "text", tuple(lines), f'first[column("{make.domain.name.column}")]', topic)


def leading_group(make: Maker) -> Result:
    topic = make.topic(most=1)
    by = need_category(topic).column
    how, frame = make.picks.choice((("sum", "top_group"), ("count", "busiest_group")))
    column = make.domain.name.column if how == "count" else need_sum(topic).column
    lines, rows = make.rows(topic)
    lines.append(f'grouped = group_rows({rows}, column("{by}"), column("{column}"), how="{how}")')
    lines.append(f'best = max(grouped, key=lambda row: row[column("{column}")])')
    return Result(frame, "text", tuple(lines), f'best[column("{by}")]', topic)


def share(make: Maker) -> Result:
    topic = make.topic(most=1, least=1)
    lines, rows = make.rows(topic)
    if make.picks.random() < 0.5:
        lines += [f"part = len({rows})", "whole = len(rows)", "ratio = part / whole"]
        return Result("share_count", "number", (*lines, "percent = round(ratio * 100, 1)"), "percent", topic)
    column = need_sum(topic).column
    lines += [f"part = sum({cells(column, rows)})", f"whole = sum({cells(column, 'rows')})", "ratio = part / whole"]
    return Result("share", "number", (*lines, "percent = round(ratio * 100, 1)"), "percent", topic)


def scaled(make: Maker) -> Result:
    topic = make.topic(most=1)
    lines, rows = make.rows(topic)
    lines.append(f"total = sum({cells(need_sum(topic).column, rows)})")
    if make.picks.random() < 0.6:
        return Result("split", "number", (*lines, "each = round(total / <n>, 2)"), "each", topic)
    return Result("times", "number", (*lines, "product = total * <n>"), "product", topic)


RESULTS: tuple[Callable[[Maker], Result], ...] = (
    *(count, count, total, total, average, names, names, top, above_mean, values, columns, ordered, grouped, grouped),
    *(extreme, newest, leading_group, share, scaled),
)


def answered(make: Maker, work: Callable[[Maker], Result]) -> Draft:
    """The result, told to the person who asks."""
    made = work(make)
    lines, value = list(made.lines), made.value
    assigned = f"{value} = "
    if made.shape in ("number", "lines", "rows") and lines[-1].startswith(assigned):
        last = lines[-1].removeprefix(assigned)
        # Calls of tools stand on a line of their own, everything else may stand in the answer.
        if not last.startswith(("unique_lines(", "select_columns(", "sort_rows(", "group_rows(", "filter_rows(")):
            lines, value = lines[:-1], last
    frames = [made.frame, "several" if made.several else "one"]
    if made.shape == "number" and made.frame != "last_day":
        frames.append("calc")
    if made.frame == "list" and len(made.topic.conditions) == 1 and isinstance(made.topic.conditions[0], Has):
        frames.append("list_are")
    return Draft(tuple(frames), (*lines, f"answer({value})"), {"": made.topic}, result=made.frame)


# What is done with a result -----------------------------------------------------------------------------------------


def _pick_result(make: Maker) -> Result:
    return make.picks.choice(RESULTS)(make)


def _named_value(made: Result) -> tuple[list[str], str]:
    """The statements of a result, and a variable with it, which an f-string can show."""
    if made.value.isidentifier():
        return list(made.lines), made.value
    name = "count" if made.shape == "number" else "name"
    return [*made.lines, f"{name} = {made.value}"], name


def _lines_of(make: Maker, made: Result) -> str:
    """The rows of a result as a text, a line each."""
    if made.shape == "lines":
        return f'"\\n".join({made.value})'
    topic = made.topic
    by = make.domain.name.column if made.frame in ("columns", "sorted", "sorted_day") else need_category(topic).column
    counted = make.domain.name.column if made.frame == "group_count" else ""
    column = counted or (need_day(topic) if made.frame == "sorted_day" else need_measure(topic).column)
    return f"\"\\n\".join([f\"{{row[column('{by}')]}}: {{row[column('{column}')]}}\" for row in {made.value}])"


def mailed(make: Maker) -> Draft:
    made = _pick_result(make)
    to, address = make.recipient()
    if made.shape in ("lines", "rows"):
        lines, body = list(made.lines), _lines_of(make, made)
        done = make.text("mailed_lines", n=f"{{len({made.value})}}", to=to)
    else:
        lines, value = _named_value(made)
        body, done = make.title(made.frame, made.topic, value), make.text("mailed", to=to)
    plan = (*lines, f"send_mail([{address}], {make.subject()}, {body})", f"answer({done})")
    return Draft(("mail",), plan, {"": made.topic}, {"to": to}, made.frame)


def written(make: Maker) -> Draft:
    made = _pick_result(make)
    file = "<csv2>" if made.shape == "rows" else "<txt>"
    if made.shape in ("lines", "rows"):
        tool = "write_csv" if made.shape == "rows" else "write_lines"
        lines = [*made.lines, f'{tool}("{file}", {made.value})']
        done = make.text("wrote_lines", n=f"{{len({made.value})}}", file=file)
    else:
        lines, value = _named_value(made)
        lines.append(f'write_text("{file}", {"str(" + value + ")" if made.shape == "number" else value})')
        done = make.text("wrote", file=file)
    return Draft(("write",), (*lines, f"answer({done})"), {"": made.topic}, {"file": file}, made.frame)


def appended(make: Maker) -> Draft:
    made = make.picks.choice((count, total, total, average, extreme, share, leading_group))(make)
    lines, value = _named_value(made)
    lines.append(f'append_text("<txt>", {make.title(made.frame, made.topic, value)})')
    done = make.text("appended", file="<txt>")
    return Draft(("append",), (*lines, f"answer({done})"), {"": made.topic}, {"file": "<txt>"}, made.frame)


def attached(make: Maker) -> Draft:
    made = make.picks.choice((columns, ordered, grouped))(make)
    to, address = make.recipient()
    text = quoted(capitalise(make.domain.many) + ".")
    plan = (
        *made.lines,
        f'write_csv("<csv2>", {made.value})',
        f'send_mail([{address}], {make.subject()}, {text}, attachments=["<csv2>"])',
        f"answer({make.text('mailed', to=to)})",
    )
    return Draft(("attach",), plan, {"": made.topic}, {"to": to, "file": "<csv2>"}, made.frame)


def asked_recipient(make: Maker) -> Draft:
    made = make.picks.choice((count, total, names, top, grouped, columns))(make)
    if made.shape in ("lines", "rows"):
        lines, body = list(made.lines), _lines_of(make, made)
    else:
        lines, value = _named_value(made)
        body = make.title(made.frame, made.topic, value)
    plan = (
        f"to = ask({make.text('ask_recipient')})",
        *lines,
        f"send_mail([to], {make.subject()}, {body})",
        f"answer({make.text('mailed', to='{to}')})",
    )
    return Draft((make.picks.choice(("ask_recipient", "send_missing")),), plan, {"": made.topic}, result=made.frame)


def asked_file(make: Maker) -> Draft:
    made = make.picks.choice((count, total, names, top))(make)
    lines, value = (list(made.lines), made.value) if made.shape == "lines" else _named_value(made)
    write = f"write_lines(file_name, {value})" if made.shape == "lines" else f"write_text(file_name, str({value}))"
    done = make.text("wrote", file="{file_name}")
    plan = (f"file_name = ask({make.text('ask_file')})", *lines, write, f"answer({done})")
    return Draft(("ask_file",), plan, {"": made.topic}, result=made.frame)
