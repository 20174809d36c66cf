"""Documents of servers: the tools that list and read them."""

from __future__ import annotations

from collections.abc import Sequence

from bicameral.firewall import Document, DocumentKind
from bicameral.firewall._documents import document_tools  # pyright: ignore[reportPrivateUsage]
from bicameral.labels import Labelled, untrusted_value


def test_servers_with_documents_may_have_names_that_are_nearly_the_same() -> None:
    class Shelves:
        def servers(self, kind: DocumentKind, /) -> list[str]:
            return ["a-b", "a_b", "a_-b", "a-_b"]

        def is_outbound(self, server: str, /) -> bool:
            return False

        async def list(self, server: str, kind: DocumentKind, /) -> Labelled[Sequence[Document]]:
            return untrusted_value((), server)

        async def read(self, server: str, kind: DocumentKind, address: str, /) -> Labelled[str]:
            return untrusted_value("", server)

    names = [tool.name for tool in document_tools(Shelves())]
    assert len(set(names)) == len(names) == 16
    assert all(name.isidentifier() for name in names)
