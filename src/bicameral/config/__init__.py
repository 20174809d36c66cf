"""Configuration: one `bicameral.toml`, environment variables over it, and defaults for everything.

A working folder comes in; out goes a frozen `Config`, and from it everything that an agent needs: its tools, models,
journal and cache. `doctor` checks all of it and the machine, and says how to fix what is wrong.
"""

from bicameral.cache import user_folder as user_folder
from bicameral.config._absent_tools import absent_tools as absent_tools, unready_tools as unready_tools
from bicameral.config._acceptance import (
    Confirm as Confirm,
    UnacceptedConfig as UnacceptedConfig,
    UnacceptedConfigWarning as UnacceptedConfigWarning,
    Widening as Widening,
    find_unaccepted as find_unaccepted,
    forget_acceptance as forget_acceptance,
    record_acceptance as record_acceptance,
)
from bicameral.config._call_routes import (
    AliasUses as AliasUses,
    CallRoutes as CallRoutes,
    ExplainedRoute as ExplainedRoute,
    alias_uses as alias_uses,
)
from bicameral.config._config import (
    STANDARD as STANDARD,
    Config as Config,
    ConfigFile as ConfigFile,
    Profile as Profile,
    QuarantineVariant as QuarantineVariant,
    QuotaSettings as QuotaSettings,
    QuotaTable as QuotaTable,
    Role as Role,
    acceptance_file as acceptance_file,
    config_schema as config_schema,
)
from bicameral.config._detection import (
    DetectedSettings as DetectedSettings,
    calendar_problem as calendar_problem,
    detect_settings as detect_settings,
    detect_timezone as detect_timezone,
    mailbox_problem as mailbox_problem,
    render_config as render_config,
    timezone_problem as timezone_problem,
)
from bicameral.config._doctor import Health as Health, HealthCheck as HealthCheck, doctor as doctor
from bicameral.config._llm_settings import (
    llm_config_schema as llm_config_schema,
    profile_schema as profile_schema,
)
from bicameral.config._load import (
    SHORT_VARIABLES as SHORT_VARIABLES,
    find_file as find_file,
    find_widening as find_widening,
    load_config as load_config,
    settings_origin as settings_origin,
)
from bicameral.config._model_rates import (
    TokenSpeeds as TokenSpeeds,
    model_rates as model_rates,
    stack_rates as stack_rates,
    tier_rates as tier_rates,
)
from bicameral.config._models import (
    ConfiguredModels as ConfiguredModels,
    EmbeddedProvider as EmbeddedProvider,
    add_hub_models as add_hub_models,
    call_sampling as call_sampling,
    embedded_providers as embedded_providers,
    fetch_weights as fetch_weights,
    missing_weights as missing_weights,
    model_store as model_store,
    needed_weights as needed_weights,
    open_models as open_models,
    open_router as open_router,
    prefixes_folder as prefixes_folder,
    routing_notes as routing_notes,
    size_text as size_text,
)
from bicameral.config._named_model import named_weights as named_weights, open_named_model as open_named_model
from bicameral.config._planning_model import (
    larger_planning_models as larger_planning_models,
    planning_models as planning_models,
    with_planning_model as with_planning_model,
)
from bicameral.config._quarantine import (
    OpenedExecutor as OpenedExecutor,
    configured_executor as configured_executor,
    executor_notes as executor_notes,
    mark_executor_tools as mark_executor_tools,
    open_executor as open_executor,
    with_quarantine_variant as with_quarantine_variant,
)
from bicameral.config._quarantine_routes import (
    NEVER_UNTRUSTED as NEVER_UNTRUSTED,
    QuarantineGap as QuarantineGap,
    quarantine_gaps as quarantine_gaps,
    quarantine_notes as quarantine_notes,
)
from bicameral.config._resources import (
    bounds_of as bounds_of,
    budgets_of as budgets_of,
    config_template as config_template,
    open_cache as open_cache,
    open_journal as open_journal,
    open_mcp_servers as open_mcp_servers,
    open_policy as open_policy,
    open_prices as open_prices,
    open_registry as open_registry,
    server_places as server_places,
    surroundings_of as surroundings_of,
)
from bicameral.config._routing import (
    model_selection as model_selection,
    step_hints as step_hints,
    unknown_role_error as unknown_role_error,
)
from bicameral.config._setting_values import SettingValue as SettingValue, setting_values as setting_values
