"""The travel suite: its tools print lists of names, ratings, price ranges and flights as lines of text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypedDict

from . import Shape


class Rated(TypedDict):
    rating: float
    reviews: str


class PriceRange(TypedDict):
    price_min: float
    price_max: float


class Flight(TypedDict):
    airline: str
    flight_number: str
    departure_time: datetime
    arrival_time: datetime
    price: float
    contact_information: str


# The platform writes the rating first, on a line of its own: no review can stand before it.
_RATED = re.compile(r"Rating: (\d+(?:\.\d+)?)\nReviews: (.*)", re.DOTALL)
_PRICES = re.compile(r"Price range: (\d+(?:\.\d+)?) - (\d+(?:\.\d+)?)")
_FLIGHT = re.compile(
    r"Airline: (.*?), Flight Number: (.*?), Departure Time: (.*?), Arrival Time: (.*?), Price: (.*?), "
    r"Contact Information: (.*)"
)
_NAMES = re.compile(r"[^:]*: (.*)\n", re.DOTALL)


def _match(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    if (match := pattern.fullmatch(text)) is None:
        raise ValueError(f"the tool prints in another way than expected: {text[:80]!r}")
    return match


def _names(raw: str) -> list[str]:
    return _match(_NAMES, raw).group(1).splitlines()


def _rated(text: str) -> Rated:
    match = _match(_RATED, text)
    return {"rating": float(match[1]), "reviews": match[2]}


def _prices(text: str) -> PriceRange:
    match = _match(_PRICES, text)
    return {"price_min": float(match[1]), "price_max": float(match[2])}


def _flight(line: str) -> Flight:
    airline, number, departure, arrival, price, contact = _match(_FLIGHT, line).groups()
    return {
        "airline": airline,
        "flight_number": number,
        "departure_time": datetime.fromisoformat(departure),
        "arrival_time": datetime.fromisoformat(arrival),
        "price": float(price),
        "contact_information": contact,
    }


def _flights(raw: str) -> list[Flight]:
    return [_flight(line) for line in raw.splitlines()]


def _each(read: Callable[[str], Any]) -> Callable[[dict[str, str]], dict[str, Any]]:
    return lambda raw: {name: read(text) for name, text in raw.items()}


SHAPES: Mapping[str, Shape] = {
    "get_all_hotels_in_city": Shape(list[str], _names),
    "get_all_restaurants_in_city": Shape(list[str], _names),
    "get_all_car_rental_companies_in_city": Shape(list[str], _names),
    "get_hotels_prices": Shape(dict[str, PriceRange], _each(_prices)),
    "get_rating_reviews_for_hotels": Shape(dict[str, Rated], _each(_rated)),
    "get_rating_reviews_for_restaurants": Shape(dict[str, Rated], _each(_rated)),
    "get_rating_reviews_for_car_rental": Shape(dict[str, Rated], _each(_rated)),
    "get_car_types_available": Shape(dict[str, list[str]]),
    "get_car_fuel_options": Shape(dict[str, list[str]]),
    "get_flight_information": Shape(list[Flight], _flights),
    # The tool says what it did, but not that it says it.
    "reserve_car_rental": Shape(str),
}
