"""The reference plan of every request: what a good planner writes from the words of the request alone.

A plan knows neither of the two worlds and serves both. What is asked without naming a place is looked up with `find`,
sums and comparisons too, since the figures may stand in a table, a note or mails. A reminder is an event, a note goes
to a file that is called what it is about, a draft is only the answer, and what no tool does is refused. Questions about
things that are nowhere, and messages to people whom nobody knows, cannot be told from others by their words: their
plans are those of requests that can be served.

Days are slots, filled with what the phrase means in the request on the day of the world: `<d:PHRASE>` is `2026-09-18`,
`<d,:PHRASE>` is `2026, 9, 18`, and `<d.start:PHRASE>` and `<d.end:PHRASE>` are the ends of a period.
"""

from __future__ import annotations

import re
from datetime import date

from bicameral.planning import named_dates

from ._scenario import Request

PLANS: dict[str, str] = {
    # English
    "en-alarm": """
found = find("switch off alarm Mum's house")
how = extract(found.passages, "how to switch off the alarm at Mum's house", str)
answer(how)
""",
    "en-locker": """
found = find("locker number pool")
number = extract(found.passages, "the number of the locker at the pool", str)
answer(number)
""",
    "en-boiler": """
found = find("boiler last serviced")
day = extract(found.passages, "the day on which the boiler was last serviced", date)
answer(f"{day:%d %B %Y}")
""",
    "en-vet": """
found = find("vet cost")
costs = extract(found.passages, "what the vet cost, with the day of each", list[{"day": date, "amount": float}])
answer(sum([cost.amount for cost in costs if cost.day >= date("<d.start:January>")]))
""",
    "en-allotment": """
found = find("Priya hours allotment")
work = extract(found.passages, "the hours of Priya on the allotment, with their days",
    list[{"day": date, "hours": float}])
answer(sum([each.hours for each in work
    if each.day >= date("<d.start:last month>") and each.day <= date("<d.end:last month>")]))
""",
    "en-dearer": """
found = find("gas electricity cost last year")
costs = extract(found.passages, "what gas and electricity cost last year", {"gas": float, "electricity": float})
if costs.gas > costs.electricity:
    answer(f"Gas was dearer: {costs.gas} against {costs.electricity}")
else:
    answer(f"Electricity was dearer: {costs.electricity} against {costs.gas}")
""",
    "en-dentist": """
found = find("next appointment dentist")
start = extract(found.passages, "the day and the time of the next appointment at the dentist", datetime)
answer(f"{start:%d %B %Y at %H:%M}")
""",
    "en-cat": """
found = find("looks after cat away")
name = extract(found.passages, "who looks after the cat while we are away", str)
answer(name)
""",
    "en-key": """
found = find("spare key")
place = extract(found.passages, "where the spare key is", str)
answer(place)
""",
    "en-tent": """
send_mail([person("Marcus")], "Tent", "I am bringing the tent.")
answer("Told Marcus that you are bringing the tent")
""",
    "en-plumber": """
append_text("plumber.txt", "The plumber is called Osman.\\n")
answer("Noted that the plumber is called Osman")
""",
    "en-supper": """
event = add_event("Supper with Joan", datetime(<d,:Saturday>, 19, 30))
answer(f"Added {event.title} on {event.start:%d %B %Y at %H:%M}")
""",
    "en-tomatoes": """
event = add_event("Water the tomatoes", datetime(<d,:tomorrow>, 8, 0))
answer(f"Added {event.title} to the calendar on {event.start:%d %B %Y at %H:%M}, as a reminder")
""",
    "en-harriet": """
answer("Dear Harriet,\\n\\nwe will gladly come on Sunday.\\n\\nKind regards")
""",
    "en-windows": """
cannot("There is no tool that pays.")
""",
    "en-grandma": """
cannot("There is no tool that makes phone calls.")
""",
    "en-dishwasher": """
found = find("serial number dishwasher")
number = extract(found.passages, "the serial number of the dishwasher", str)
answer(number)
""",
    "en-ladder": """
send_mail([person("Bartholomew")], "Ladder", "Do you still have the ladder?")
answer("Asked Bartholomew whether he still has the ladder")
""",
    # German
    "de-zaehler": """
found = find("Nummer Wasserzähler")
number = extract(found.passages, "die Nummer des Wasserzählers", str)
answer(number)
""",
    "de-impfung": """
found = find("Fritzi zuletzt geimpft")
day = extract(found.passages, "der Tag, an dem Fritzi zuletzt geimpft wurde", date)
answer(f"{day:%d.%m.%Y}")
""",
    "de-lehrerin": """
found = find("Klassenlehrerin Jonas")
name = extract(found.passages, "der Name der Klassenlehrerin von Jonas", str)
answer(name)
""",
    "de-geschenke": """
found = find("Geschenke gekostet")
costs = extract(found.passages, "was die Geschenke gekostet haben, mit Tag", list[{"day": date, "amount": float}])
answer(sum([cost.amount for cost in costs
    if cost.day >= date("<d.start:letztes Jahr>") and cost.day <= date("<d.end:letztes Jahr>")]))
""",
    "de-laufen": """
found = find("Kilometer gelaufen")
runs = extract(found.passages, "die gelaufenen Kilometer, mit Tag", list[{"day": date, "km": float}])
answer(sum([run.km for run in runs
    if run.day >= date("<d.start:diesen Monat>") and run.day <= date("<d.end:diesen Monat>")]))
""",
    "de-helfer": """
found = find("Stunden Vereinsheim geholfen Birgit Tarek")
hours = extract(found.passages, "die Stunden von Birgit und von Tarek im Vereinsheim",
    {"birgit": list[float], "tarek": list[float]})
if sum(hours.birgit) > sum(hours.tarek):
    answer("Birgit hat mehr Stunden geholfen")
else:
    answer("Tarek hat mehr Stunden geholfen")
""",
    "de-chor": """
found = find("nächste Chorprobe")
start = extract(found.passages, "Tag und Uhrzeit der nächsten Chorprobe", datetime)
answer(f"{start:%d.%m.%Y um %H:%M}")
""",
    "de-reifen": """
found = find("Winterreifen")
place = extract(found.passages, "wo die Winterreifen liegen", str)
answer(place)
""",
    "de-kuchen": """
send_mail([person("Wiebke")], "Kuchen", "Der Kuchen ist fertig.")
answer("Die Mail an Wiebke ist verschickt.")
""",
    "de-iban": """
found = find("Kontonummer Verein")
number = extract(found.passages, "die Kontonummer vom Verein", str)
send_mail([person("Tarek")], "Kontonummer vom Verein", f"Die Kontonummer vom Verein ist {number}.")
answer("Die Mail an Tarek ist verschickt.")
""",
    "de-heizung": """
day = today()
append_text("Heizung.txt", f"{day:%d.%m.%Y}: Die Heizung hatte 1,6 bar.\\n")
answer("Festgehalten: Die Heizung hatte heute 1,6 bar.")
""",
    "de-elternabend": """
event = add_event("Elternabend", datetime(<d,:übermorgen>, 16, 0))
answer(f"{event.title} am {event.start:%d.%m.%Y um %H:%M} eingetragen")
""",
    "de-tonne": """
event = add_event("Mülltonne", datetime(<d,:Montag>, 7, 0))
answer(f"{event.title} am {event.start:%d.%m.%Y um %H:%M} in den Kalender eingetragen, als Erinnerung")
""",
    "de-absage": """
answer("Sehr geehrter Herr Kolbe,\\n\\nleider muss ich absagen.\\n\\nMit freundlichen Grüßen")
""",
    "de-erde": """
cannot("Es gibt kein Werkzeug, das etwas bestellt oder kauft.")
""",
    "de-vierzig": """
cannot("Es gibt kein Werkzeug, das Geld überweist.")
""",
    "de-hund": """
found = find("Hund Familie Brandt")
name = extract(found.passages, "der Name des Hundes von Familie Brandt", str)
answer(name)
""",
    "de-zahnarzt": """
cannot("Die Anfrage widerspricht sich: Der Zahnarzt soll gestrichen werden und stehen bleiben.")
""",
    # French
    "fr-digicode": """
found = find("digicode immeuble Solène")
code = extract(found.passages, "le digicode de l'immeuble de Solène", str)
answer(code)
""",
    "fr-contrat": """
found = find("numéro de contrat assurance habitation")
number = extract(found.passages, "le numéro de contrat de l'assurance habitation", str)
answer(number)
""",
    "fr-vidange": """
found = find("dernière vidange voiture")
day = extract(found.passages, "le jour de la dernière vidange de la voiture", date)
answer(f"{day:%d/%m/%Y}")
""",
    "fr-cantine": """
found = find("cantine coûté")
costs = extract(found.passages, "ce que la cantine a coûté, avec le jour", list[{"day": date, "amount": float}])
day = today()
spring = [cost.amount for cost in costs
    if cost.day >= day.replace(month=3, day=1) and cost.day <= day.replace(month=5, day=31)]
answer(sum(spring))
""",
    "fr-dette": """
found = find("Inès rembourser")
loans = extract(found.passages, "les prêts à Inès, et s'ils sont remboursés", list[{"amount": float, "repaid": bool}])
answer(sum([loan.amount for loan in loans if not loan.repaid]))
""",
    "fr-tombola": """
found = find("vendu billets tombola")
sales = extract(found.passages, "les billets de tombola vendus, avec le nom du vendeur",
    list[{"name": str, "tickets": int}])
totals = group_rows(sales, "name", "tickets", how="sum")
best = max(totals, key=lambda row: row["tickets"])
answer(f"{best['name']}: {best['tickets']}")
""",
    "fr-encombrants": """
found = find("prochain ramassage encombrants")
day = extract(found.passages, "le jour du prochain ramassage des encombrants", date)
answer(f"{day:%d/%m/%Y}")
""",
    "fr-garde": """
found = find("garde enfants samedi")
name = extract(found.passages, "qui garde les enfants samedi (<d:samedi>)", str)
answer(name)
""",
    "fr-caravane": """
found = find("caravane garée")
place = extract(found.passages, "où est garée la caravane", str)
answer(place)
""",
    "fr-diner": """
send_mail([person("Maëlle")], "Dîner", "Le dîner est reporté à vendredi.")
answer("Le mail à Maëlle est envoyé.")
""",
    "fr-compteur": """
append_text("compteur.txt", "Le compteur affiche 48213.\\n")
answer("C'est noté : le compteur affiche 48213.")
""",
    "fr-notaire": """
event = add_event("Notaire", datetime(<d,:mercredi>, 14, 0))
answer(f"Ajouté : {event.title}, le {event.start:%d/%m/%Y à %H:%M}")
""",
    "fr-mairie": """
event = add_event("Passer à la mairie", datetime(<d,:demain>, 9, 0))
answer(f"Ajouté au calendrier : {event.title}, le {event.start:%d/%m/%Y à %H:%M}, comme rappel")
""",
    "fr-devis": """
answer("Monsieur Lacombe,\\n\\nnous acceptons le devis.\\n\\nCordialement")
""",
    "fr-pizza": """
cannot("Il n'y a pas d'outil qui commande ou achète.")
""",
    "fr-serrurier": """
cannot("Il n'y a pas d'outil qui téléphone.")
""",
    "fr-naissance": """
found = find("date de naissance Clotilde")
day = extract(found.passages, "la date de naissance de Clotilde", date)
answer(f"{day:%d/%m/%Y}")
""",
    "fr-theodule": """
send_mail([person("Théodule")], "D'accord", "C'est d'accord.")
answer("Le mail à Théodule est envoyé.")
""",
    # Spanish
    "es-candado": """
found = find("combinación candado trastero")
code = extract(found.passages, "la combinación del candado del trastero", str)
answer(code)
""",
    "es-matricula": """
found = find("matrícula furgoneta Nacho")
plate = extract(found.passages, "la matrícula de la furgoneta de Nacho", str)
answer(plate)
""",
    "es-sangre": """
found = find("donó sangre Rocío última vez")
day = extract(found.passages, "el día en que Rocío donó sangre por última vez", date)
answer(f"{day:%d/%m/%Y}")
""",
    "es-piano": """
found = find("gastado clases de piano")
costs = extract(found.passages, "lo gastado en las clases de piano, con su día", list[{"day": date, "amount": float}])
answer(sum([cost.amount for cost in costs
    if cost.day >= date("<d.start:este año>") and cost.day <= date("<d.end:este año>")]))
""",
    "es-aceite": """
found = find("litros aceite")
oil = extract(found.passages, "los litros de aceite, con su día", list[{"day": date, "litres": float}])
answer(sum([each.litres for each in oil
    if each.day >= date("<d.start:año pasado>") and each.day <= date("<d.end:año pasado>")]))
""",
    "es-finca": """
found = find("finca kilos Los Olmos La Vega")
kilos = extract(found.passages, "los kilos de la finca Los Olmos y de la finca La Vega",
    {"olmos": list[float], "vega": list[float]})
if sum(kilos.olmos) > sum(kilos.vega):
    answer("Los Olmos dio más kilos")
else:
    answer("La Vega dio más kilos")
""",
    "es-junta": """
found = find("próxima junta de vecinos")
start = extract(found.passages, "el día y la hora de la próxima junta de vecinos", datetime)
answer(f"{start:%d/%m/%Y a las %H:%M}")
""",
    "es-sillas": """
found = find("trae sillas fiesta")
name = extract(found.passages, "quién trae las sillas para la fiesta", str)
answer(name)
""",
    "es-primos": """
found = find("quedado primos")
place = extract(found.passages, "dónde hemos quedado con los primos", str)
answer(place)
""",
    "es-domingo": """
send_mail([person("Íñigo")], "Llegamos el domingo", "Llegamos el domingo.")
answer("He avisado a Íñigo de que llegáis el domingo.")
""",
    "es-gato": """
append_text("gato.txt", "El gato pesa 4,3 kilos.\\n")
answer("Apuntado: el gato pesa 4,3 kilos.")
""",
    "es-peluqueria": """
event = add_event("Peluquería", datetime(<d,:viernes>, 18, 30))
answer(f"He apuntado {event.title} el {event.start:%d/%m/%Y a las %H:%M}")
""",
    "es-paquete": """
event = add_event("Recoger el paquete", datetime(<d,:pasado mañana>, 10, 0))
answer(f"He apuntado {event.title} en el calendario el {event.start:%d/%m/%Y a las %H:%M}, como recordatorio")
""",
    "es-fotos": """
answer("Querido Fermín:\\n\\nMuchas gracias por las fotos.\\n\\nUn saludo")
""",
    "es-teatro": """
cannot("No hay ninguna herramienta para comprar.")
""",
    "es-casilda": """
send_mail([person("Casilda")], "Comida", "¿Vienes a comer?")
answer("He preguntado a Casilda si viene a comer.")
""",
    "es-estatura": """
found = find("mide Leandro")
height = extract(found.passages, "cuánto mide Leandro", str)
answer(height)
""",
    "es-cena": """
cannot("La petición se contradice: la cena no puede ser a las nueve y a las diez a la vez.")
""",
}
_SLOT = re.compile(r"<d(?P<form>,|\.start|\.end|):(?P<phrase>[^>]+)>")


def fill_days(plan: str, request: Request, today: date) -> str:
    """A plan with its slots filled, as a planner would write it for the request on this day."""
    named = named_dates(request.text, today)

    def fill(slot: re.Match[str]) -> str:
        phrase = slot["phrase"].casefold()
        period = next(each for each in named if phrase in each.phrase.casefold())
        match slot["form"]:
            case ",":
                return f"{period.start.year}, {period.start.month}, {period.start.day}"
            case ".end":
                return f"{period.end}"
            case _:
                return f"{period.start}"

    return _SLOT.sub(fill, plan.lstrip("\n"))
