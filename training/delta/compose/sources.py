"""Operations over several sources: mails, events, what stands anywhere, and two tables with a common column."""

from __future__ import annotations

from .domains import Fact
from .making import Draft, Maker, Unfit, cells, fact_text, need_measure, quoted
from .phrases import Topic
from .wording import capitalise


def mails_and_rows(make: Maker) -> Draft:
    topic = make.topic(most=1, period=False)
    period = make.picks.choice([each for each in make.language.periods if each.bounds == "since"])
    lines, rows = make.rows(topic)
    search = f'mails = search_mail(text="{make.domain.one}", since=date("<d.start:{period.phrase}>"))'
    told = make.text("mails_and_rows", n="{len(mails)}", m=f"{{len({rows})}}", many=make.domain.many)
    return Draft(("mails_and_rows",), (search, *lines, f"answer({told})"), {"": topic}, {"p1": period.text})


def events_and_rows(make: Maker) -> Draft:
    topic = make.topic(most=1, period=False)
    period = make.period(tense="future")
    lines, rows = make.rows(topic)
    start, end = (f'date("<d.{part}:{period.phrase}>")' for part in ("start", "end"))
    told = make.text("events_and_rows", n="{len(events)}", m=f"{{len({rows})}}", many=make.domain.many)
    plan = (f"events = list_events({start}, end={end})", *lines, f"answer({told})")
    return Draft(("events_and_rows",), plan, {"": topic}, {"p1": period.text})


def mails_noted(make: Maker) -> Draft:
    plan = (
        f'mails = search_mail(text="{make.domain.one}", unread=True)',
        "for m in mails:",
        '    append_text("<txt>", f"{m.sender}: {m.subject}")',
        f"answer({make.text('appended_lines', n='{len(mails)}', file='<txt>')})",
    )
    return Draft(("mail_notes",), plan, {"": Topic(make.domain)}, {"file": "<txt>"})


def mails_added_up(make: Maker) -> Draft:
    money = [each for each in make.domain.measures if each.kind == "money"]
    if not money:
        raise Unfit
    measure = make.picks.choice(money)
    period = make.picks.choice([each for each in make.language.periods if each.bounds == "since"])
    plan = (
        f'mails = search_mail(text="{make.domain.one}", since=date("<d.start:{period.phrase}>"))',
        "total = 0",
        "for m in mails:",
        f'    amount = extract(m.body, "{measure.column}", float)',
        "    total += amount",
        "answer(total)",
    )
    return Draft(("mail_sum",), plan, {"": Topic(make.domain, measure=measure)}, {"p1": period.text})


def budget(make: Maker) -> Draft:
    topic = make.topic(most=1)
    lines, rows = make.rows(topic)
    measure = need_measure(topic)
    if measure.kind != "money":
        raise Unfit
    many = make.domain.many
    asked = [
        f"found = find({make.text('budget_words', many=many)})",
        f"limit = extract(found.passages, {make.text('budget_asked', many=many)}, float)",
    ]
    lines.append(f"total = sum({cells(measure.column, rows)})")
    yes, no = (make.text(key, x="{total}", y="{limit}") for key in ("within_budget", "over_budget"))
    plan = (*asked, *lines, "if total <= limit:", f"    answer({yes})", "else:", f"    answer({no})")
    return Draft(("budget",), plan, {"": topic})


def rated(make: Maker) -> Draft:
    """Units of a table times a rate that stands somewhere."""
    topic = make.topic(most=1)
    measure = need_measure(topic)
    if measure.column not in make.language.rated:
        raise Unfit
    lines, rows = make.rows(topic)
    values = {"many": make.domain.many, "measure": measure.column}
    plan = (
        f"found = find({make.text('rate_words', **values)})",
        f"rate = extract(found.passages, {make.text('rate_asked', **values)}, float)",
        *lines,
        f"total = sum({cells(measure.column, rows)})",
        "answer(total * rate)",
    )
    return Draft(("rated",), plan, {"": topic})


def joined(make: Maker) -> Draft:
    pair = make.picks.choice(make.language.pairs)
    left, right, names_bare = (phrase.split(" ", 1)[1] for phrase in (pair.left, pair.right, pair.names))
    said = {
        "left": pair.left,
        "right": pair.right,
        "on": pair.on,
        "name": pair.name,
        "the_name": f"the {pair.name}",
        "names": pair.names,
        "names_bare": names_bare,
        "measure": pair.measure,
        "a_measure": pair.of_measure,
        "category": pair.category,
        "value": pair.value,
        "left_bare": left,
        "right_bare": right,
        "m_von": pair.measure,
    }
    lines = [
        f'left = read_csv(file("{left}"))',
        f'right = read_csv(file("{right}"))',
        f'joined = join_rows(left, right, column("{pair.on}"))',
    ]
    shown = f'select_columns(joined, [column("{pair.name}"), column("{pair.measure}")])'
    frame = make.picks.choice(("join_list", "join_filter", "join_sum", "join_group", "join_write", "join_top"))
    match frame:
        case "join_list":
            lines += [f"chosen = {shown}", "answer(chosen)"]
        case "join_filter":
            lines += [
                f'chosen = filter_rows(joined, column("{pair.measure}"), ">", <big>)',
                f"answer({cells(pair.name, 'chosen')})",
            ]
        case "join_sum":
            lines += [
                f'chosen = filter_rows(joined, column("{pair.category}"), "==", value("{pair.value}"))',
                f"answer(sum({cells(pair.measure, 'chosen')}))",
            ]
        case "join_group":
            group = f'grouped = group_rows(joined, column("{pair.category}"), column("{pair.measure}"), how="sum")'
            lines += [group, "answer(grouped)"]
        case "join_top":
            order = f'ordered = sort_rows(joined, column("{pair.measure}"), descending=True)'
            lines += [order, f"answer({cells(pair.name, 'ordered[:<n>]')})"]
        case _:
            done = make.text("wrote_lines", n="{len(chosen)}", file="<csv2>")
            lines += [f"chosen = {shown}", 'write_csv("<csv2>", chosen)', f"answer({done})"]
            said["file"] = "<csv2>"
    return Draft((frame,), tuple(lines), {}, said)


def looked_up(make: Maker) -> Draft:
    fact = make.picks.choice(make.language.facts)
    said = {"nom": fact.nominative, "result": fact.accusative}
    lines = [_find(fact), f'fact = extract(found.passages, "{fact.nominative}", {fact.type})']
    several = fact.type == "list[str]"
    shown = fact_text(fact.type)
    ways = ["fact", "fact", "fact_mail", "fact_write", "fact_append", "two_facts"]
    ways += ["fact_event"] * 4 if fact.type == "date" else ["fact_over"] * 3 if fact.type in ("int", "float") else []
    frame = make.picks.choice(ways)
    match frame:
        case "fact_mail":
            to, address = make.recipient()
            said["to"] = to
            subject = quoted(capitalise(fact.nominative))
            lines += [f"send_mail([{address}], {subject}, {shown})", f"answer({make.text('mailed', to=to)})"]
        case "fact_write":
            said["file"] = "<txt>"
            write = 'write_lines("<txt>", fact)' if several else f'write_text("<txt>", {shown})'
            lines += [write, f"answer({make.text('wrote', file='<txt>')})"]
        case "fact_append":
            said["file"] = "<txt>"
            lines += [f'append_text("<txt>", {shown})', f"answer({make.text('appended', file='<txt>')})"]
        case "two_facts":
            other = make.picks.choice([each for each in make.language.facts if each != fact])
            said |= {"b_nom": other.nominative, "b_result": other.accusative}
            lines += [
                f'others = find("{other.key}")',
                f'other = extract(others.passages, "{other.nominative}", {other.type})',
                'answer(f"{fact}; {other}")',
            ]
        case "fact_event":
            day = make.text("entered", day="{fact}")
            lines += ['add_event("<title>", combine(fact, time(9, 0)))', f"answer({day})"]
        case "fact_over":
            lines.append("answer(fact > <big>)")
        case _:
            lines.append("answer(fact)")
    return Draft((frame,), tuple(lines), {}, said)


def _find(fact: Fact) -> str:
    return f'found = find("{fact.key}")'
