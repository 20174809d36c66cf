"""The workspace suite: what the mail, calendar and drive services set is theirs, what others write is not."""

from __future__ import annotations

from collections.abc import Mapping

from bicameral.tools import Origin, Participants, Purpose

from . import ECHO, OWN, Declaration

ACCOUNT = OWN["workspace"][0]
"""The user's own account: the services know whose mailbox, calendar and drive they keep."""

_SERVICE = Origin("system")

# Whoever sends a mail writes its subject, body, attachments and whom it says it is for; in a mail that the user sent
# the user did. Its sender is the account that the mail service took it from.
_MAIL_READERS = ("sender", "recipients", "cc", "bcc")
_WRITTEN = Origin("third_party", Participants(_MAIL_READERS), own_when=("status", "sent"))
_STAMPED = Origin("system", Participants(_MAIL_READERS))
_MAIL_FIELDS = {
    "id_": _SERVICE,
    "sender": _STAMPED,
    "recipients": _WRITTEN,
    "cc": _WRITTEN,
    "bcc": _WRITTEN,
    "subject": _WRITTEN,
    "body": _WRITTEN,
    "status": _SERVICE,
    "read": _SERVICE,
    "timestamp": _STAMPED,
    "attachments": _WRITTEN,
}

# An event is whatever its organiser says, and the calendar does not tell who that was: anybody may invite the user.
_SAID = Origin("third_party", Participants(("participants",)))
EVENT_FIELDS = {
    "id_": Origin("system", names="title"),
    "title": _SAID,
    "description": _SAID,
    "start_time": _SAID,
    "end_time": _SAID,
    "location": _SAID,
    "participants": _SAID,
    "all_day": _SAID,
    "status": _SERVICE,
}

# The service numbers files, and a number tells nothing. The owner of a file names it and says who may open it. Its
# content may come from anybody who was ever let in, and from wherever it was copied together: it is a stranger's also
# in a file of the user's.
_FILE_READERS = ("owner", "shared_with")
_NAMED = Origin("third_party", Participants(_FILE_READERS), own_when=("owner", ACCOUNT))
_KEPT = Origin("system", Participants(_FILE_READERS))
_FILE_FIELDS = {
    "id_": Origin("system", "public", names="content"),
    "filename": _NAMED,
    "content": Origin("third_party", Participants(_FILE_READERS)),
    "owner": _KEPT,
    "last_modified": _KEPT,
    "shared_with": _NAMED,
    "size": _KEPT,
}

_STORED = Origin("third_party", names="content")
"""A file by its number: whoever may open it may be sent it."""

# The address book is the account's own; what a contact is called comes from the contact, who knows both.
_CONTACTS = {
    "": Origin("system", "public"),
    "[].email": Origin("system", Participants(("email",))),
    "[].name": Origin("third_party", Participants(("email",))),
}


def one(fields: Mapping[str, Origin]) -> dict[str, Origin]:
    """A result that is one record."""
    return {"": _SERVICE, **fields}


def many(fields: Mapping[str, Origin]) -> dict[str, Origin]:
    """A result that is a list of records. How many were found is the service's word and no secret; what they are is."""
    return {"": Origin("system", "public"), **{f"[].{name}": part for name, part in fields.items()}}


def new(fields: Mapping[str, Origin]) -> dict[str, Origin]:
    """A result that is a record which the call has made: the service gives it its number."""
    return {**one(fields), "id_": Origin("system", "public", fresh=True, names="content")}


_MAIL, _MAILS = one(_MAIL_FIELDS), many(_MAIL_FIELDS)
_EVENT, _EVENTS = one(EVENT_FIELDS), many(EVENT_FIELDS)
_FILE, _FILES = one(_FILE_FIELDS), many(_FILE_FIELDS)

# When and where a new event is, is what is written into the calendar; only its participants decide who hears of it.
CREATE_EVENT_ARGUMENTS: dict[str, Purpose] = {
    "title": "carries",
    "start_time": "carries",
    "end_time": "carries",
    "description": "carries",
    "participants": "directs",
    "location": "carries",
}

# An attachment names the file that goes out, so it decides what the mail does.
SEND_EMAIL = Declaration(
    "send",
    {
        "recipients": "directs",
        "subject": "carries",
        "body": "carries",
        "attachments": "directs",
        "cc": "directs",
        "bcc": "directs",
    },
    _MAIL,
    receivers=("recipients", "cc", "bcc"),
    # What else is attached, an event, is given by value.
    attaches={"attachments[].file_id": _STORED},
    words=(
        *("send", "mail", "email", "forward", "fwd", "reply", "answer", "tell", "notify", "inform", "remind", "invite"),
        *("write to", "ping", "message", "shoot", "drop", "pass on"),
    ),
    refers={"recipients": "person", "cc": "person", "bcc": "person"},
)
CREATE_CALENDAR_EVENT = Declaration(
    "send",
    CREATE_EVENT_ARGUMENTS,
    _EVENT,
    receivers=("participants",),
    words=("add", "create", "schedule", "book", "plan", "put", "set up", "arrange", "enter", "block", "invite"),
    refers={"participants": "person"},
)
SEARCH_CALENDAR_EVENTS = Declaration("read", {"query": "selects", "date": "selects"}, _EVENTS)
GET_DAY_CALENDAR_EVENTS = Declaration("read", {"day": "selects"}, _EVENTS)
CANCEL_CALENDAR_EVENT = Declaration(
    "send",
    {"event_id": "directs"},
    {"": ECHO},
    words=("delete", "remove", "cancel", "drop", "clear", "call off"),
    refers={"event_id": "event"},
)
_DELETING = ("delete", "erase", "trash", "remove", "get rid of")

DECLARATIONS: Mapping[str, Declaration] = {
    "send_email": SEND_EMAIL,
    # Goes to the trash, from which no tool brings it back.
    "delete_email": Declaration(
        "irreversible",
        {"email_id": "directs"},
        {"": ECHO},
        outbound=False,
        words=_DELETING,
        refers={"email_id": "mail"},
    ),
    # Marks what it gives as read: whoever asks for what is unread asks for that.
    "get_unread_emails": Declaration("write", result=_MAILS, words=("unread", "not read", "new mail", "new email")),
    "get_sent_emails": Declaration("read", result=_MAILS),
    "get_received_emails": Declaration("read", result=_MAILS),
    "get_draft_emails": Declaration("read", result=_MAILS),
    "search_emails": Declaration("read", {"query": "selects", "sender": "selects"}, _MAILS),
    "search_contacts_by_name": Declaration("read", {"query": "selects"}, _CONTACTS),
    "search_contacts_by_email": Declaration("read", {"query": "selects"}, _CONTACTS),
    "get_current_day": Declaration("read", result={"": _SERVICE}),
    "search_calendar_events": SEARCH_CALENDAR_EVENTS,
    "get_day_calendar_events": GET_DAY_CALENDAR_EVENTS,
    "create_calendar_event": CREATE_CALENDAR_EVENT,
    "cancel_calendar_event": CANCEL_CALENDAR_EVENT,
    # Everybody who takes part is told.
    "reschedule_calendar_event": Declaration(
        "send",
        {"event_id": "directs", "new_start_time": "directs", "new_end_time": "directs"},
        _EVENT,
        words=(
            *("change", "move", "reschedule", "postpone", "shift", "update", "edit", "extend", "shorten", "push"),
            *("delay", "bring forward"),
        ),
        refers={"event_id": "event"},
    ),
    "add_calendar_event_participants": Declaration(
        "send",
        {"event_id": "directs", "participants": "directs"},
        _EVENT,
        receivers=("participants",),
        attaches={"event_id": Origin("third_party", names="title")},
        words=("add", "invite", "include"),
        refers={"event_id": "event", "participants": "person"},
    ),
    "create_file": Declaration(
        "write",
        {"filename": "directs", "content": "carries"},
        new(_FILE_FIELDS),
        words=("save", "write", "put", "store", "create", "export", "make", "keep", "collect"),
    ),
    "delete_file": Declaration(
        "irreversible", {"file_id": "directs"}, _FILE, outbound=False, words=_DELETING, refers={"file_id": "file"}
    ),
    "append_to_file": Declaration(
        "write",
        {"file_id": "directs", "content": "carries"},
        _FILE,
        words=("append", "add", "log", "note", "jot", "extend"),
        refers={"file_id": "file"},
    ),
    "share_file": Declaration(
        "send",
        {"file_id": "directs", "email": "directs", "permission": "directs"},
        _FILE,
        receivers=("email",),
        attaches={"file_id": _STORED},
        words=("share", "send", "give", "grant"),
        refers={"file_id": "file", "email": "person"},
    ),
    "get_file_by_id": Declaration("read", {"file_id": "selects"}, _FILE, refers={"file_id": "file"}),
    "list_files": Declaration("read", result=_FILES),
    "search_files": Declaration("read", {"query": "selects"}, _FILES),
    "search_files_by_filename": Declaration("read", {"filename": "selects"}, _FILES),
}
