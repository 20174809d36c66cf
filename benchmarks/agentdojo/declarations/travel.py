"""The travel suite: ratings and prices are the platform's figures, reviews are written by anybody who stayed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from bicameral.tools import Origin

from . import ECHO, Declaration
from .workspace import (
    CANCEL_CALENDAR_EVENT,
    CREATE_CALENDAR_EVENT,
    GET_DAY_CALENDAR_EVENTS,
    SEARCH_CALENDAR_EVENTS,
    SEND_EMAIL,
)

# A hotel names and describes itself; the platform takes the bookings, sets the prices it sells at and works out the
# rating. All of it anybody can look up.
_LISTED = Origin("third_party", "public")
_FIGURE = Origin("system", "public")
_LISTING = {"": _LISTED}
_PRICE = {"": _LISTED, "*": _FIGURE}
_PRICE_RANGE = {"": _LISTED, "*.price_min": _FIGURE, "*.price_max": _FIGURE}
_RATED = {"": _LISTED, "*.rating": _FIGURE, "*.reviews": Origin("third_party", "public")}

_RESERVING = ("reserve", "book", "make a reservation")


def _about(argument: str, result: Mapping[str, Origin]) -> Declaration:
    return Declaration("read", {argument: "selects"}, result)


DECLARATIONS: Mapping[str, Declaration] = {
    "get_user_information": Declaration("read", result={"": Origin("user")}),
    "get_all_hotels_in_city": _about("city", _LISTING),
    "get_hotels_prices": _about("hotel_names", _PRICE_RANGE),
    "get_rating_reviews_for_hotels": _about("hotel_names", _RATED),
    "get_hotels_address": _about("hotel_name", _LISTING),
    "get_all_restaurants_in_city": _about("city", _LISTING),
    "get_cuisine_type_for_restaurants": _about("restaurant_names", _LISTING),
    "get_restaurants_address": _about("restaurant_names", _LISTING),
    "get_rating_reviews_for_restaurants": _about("restaurant_names", _RATED),
    "get_dietary_restrictions_for_all_restaurants": _about("restaurant_names", _LISTING),
    "get_contact_information_for_restaurants": _about("restaurant_names", _LISTING),
    "get_price_for_restaurants": _about("restaurant_names", _PRICE),
    "check_restaurant_opening_hours": _about("restaurant_names", _LISTING),
    "get_all_car_rental_companies_in_city": _about("city", _LISTING),
    "get_car_types_available": _about("company_name", _LISTING),
    "get_rating_reviews_for_car_rental": _about("company_name", _RATED),
    "get_car_fuel_options": _about("company_name", _LISTING),
    "get_car_rental_address": _about("company_name", _LISTING),
    "get_car_price_per_day": _about("company_name", _PRICE),
    # This suite has no address book: nothing is there that a person's name could be looked up in.
    "create_calendar_event": replace(CREATE_CALENDAR_EVENT, refers={}),
    "search_calendar_events": SEARCH_CALENDAR_EVENTS,
    "get_day_calendar_events": GET_DAY_CALENDAR_EVENTS,
    "cancel_calendar_event": CANCEL_CALENDAR_EVENT,
    "reserve_hotel": Declaration(
        "irreversible",
        {"hotel": "directs", "start_day": "directs", "end_day": "directs"},
        {"": ECHO},
        words=_RESERVING,
    ),
    "reserve_car_rental": Declaration(
        "irreversible",
        {"company": "directs", "start_time": "directs", "end_time": "directs"},
        {"": ECHO},
        words=(*_RESERVING, "rent", "hire"),
    ),
    "reserve_restaurant": Declaration(
        "irreversible", {"restaurant": "directs", "start_time": "directs"}, {"": ECHO}, words=_RESERVING
    ),
    "get_flight_information": Declaration(
        "read",
        {"departure_city": "selects", "arrival_city": "selects"},
        {
            "": _LISTED,
            "[].flight_number": _FIGURE,
            "[].departure_time": _FIGURE,
            "[].arrival_time": _FIGURE,
            "[].price": _FIGURE,
        },
    ),
    "send_email": replace(SEND_EMAIL, refers={}),
}
