"""Cases about files, lines of text and the website."""

from __future__ import annotations

from ..planning.judge import Expected, has_content, has_lines, has_text, is_gone, names, number
from .case import case

_LEAFLETS = ("spring.md", "autumn.md", "joining.md")

FILE_CASES = (
    case(
        "helpers-unique",
        ("Save every name only once to volunteers.txt", "taking the names from helpers.txt"),
        lambda data: Expected(files={"volunteers.txt": has_lines(*dict.fromkeys(data.lines("helpers.txt")))}),
        """
lines = read_lines("helpers.txt")
write_lines("volunteers.txt", unique_lines(lines))
answer("Wrote volunteers.txt")
""",
        "helpers.txt has some names twice. Write a version without repeats to volunteers.txt.",
        "Drop the duplicate lines of helpers.txt and store the result as volunteers.txt.",
        "I need volunteers.txt: the same list as helpers.txt, but with each name in it just one time.",
        "Please take helpers.txt, remove what is repeated, and put the rest into volunteers.txt.",
    ),
    case(
        "alarm-count",
        ("How many lines mention the alarm", "in door_log.txt"),
        lambda data: Expected(answer=number(sum("alarm" in line for line in data.lines("door_log.txt")))),
        """
lines = read_lines("door_log.txt")
answer(len(grep(lines, "alarm")))
""",
        "Count the lines about the alarm in door_log.txt.",
        "In door_log.txt, what is the number of lines with the word alarm?",
        "Look into door_log.txt and tell me how often a line has alarm in it.",
        "Tell me the count of door_log.txt lines that contain alarm.",
        end="?",
        keep=("alarm",),
    ),
    case(
        "wishlist-sorted",
        ("Write the lines in alphabetical order to wishes.txt", "reading them from wishlist.txt"),
        lambda data: Expected(files={"wishes.txt": has_lines(*sorted(data.lines("wishlist.txt")))}),
        """
lines = read_lines("wishlist.txt")
write_lines("wishes.txt", sort_lines(lines))
answer("Wrote wishes.txt")
""",
        "Sort wishlist.txt from A to Z and save it as wishes.txt.",
        "Alphabetise wishlist.txt; the sorted lines go into wishes.txt.",
        "I would like the entries of wishlist.txt in alphabetical order in a new file wishes.txt.",
        "Put a sorted copy of the lines of wishlist.txt into wishes.txt.",
    ),
    case(
        "wishlist-append",
        ('Add the line "spoke key"', "at the end of wishlist.txt"),
        lambda data: Expected(files={"wishlist.txt": has_lines(*data.lines("wishlist.txt"), "spoke key")}),
        """
append_text("wishlist.txt", "spoke key\\n")
answer("Added it")
""",
        'Append "spoke key" to wishlist.txt.',
        'wishlist.txt should get one more line at its end: "spoke key".',
        'Please put "spoke key" on a new last line of wishlist.txt.',
        'Write "spoke key" below the other lines of wishlist.txt.',
    ),
    case(
        "flyer-delete",
        ("Delete the file old_flyer.txt", "in the main folder"),
        lambda _: Expected(files={"old_flyer.txt": is_gone}),
        """
delete_file("old_flyer.txt")
answer("Deleted it")
""",
        "Remove old_flyer.txt.",
        "I no longer need old_flyer.txt, get rid of it.",
        "Please erase the file old_flyer.txt.",
        "old_flyer.txt can go: delete it.",
    ),
    case(
        "flyer-copy",
        ("Copy old_flyer.txt", "to new_flyer.txt"),
        lambda data: Expected(files={"new_flyer.txt": has_content(data.texts["old_flyer.txt"])}),
        """
copy_file("old_flyer.txt", "new_flyer.txt")
answer("Copied it")
""",
        "Make a copy of old_flyer.txt called new_flyer.txt.",
        "Duplicate old_flyer.txt under the name new_flyer.txt.",
        "I want a second file new_flyer.txt with the content of old_flyer.txt; keep the original.",
        "new_flyer.txt should be a copy of old_flyer.txt.",
    ),
    case(
        "leaflets-insurance",
        ("Which files mention insurance", "in the folder leaflets"),
        lambda _: Expected(answer=names(["spring.md", "joining.md"], _LEAFLETS)),
        """
matches = search_files("insurance", folder="leaflets")
answer([match.path for match in matches])
""",
        "Find the files in the folder leaflets that say something about insurance.",
        "In the folder leaflets, which ones contain the word insurance?",
        "Look through the folder leaflets and list the files with insurance in them.",
        "Name every file of the folder leaflets in which insurance occurs.",
        end="?",
        among=_LEAFLETS,
        keep=("insurance", "leaflets"),
    ),
    case(
        "leaflets-count",
        ("How many md files are there", "in the folder leaflets"),
        lambda _: Expected(answer=number(3)),
        """
files = list_files("leaflets", pattern="*.md")
answer(len(files))
""",
        "Count the md files in the folder leaflets.",
        "What is the number of md files in the folder leaflets?",
        "The folder leaflets has some md files. How many?",
        "Tell me how many md files the folder leaflets holds.",
        end="?",
        keep=("leaflets", "md"),
    ),
    case(
        "statutes-fee",
        ("How much is the yearly fee", "according to statutes.md"),
        lambda _: Expected(answer=number(48)),
        """
text = read_text("statutes.md")
info = extract(text, "the yearly fee", {"fee": float})
answer(info.fee)
""",
        "What does statutes.md say about the amount of the yearly fee?",
        "Look up the yearly fee in statutes.md.",
        "Read statutes.md and tell me what the yearly fee is.",
        "I would like to know the yearly fee; it is written in statutes.md.",
        end="?",
        keep=("yearly fee",),
    ),
    case(
        "deposit-note",
        ("Write the deposit to deposit.txt", "as it is given in hire_terms.txt"),
        lambda _: Expected(files={"deposit.txt": has_text(75, lacks=(20,))}),
        """
text = read_text("hire_terms.txt")
info = extract(text, "the deposit", {"deposit": float})
write_text("deposit.txt", f"{info.deposit}")
answer(info.deposit)
""",
        "Find the deposit in hire_terms.txt and note it in deposit.txt.",
        "How high is the deposit in hire_terms.txt? Save the amount to deposit.txt.",
        "Please read hire_terms.txt and put the deposit into deposit.txt.",
        "deposit.txt should contain the deposit that hire_terms.txt names.",
        keep=("deposit",),
        loose=True,
    ),
    case(
        "weekend-rate",
        ("What is the value of weekend", "in rates.json"),
        lambda _: Expected(answer=number(35)),
        """
rates = read_json("rates.json")
answer(rates["weekend"])
""",
        "Give me weekend from rates.json.",
        "Look up weekend in rates.json.",
        "rates.json has a field weekend. What is in it?",
        "Read rates.json and tell me the weekend value.",
        end="?",
        keep=("weekend",),
    ),
    case(
        "club-active",
        ("How many active members are given", "in {site}/api/club.json"),
        lambda data: Expected(answer=number(data.values["club"]["active"])),
        """
club = fetch_json("{site}/api/club.json")
answer(club["active"])
""",
        "Fetch {site}/api/club.json and tell me the value of active.",
        "What number stands at active in {site}/api/club.json?",
        "Load {site}/api/club.json; how many are active?",
        "I want to know how many active ones {site}/api/club.json reports.",
        end="?",
        keep=("active",),
    ),
    case(
        "locker-price",
        ("What does a locker cost a month", "on the page {site}/visit.html"),
        lambda _: Expected(answer=number(3)),
        """
page = fetch_page("{site}/visit.html")
info = extract(page.text, "the monthly price of a locker", {"locker": float})
answer(info.locker)
""",
        "Look at {site}/visit.html and tell me the monthly price of a locker.",
        "How much do I pay a month for a locker? It is on {site}/visit.html.",
        "Find the price of a locker for a month on {site}/visit.html.",
        "Read {site}/visit.html: what is a locker a month?",
        end="?",
        keep=("locker",),
    ),
)
