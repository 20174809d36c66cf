"""A warehouse: stock, bins, deliveries, pallets."""

from dataclasses import dataclass
from datetime import date

from bicameral.tools import tool
from bicameral.types import Id


@dataclass(frozen=True, slots=True)
class Article:
    """An article in stock."""

    article_no: str
    name: str
    quantity: int
    minimum: int
    bin: str
    weight_kg: float
    expires: date


@dataclass(frozen=True, slots=True)
class Delivery:
    """Goods that come in; `papers` is the text of the delivery note."""

    delivery_id: Id
    supplier: str
    due: date
    pallets: int
    arrived: bool
    papers: str


@dataclass(frozen=True, slots=True)
class Pick:
    """A line of a picking list."""

    article_no: str
    quantity: int
    bin: str


@tool(effect="read")
def stock_list(bin: str = "", below_minimum: bool = False) -> list[Article]:
    """What is in stock."""
    raise NotImplementedError


@tool(effect="read")
def stock_of(article_no: str) -> int:
    """How many pieces of an article there are."""
    raise NotImplementedError


@tool(effect="read")
def article_find(name: str) -> list[Article]:
    """Articles by a word in their name."""
    raise NotImplementedError


@tool(effect="read")
def deliveries_due(day: date, until: date | None = None) -> list[Delivery]:
    """Deliveries that are due on a day or up to another day."""
    raise NotImplementedError


@tool(effect="read")
def picking_list(order_no: str) -> list[Pick]:
    """What has to be picked for an order."""
    raise NotImplementedError


@tool(effect="read")
def bin_is_free(bin: str) -> bool:
    """Whether nothing lies in a bin."""
    raise NotImplementedError


@tool(effect="write", words=("move", "relocate", "shift", "transfer", "put", "bring"))
def do_move(article_no: str, target_bin: str) -> None:
    """Move an article to another bin."""
    raise NotImplementedError


@tool(effect="write", words=("book", "correct", "adjust", "set", "count", "write", "record", "stock"))
def do_correct_stock(article_no: str, quantity: int) -> None:
    """Correct the quantity of an article after counting."""
    raise NotImplementedError


@tool(effect="write", words=("receive", "arrive", "check", "mark", "arrived", "accept", "book"))
def do_receive(delivery_id: Id) -> None:
    """Mark a delivery as arrived."""
    raise NotImplementedError


@tool(effect="send", words=("order", "reorder", "buy", "restock", "replenish"))
def do_reorder(article_no: str, quantity: int, express: bool = False) -> str:
    """Order more from the supplier; gives the order number."""
    raise NotImplementedError


@tool(effect="irreversible", words=("scrap", "dispose", "discard", "throw", "destroy", "write-off"))
def do_scrap(article_no: str, quantity: int) -> None:
    """Scrap pieces of an article."""
    raise NotImplementedError
