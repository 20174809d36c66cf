"""Configuration: one `bicameral.toml`, environment variables over it, and defaults that serve without either.

A working folder comes in; out goes a frozen `Config`, and from it everything that an agent needs: its tools, models,
journal and cache. `doctor` looks at all of it and at the machine, and says what to mend.
"""

from bicameral.cache import user_folder
from bicameral.config._acceptance import (
    Confirm,
    UnacceptedConfig,
    UnacceptedConfigWarning,
    acceptance_file,
    find_unaccepted,
    forget_acceptance,
    record_acceptance,
)
from bicameral.config._config import (
    STANDARD,
    Config,
    ConfigFile,
    DurableSettings,
    Profile,
    QuotaSettings,
    QuotaTable,
    Role,
    config_schema,
    parse_rate,
)
from bicameral.config._doctor import Health, HealthCheck, doctor
from bicameral.config._llm_settings import AgentSettings, LlmSettings, llm_config_schema, profile_schema
from bicameral.config._load import find_file, find_widening, load_config
from bicameral.config._models import (
    ConfiguredModels,
    EmbeddedProvider,
    fetch_weights,
    missing_weights,
    model_store,
    needed_weights,
    open_models,
    open_router,
    routing_notes,
    size_text,
)
from bicameral.config._resources import (
    bounds_of,
    budgets_of,
    open_cache,
    open_journal,
    open_policy,
    open_prices,
    open_registry,
    protected_paths,
    surroundings_of,
)
from bicameral.config._sources import SHORT_VARIABLES
from bicameral.config._template import config_template

__all__ = [
    "SHORT_VARIABLES",
    "STANDARD",
    "AgentSettings",
    "Config",
    "ConfigFile",
    "ConfiguredModels",
    "Confirm",
    "DurableSettings",
    "EmbeddedProvider",
    "Health",
    "HealthCheck",
    "LlmSettings",
    "Profile",
    "QuotaSettings",
    "QuotaTable",
    "Role",
    "UnacceptedConfig",
    "UnacceptedConfigWarning",
    "acceptance_file",
    "bounds_of",
    "budgets_of",
    "config_schema",
    "config_template",
    "doctor",
    "fetch_weights",
    "find_file",
    "find_unaccepted",
    "find_widening",
    "forget_acceptance",
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
    "parse_rate",
    "profile_schema",
    "protected_paths",
    "record_acceptance",
    "routing_notes",
    "size_text",
    "surroundings_of",
    "user_folder",
]
