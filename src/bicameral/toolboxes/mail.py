"""Mail: search and read a Maildir or an mbox, send through an SMTP server, save attachments and drafts, move mails.

The mailbox lies inside the folders that may be read. Mails are only ever renamed within it (`_mail_folders`). Mails are
untrusted text: a broken charset, date or MIME structure affects that mail only and not the search. Mails are parsed in
the parser process (`_mime`), so that a mail made to block its parser costs a second or two. A mail is sent only if all
its addresses, headers and attachments pass the checks of `_mail_compose`. The modules that read and write mail are
imported when a tool is first called: every run opens this toolbox, and few touch mail.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from bicameral.errors import Place, ToolError
from bicameral.secrets import register_secret
from bicameral.toolboxes._text import clean_text
from bicameral.tools import (
    Folders,
    MissingSetting,
    Origin,
    Participants,
    Settings,
    Surroundings,
    Tool,
    Toolbox,
    WriteTarget,
    call_key,
    read_attached,
    tool,
)
from bicameral.types import Address, Id

if TYPE_CHECKING:
    import smtplib

    from bicameral.toolboxes._mail_compose import Attachment, MailDraft
    from bicameral.toolboxes._mail_folders import MailFolders
    from bicameral.toolboxes._mailbox import Mailbox


@dataclass(frozen=True, slots=True)
class Mail:
    """One mail; `date` is local time, `sender` is the address alone."""

    id: Id
    sender: str
    sender_name: str
    to: tuple[str, ...]
    cc: tuple[str, ...]
    subject: str
    date: datetime
    body: str
    folder: str
    unread: bool
    attachments: tuple[str, ...]


_PORTS = {"none": 25, "starttls": 587, "tls": 465}
_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")


class Smtp(BaseModel):
    """The server that takes outgoing mail; the password stays in the environment."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    host: Annotated[str, Field(min_length=1)]
    port: Annotated[int, Field(gt=0, lt=65536)] | None = None
    user: str | None = None
    password_env: str | None = None
    tls: Literal["none", "starttls", "tls"] = "starttls"
    timeout: Annotated[float, Field(gt=0, le=300)] = 20.0

    @property
    def port_or_usual(self) -> int:
        return self.port or _PORTS[self.tls]

    @model_validator(mode="after")
    def _password_is_safe(self) -> Smtp:
        if (self.user is None) != (self.password_env is None):
            raise ValueError("user and password_env (the name of an environment variable) go together")
        if self.user is not None and self.tls == "none" and self.host not in _THIS_MACHINE:
            raise ValueError("with tls = 'none' the password would travel in the clear; use 'starttls' or 'tls'")
        return self


class MailSettings(Settings):
    """Where mail lies and how it is sent."""

    folder: str | None = None
    """A Maildir folder or an mbox file; without it `Maildir`, `mail`, `mail.mbox` and the like are looked for."""
    address: str = ""
    """The address that outgoing mail comes from."""
    smtp: Smtp | None = None


MAX_ATTACHMENTS = 25 * 1024 * 1024
MAX_RECIPIENTS = 100
_UNSAFE_IN_NAMES = re.compile(r'[<>:"|?*\\]')
_UNUSUAL_IN_IDS = re.compile(r"[^A-Za-z0-9._-]")
_SMTP_SETTING = "Set `smtp` under [toolbox.mail] in bicameral.toml."


_VARIABLE_SETTING = "Set it, or change `smtp.password_env` under [toolbox.mail]."
_ADDRESS_SETTING = "Set `address` under [toolbox.mail] in bicameral.toml."
_SENDING_TOOLS = ("send_mail",)
_MAILBOX_TOOLS = ("search_mail", "read_mail", "save_attachment", "save_draft", "move_mail", "delete_mail")


def _missing_to_send(settings: MailSettings, surroundings: Surroundings) -> Sequence[MissingSetting]:
    """What sending lacks, from the settings alone: no server is reached for."""
    smtp = settings.smtp
    if smtp is None:
        return (MissingSetting(_SENDING_TOOLS, "no SMTP server is set", _SMTP_SETTING),)
    if not settings.address:
        return (MissingSetting(_SENDING_TOOLS, "no sender address is set", _ADDRESS_SETTING),)
    if smtp.password_env is not None and not surroundings.environment.get(smtp.password_env):
        lacking = f"the environment variable {smtp.password_env!r} holds no password"
        return (MissingSetting(_SENDING_TOOLS, lacking, _VARIABLE_SETTING),)
    return ()


def _missing_mailbox(settings: MailSettings, surroundings: Surroundings) -> Sequence[MissingSetting]:
    from bicameral.toolboxes._mailbox import Mailbox

    problem = Mailbox(surroundings.folders, settings.folder).problem()
    return () if problem is None else (MissingSetting(_MAILBOX_TOOLS, problem.message, problem.fix or ""),)


def _require_smtp(settings: MailSettings) -> Smtp:
    """The server of outgoing mail; a `ToolError` if it or the sender is not set."""
    if settings.smtp is None:
        raise ToolError("mail.no-smtp", "no SMTP server is set", fix=_SMTP_SETTING)
    _require_address(settings)
    return settings.smtp


def _require_address(settings: MailSettings) -> str:
    if not settings.address:
        raise ToolError("mail.no-address", "no sender address is set", fix=_ADDRESS_SETTING)
    return settings.address


def _send_draft(draft: MailDraft, smtp: Smtp, surroundings: Surroundings) -> None:
    """Send one mail or raise; the error tells whether the mail may have been sent."""
    from bicameral.toolboxes._mail_compose import compose_message

    # Composed and verified before the connection is opened: a mail that differs from its draft reaches no server.
    raw = compose_message(draft)
    client = _connect_smtp(smtp, _smtp_password(smtp, surroundings))
    try:
        _deliver(client, draft, raw)
    finally:
        # The mail has been accepted or refused by now, so an error on closing does not matter.
        with suppress(OSError):
            client.close()


def _make_draft(
    sender: str,
    surroundings: Surroundings,
    *,
    to: Sequence[str],
    cc: Sequence[str],
    subject: str,
    body: str,
    attachments: Sequence[str],
) -> MailDraft:
    """Check the parts of a mail. A recipient is used unchanged or refused; encoded words in a subject are broken."""
    from bicameral.toolboxes._mail_compose import MailDraft, parse_recipient, refuse_line_breaks, without_encoded_words

    if not to:
        raise ToolError("mail.bad-address", "there is nobody to send this to", place=Place(argument="to"))
    if len(to) + len(cc) > MAX_RECIPIENTS:
        raise ToolError("mail.too-many", f"{len(to) + len(cc)} recipients", expected=f"at most {MAX_RECIPIENTS}")
    refuse_line_breaks(subject, "subject")
    origin = parse_recipient(sender, "address")
    now = surroundings.now()
    return MailDraft(
        origin,
        tuple(parse_recipient(recipient, "to") for recipient in to),
        tuple(parse_recipient(recipient, "cc") for recipient in cc),
        without_encoded_words(clean_text(subject).strip()),
        clean_text(body),
        now if now.tzinfo else now.astimezone(),
        make_message_id(origin.domain),
        tuple(_read_attachments(surroundings.folders, attachments)),
    )


def make_message_id(domain: str) -> str:
    """The Message-ID; a call that is repeated, because the first attempt may have failed, has the same one."""
    from email.utils import make_msgid

    key = call_key()
    return make_msgid(domain=domain) if key is None else f"<{_UNUSUAL_IN_IDS.sub('-', key)}@{domain}>"


def _read_attachments(folders: Folders, paths: Sequence[str]) -> Iterator[Attachment]:
    from bicameral.toolboxes._mail_compose import Attachment, refuse_line_breaks

    left = MAX_ATTACHMENTS
    for path in paths:
        # If the call was approved: exactly the bytes that were approved, or an error.
        content = read_attached(folders, path, max_bytes=left)
        left -= len(content)
        name = PurePosixPath(path).name
        refuse_line_breaks(name, "attachments")
        # Without characters that quote or encode a name in a header; they are not allowed in file names everywhere.
        yield Attachment(_UNSAFE_IN_NAMES.sub("_", clean_text(name)).strip(), content)


def register_password(settings: MailSettings, surroundings: Surroundings) -> None:
    """Register the SMTP password as a secret at once, so that it is masked even if no mail is ever sent."""
    if settings.smtp is not None and settings.smtp.password_env is not None:
        register_secret(settings.smtp.password_env, surroundings.environment.get(settings.smtp.password_env, ""))


def _smtp_password(smtp: Smtp, surroundings: Surroundings) -> str | None:
    if smtp.password_env is None:
        return None
    if not (password := surroundings.environment.get(smtp.password_env)):
        raise ToolError(
            "mail.smtp-auth",
            f"the environment variable {smtp.password_env!r} holds no password",
            fix=_VARIABLE_SETTING,
        )
    return password


def _connect_smtp(smtp: Smtp, password: str | None) -> smtplib.SMTP:
    """Connect with the encryption and login of the settings, or raise: there is no fallback to plain text."""
    import smtplib
    import ssl

    place = f"the SMTP server {smtp.host}:{smtp.port_or_usual}"
    client: smtplib.SMTP | None = None
    try:
        if smtp.tls == "tls":
            context = ssl.create_default_context()
            client = smtplib.SMTP_SSL(smtp.host, smtp.port_or_usual, timeout=smtp.timeout, context=context)
        else:
            client = smtplib.SMTP(smtp.host, smtp.port_or_usual, timeout=smtp.timeout)
        if smtp.tls == "starttls":
            client.starttls(context=ssl.create_default_context())
        if smtp.user is not None and password is not None:
            client.login(smtp.user, password)
    except Exception as error:
        if client is not None:
            client.close()
        raise _connection_error(error, place) from None
    return client


def _connection_error(error: Exception, place: str) -> Exception:
    import smtplib

    match error:
        # The server's text about a login may repeat the password, so only its code is shown.
        case smtplib.SMTPAuthenticationError():
            return ToolError("mail.smtp-auth", f"{place} did not accept the user and password ({error.smtp_code})")
        case smtplib.SMTPNotSupportedError():
            return ToolError("mail.smtp-refused", f"{place} offers no encryption or login as `smtp.tls` asks for")
        case smtplib.SMTPServerDisconnected() | smtplib.SMTPConnectError():
            return ToolError("mail.smtp-unreachable", f"{place} closed the connection")
        case smtplib.SMTPException():
            return ToolError("mail.smtp-refused", f"{place} refused the session", fix="Check `smtp.tls` and the user.")
        case OSError() | UnicodeError():
            reason = getattr(error, "strerror", None) or type(error).__name__
            return ToolError("mail.smtp-unreachable", f"{place} cannot be reached: {reason}", fix=_SMTP_SETTING)
        case _:
            return error


def _deliver(client: smtplib.SMTP, draft: MailDraft, raw: bytes) -> None:
    import smtplib

    try:
        refused = client.sendmail(draft.sender.address, draft.recipients, raw)
    except smtplib.SMTPRecipientsRefused as error:
        raise _refused_error("no recipient was accepted: " + _refusal_reasons(error.recipients)) from None
    except smtplib.SMTPResponseException as error:
        raise _refused_error(f"{error.smtp_code} {_server_text(error.smtp_error)}") from None
    except (smtplib.SMTPException, OSError):
        raise ToolError(
            "mail.smtp-unreachable",
            "the connection broke while the mail was handed over; it may have been sent",
            fix="Look whether it arrived before you send it again.",
        ) from None
    with suppress(smtplib.SMTPException, OSError):
        client.quit()
    if refused:
        raise _refused_error("the mail was sent, but not to everybody: " + _refusal_reasons(refused))


def _refused_error(reason: str) -> ToolError:
    return ToolError("mail.smtp-refused", f"the SMTP server refused the mail: {reason}")


def _refusal_reasons(refused: dict[str, tuple[int, bytes]]) -> str:
    return "; ".join(f"{who}: {code} {_server_text(why)}" for who, (code, why) in refused.items())


def _server_text(answer: bytes | str) -> str:
    text = answer.decode("utf-8", "replace") if isinstance(answer, bytes) else answer
    return clean_text(text).replace("\n", " ")[:200]


_MAX_LIMIT = 1000

# The sender writes all of a mail, including its From, date and recipients, which are not authenticated. (In an mbox
# even the mark that it was read is part of the mail.) Anybody can send mails that a search finds, so the number of
# results is untrusted, too. Only the id is made here, and the folder is chosen by the user or his server. The persons
# named in a mail are its readers.
_SENDER_WRITTEN = Origin("third_party", Participants(("sender", "to", "cc")))
_SYSTEM_ORIGIN = Origin("system")
_MAIL_ORIGINS = {"": _SENDER_WRITTEN, "id": _SYSTEM_ORIGIN, "folder": _SYSTEM_ORIGIN}
_MAILS_ORIGINS = {
    "": Origin("third_party"),
    "[]": _SENDER_WRITTEN,
    "[].id": _SYSTEM_ORIGIN,
    "[].folder": _SYSTEM_ORIGIN,
}


def _build(settings: MailSettings, surroundings: Surroundings) -> list[Tool]:
    register_password(settings, surroundings)

    @cache
    def mailbox() -> Mailbox:
        from bicameral.toolboxes._mailbox import Mailbox

        # Two first calls at once may each make one: it holds nothing but what it has parsed.
        return Mailbox(surroundings.folders, settings.folder)

    @cache
    def mail_folders() -> MailFolders:
        from bicameral.toolboxes._mail_folders import MailFolders

        return MailFolders(mailbox(), surroundings.folders)

    @tool(effect="read", timeout=60, origins=_MAILS_ORIGINS)
    def search_mail(
        text: Annotated[str, "words in subject or body"] = "",
        sender: Annotated[str, "address or name"] = "",
        subject: str = "",
        since: date | None = None,
        before: date | None = None,
        unread: Annotated[bool, "only unread"] = False,
        folder: str = "",
        limit: int = 50,
    ) -> list[Mail]:
        """Find mails that match all given filters, newest first."""
        if not 0 <= limit <= _MAX_LIMIT:
            raise ToolError(
                "mail.bad-limit", f"limit is {limit}", place=Place(argument="limit"), expected=f"0 to {_MAX_LIMIT}"
            )
        return mailbox().search(text, sender, subject, since, before, unread=unread, folder=folder, limit=limit)

    @tool(effect="read", origins=_MAIL_ORIGINS, refers={"id": "mail"})
    def read_mail(id: Id) -> Mail:
        """Read one mail by its id."""
        return mailbox().read(id)

    @tool(
        effect="send",
        # Connection, greeting, login and mail may each take the whole time-out of the server.
        timeout=120,
        # The path of an attachment decides which file is sent, so it directs the effect.
        purpose={"to": "directs", "cc": "directs", "attachments": "directs", "subject": "carries", "body": "carries"},
        refers={"attachments": "file"},
        receivers=("to", "cc"),
        # Only the user may read a file, whoever wrote it.
        attaches=("attachments",),
        attached_in=surroundings.folders,
        origins=_SYSTEM_ORIGIN,
        words=tuple(
            "send|mail|email|forward|fwd|reply|answer|tell|notify|inform|remind|invite|"
            "write to|ping|message|shoot|drop|pass on".split("|")
        ),
    )
    def send_mail(
        to: Annotated[Sequence[Address], "addresses"],
        subject: str,
        body: str,
        cc: Sequence[Address] = (),
        attachments: Annotated[Sequence[str], "file paths"] = (),
    ) -> None:
        """Send a mail."""
        smtp, sender = _require_smtp(settings), settings.address
        draft = _make_draft(sender, surroundings, to=to, cc=cc, subject=subject, body=body, attachments=attachments)
        _send_draft(draft, smtp, surroundings)

    @tool(
        effect="write",
        files_only=True,
        timeout=60,
        purpose={"id": "selects", "name": "directs", "folder": "directs"},
        refers={"id": "mail", "folder": "folder"},
        origins=_SYSTEM_ORIGIN,
        target=lambda given: _attachment_target(surroundings.folders, given),
        words=("save", "download", "store", "keep", "put", "extract"),
    )
    def save_attachment(id: Id, name: str, folder: str = ".") -> Annotated[str, "path"]:
        """Save an attachment of a mail into a folder; gives the path."""
        return _save_under_free_name(surroundings.folders, folder, name, mailbox().attachment(id, name))

    @tool(
        effect="write",
        files_only=True,
        timeout=60,
        keyed=True,
        # A draft is sent by a person who may not read the address again, so that it is chosen as that of a mail is.
        purpose={"to": "directs", "cc": "directs", "attachments": "directs", "subject": "carries", "body": "carries"},
        refers={"attachments": "file"},
        origins=_SYSTEM_ORIGIN,
        words=("save draft", "save a draft", "as a draft", "as draft", "to drafts", "into drafts"),
    )
    def save_draft(
        to: Annotated[Sequence[Address], "addresses"],
        subject: str,
        body: str,
        cc: Sequence[Address] = (),
        attachments: Annotated[Sequence[str], "file paths"] = (),
    ) -> None:
        """Save a mail as a draft, without sending it."""
        from bicameral.toolboxes._mail_compose import compose_message

        sender = _require_address(settings)
        draft = _make_draft(sender, surroundings, to=to, cc=cc, subject=subject, body=body, attachments=attachments)
        mail_folders().save_draft(compose_message(draft), draft.message_id)

    @tool(
        effect="write",
        files_only=True,
        timeout=60,
        # Which mail disappears from its folder is decided by the id.
        purpose={"id": "directs", "folder": "directs"},
        refers={"id": "mail"},
        origins=_SYSTEM_ORIGIN,
        words=("move", "archive", "sort into", "put"),
    )
    def move_mail(id: Id, folder: Annotated[str, "mail folder"]) -> None:
        """Move a mail to a mail folder."""
        mail_folders().move(id, folder)

    @tool(
        # It can be taken back, as long as nobody empties the trash: what others do with it is not known here.
        effect="irreversible",
        files_only=True,
        timeout=60,
        outbound=False,
        refers={"id": "mail"},
        origins=_SYSTEM_ORIGIN,
        words=("delete", "trash", "remove", "get rid of"),
    )
    def delete_mail(id: Id) -> None:
        """Move a mail to the trash."""
        mail_folders().move_to_trash(id)

    return [search_mail, read_mail, send_mail, save_attachment, save_draft, move_mail, delete_mail]


def _attachment_target(folders: Folders, given: Mapping[str, Any]) -> WriteTarget:
    """The file that an attachment is written to; its content is copied from the sender's."""
    name = given.get("name")
    return folders.target(f"{given.get('folder', '.')}/{name}" if isinstance(name, str) else None, copied=True)


def _save_under_free_name(folders: Folders, folder: str, name: str, content: bytes) -> str:
    """Write under a name that is not taken: an attachment never replaces a file."""
    from bicameral.toolboxes._mime import number_name

    for copy in range(1, 1000):
        path = f"{folder}/{name if copy == 1 else number_name(name, copy)}"
        try:
            folders.write_atomic(path, content, replace=False)
        except ToolError as error:
            if error.code != "files.exists":
                raise
        else:
            return folders.display_path(folders.resolve_writable(path))
    raise ToolError("mail.exists", f"there are too many files like {name!r} in {folder!r}")


toolbox: Toolbox[MailSettings] = Toolbox(
    "mail",
    "Search, read, send, draft, move and delete mail, save attachments.",
    MailSettings,
    _build,
    keeps=lambda settings: (settings.folder,) if settings.folder else (),
    lacks=_missing_to_send,
    unready=_missing_mailbox,
)
