"""Outgoing mail through an SMTP server. Nothing is sent unless every address, header and attachment is sound."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from email.utils import make_msgid
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from bicameral.errors import Place, ToolError
from bicameral.secrets import know
from bicameral.tools import Folders, Surroundings, call_key, read_attached

from .._text import clean
from ._addresses import recipient, refuse_line_breaks
from ._compose import Attachment, Draft, compose, without_encoded_words
from ._settings import MailSettings, Smtp

if TYPE_CHECKING:
    import smtplib

MAX_ATTACHMENTS = 25 * 1024 * 1024
MAX_RECIPIENTS = 100
_UNSAFE_IN_NAMES = re.compile(r'[<>:"|?*\\]')
_UNUSUAL = re.compile(r"[^A-Za-z0-9._-]")
_SMTP_SETTING = "Set `smtp` under [toolbox.mail] in bicameral.toml."


def send(
    settings: MailSettings,
    surroundings: Surroundings,
    *,
    to: Sequence[str],
    cc: Sequence[str],
    subject: str,
    body: str,
    attachments: Sequence[str],
) -> None:
    """Send one mail or raise; see `_hand_over` for what is known when the connection breaks."""
    if settings.smtp is None:
        raise ToolError("mail.no-smtp", "no SMTP server is set", fix=_SMTP_SETTING)
    if not settings.address:
        raise ToolError(
            "mail.no-address", "no sender address is set", fix="Set `address` under [toolbox.mail] in bicameral.toml."
        )
    draft = _draft(settings.address, surroundings, to=to, cc=cc, subject=subject, body=body, attachments=attachments)
    # Composed, and read again, before anybody is connected to: what is not as it was meant reaches no server.
    raw = compose(draft)
    password = _password(settings.smtp, surroundings)
    client = _connect(settings.smtp, password)
    try:
        _hand_over(client, draft, raw)
    finally:
        # Whether the server says goodbye nicely changes nothing about the mail.
        with suppress(OSError):
            client.close()


def _draft(
    sender: str,
    surroundings: Surroundings,
    *,
    to: Sequence[str],
    cc: Sequence[str],
    subject: str,
    body: str,
    attachments: Sequence[str],
) -> Draft:
    """The mail as it is meant. Recipients are taken as they are or refused; of a subject, encoded words are undone."""
    if not to:
        raise ToolError("mail.bad-address", "there is nobody to send this to", place=Place(argument="to"))
    if len(to) + len(cc) > MAX_RECIPIENTS:
        raise ToolError("mail.too-many", f"{len(to) + len(cc)} recipients", expected=f"at most {MAX_RECIPIENTS}")
    refuse_line_breaks(subject, "subject")
    origin = recipient(sender, "address")
    now = surroundings.now()
    return Draft(
        origin,
        tuple(recipient(each, "to") for each in to),
        tuple(recipient(each, "cc") for each in cc),
        without_encoded_words(clean(subject).strip()),
        clean(body),
        now if now.tzinfo else now.astimezone(),
        message_id(origin.domain),
        tuple(_attached(surroundings.folders, attachments)),
    )


def message_id(domain: str) -> str:
    """The id of a mail. One that is sent again, since nobody knew whether it went out, has the same id."""
    key = call_key()
    return make_msgid(domain=domain) if key is None else f"<{_UNUSUAL.sub('-', key)}@{domain}>"


def _attached(folders: Folders, paths: Sequence[str]) -> Iterator[Attachment]:
    left = MAX_ATTACHMENTS
    for path in paths:
        # After a person's yes: exactly the bytes that were approved, or an error.
        content = read_attached(folders, path, max_bytes=left)
        left -= len(content)
        name = PurePosixPath(path).name
        refuse_line_breaks(name, "attachments")
        # Without the signs that quote, bracket or encode a name in a header: no receiver's disk takes them either.
        yield Attachment(_UNSAFE_IN_NAMES.sub("_", clean(name)).strip(), content)


def know_password(settings: MailSettings, surroundings: Surroundings) -> None:
    """Let the password of the mail server not out, whether a mail is ever sent or not."""
    if settings.smtp is not None and settings.smtp.password_env is not None:
        know(settings.smtp.password_env, surroundings.environment.get(settings.smtp.password_env, ""))


def _password(smtp: Smtp, surroundings: Surroundings) -> str | None:
    if smtp.password_env is None:
        return None
    if not (password := surroundings.environment.get(smtp.password_env)):
        raise ToolError(
            "mail.smtp-auth",
            f"the environment variable {smtp.password_env!r} holds no password",
            fix="Set it, or change `smtp.password_env` under [toolbox.mail].",
        )
    return password


def _connect(smtp: Smtp, password: str | None) -> smtplib.SMTP:
    """A connection that is encrypted and logged in as the settings ask, or an error: nothing is sent in the clear."""
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
        # What a server says about a login may repeat what it was sent, so only its code is shown.
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


def _hand_over(client: smtplib.SMTP, draft: Draft, raw: bytes) -> None:
    import smtplib

    try:
        refused = client.sendmail(draft.sender.spec, draft.recipients, raw)
    except smtplib.SMTPRecipientsRefused as error:
        raise _refused("no recipient was accepted: " + _reasons(error.recipients)) from None
    except smtplib.SMTPResponseException as error:
        raise _refused(f"{error.smtp_code} {_shown(error.smtp_error)}") from None
    except (smtplib.SMTPException, OSError):
        raise ToolError(
            "mail.smtp-unreachable",
            "the connection broke while the mail was handed over; it may have been sent",
            fix="Look whether it arrived before you send it again.",
        ) from None
    with suppress(smtplib.SMTPException, OSError):
        client.quit()
    if refused:
        raise _refused("the mail was sent, but not to everybody: " + _reasons(refused))


def _refused(what: str) -> ToolError:
    return ToolError("mail.smtp-refused", f"the SMTP server refused the mail: {what}")


def _reasons(refused: dict[str, tuple[int, bytes]]) -> str:
    return "; ".join(f"{who}: {code} {_shown(why)}" for who, (code, why) in refused.items())


def _shown(answer: bytes | str) -> str:
    text = answer.decode("utf-8", "replace") if isinstance(answer, bytes) else answer
    return clean(text).replace("\n", " ")[:200]
