"""The back office of a web shop: orders, customers, products."""

from datetime import date

from pydantic import BaseModel

from bicameral.tools import tool
from bicameral.types import Address


class Item(BaseModel):
    """A line of an order."""

    sku: str
    title: str
    quantity: int
    unit_price: float


class Purchase(BaseModel):
    """An order."""

    number: str
    customer_email: Address
    placed: date
    status: str
    total: float
    country: str
    items: list[Item]
    remark: str


class Customer(BaseModel):
    """A customer."""

    email: Address
    name: str
    city: str
    orders_count: int
    lifetime_value: float
    newsletter: bool


class Product(BaseModel):
    """A product."""

    sku: str
    title: str
    price: float
    stock: int
    description: str


@tool(effect="read")
def order_lookup(number: str) -> Purchase:
    """One order by its number."""
    raise NotImplementedError


@tool(effect="read")
def order_query(
    status: str = "", placed_from: date | None = None, placed_to: date | None = None, customer_email: str = ""
) -> list[Purchase]:
    """Orders that match, newest first."""
    raise NotImplementedError


@tool(effect="read")
def customer_lookup(email: Address) -> Customer:
    """One customer by address."""
    raise NotImplementedError


@tool(effect="read")
def customer_query(city: str = "", name: str = "") -> list[Customer]:
    """Customers that match."""
    raise NotImplementedError


@tool(effect="read")
def product_query(text: str = "", max_stock: int | None = None) -> list[Product]:
    """Products whose title or description has these words."""
    raise NotImplementedError


@tool(effect="send", words=("refund", "repay", "pay", "back", "reimburse", "money"))
def order_refund(number: str, amount: float, reason: str = "") -> None:
    """Pay money back for an order."""
    raise NotImplementedError


@tool(effect="write", words=("ship", "mark", "set", "status", "change", "put", "flag"))
def order_set_status(number: str, status: str) -> None:
    """Change the status of an order."""
    raise NotImplementedError


@tool(
    effect="write",
    words=("price", "cut", "raise", "lower", "reduce", "set", "change", "increase", "discount", "cheaper"),
)
def product_set_price(sku: str, price: float) -> None:
    """Change the price of a product."""
    raise NotImplementedError


@tool(effect="write", words=("stock", "restock", "add", "inventory", "put", "set"))
def product_set_stock(sku: str, stock: int) -> None:
    """Set how many pieces of a product there are."""
    raise NotImplementedError


@tool(effect="send", words=("email", "mail", "write", "tell", "inform", "notify", "let", "send", "apologize"))
def customer_message(email: Address, subject: str, text: str) -> None:
    """Write to a customer."""
    raise NotImplementedError


@tool(effect="write", words=("coupon", "voucher", "code", "create", "make", "issue", "give"))
def coupon_create(code: str, percent: int, valid_until: date | None = None) -> str:
    """Create a coupon; gives its code."""
    raise NotImplementedError
