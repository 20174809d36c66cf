"""Configuration: one `bicameral.toml`, environment variables over it, and defaults that serve without either.

A working folder comes in; out goes a frozen `Config`, and from it everything that an agent needs: its tools, models,
journal and cache. `doctor` looks at all of it and at the machine, and says what to mend.
"""

from bicameral.user_folders import user_folder

from ._acceptance import (
    Confirm,
    Unaccepted,
    UnacceptedConfigWarning,
    acceptance_file,
    forget_acceptance,
    record_acceptance,
    unaccepted,
)
from ._check import Check, Health
from ._config import STANDARD, Config, ConfigFile, Profile, Role, config_schema
from ._costs import budgets_of, open_prices
from ._doctor import doctor
from ._durable import DurableSettings, QuotaSettings, QuotaTable, rate_of
from ._environment import SHORT as SHORT_VARIABLES
from ._init_text import init_text
from ._llm import AgentSettings, LlmSettings, llm_config_schema, profile_schema
from ._load import find_file, load_config, what_widens
from ._models import EmbeddedProvider, Models, open_models, open_router, routing_notes
from ._policy import open_policy
from ._protection import protected_paths
from ._reason import bounds_of
from ._registry import open_registry, surroundings_of
from ._storage import open_cache, open_journal
from ._weights import fetch_weights, missing_weights, model_store, needed_weights, size_text

__all__ = [
    "SHORT_VARIABLES",
    "STANDARD",
    "AgentSettings",
    "Check",
    "Config",
    "ConfigFile",
    "Confirm",
    "DurableSettings",
    "EmbeddedProvider",
    "Health",
    "LlmSettings",
    "Models",
    "Profile",
    "QuotaSettings",
    "QuotaTable",
    "Role",
    "Unaccepted",
    "UnacceptedConfigWarning",
    "acceptance_file",
    "bounds_of",
    "budgets_of",
    "config_schema",
    "doctor",
    "fetch_weights",
    "find_file",
    "forget_acceptance",
    "init_text",
    "llm_config_schema",
    "load_config",
    "missing_weights",
    "model_store",
    "needed_weights",
    "open_cache",
    "open_journal",
    "open_models",
    "open_policy",
    "open_prices",
    "open_registry",
    "open_router",
    "profile_schema",
    "protected_paths",
    "rate_of",
    "record_acceptance",
    "routing_notes",
    "size_text",
    "surroundings_of",
    "unaccepted",
    "user_folder",
    "what_widens",
]
