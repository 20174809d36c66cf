"""The settings of `bicameral.toml` as one frozen model, with defaults for every setting.

Unknown keys are errors and nothing is coerced. `Config` adds the working folder, the file that the settings came from,
and the paths and limits that follow from both. Docstrings of tables and fields are part of the published schema.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from pydantic import Field

from bicameral.cache import user_folder
from bicameral.config._llm_settings import AgentSettings, ConfigTable, LlmSettings
from bicameral.errors import BicameralError, ConfigError
from bicameral.mcp import McpSettings, ServerName
from bicameral.openapi import OpenApiSettings
from bicameral.policy import Mode
from bicameral.rates import Rate

if TYPE_CHECKING:
    from bicameral.limits import Limits
    from bicameral.plans import PlanLimits


Count = Annotated[int, Field(gt=0)]
Seconds = Annotated[float, Field(gt=0)]

_VARIABLE_PATTERN = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class QuotaSettings(ConfigTable):
    """How much of something all workers together may use at once, and in a time."""

    concurrency: Count | None = None
    """How many at the same time."""
    rate: Rate | None = None
    """How many in a time, such as `10/min`."""


class QuotaTable(ConfigTable):
    """What holds across all workers. Whoever would exceed it waits."""

    user: QuotaSettings = QuotaSettings()
    """The runs of one user."""
    tools: dict[str, QuotaSettings] = Field(default_factory=dict[str, QuotaSettings])
    """The calls of a tool, by its name."""
    models: dict[str, QuotaSettings] = Field(default_factory=dict[str, QuotaSettings])
    """The calls of a model, by its name or `privileged` and `quarantined`."""


class DurableSettings(ConfigTable):
    """Where submitted runs are kept, and how workers share them."""

    database: str | None = None
    """A SQLite file, or `postgresql://…`; `${NAME}` is a variable. Without it, a file in the user's state folder."""
    concurrency: Count = 8
    """How many runs a worker has under way at the same time."""
    lease: Annotated[float, Field(ge=1, le=3600)] = 3.0
    """Seconds after which a worker that is not heard of has lost its runs to others."""
    answer_within: Seconds = 604_800.0
    """Seconds that a question waits for an answer; then the answer is no."""
    deaths: Count = 10
    """How often in a row workers may die with a run that gets no further, until it counts as failed."""
    keep: Seconds | None = None
    """Seconds after which runs that have ended are forgotten; without it, they are kept."""
    limits: QuotaTable = QuotaTable()


def durable_address(settings: DurableSettings, base: Path, environment: Mapping[str, str] | None = None) -> str:
    """The database of submitted runs: an address of PostgreSQL, or the path of a SQLite file."""
    if settings.database is None:
        # Not in the working folder: whoever passes one on could put submitted runs with their approvals into it.
        real = os.path.realpath(base)
        name = re.sub(r"[^A-Za-z0-9_-]+", "-", os.path.basename(real))[:40]
        own = f"{name}-{hashlib.sha256(os.fsencode(real)).hexdigest()[:16]}.db"
        return str(user_folder("state") / "durable" / own)
    return _database_address(settings.database, "durable", base, environment)


def _database_address(written: str, section: str, base: Path, environment: Mapping[str, str] | None = None) -> str:
    """An address or path with the values of the environment variables that it names."""
    variables = os.environ if environment is None else environment

    def variable_value(found: re.Match[str]) -> str:
        if not (text := variables.get(found[1])):
            raise ConfigError(
                "config.no-variable",
                f"{section}.database names the environment variable {found[1]!r}, and it is not set",
                fix=f"Set {found[1]}, or write the address into the file.",
            )
        return text

    address = _VARIABLE_PATTERN.sub(variable_value, written)
    return address if "://" in address else str(base / os.path.expanduser(address))


# TOML gives lists; strict mode would refuse them where a tuple is wanted. Their items stay strict.
Texts = Annotated[tuple[str, ...], Field(strict=False)]


class ServerSettings(ConfigTable):
    """Where `bicameral serve` listens, and how much it lets anybody take."""

    host: str = "127.0.0.1"
    """The address to listen on. Any but the machine's own needs tokens."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8417
    """The port to listen on; 0 takes a free one."""
    tokens: str | None = None
    """The file with the hashes of the tokens; without it, `tokens.json` in the user's configuration folder."""
    max_body: Count = 1_000_000
    """Bytes that the body of a request may have."""
    rate: Count = 600
    """Requests a minute for each user; a quarter of them may come at once."""
    watches: Count = 16
    """Runs that a user may watch, or wait for, at the same time."""
    watch_seconds: Seconds = 3600.0
    """How long one watch, or one wait for a run, may last; whoever wants more comes again and misses nothing."""
    requests: Count = 128
    """Requests that are answered at the same time, of all users together."""
    history: Literal["ignore", "refuse"] = "ignore"
    """What becomes of the messages of a chat before the last one of the user."""
    names: Texts = ()
    """Host names under which browsers reach the console, besides `localhost` and addresses: those of a proxy."""


Profile = Literal["default", "small"]
Role = Literal["privileged", "quarantined"]

STANDARD = ("files", "lines", "tables", "mail", "calendar", "web", "clock", "find")
"""The toolboxes that come with Bicameral."""

Amount = Annotated[float, Field(ge=0)]


class FolderSettings(ConfigTable):
    """Which folders tools may use."""

    read: Texts = (".",)
    """Folders (or single files) that tools may read."""
    write: Texts = (".",)
    """Folders that tools may change."""
    trusted: Texts = ()
    """Folders in which nobody but you writes: what is read there counts as your word, and no tool may write there."""


class ToolboxSettings(ConfigTable):
    """Which tools a plan can use."""

    use: Texts = STANDARD
    """Toolboxes by name: the standard ones and those of installed packages."""
    files: Texts = ()
    """Your own: Python files with a toolbox or `@tool` functions, and TOML manifests of commands."""


class PolicySettings(ConfigTable):
    """What calls may be made. The defaults cannot be switched off as a whole."""

    files: Texts = ()
    """Your own policies: `.cedar` files, found next to this file. They forbid more, or lift a default by its name."""
    me: Texts = ()
    """Your own addresses and accounts: what goes only to them reaches nobody else."""
    mode: Mode = "strict"
    """`strict` counts control flow: what a stranger's text decided is asked about. `normal` is weaker and does not."""


class ModelSettings(ConfigTable):
    """Which models are asked, and where their weights lie."""

    privileged: str = "1.5b"
    """The model that understands requests and writes plans: a name, a GGUF file, or `hub:owner/repo/file.gguf`."""
    quarantined: str = "0.5b"
    """The model that reads untrusted text and fills typed blanks, named in the same ways."""
    profile: str | None = None
    """A profile: a YAML file with `llm` and `agent`, found next to this file."""
    cascade: bool = False
    """Plan with the small weights first, and with the privileged model where there is a reason to doubt the plan."""
    folder: str | None = None
    """Where weights are kept; without it, the user's cache folder."""
    threads: Count | None = None
    """How many threads a model may use; without it, one for each core, at most eight."""
    kept_mb: Annotated[int, Field(ge=0, le=1_000_000)] = 1024
    """How many megabytes of read prompts are kept on disk, so that a new process need not read them; 0 for none."""


QuarantineVariant = Literal["extract", "read-only", "triple"]


class QuarantineSettings(ConfigTable):
    """How untrusted text is read."""

    variant: QuarantineVariant = "extract"
    """`read-only` also reads long texts in parts and may look things up; in `triple` validators check each value."""
    model: str | None = None
    """The model that reads: an alias or weights. Without it, the quarantined model."""
    reads: Texts = ()
    """For `read-only`: the tools it may call by itself. They must only read, and tell nobody anything."""
    lookups: Annotated[int, Field(ge=1, le=20)] = 3
    """For `read-only`: the most parts of a text, and the most calls of tools, for one value."""
    validators: Annotated[int, Field(ge=1, le=9)] = 1
    """For `triple`: how many models check a value, besides the fixed rules; all that are named, if some are."""
    validator_models: Texts = ()
    """For `triple`: the models that check, by alias or weights. Without any, the model that reads."""


class JournalSettings(ConfigTable):
    """Where runs are recorded."""

    file: str | None = None
    """The SQLite file of all runs; without it, `journal.db` in the user's state folder."""


class RecordSettings(ConfigTable):
    """Where what is kept between runs is, such as identities and skills."""

    database: str | None = None
    """A SQLite file, or `postgresql://…`; `${NAME}` is a variable. Without it, `records.db` in the state folder."""


class CacheSettings(ConfigTable):
    """Where plans and intents are kept for the next time they are asked for."""

    folder: str | None = None
    """The cache; without it, the user's cache folder."""


class LimitSettings(ConfigTable):
    """How much a plan may do, at worst."""

    max_items: Count = 100
    """How long a list is taken to be when a plan is checked and its length is not known."""
    max_tool_calls: Count = 10_000
    """A plan that could call tools more often is refused."""
    max_model_calls: Count = 1_000
    """A plan that could ask the quarantined model more often is refused."""
    repairs: Annotated[int, Field(ge=0, le=10)] = 2
    """How often a plan that does not pass the check may be repaired."""
    model_timeout: Seconds = 900.0
    """Seconds that one reply of a model may take."""
    rounds: Count = 20
    """The most plans that may be written and run for one request."""
    calls: Count = 20_000
    """The most calls of tools and models in one run."""
    tokens: Count = 5_000_000
    """The most tokens that models may read and write in one run."""
    money: Annotated[float, Field(gt=0)] = 10.0
    """The most that the models may cost in one run, in the currency of the price table."""
    seconds: Seconds = 3600.0
    """The most seconds that one run may work; those in which it waits for a person do not count."""
    work: Annotated[int, Field(ge=1)] = 100_000_000
    """The most steps that the expressions of one run may compute: items gone over, values made, 64 characters each."""


class PriceSettings(ConfigTable):
    """What a million tokens cost that a model reads, or writes. Models of your own cost nothing."""

    privileged_read: Amount = 0.0
    """Read by the model that plans."""
    privileged_written: Amount = 0.0
    """Written by the model that plans."""
    quarantined_read: Amount = 0.0
    """Read by the quarantined model."""
    quarantined_written: Amount = 0.0
    """Written by the quarantined model."""


class PlanningSettings(ConfigTable):
    """What is done where one plan at once is not enough."""

    plans: Annotated[int, Field(ge=0, le=16)] = 3
    """How many more plans are drawn where the first one is doubtful; 0 for none."""
    echo_temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    """How freely a request is restated, such as 0.5; without it 0, so that the same words give the same plan.

    It goes before the temperature of an alias. Its seed is fixed."""
    temperature: Annotated[float, Field(gt=0, le=2)] = 0.7
    """How far they may be from the likeliest plan. Their seeds are fixed, so the same request draws the same plans."""
    rounds: Annotated[int, Field(ge=1, le=100)] = 3
    """How many plans may follow each other where a first look decides the next step; 1 never goes into rounds."""


class ReasonSettings(ConfigTable):
    """How much may be taken where a request is worked on in rounds, and what the planner may see of results."""

    rounds: Count = 6
    """How many plans may follow each other."""
    calls: Count = 500
    """How often the two models may be asked, together."""
    tokens: Count = 1_000_000
    """How many tokens the two models may read and write, together."""
    money: Annotated[float, Field(gt=0)] = 1.0
    """How much the models may cost, by the prices below."""
    seconds: Seconds = 1800.0
    """How long it may take."""
    level: Literal["scalars", "trusted-text"] = "scalars"
    """`scalars`: numbers, dates, yes or no. `trusted-text` is weaker: also short texts that no third party touched."""
    price: PriceSettings = PriceSettings()


class ConfigFile(ConfigTable):
    """Everything that `bicameral.toml` may say."""

    profile: Profile = "default"
    """`small` uses the quarantined model for both roles: less memory, less able."""
    folders: FolderSettings = FolderSettings()
    toolboxes: ToolboxSettings = ToolboxSettings()
    toolbox: dict[str, dict[str, Any]] = Field(default_factory=dict[str, dict[str, Any]])
    """Settings of single toolboxes, each in a table of its own such as `[toolbox.mail]`."""
    mcp: dict[ServerName, McpSettings] = Field(default_factory=dict[str, McpSettings])
    """MCP servers whose tools plans can use, each in a table of its own such as `[mcp.time]`."""
    openapi: dict[ServerName, OpenApiSettings] = Field(default_factory=dict[str, OpenApiSettings])
    """APIs whose operations plans can use, each in a table of its own such as `[openapi.tracker]`."""
    policy: PolicySettings = PolicySettings()
    models: ModelSettings = ModelSettings()
    quarantine: QuarantineSettings = QuarantineSettings()
    journal: JournalSettings = JournalSettings()
    records: RecordSettings = RecordSettings()
    cache: CacheSettings = CacheSettings()
    limits: LimitSettings = LimitSettings()
    planning: PlanningSettings = PlanningSettings()
    reason: ReasonSettings = ReasonSettings()
    durable: DurableSettings = DurableSettings()
    server: ServerSettings = ServerSettings()
    llm: LlmSettings = LlmSettings()
    agent: AgentSettings = AgentSettings()


class Config(ConfigFile):
    """The configuration of one agent: what the file and the environment say, and the folder they are read for.

    Example:
        >>> Config.defaults().weights("privileged")
        '1.5b'
    """

    base: Path = Field(default_factory=Path.cwd)
    """The working folder: relative paths start here."""
    source: Path | None = None
    """The file this came from, if there was one."""
    withheld: tuple[str, ...] = ()
    """The settings of that file that are not used, because this user has not accepted it."""
    quarantine_source: Path | None = None
    """The user's own file, if `[quarantine]` came from there in place of that file."""

    @classmethod
    def defaults(cls, base: Path | None = None) -> Config:
        """The configuration without any file: the working folder and the embedded models."""
        return cls(base=(base or Path.cwd()).absolute())

    @classmethod
    def load(
        cls, file: Path | None = None, *, base: Path | None = None, profile: Profile | Path | None = None
    ) -> Config:
        """The configuration from `bicameral.toml` and the environment; see `load_config`."""
        from bicameral.config._load import load_config

        return load_config(file, base=base, profile=profile)

    def weights(self, role: Role) -> str:
        """The name of the weights for a role in this profile."""
        return self.models.privileged if self.profile == "default" and role == "privileged" else self.models.quarantined

    @property
    def is_routed(self) -> bool:
        """Whether the configuration says anything about choosing models."""
        params = self.agent.planning_strategy_params
        named = params.phase_models or params.strategy_phase_models or self.agent.classifier_model
        return bool(self.llm.model_fields_set or named)

    @property
    def models_folder(self) -> Path:
        """Where weights are kept."""
        return self._resolve_under_base(self.models.folder) or user_folder("cache") / "models"

    @property
    def journal_file(self) -> Path:
        """The SQLite file in which runs are recorded."""
        return self._resolve_under_base(self.journal.file) or user_folder("state") / "journal.db"

    @property
    def records_database(self) -> str:
        """What is kept between runs: an address of PostgreSQL, or the path of a SQLite file."""
        if self.records.database is None:
            return str(user_folder("state") / "records.db")
        return _database_address(self.records.database, "records", self.base)

    @property
    def durable_database(self) -> str:
        """The database of submitted runs: an address of PostgreSQL, or the path of a SQLite file."""
        return durable_address(self.durable, self.base)

    @property
    def token_file(self) -> Path:
        """The file with the hashes of the server's tokens."""
        return self._resolve_under_base(self.server.tokens) or user_folder("config") / "tokens.json"

    @property
    def cache_folder(self) -> Path:
        """Where plans and intents are kept."""
        return self._resolve_under_base(self.cache.folder) or user_folder("cache")

    @property
    def project(self) -> str:
        """The identity of this project: the real paths of its folder and of its configuration.

        The file alone does not identify it: one in the user's own folder serves every working folder.
        """
        source = os.path.realpath(self.source) if self.source else ""
        return f"{os.path.realpath(self.base)}\0{source}"

    @property
    def toolbox_files(self) -> tuple[Path, ...]:
        """The user's own toolbox files.

        Relative paths start at the folder of the file that names them: code must not depend on the working folder.
        """
        return self._resolve_beside_source(self.toolboxes.files)

    @property
    def policy_files(self) -> tuple[Path, ...]:
        """The user's own policies; relative paths start where those of toolbox files do."""
        return self._resolve_beside_source(self.policy.files)

    @property
    def caps(self) -> Limits:
        """How much one run may take."""
        from bicameral.limits import RUN, run_limits

        return run_limits(**{bound: getattr(self.limits, bound) for bound in RUN.bounds})

    @property
    def plan_limits(self) -> PlanLimits:
        """The limits that plans are checked against."""
        from bicameral.plans import PlanLimits

        return PlanLimits(self.limits.max_items, self.limits.max_tool_calls, self.limits.max_model_calls)

    def _resolve_beside_source(self, names: tuple[str, ...]) -> tuple[Path, ...]:
        start = self.source.parent if self.source else self.base
        return tuple(start / os.path.expanduser(name) for name in names)

    def _resolve_under_base(self, path: str | None) -> Path | None:
        return self.base / os.path.expanduser(path) if path else None


def is_inside(name: str, base: Path, real: str) -> bool:
    """Whether a path, relative to `base`, leads into the folder `real`; a link is what it leads to."""
    try:
        found = os.path.realpath(base / os.path.expanduser(name))
    except ValueError:
        return False
    return os.path.commonpath((found, real)) == real


def named_files(settings: Mapping[str, Any], source: Path, base: Path) -> Iterator[Path]:
    """The code, policies, manifests and declarations that settings name, and the programs in the project they start."""
    start = source.parent
    for table, key in (("toolboxes", "files"), ("policy", "files")):
        inner: Any = settings.get(table)
        names: Any = cast("dict[str, Any]", inner).get(key) if isinstance(inner, dict) else None
        for name in cast("list[object]", names) if isinstance(names, list | tuple) else ():
            if isinstance(name, str):
                file = start / os.path.expanduser(name)
                yield file
                if table == "toolboxes" and file.suffix in (".toml", ".json"):
                    yield from _manifest_programs(file, (start, base))
    for table in ("mcp", "openapi"):
        yield from _server_files(settings.get(table), start, base)


def _server_files(servers: object, start: Path, base: Path) -> Iterator[Path]:
    """The declarations of servers, and the programs and scripts inside the project that start them.

    With a program of a virtual environment comes the file that says which Python it was made of: it may be read, too.
    """
    roots = [os.path.realpath(folder) for folder in (start, base)]
    for server in cast("dict[str, object]", servers).values() if isinstance(servers, dict) else ():
        facts = cast("dict[str, object]", server) if isinstance(server, dict) else {}
        for key in ("tools", "document"):
            if isinstance(name := facts.get(key), str) and "://" not in name:
                yield start / os.path.expanduser(name)
        command = facts.get("command")
        for word in cast("list[object]", command) if isinstance(command, list | tuple) else ():
            if isinstance(word, str) and any(is_inside(word, base, root) for root in roots):
                file = base / os.path.expanduser(word)
                if file.is_file():
                    yield file
                    if (environment := file.parent.parent / "pyvenv.cfg").is_file() and file.parent.name == "bin":
                        yield environment


def _manifest_programs(manifest: Path, around: tuple[Path, ...]) -> Iterator[Path]:
    """The files inside the project that a manifest runs or needs; programs installed elsewhere are not part of it."""
    from bicameral.tools import read_manifest

    try:
        tools = read_manifest(manifest).tools
    except (BicameralError, OSError):
        return
    roots = [os.path.realpath(folder) for folder in around]
    for tool in tools:
        for name in (*(part for part in tool.argv if isinstance(part, str)), *tool.needs):
            if os.path.isabs(name) and any(is_inside(name, Path(root), root) for root in roots):
                yield Path(name)


def acceptance_file() -> Path:
    """The record of the configurations that this user has accepted."""
    return user_folder("state") / "accepted.json"


def config_schema() -> dict[str, Any]:
    """The published JSON Schema of `bicameral.toml`."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **ConfigFile.model_json_schema()}
