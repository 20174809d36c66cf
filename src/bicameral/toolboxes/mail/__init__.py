"""Mail: search and read a Maildir or an mbox, send through an SMTP server, save attachments.

The mailbox is only ever read, and only inside the folders that may be read. What strangers wrote is decoded as far as
it can be and never trusted: a broken charset, date or MIME tree costs that mail its finesse, not the search.
"""

from ._records import Mail
from ._settings import MailSettings, Smtp
from ._tools import toolbox

__all__ = ["Mail", "MailSettings", "Smtp", "toolbox"]
