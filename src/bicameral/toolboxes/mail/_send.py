"""Outgoing mail through an SMTP server. Nothing is sent unless every address, header and attachment is sound."""

from __future__ import annotations

import mimetypes
import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from email import policy
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import format_datetime, make_msgid, parseaddr
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from bicameral.errors import Place, ToolError
from bicameral.secrets import know
from bicameral.tools import Folders, Surroundings, call_key, read_attached

from .._text import clean
from ._settings import MailSettings, Smtp

if TYPE_CHECKING:
    import smtplib

MAX_ATTACHMENTS = 25 * 1024 * 1024
MAX_RECIPIENTS = 100
_CONTROL = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]")
# One mailbox: no blanks, no second @, no list and no route; a domain of labels.
_LABEL = r"[^\W_](?:[\w-]{0,61}[^\W_])?"
_SPEC = re.compile(rf"[^\s@<>,;:\\\"()\[\]]{{1,64}}@(?=.{{1,253}}$){_LABEL}(?:\.{_LABEL})*")
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
    message = compose(settings.address, surroundings.now(), to=to, cc=cc, subject=subject, body=body)
    _attach(message, surroundings.folders, attachments)
    password = _password(settings.smtp, surroundings)
    client = _connect(settings.smtp, password)
    try:
        _hand_over(client, message)
    finally:
        # Whether the server says goodbye nicely changes nothing about the mail.
        with suppress(OSError):
            client.close()


def compose(
    sender: str, now: datetime, *, to: Sequence[str], cc: Sequence[str], subject: str, body: str
) -> EmailMessage:
    """The mail as it will be sent."""
    if not to:
        raise ToolError("mail.bad-address", "there is nobody to send this to", place=Place(argument="to"))
    if len(to) + len(cc) > MAX_RECIPIENTS:
        raise ToolError("mail.too-many", f"{len(to) + len(cc)} recipients", expected=f"at most {MAX_RECIPIENTS}")
    _refuse_controls(subject, "subject")
    origin = address(sender, "address")
    message = EmailMessage(policy=policy.SMTP)
    message["From"] = origin
    message["To"] = [address(one, "to") for one in to]
    if cc:
        message["Cc"] = [address(one, "cc") for one in cc]
    message["Subject"] = clean(subject)
    message["Date"] = format_datetime(now if now.tzinfo else now.astimezone())
    # A mail that is sent again, since nobody knew whether it went out, has the same id: whoever gets both can tell.
    key = call_key()
    message["Message-ID"] = make_msgid(domain=origin.domain) if key is None else f"<{key}@{origin.domain}>"
    message.set_content(clean(body))
    return message


def address(given: str, argument: str) -> Address:
    """One recipient, `a@example.com` or `Ann <a@example.com>`; anything else is refused."""
    _refuse_controls(given, argument)
    name, spec = parseaddr(given)
    # The parser drops what it does not understand; only what it kept entirely is an address.
    whole = given.strip()
    if not _SPEC.fullmatch(spec) or not (whole == spec or (name and whole.endswith(f"<{spec}>"))):
        raise _bad_address(given, argument)
    local, _, domain = spec.rpartition("@")
    try:
        if not domain.isascii():
            domain = domain.encode("idna").decode("ascii")
        return Address(clean(name), local, domain)
    except (ValueError, IndexError):
        raise _bad_address(given, argument) from None


def _bad_address(given: str, argument: str) -> ToolError:
    shown = given if len(given) <= 80 else given[:77] + "..."
    return ToolError(
        "mail.bad-address",
        f"{shown!r} is not a mail address",
        place=Place(argument=argument),
        expected="one address such as 'ann@example.com' for each recipient",
    )


def _refuse_controls(text: str, argument: str) -> None:
    if _CONTROL.search(text):
        raise ToolError(
            "mail.bad-header",
            f"the {argument} has a line break or control character in it, which could forge a header",
            place=Place(argument=argument),
            expected="one line of text",
        )


def _attach(message: EmailMessage, folders: Folders, paths: Sequence[str]) -> None:
    left = MAX_ATTACHMENTS
    for path in paths:
        # After a person's yes: exactly the bytes that were approved, or an error.
        content = read_attached(folders, path, max_bytes=left)
        left -= len(content)
        name = clean(PurePosixPath(path).name)
        main, _, sub = (mimetypes.guess_type(name)[0] or "application/octet-stream").partition("/")
        message.add_attachment(content, maintype=main, subtype=sub, filename=name)


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


def _hand_over(client: smtplib.SMTP, message: EmailMessage) -> None:
    import smtplib

    try:
        refused = client.send_message(message)
    except smtplib.SMTPRecipientsRefused as error:
        raise _refused("no recipient was accepted: " + _reasons(error.recipients)) from None
    except smtplib.SMTPResponseException as error:
        raise _refused(f"{error.smtp_code} {_shown(error.smtp_error)}") from None
    except (smtplib.SMTPNotSupportedError, UnicodeEncodeError):
        raise _refused("the server takes only addresses in ASCII letters") from None
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
