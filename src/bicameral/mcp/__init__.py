"""MCP servers as tools: a connection to each, bounded and confined, and its tools as a person has declared them.

In come the settings of a server, `[mcp.NAME]` in `bicameral.toml`; out come ordinary `Tool`s. What a server says of its
tools is untrusted, and so is every text that it returns: descriptions are shown to the person who reviews them and to
no model. A tool that is not what was reviewed is not called, and what a server asks is put to the person. The library
for MCP is imported when a server is first talked to.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bicameral.mcp._settings import (
    McpSettings as McpSettings,
    ServerName as ServerName,
    command_text as command_text,
    confinement_text as confinement_text,
    server_name_problem as server_name_problem,
)

if TYPE_CHECKING:
    from bicameral.mcp._checks import ServerCheck as ServerCheck, check_servers as check_servers
    from bicameral.mcp._connection import ServerConnection as ServerConnection, require_mcp as require_mcp
    from bicameral.mcp._grants import (
        ProtectedPlaces as ProtectedPlaces,
        ServerGrants as ServerGrants,
        forget_client_file as forget_client_file,
        record_client_file as record_client_file,
        recorded_client_files as recorded_client_files,
        server_grants as server_grants,
    )
    from bicameral.mcp._review import (
        ServerReview as ServerReview,
        known_declarations as known_declarations,
        known_server_of as known_server_of,
        known_servers as known_servers,
        review_server as review_server,
    )
    from bicameral.mcp._server_tools import (
        DOCUMENT_TOOLS as DOCUMENT_TOOLS,
        ServerTools as ServerTools,
        UnusableServerWarning as UnusableServerWarning,
        mcp_tools as mcp_tools,
    )


# Every configuration has the settings of servers; the rest is loaded where a server is used.
_LATER = {
    "_checks": ("ServerCheck", "check_servers"),
    "_connection": ("ServerConnection", "require_mcp"),
    "_grants": (
        "ProtectedPlaces",
        "ServerGrants",
        "forget_client_file",
        "record_client_file",
        "recorded_client_files",
        "server_grants",
    ),
    "_review": ("ServerReview", "known_declarations", "known_server_of", "known_servers", "review_server"),
    "_server_tools": ("DOCUMENT_TOOLS", "ServerTools", "UnusableServerWarning", "mcp_tools"),
}


def __getattr__(name: str) -> Any:
    for module, names in _LATER.items():
        if name in names:
            return getattr(import_module(f".{module}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
