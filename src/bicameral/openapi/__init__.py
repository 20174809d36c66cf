"""OpenAPI documents as tools: the operations of an API, typed, declared by a person, and called with the user's keys.

In come the settings of an API, `[openapi.NAME]` in `bicameral.toml`, and the copy of its document that was reviewed;
out come ordinary `Tool`s. A document is untrusted: it decides neither where calls go nor which keys they get, and no
model reads its texts. A document that is not the one that was reviewed stops its tools. Values become parts of an
address, a header or a body and can become nothing else; answers are bounded and checked against their schemas.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bicameral.openapi._settings import (
    OpenApiSettings as OpenApiSettings,
    openapi_files as openapi_files,
    server_problem as server_problem,
)

if TYPE_CHECKING:
    from bicameral.openapi._calls import ApiServer as ApiServer
    from bicameral.openapi._document import (
        OpenApiDocument as OpenApiDocument,
        SecurityScheme as SecurityScheme,
        fetch_document as fetch_document,
        is_address as is_address,
        parse_document as parse_document,
        read_stored_document as read_stored_document,
        require_openapi as require_openapi,
    )
    from bicameral.openapi._operations import Operation as Operation, security_schemes as security_schemes
    from bicameral.openapi._tools import (
        DocumentReview as DocumentReview,
        changed_operations as changed_operations,
        openapi_tools as openapi_tools,
        review_document as review_document,
    )


# Every configuration has the settings of APIs; the rest is loaded where one is used.
_LATER = {
    "_calls": ("ApiServer",),
    "_document": (
        "OpenApiDocument",
        "SecurityScheme",
        "fetch_document",
        "is_address",
        "parse_document",
        "read_stored_document",
        "require_openapi",
    ),
    "_operations": ("Operation", "security_schemes"),
    "_tools": ("DocumentReview", "changed_operations", "openapi_tools", "review_document"),
}


def __getattr__(name: str) -> Any:
    for module, names in _LATER.items():
        if name in names:
            return getattr(import_module(f".{module}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
