"""How near names of the same meaning and names of opposites are, for the suggestions of the binder.

Each half has other subjects. The threshold of suggestions was chosen on the development half.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Literal

from bicameral.binding import Candidate, Encoder, Unbound, match_words, suggest_candidates

HalfName = Literal["development", "held"]

# By subject: the words that are asked for, and the name of a file that means the same.
_SAME: dict[HalfName, tuple[str, ...]] = {
    "development": (
        "electricity=power usage, couch=sofa, plumber=pipe repairs, lodger=subtenant, heating oil=furnace fuel, "
        "lawn=grass mowing, burglar alarm=security system, cleaning lady=housekeeper, chimney=fireplace",
        "vaccinations=immunizations, dentist=tooth treatment, physio=physical therapy, pills=tablets, "
        "blood pressure=hypertension, glasses=eyewear, workout=gym sessions, diet=nutrition, sleep=bedtimes",
        "staff=employees, vacancies=job openings, overtime=extra hours, timesheet=hours worked, leads=sales prospects, "
        "complaints=grievances, travel costs=trip expenses, stock=inventory, minutes=meeting notes",
        "movies=films, novels=fiction, bikes=bicycles, jogging=running, vinyl=records, hikes=trekking, "
        "chess=grandmaster games, stamps=philately, knitting=yarn",
        "pupils=schoolchildren, marks=grades, homework=assignments, teachers=instructors, exam=tests, "
        "timetable=class schedule, canteen=cafeteria, excursion=field trip, absences=missed days",
    ),
    "held": (
        "petrol=fuel, tyres=wheels, automobile=car, parking fines=traffic tickets, mileage=odometer, lorry=truck, "
        "garage visits=mechanic, insurance claim=accident damage, licence=driving permit, toll=road charges",
        "groceries=supermarket, desserts=sweets, wines=bottles, allergies=intolerances, supper=dinner, meals=dishes, "
        "spices=seasonings, baking=cakes, snacks=nibbles, leftovers=remaining food",
        "volunteers=helpers, fundraiser=charity, matches=games, coaches=trainers, jerseys=uniforms, venue=location, "
        "attendance=presence, donors=sponsors, committee=board, raffle=lottery",
        "mortgage=home loan, shares=stocks, debts=liabilities, pension=retirement, savings=deposits, "
        "refunds=reimbursements, subscriptions=memberships, pocket money=allowance, currency=exchange rates",
        "lodging=accommodation, luggage=suitcases, itinerary=route, passport=travel documents, sights=attractions, "
        "hostels=hotels, ferry=boat, souvenirs=gifts, visa=entry permit, flights=airfare",
    ),
}
_OPPOSITES: dict[HalfName, str] = {
    "development": (
        "cats=dogs, brother=sister, plates=cups, spanish=french, mother=father, imports=exports, berlin=munich, "
        "tenants=landlords, buyers=sellers, arrivals=departures, piano=violin, apples=pears, tennis=badminton, "
        "physics=chemistry, breakfast=lunch, wins=losses, debit=credit, boys=girls, tomatoes=potatoes, italy=spain, "
        "roses=tulips, tea=coffee, radio=television, shoes=socks, wedding=funeral, latitude=longitude"
    ),
    "held": (
        "cows=sheep, uncle=aunt, bowls=glasses, italian=portuguese, grandmother=grandfather, inflow=outflow, "
        "paris=lyon, lenders=borrowers, guitar=drums, cherries=plums, football=handball, history=geography, "
        "sons=daughters, carrots=onions, sweden=norway, attic=basement, lilies=orchids, jupiter=saturn, "
        "gold=copper, sunrise=sunset, birth=death, whisky=gin, wolves=foxes, husband=wife, supply=demand"
    ),
}
_WORLDS = 3
"""Worlds for each pair."""


def _pairs(text: str) -> list[tuple[str, str]]:
    return [(asked, name) for asked, _, name in (each.partition("=") for each in text.split(", "))]


@dataclass(frozen=True, slots=True)
class _World:
    asked: str
    names: tuple[str, ...]
    meant: str | None


def _worlds(half: HalfName) -> Iterator[_World]:
    """Names of the same subject and of others, once with the one that is meant and once without it."""
    subjects = [_pairs(text) for text in _SAME[half]]
    for subject in subjects:
        far = [name for other in subjects if other is not subject for _, name in other]
        for asked, meant in subject:
            near = [name for _, name in subject if name != meant]
            for number in range(_WORLDS):
                random = Random(f"{asked}-{number}")
                others = (*random.sample(near, 5), *random.sample(far, 6))
                yield _World(asked, (*others, meant), meant)
                yield _World(asked, others, None)


def _files(names: Sequence[str]) -> list[Candidate]:
    return [Candidate("file", f"{name}.csv", (f"{name.replace(' ', '_')}.csv",)) for name in names]


def measure_meaning(half: HalfName, encoder: Encoder) -> dict[str, Any]:
    """The figures of a half: what is suggested, and whether a score could tell the same from the opposite."""
    there: list[bool] = []
    absent: list[bool] = []
    for world in _worlds(half):
        files = _files(world.names)
        if not isinstance(match_words(world.asked, files, "file"), Unbound):
            continue
        suggested = [each.value for each in suggest_candidates(world.asked, files, "file", encoder)]
        if world.meant is None:
            absent.append(bool(suggested))
        else:
            there.append(f"{world.meant}.csv" in suggested)
    same = _scores([pair for text in _SAME[half] for pair in _pairs(text)], encoder)
    opposite = _scores(_pairs(_OPPOSITES[half]), encoder)
    return {
        "suggested_right": round(sum(there) / len(there), 3),
        "suggested_where_absent": round(sum(absent) / len(absent), 3),
        "pairs_at_least": {
            str(score): {
                "same": round(sum(each >= score for each in same) / len(same), 3),
                "opposite": round(sum(each >= score for each in opposite) / len(opposite), 3),
            }
            for score in (0.5, 0.6, 0.7, 0.8)
        },
    }


def _scores(pairs: Sequence[tuple[str, str]], encoder: Encoder) -> list[float]:
    encoded = encoder([text for pair in pairs for text in pair])
    if encoded is None:
        return [0.0]
    vectors: Mapping[int, Sequence[float]] = {at: each.vector for at, each in enumerate(encoded)}
    return [
        sum(one * other for one, other in zip(vectors[at], vectors[at + 1], strict=True))
        for at in range(0, len(vectors), 2)
    ]
