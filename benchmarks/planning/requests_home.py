"""Requests in natural words about what a person wrote down and whom they know. Nobody says a file's name."""

from __future__ import annotations

from datetime import date, datetime, timedelta

from .data import NOW, Data
from .judge import Added, Expected, Mail, Oracle, number, says
from .request import Request, Wording, de, es, fr, nat, task


def _prose(key: str, field: str) -> Oracle:
    return lambda d: Expected(answer=says(d.prose[key].facts[field], at_most=120))


_LOOKUP = """
text = read_text("<{key}>")
fact = extract(text, "{what}", {{"{field}": {kind}}})
answer(fact.{field})
"""


def _lookup(key: str, field: str, kind: str, what: str, *wordings: Wording) -> list[Request]:
    plan = _LOOKUP.format(key=key, field=field, kind=kind, what=what)
    return task(f"know-{key}-{field}", 2, plan, _prose(key, field), *wordings)


def _boiler(data: Data) -> Expected:
    late = date(2026, 3, 11) - data.prose["boiler"].facts["serviced"] > timedelta(days=240)
    return Expected(added=(Added("Boiler service", datetime(2026, 3, 16, 9)),) if late else ())


REQUESTS: list[Request] = [
    *_lookup(
        "garage",
        "code",
        "str",
        "the code of the garage",
        nat("What's the code of the garage?"),
        de("Wie lautet der Code für die Garage?", True),
    ),
    *_lookup(
        "wifi",
        "password",
        "str",
        "the wifi password",
        nat("what was our wifi password again"),
        es("¿Cuál es la contraseña del wifi?", True),
    ),
    *_lookup("vet", "phone", "str", "the phone number of the vet", nat("I need the vet's phone number.")),
    *_lookup(
        "landlord",
        "name",
        "str",
        "the name of the landlord",
        nat("What is our landlord called?"),
        fr("Comment s'appelle notre propriétaire ?", True),
    ),
    *_lookup(
        "recipe",
        "minutes",
        "int",
        "how long the plum cake bakes, in minutes",
        nat("How long does the plum cake stay in the oven?"),
    ),
    *_lookup(
        "sizes",
        "size",
        "int",
        "the size of Nora's shoes",
        nat("Which shoe size does Nora have?"),
        de("Welche Schuhgröße hat Nora?", True),
    ),
    *_lookup(
        "insurance", "number", "str", "the policy number", nat("Give me the policy number of the bike insurance.")
    ),
    *_lookup("boiler", "serviced", "date", "the day of the last service", nat("When was the boiler last looked at?")),
    *task(
        "cover-days",
        3,
        """
text = read_text("<insurance>")
cover = extract(text, "the day on which the cover ends", {"ends": date})
left = cover.ends - today()
answer(left.days)
""",
        lambda d: Expected(answer=number((d.prose["insurance"].facts["ends"] - NOW.date()).days)),
        nat("How many days is the bike still insured?"),
        de("Wie viele Tage ist das Fahrrad noch versichert?", True),
        unseen=True,
    ),
    *task(
        "ferry-event",
        3,
        """
text = read_text("<ferry>")
trip = extract(text, "when the ferry leaves", {"leaves": datetime})
add_event("Ferry", trip.leaves)
answer(trip.leaves)
""",
        lambda d: Expected(added=(Added("Ferry", d.prose["ferry"].facts["leaves"]),)),
        nat('We are going to the island. Put the departure into my calendar as "Ferry".'),
        fr("Note le départ du ferry dans mon agenda, avec le titre « Ferry ».", True),
        unseen=True,
    ),
    *task(
        "wifi-to-kim",
        4,
        """
text = read_text("<wifi>")
fact = extract(text, "the wifi password", {"password": str})
send_mail(["<kim>"], "Wifi", f"The wifi password is {fact.password}.")
answer("sent")
""",
        lambda d: Expected(mails=(Mail(d.names["kim"], says=(d.prose["wifi"].facts["password"],)),)),
        nat("Send Kim our wifi password."),
        es("Mándale a Kim la contraseña de nuestro wifi.", True),
        unseen=True,
        sheet=(("kim", "<kim>"), ("address", "<kim>"), ("correo", "<kim>")),
    ),
    *task(
        "boiler-due",
        4,
        """
text = read_text("<boiler>")
fact = extract(text, "the day of the last service", {"serviced": date})
if (today() - fact.serviced).days > 240:
    add_event("Boiler service", datetime(2026, 3, 16, 9, 0))
answer(fact.serviced)
""",
        _boiler,
        nat(
            'If it\'s more than 240 days since the boiler was serviced, put "Boiler service" into my calendar for next '
            "Monday at 9."
        ),
        unseen=True,
        condition=True,
    ),
    *task(
        "tell-kim-friday",
        1,
        'send_mail(["<kim>"], "Friday", "Friday works.")\nanswer("sent")',
        lambda d: Expected(mails=(Mail(d.names["kim"], says=("Friday",)),)),
        nat("Tell Kim that Friday works."),
        de("Sag Kim, dass Friday passt.", True),
        nat("Let Kim know that Friday is fine for me."),
        sheet=(("kim", "<kim>"), ("address", "<kim>"), ("adresse", "<kim>")),
    ),
    *task(
        "quote-anna",
        1,
        'send_mail(["<anna>"], "Keys for the summer house", "The keys are under the third pot.")\nanswer("sent")',
        lambda d: Expected(
            mails=(
                Mail(
                    d.names["anna"], subject="Keys for the summer house", quotes=("The keys are under the third pot.",)
                ),
            )
        ),
        nat('Write to Anna, subject "Keys for the summer house", text "The keys are under the third pot."'),
        fr("Écris à Anna, objet « Keys for the summer house », texte « The keys are under the third pot. »", True),
        sheet=(("anna", "<anna>"), ("address", "<anna>"), ("adresse", "<anna>")),
    ),
]
