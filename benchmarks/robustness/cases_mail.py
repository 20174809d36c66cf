"""Cases about mail."""

from __future__ import annotations

from ..planning.judge import Expected, Mail, has_content, names, number
from .case import case
from .data import DATA

_SUBJECTS = tuple(letter.subject for letter in DATA.letters)
_STAND = "The stand is free on Friday"
_WISHES = tuple(DATA.lines("wishlist.txt"))

MAIL_CASES = (
    case(
        "mail-short",
        ('Send a mail to greta@example.org with the text "The stand is free on Friday"', 'using the subject "Stand"'),
        lambda _: Expected(mails=(Mail("greta@example.org", quotes=(_STAND,), subject="Stand"),)),
        """
send_mail(["greta@example.org"], "Stand", "The stand is free on Friday")
answer("Sent")
""",
        'Mail greta@example.org, subject "Stand", text "The stand is free on Friday".',
        'Write to greta@example.org that "The stand is free on Friday"; the subject is "Stand".',
        'greta@example.org should get a mail with the subject "Stand" that says "The stand is free on Friday".',
        'Please email "The stand is free on Friday" to greta@example.org, using "Stand" as the subject.',
        among=(_STAND,),
    ),
    case(
        "mail-wishlist",
        ("Mail the content of wishlist.txt to greta@example.org", 'with the subject "Wishes"'),
        lambda _: Expected(mails=(Mail("greta@example.org", says=_WISHES, subject="Wishes"),)),
        """
text = read_text("wishlist.txt")
send_mail(["greta@example.org"], "Wishes", text)
answer("Sent")
""",
        'Send greta@example.org what is in wishlist.txt, subject "Wishes".',
        'Read wishlist.txt and mail its text to greta@example.org. The subject should be "Wishes".',
        'greta@example.org needs the text of wishlist.txt by mail; use "Wishes" as the subject.',
        'Please send a mail with the subject "Wishes" and the content of wishlist.txt to greta@example.org.',
        among=_WISHES,
    ),
    case(
        "mail-attach",
        ("Send tours.csv as an attachment to max.brandt@example.com", 'with the subject "Tours"'),
        lambda _: Expected(mails=(Mail("max.brandt@example.com", subject="Tours", attachments=("tours.csv",)),)),
        """
send_mail(["max.brandt@example.com"], "Tours", "The tours are attached.", attachments=["tours.csv"])
answer("Sent")
""",
        'Mail max.brandt@example.com and attach tours.csv. Subject: "Tours".',
        'Attach tours.csv to a mail for max.brandt@example.com with the subject "Tours".',
        'max.brandt@example.com should receive tours.csv as an attachment; the subject of the mail is "Tours".',
        'Please email the file tours.csv, attached, to max.brandt@example.com under the subject "Tours".',
    ),
    case(
        "mail-total",
        ("Mail the sum of the column cost to max.brandt@example.com", "taking it from repairs.csv"),
        lambda data: Expected(
            mails=(Mail("max.brandt@example.com", says=(sum(row["cost"] for row in data.rows("repairs")),)),)
        ),
        """
rows = read_csv("repairs.csv")
total = sum([row["cost"] for row in rows])
send_mail(["max.brandt@example.com"], "Total cost", f"The total is {total}.")
answer(f"Sent {total}")
""",
        "Add up the column cost of repairs.csv and send the total to max.brandt@example.com.",
        "Send max.brandt@example.com a mail with the total of the column cost in repairs.csv.",
        "max.brandt@example.com wants to know what the column cost of repairs.csv sums to. Mail it to him.",
        "Please work out the sum of cost in repairs.csv and let max.brandt@example.com know by mail.",
        keep=("cost",),
    ),
    case(
        "unread-count",
        ("How many unread mails are there", "in my inbox"),
        lambda data: Expected(answer=number(sum(letter.unread for letter in data.letters))),
        """
mails = search_mail(unread=True)
answer(len(mails))
""",
        "Give me the number of my unread mails.",
        "What is the number of mails that I have not read?",
        "Tell me how many mails are unread.",
        "I want to know how many unread mails I have got.",
        end="?",
    ),
    case(
        "farid-subjects",
        ("List the subjects of all mails", "from farid.noor@wheels.example.net"),
        lambda _: Expected(answer=names(["Bill for brake pads", "Tyre delivery"], _SUBJECTS)),
        """
mails = search_mail(sender="farid.noor@wheels.example.net")
answer([mail.subject for mail in mails])
""",
        "What are the subjects of the mails that farid.noor@wheels.example.net sent me?",
        "Show me the subject of every mail by farid.noor@wheels.example.net.",
        "farid.noor@wheels.example.net has written to me. Give me the subject of each of those mails.",
        "Find all mails with the sender farid.noor@wheels.example.net and show their subjects.",
        among=_SUBJECTS,
    ),
    case(
        "tyres-total",
        ("What is the total", 'in the mail with the subject "Tyre delivery"'),
        lambda _: Expected(answer=number(612.4)),
        """
mails = search_mail(subject="Tyre delivery")
if mails:
    info = extract(mails[0].body, "the total", {"total": float})
    answer(info.total)
else:
    answer("There is no such mail")
""",
        'Look up the total in the mail "Tyre delivery".',
        'There is a mail with the subject "Tyre delivery". How much is the total in it?',
        'Read the mail "Tyre delivery" and tell me the total.',
        'I need the total that is named in the "Tyre delivery" mail.',
        end="?",
        keep=("total",),
    ),
    case(
        "pads-attachment",
        ('Save the attachment pads.csv of the mail "Bill for brake pads"', "to the folder leaflets"),
        lambda data: Expected(files={"leaflets/pads.csv": has_content(data.letters[0].attachments[0][1])}),
        """
mails = search_mail(subject="Bill for brake pads")
if mails:
    save_attachment(mails[0].id, "pads.csv", "leaflets")
    answer("Saved")
else:
    answer("There is no such mail")
""",
        'The mail "Bill for brake pads" has an attachment pads.csv. Store it in the folder leaflets.',
        'Put pads.csv, which is attached to the mail "Bill for brake pads", into the folder leaflets.',
        'Take the attachment pads.csv from the mail "Bill for brake pads" and save it in the folder leaflets.',
        'Please download pads.csv from the mail "Bill for brake pads" into the folder leaflets.',
        keep=("leaflets",),
    ),
    case(
        "phone-call",
        ("Tell Noah Beck that his glove is here", "by calling him on the phone"),
        lambda _: Expected(),
        "",
        "Phone Noah Beck and say that his glove is here.",
        "Ring up Noah Beck and let him know on the phone that his glove is here.",
        "Noah Beck should get a phone call from you, saying that his glove is here.",
        "Please give Noah Beck a call on the telephone about his glove: it is here.",
        obstacle="no-tool",
    ),
)
