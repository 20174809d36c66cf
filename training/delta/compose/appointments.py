"""Operations over the calendar: the next and the last event of a kind, events that are added, moved, cancelled."""

from __future__ import annotations

from dataclasses import dataclass

from ..places import named_places
from .errands import Occasion, occasion_words
from .making import Draft, Maker, Unfit, quoted
from .phrases import Topic
from .wording import capitalise

_HOURS = (7, 8, 9, 10, 11, 13, 14, 15, 16, 17, 18, 19, 20)
_MINUTES = (0, 0, 0, 15, 30, 30, 45)


@dataclass(frozen=True, slots=True)
class _Moment:
    """A day and a time to come: what is said of them, and the moment as it stands in a plan."""

    day: str
    to_day: str
    clocks: tuple[str, ...]
    plan: str


def _occasion(make: Maker, *, of_calendar: bool | None = None) -> tuple[Occasion, dict[str, str]]:
    """An occasion; one whose noun names the calendar, or does not, where that decides where it is looked up."""
    code = make.language.code
    fitting = [
        each
        for each in make.language.errands.occasions
        if of_calendar is None or ("calendar" in named_places(each.noun, code)) == of_calendar
    ]
    occasion = make.picks.choice(fitting)
    return occasion, occasion_words(occasion, code)


def _moment(make: Maker, *, moved: bool = False) -> _Moment:
    """A moment; to some days nothing is said to be moved ("to in two weeks")."""
    errands = make.language.errands
    said, phrase, to_day = make.picks.choice([each for each in errands.days if each[2] or not moved])
    hour, minute = make.picks.choice(_HOURS), make.picks.choice(_MINUTES)
    return _Moment(said, to_day, errands.clock_phrases(hour, minute), f"datetime(<d,:{phrase}>, {hour}, {minute})")


def _found(make: Maker, search: str, *lines: str) -> tuple[str, ...]:
    """What is done with the events of a search, and what is said if there are none."""
    body = (f"    {line}" for line in lines)
    return (f"events = {search}", "if events:", *body, "else:", f"    answer({make.text('no_event')})")


def _shown(make: Maker, event: str) -> str:
    """The day and time of an event, for an f-string."""
    return f"{{{event}.start:{make.language.texts['moment']}}}"


def next_event(make: Maker) -> Draft:
    occasion, said = _occasion(make, of_calendar=True)
    frame, told = make.picks.choice(
        (
            ("next_when", f'f"{_shown(make, "events[0]")}"'),
            ("next_when", f'f"{_shown(make, "events[0]")}"'),
            ("next_where", "events[0].location"),
            ("next_both", f'f"{_shown(make, "events[0]")}, {{events[0].location}}"'),
        )
    )
    plan = _found(make, f'search_events("{occasion.key}", start=today())', f"answer({told})")
    return Draft((frame,), plan, {}, said)


def last_event(make: Maker) -> Draft:
    occasion, said = _occasion(make, of_calendar=True)
    frame, told = make.picks.choice(
        (("last_when", f'f"{_shown(make, "events[-1]")}"'), ("last_where", "events[-1].location"))
    )
    plan = _found(make, f'search_events("{occasion.key}", end=today())', f"answer({told})")
    return Draft((frame,), plan, {}, said)


def event_found(make: Maker) -> Draft:
    """When something is that no word calls an appointment: it may stand in a mail, a note or the calendar."""
    occasion, said = _occasion(make, of_calendar=False)
    plan = (
        f'found = find("{occasion.noun}")',
        f"start = extract(found.passages, {make.text('moment_of', o=said['o_next'])}, datetime)",
        f'answer(f"{{start:{make.language.texts["moment"]}}}")',
    )
    return Draft(("event_found",), plan, {}, said, kept=(occasion.noun,))


def events_counted(make: Maker) -> Draft:
    occasion, said = _occasion(make, of_calendar=True)
    period = make.period(tense="future")
    start, end = (f'date("<d.{part}:{period.phrase}>")' for part in ("start", "end"))
    plan = (f'events = search_events("{occasion.key}", start={start}, end={end})', "answer(len(events))")
    return Draft(("kind_count",), plan, {}, said | {"p1": period.text})


def events_mailed(make: Maker) -> Draft:
    """The appointments of a period, a line each, to somebody or into a file."""
    period = make.period(tense="future")
    start, end = (f'date("<d.{part}:{period.phrase}>")' for part in ("start", "end"))
    lines = (
        f"events = list_events({start}, end={end})",
        f'lines = [f"{_shown(make, "e")} {{e.title}}" for e in events]',
    )
    if make.picks.random() < 0.6:
        to, address = make.recipient()
        send = f'send_mail([{address}], {make.text("events_subject")}, "\\n".join(lines))'
        done = make.text("mailed_lines", n="{len(lines)}", to=to)
        return Draft(("agenda_mail",), (*lines, send, f"answer({done})"), {}, {"to": to, "p1": period.text})
    done = make.text("wrote_lines", n="{len(lines)}", file="<txt>")
    plan = (*lines, 'write_lines("<txt>", lines)', f"answer({done})")
    return Draft(("agenda_write",), plan, {}, {"file": "<txt>", "p1": period.text})


def event_added(make: Maker) -> Draft:
    """An event at a time; now and then with a duration or a place, else it lasts an hour."""
    occasion, said = _occasion(make)
    moment = _moment(make)
    given, frame = "", "event_add"
    extra = make.picks.random()
    if extra < 0.35:
        spoken, minutes = make.picks.choice(make.language.errands.durations)
        given, frame, said = f", minutes={minutes}", "event_add_long", said | {"dur": spoken}
    elif extra < 0.7:
        spoken, place = make.picks.choice(make.language.errands.places)
        given, frame, said = f', location="{place}"', "event_add_place", said | {"at": spoken}
    plan = (
        f"event = add_event({quoted(capitalise(occasion.noun))}, {moment.plan}{given})",
        f"answer({make.text('event_added', title='{event.title}', moment=_shown(make, 'event'))})",
    )
    return Draft((frame,), plan, {}, said | {"day": moment.day}, choices={"clock": moment.clocks})


def event_moved(make: Maker) -> Draft:
    occasion, said = _occasion(make)
    if make.picks.random() < 0.3:
        spoken, place = make.picks.choice(make.language.errands.places)
        plan = (
            f'changed = change_event(event("{occasion.noun}"), location="{place}")',
            f"answer({make.text('event_placed', title='{changed.title}', place='{changed.location}')})",
        )
        return Draft(("event_place",), plan, {}, said | {"at": spoken}, kept=(occasion.noun,))
    moment = _moment(make, moved=True)
    plan = (
        f'changed = change_event(event("{occasion.noun}"), start={moment.plan})',
        f"answer({make.text('event_moved', title='{changed.title}', moment=_shown(make, 'changed'))})",
    )
    said |= {"day": moment.day, "to_day": moment.to_day}
    return Draft(("event_move",), plan, {}, said, choices={"clock": moment.clocks}, kept=(occasion.noun,))


def event_shifted(make: Maker) -> Draft:
    """The next event of a kind so many hours or days later or earlier."""
    occasion, said = _occasion(make)
    frame, shift = make.picks.choice(
        (
            ("shift_later", "+ timedelta(hours=<n>)"),
            ("shift_earlier", "- timedelta(hours=<n>)"),
            ("shift_days", "+ timedelta(days=<n>)"),
        )
    )
    plan = _found(
        make,
        f'search_events("{occasion.key}", start=today())',
        f"changed = change_event(events[0].id, start=events[0].start {shift})",
        f"answer({make.text('event_moved', title='{changed.title}', moment=_shown(make, 'changed'))})",
    )
    return Draft((frame,), plan, {}, said)


def event_cancelled(make: Maker) -> Draft:
    occasion, said = _occasion(make)
    delete = f'delete_event(event("{occasion.noun}"))'
    if make.picks.random() < 0.5:
        plan = (delete, f"answer({make.text('event_deleted', o=occasion.noun)})")
        return Draft(("event_cancel",), plan, {}, said, kept=(occasion.noun,))
    to, address = make.recipient()
    message = make.picks.choice(make.language.errands.messages)
    send = f"send_mail([{address}], {quoted(capitalise(occasion.noun))}, {quoted(message.text)})"
    done = make.text("event_deleted_mailed", o=occasion.noun, to=to)
    said |= {"to": to, "clause": message.clause}
    kept = (message.clause, occasion.noun)
    return Draft(("event_cancel_tell",), (delete, send, f"answer({done})"), {}, said, kept=kept)


def free_day(make: Maker) -> Draft:
    """Whether nothing is in the calendar on a day; with an event that is added then, now and then."""
    said, phrase, _ = make.picks.choice(make.language.errands.days)
    events = f'events = list_events(date("<d:{phrase}>"))'
    if make.picks.random() < 0.5:
        plan = (
            events,
            "if events:",
            f"    answer({make.text('not_free', title='{events[0].title}')})",
            "else:",
            f"    answer({make.text('free')})",
        )
        return Draft(("day_free",), plan, {}, {"day": said})
    occasion, words = _occasion(make)
    moment = _moment(make)
    plan = (
        events,
        "if events:",
        f"    answer({make.text('not_free', title='{events[0].title}')})",
        "else:",
        f"    event = add_event({quoted(capitalise(occasion.noun))}, datetime(<d,:{phrase}>,"
        f"{moment.plan.partition('>,')[2]})",
        f"    answer({make.text('event_added', title='{event.title}', moment=_shown(make, 'event'))})",
    )
    return Draft(("day_free_add",), tuple(plan), {}, words | {"day": said}, choices={"clock": moment.clocks})


def rows_entered(make: Maker) -> Draft:
    """An event for each row of a table, on the day of the row."""
    topic = make.topic(most=1, least=1)
    day = topic.domain.day
    if day is None or day.tense == "past":
        raise Unfit
    lines, rows = make.rows(topic)
    hour = make.picks.choice(_HOURS)
    name, moment = make.domain.name.column, f'combine(row[column("{day.column}")], time({hour}, 0))'
    plan = (
        *lines,
        f"for row in {rows}:",
        f'    add_event(row[column("{name}")], {moment})',
        f"answer({make.text('events_added', n=f'{{len({rows})}}')})",
    )
    clocks = make.language.errands.clock_phrases(hour, 0)
    return Draft(("rows_events",), plan, {"": topic}, choices={"clock": clocks})


def fact_free(make: Maker) -> Draft:
    """A day that stands somewhere, and what the calendar has on it."""
    days = [each for each in make.language.facts if each.type == "date"]
    fact = make.picks.choice(days)
    plan = (
        f'found = find("{fact.key}")',
        f'day = extract(found.passages, "{fact.nominative}", date)',
        "events = list_events(day)",
        "answer([e.title for e in events])",
    )
    return Draft(("fact_day_events",), plan, {}, {"nom": fact.nominative, "result": fact.accusative})


def asked_moment(make: Maker) -> Draft:
    """An event without a day: it must be asked for."""
    occasion, said = _occasion(make)
    if make.picks.random() < 0.6:
        does = f"event = add_event({quoted(capitalise(occasion.noun))}, start)"
        done = make.text("event_added", title="{event.title}", moment=_shown(make, "event"))
        frame = "event_add_open"
    else:
        does = f'changed = change_event(event("{occasion.noun}"), start=start)'
        done = make.text("event_moved", title="{changed.title}", moment=_shown(make, "changed"))
        frame = "event_move_open"
    plan = (
        f"when = ask({make.text('ask_moment', o=occasion.noun)})",
        f"start = extract(when, {make.text('moment_asked')}, datetime)",
        does,
        f"answer({done})",
    )
    return Draft((frame,), plan, {}, said, kept=(occasion.noun,))


def asked_event(make: Maker) -> Draft:
    plan = (
        f"name = ask({make.text('ask_event')})",
        *_found(
            make,
            "search_events(name, start=today())",
            "delete_event(events[0].id)",
            f"answer({make.text('event_deleted', o='{events[0].title}')})",
        ),
    )
    period = make.period(tense="future")
    return Draft(("event_cancel_open",), plan, {"": Topic(make.domain)}, {"p1": period.text})
