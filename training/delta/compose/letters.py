"""Operations over mails: who wrote, when, what; messages that are sent, drafted, answered and forwarded."""

from __future__ import annotations

from functools import cache

from ..places import named_places
from .domains import load_language
from .errands import Question
from .making import Draft, Maker, Unfit, cells, fact_text, need_sum, quoted


def mail_fact(make: Maker) -> Draft:
    """Something that the newest mail about a thing says."""
    asked = make.picks.choice(make.language.errands.mail_questions)
    search = f'mails = search_mail(text="{asked.text}", sender="{asked.sender}", limit=1)'
    if not asked.sender:
        search = f'mails = search_mail(text="{asked.text}", limit=1)'
    plan = (
        search,
        "if mails:",
        f'    fact = extract(mails[0].body, "{asked.instruction}", {asked.type})',
        "    answer(fact)",
        "else:",
        f"    answer({make.text('no_mail')})",
    )
    return Draft(("mail_fact",), plan, {}, choices={"question": asked.asked})


def mail_fact_used(make: Maker) -> Draft:
    """Something that a mail says, passed on to somebody or noted."""
    asked = make.picks.choice([each for each in make.language.errands.mail_questions if each.type != "bool"])
    sender = f', sender="{asked.sender}"' if asked.sender else ""
    shown = fact_text(asked.type)
    lines = (
        f'mails = search_mail(text="{asked.text}"{sender}, limit=1)',
        f'fact = extract(mails[0].body, "{asked.instruction}", {asked.type})',
    )
    if make.picks.random() < 0.5:
        to, address = make.recipient()
        send = f"send_mail([{address}], mails[0].subject, {shown})"
        plan = (*lines, send, f"answer({make.text('mailed', to=to)})")
        return Draft(("mail_fact_mail",), plan, {}, {"to": to}, choices={"question": asked.asked})
    plan = (*lines, f'append_text("<txt>", {shown})', f"answer({make.text('appended', file='<txt>')})")
    return Draft(("mail_fact_note",), plan, {}, {"file": "<txt>"}, choices={"question": asked.asked})


def mail_senders(make: Maker) -> Draft:
    """Who wrote about something, or how many mails came about it, since a day."""
    topic, the_topic = make.picks.choice(make.language.errands.topics)
    period = make.picks.choice([each for each in make.language.periods if each.bounds == "since"])
    search = f'mails = search_mail(text="{topic}", since=date("<d.start:{period.phrase}>"))'
    said = {"topic": the_topic, "p1": period.text}
    if make.picks.random() < 0.6:
        return Draft(("mail_who",), (search, "answer(unique([m.sender_name for m in mails]))"), {}, said)
    return Draft(("mail_count",), (search, "answer(len(mails))"), {}, said)


def mail_day(make: Maker) -> Draft:
    """When somebody wrote last."""
    sender, the_sender = make.picks.choice(make.language.errands.senders)
    plan = (
        f'mails = search_mail(sender="{sender}", limit=1)',
        "if mails:",
        f'    answer(f"{{mails[0].date:{make.language.texts["moment"]}}}")',
        "else:",
        f"    answer({make.text('no_mail')})",
    )
    return Draft(("mail_when",), plan, {}, {"sender": the_sender})


def told(make: Maker) -> Draft:
    """A message to somebody, sent."""
    message = make.picks.choice(make.language.errands.messages)
    to, address = make.recipient()
    plan = (
        f"send_mail([{address}], {quoted(message.subject)}, {quoted(message.text)})",
        f"answer({make.text('mailed', to=to)})",
    )
    said = {"to": to, "clause": message.clause, "text": message.text.rstrip("."), "subject": message.subject}
    return Draft(("tell",), plan, {}, said, kept=(message.clause, said["text"]))


def drafted(make: Maker) -> Draft:
    """A message to somebody that is written and not sent: into a file, or only shown."""
    message = make.picks.choice(make.language.errands.messages)
    said = {"to": "<person>", "clause": message.clause, "text": message.text.rstrip("."), "subject": message.subject}
    if make.picks.random() < 0.6:
        plan = (f'write_text("<txt>", {quoted(message.text)})', f"answer({make.text('wrote', file='<txt>')})")
        return Draft(("draft_file",), plan, {}, said | {"file": "<txt>"}, kept=(message.clause, said["text"]))
    plan = (f"answer({quoted(message.text)})",)
    return Draft(("draft_show",), plan, {}, said, kept=(message.clause, said["text"]))


def replied(make: Maker) -> Draft:
    letter = make.picks.choice(make.language.errands.letters)
    reply = make.picks.choice(make.language.errands.replies)
    plan = (
        f'letter = read_mail(mail("{letter.words}"))',
        f'send_mail([letter.sender], f"Re: {{letter.subject}}", {quoted(reply.text)})',
        f"answer({make.text('replied')})",
    )
    said = {"letter": letter.accusative, "to_letter": letter.to, "clause": reply.clause, "text": reply.text.rstrip(".")}
    return Draft(("reply",), plan, {}, said, kept=(reply.clause, said["text"]))


def forwarded(make: Maker) -> Draft:
    letter = make.picks.choice(make.language.errands.letters)
    to, address = make.recipient()
    plan = (
        f'letter = read_mail(mail("{letter.words}"))',
        f"send_mail([{address}], letter.subject, letter.body)",
        f"answer({make.text('forwarded', to=to)})",
    )
    return Draft(("forward",), plan, {}, {"letter": letter.accusative, "to": to})


def asked_reply(make: Maker) -> Draft:
    """An answer to a mail without its text: it must be asked for."""
    letter = make.picks.choice(make.language.errands.letters)
    plan = (
        f"text = ask({make.text('ask_reply')})",
        f'letter = read_mail(mail("{letter.words}"))',
        'send_mail([letter.sender], f"Re: {letter.subject}", text)',
        f"answer({make.text('replied')})",
    )
    return Draft(("reply_open",), plan, {}, {"letter": letter.accusative, "to_letter": letter.to})


def asked_forward(make: Maker) -> Draft:
    """A mail to be passed on to nobody in particular."""
    letter = make.picks.choice(make.language.errands.letters)
    plan = (
        f"to = ask({make.text('ask_recipient')})",
        f'letter = read_mail(mail("{letter.words}"))',
        "send_mail([to], letter.subject, letter.body)",
        f"answer({make.text('forwarded', to='{to}')})",
    )
    return Draft(("forward_open",), plan, {}, {"letter": letter.accusative, "to_letter": letter.to})


def asked_since(make: Maker) -> Draft:
    """Mails since a day that the request does not say."""
    sender, the_sender = make.picks.choice(make.language.errands.senders)
    plan = (
        f"since = ask({make.text('ask_since')})",
        f"day = extract(since, {make.text('since_asked')}, date)",
        f'mails = search_mail(sender="{sender}", since=day)',
        "answer([m.subject for m in mails])",
    )
    return Draft(("since_open",), plan, {}, {"sender": the_sender})


def asked_attachment(make: Maker) -> Draft:
    to, address = make.recipient()
    plan = (
        f"which = ask({make.text('ask_which_file')})",
        f"send_mail([{address}], {make.text('file_subject')}, {make.text('file_text')}, attachments=[which])",
        f"answer({make.text('mailed', to=to)})",
    )
    return Draft(("attach_open",), plan, {}, {"to": to})


def noted(make: Maker) -> Draft:
    """A text at the end of a list, in the words of the request."""
    note = make.picks.choice(make.language.errands.notes)
    plan = (
        f'append_text(file("{note.list}"), {quoted(note.text)})',
        f"answer({make.text('noted', text=note.text)})",
    )
    return Draft(("note_add",), plan, {}, {"onto": note.onto, "text": note.text}, kept=(note.text, note.onto))


@cache
def _placeless_questions(code: str) -> tuple[Question, ...]:
    """The questions that name no place. Those that a mail answers are among them, in the words that name no mail."""
    errands = load_language(code).errands
    found = list(errands.questions)
    for each in errands.mail_questions:
        plain = tuple(way for way in each.asked if "mail" not in named_places(way, code))
        if plain:
            found.append(Question(f"{each.sender} {each.text}".strip(), each.instruction, each.type, plain))
    return tuple(found)


def questioned(make: Maker) -> Draft:
    """A question that names no place, as people ask it."""
    asked = make.picks.choice(_placeless_questions(make.language.code))
    lines = [f'found = find("{asked.key}")', f'fact = extract(found.passages, "{asked.instruction}", {asked.type})']
    shown = fact_text(asked.type)
    choices = {"question": asked.asked}
    way = make.picks.random()
    if way < 0.7 or asked.type == "bool":
        return Draft(("question",), (*lines, "answer(fact)"), {}, choices=choices)
    if way < 0.85:
        to, address = make.recipient()
        subject = quoted(asked.key[0].upper() + asked.key[1:])
        plan = (*lines, f"send_mail([{address}], {subject}, {shown})", f"answer({make.text('mailed', to=to)})")
        return Draft(("question_mail",), plan, {}, {"to": to}, choices=choices)
    plan = (*lines, f'append_text("<txt>", {shown})', f"answer({make.text('appended', file='<txt>')})")
    return Draft(("question_note",), plan, {}, {"file": "<txt>"}, choices=choices)


def mail_against_rows(make: Maker) -> Draft:
    """An amount in a mail against the total of a table: which way round decides the sign."""
    topic = make.topic(most=1, period=False)
    measure = need_sum(topic)
    if measure.kind != "money":
        raise Unfit
    sender, the_sender = make.picks.choice(make.language.errands.senders)
    lines, rows = make.rows(topic)
    head = (
        f'mails = search_mail(text="{make.domain.one}", sender="{sender}", limit=1)',
        f'amount = extract(mails[0].body, "{measure.column}", float)',
        *lines,
        f"total = sum({cells(measure.column, rows)})",
    )
    said = {"sender": the_sender}
    if make.picks.random() < 0.5:
        return Draft(("mail_minus_rows",), (*head, "answer(amount - total)"), {"": topic}, said)
    yes, no = (make.text(key, x="{amount}", y="{total}") for key in ("larger", "smaller"))
    plan = (*head, "if amount > total:", f"    answer({yes})", "else:", f"    answer({no})")
    return Draft(("mail_over_rows",), plan, {"": topic}, said)
