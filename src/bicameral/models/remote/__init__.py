"""Models over the network, all families through one provider.

A family, the name of a model and a key come in; `RemoteProvider` speaks to the server through the model classes of
`pydantic-ai-slim`, which are imported with the first request. What can go wrong comes out as a `ModelFailure`. Nothing
is taken from the environment: neither a key nor an address that was not given.
"""

from bicameral.models.remote._families import FAMILIES, Family
from bicameral.models.remote._network import name_of
from bicameral.models.remote._provider import RemoteProvider

__all__ = ["FAMILIES", "Family", "RemoteProvider", "name_of"]
