"""The firewall: any MCP client works with any tools, under the same labels and policies as a plan.

A client connects and has a session, which is a run with its record. What others may have written reaches its model as
names with typed summaries; it passes the names on, also from one server to another, and the values keep their labels.
Every call is decided by the policies; a person is asked through the client or in the inbox, and with nobody to ask the
answer is no. `Firewall` holds the tools and the settings, `serve_firewall` serves clients, and `rewrite_client_config`
puts the firewall into the configuration of a client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bicameral.firewall._approvals import Inbox as Inbox
from bicameral.firewall._client_config import (
    ClientRewrite as ClientRewrite,
    entry_environment as entry_environment,
    restore_client_config as restore_client_config,
    rewrite_client_config as rewrite_client_config,
)
from bicameral.firewall._client_entries import MovedSecret as MovedSecret
from bicameral.firewall._documents import (
    Document as Document,
    DocumentKind as DocumentKind,
    Resources as Resources,
    document_tools as document_tools,
)
from bicameral.firewall._firewall import Firewall as Firewall
from bicameral.firewall._serve import (
    HttpTransport as HttpTransport,
    StdioTransport as StdioTransport,
    Transport as Transport,
    require_mcp,
    serve_firewall as serve_firewall,
)
from bicameral.firewall._servers import FirewallServers as FirewallServers, follow_reviews as follow_reviews
from bicameral.firewall._session import FirewallSession as FirewallSession
from bicameral.firewall._settings import FirewallSettings as FirewallSettings, ServerRules as ServerRules

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server


def create_server(firewall: Firewall, *, owner: str = "local") -> Server[FirewallSession]:
    """The MCP server of a firewall, for a transport of one's own; each connection has a session.

    Example:
        >>> async with Client(create_server(firewall)) as client:
        ...     await client.call_tool("mail_list", {"folder": "inbox"})
    """
    require_mcp()
    from bicameral.firewall._server import create_server as create

    return create(firewall, owner=owner)
