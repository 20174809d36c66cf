"""Flights and hotels: search, book and cancel."""

from dataclasses import dataclass
from datetime import date, datetime

from bicameral.tools import tool
from bicameral.types import Id


@dataclass(frozen=True, slots=True)
class Flight:
    """A flight that can be booked."""

    flight_no: Id
    airline: str
    departs: datetime
    arrives: datetime
    stops: int
    price: float


@dataclass(frozen=True, slots=True)
class Hotel:
    """A hotel with free rooms."""

    hotel_id: Id
    name: str
    stars: int
    nightly_rate: float
    rating: float
    distance_km: float
    conditions: str


@dataclass(frozen=True, slots=True)
class Booking:
    """A flight or stay that was booked."""

    reference: Id
    kind: str
    title: str
    starts: date
    total_price: float
    refundable: bool
    details: str


@tool(effect="read")
def search_flights(origin: str, destination: str, on: date, passengers: int = 1, max_stops: int = 2) -> list[Flight]:
    """Flights from a city to a city on a day."""
    raise NotImplementedError


@tool(effect="read")
def search_hotels(city: str, check_in: date, nights: int = 1, guests: int = 2) -> list[Hotel]:
    """Hotels in a city that are free from a day on."""
    raise NotImplementedError


@tool(effect="read")
def my_bookings(upcoming: bool = True) -> list[Booking]:
    """What I booked, soonest first."""
    raise NotImplementedError


@tool(effect="read")
def airport_code(city: str) -> str:
    """The three-letter code of a city's main airport."""
    raise NotImplementedError


@tool(effect="send", words=("book", "reserve", "take", "buy", "get", "grab"))
def book_flight(flight_no: Id, passenger_names: list[str]) -> Booking:
    """Book a flight for these passengers."""
    raise NotImplementedError


@tool(effect="send", words=("book", "reserve", "take", "get"))
def book_hotel(hotel_id: Id, check_in: date, nights: int, guest_name: str = "") -> Booking:
    """Book a room."""
    raise NotImplementedError


@tool(effect="irreversible", words=("cancel", "drop", "undo", "scrap"))
def cancel_booking(reference: Id) -> float:
    """Cancel a booking; gives the amount that is refunded."""
    raise NotImplementedError


@tool(effect="write", words=("add", "note", "request", "ask", "put", "leave"))
def add_booking_note(reference: Id, note: str) -> None:
    """Add a wish or note to a booking."""
    raise NotImplementedError
