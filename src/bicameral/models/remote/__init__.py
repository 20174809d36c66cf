"""Models behind a network API, all families through one provider.

`RemoteProvider` takes a family, the name of a model and a key, and speaks to the server through the model classes of
`pydantic-ai-slim`, which are imported at the first request. Errors are raised as `ModelFailure`. Neither keys nor
addresses are taken from the environment.
"""

from bicameral.models.remote._provider import RemoteProvider as RemoteProvider, remote_model_name as remote_model_name
from bicameral.models.remote._servers import FAMILIES as FAMILIES, LITELLM_FIX as LITELLM_FIX, Family as Family
