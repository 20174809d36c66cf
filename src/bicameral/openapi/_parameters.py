"""Parameters and bodies of operations: where each value goes, how it is written, and which are never sent.

Some names decide more than a value: headers by which servers take a call for another one, or fields that frameworks
take for its method. No plan sets them, whatever a document says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from bicameral.openapi._document import as_list, folded_name
from bicameral.openapi._settings import HEADER_NAME, TRANSPORT_HEADERS

Place = Literal["path", "query", "header", "cookie"]
STYLES: dict[str, tuple[str, ...]] = {
    # The first is the default.
    "path": ("simple", "label", "matrix"),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form",),
}
FORM = "application/x-www-form-urlencoded"
DESCRIBED_ELSEWHERE = ("accept", "authorization", "content-type")
"""Headers whose parameters count for nothing, as OpenAPI has it: other parts of a document say what they are."""
_STEERING = re.compile(
    r"x-(http-)?method(-override)?|x-(original|rewrite|override)-(host|method|path|uri|url)|x-envoy-original-path"
    r"|(x-)?forwarded(-.*)?|x-(cluster-)?client-ip|x-real-ip|x-host|x-http-host-override|(set-)?cookie2?|via|proxy-.*"
)
"""Headers by which servers and proxies take a call for another one: of another method, path, host or client."""
METHOD_FIELDS = frozenset({"_method", "x-http-method-override", "x-http-method", "x-method-override"})
"""Fields of a query or form that frameworks take for the method of the call, as `folded_name` writes them."""


class UnusableOperation(ValueError):
    """Why an operation makes no tool, in words for the person who reviews the document."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument that goes into the address, a header or a cookie.

    Args:
        key: The name of the argument.
        name: The name in the request.
        place: Where it goes.
        style: How lists and objects are written.
        explode: Whether their parts are written one by one.
        as_json: Whether it is written as JSON, whatever it is.
    """

    key: str
    name: str
    place: Place
    style: str
    explode: bool
    as_json: bool = False

    @property
    def place_text(self) -> str:
        """Where it goes and how, in words for people."""
        style = "JSON" if self.as_json else f"{self.style}, exploded" if self.explode else self.style
        return f"{self.place} {self.name} ({style})"


@dataclass(frozen=True, slots=True)
class Body:
    """The body of a request.

    Args:
        media: Its media type.
        required: Whether it is sent also without any argument for it.
        fields: Argument and field of the body, where the fields are arguments.
        key: The argument that is the whole body, otherwise.
        styled: Fields of a form that are written as parameters of a query are, by their arguments.
    """

    media: str
    required: bool
    fields: Mapping[str, str] = field(default_factory=dict[str, str])
    key: str = ""
    styled: Mapping[str, Parameter] = field(default_factory=dict[str, Parameter])


def name_fault(place: str, name: str) -> str | None:
    """Why a parameter of this name is not sent."""
    if place == "header":
        # Servers that hand headers on as variables of an environment write `_` for `-`.
        folded = name.lower().replace("_", "-")
        if not HEADER_NAME.fullmatch(name):
            return "a header has a name that no header can have"
        if folded in TRANSPORT_HEADERS:
            return f"the header {name!r} is set by the client"
        if _STEERING.fullmatch(folded):
            return f"the header {name!r} can turn a call into another one"
    if place in ("query", "body") and folded_name(name) in METHOD_FIELDS:
        return "a field can turn a call into one with another method"
    if place == "cookie" and not HEADER_NAME.fullmatch(name):
        return "a cookie has a name that no cookie can have"
    return None


def read_style(place: str, facts: Mapping[str, Any]) -> tuple[str, bool]:
    """How lists and objects are written, and whether their parts are written one by one."""
    style = facts.get("style", STYLES[place][0])
    if style not in STYLES[place]:
        raise UnusableOperation("a parameter is written in a style that is not known here")
    return style, facts.get("explode", style == "form") is True


def can_be_object(schema: Mapping[str, Any]) -> bool:
    kinds = schema.get("type", "object")
    return "object" in (as_list(kinds) or [kinds])
