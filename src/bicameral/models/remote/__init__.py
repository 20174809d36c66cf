"""Models over the network, all families through one provider.

A family, the name of a model and a key come in; `RemoteProvider` speaks to the server through the model classes of
`pydantic-ai-slim`, which are imported with the first request. What can go wrong comes out as a `ModelFailure`. Nothing
is taken from the environment: neither a key nor an address that was not given.
"""

from bicameral.models.remote._provider import RemoteProvider, remote_model_name
from bicameral.models.remote._servers import FAMILIES, Family

__all__ = ["FAMILIES", "Family", "RemoteProvider", "remote_model_name"]
