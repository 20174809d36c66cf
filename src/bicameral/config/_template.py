"""The file that `bicameral init` writes: every setting, explained, with its default."""

from __future__ import annotations


def config_template() -> str:
    """A commented `bicameral.toml` that says exactly what the defaults are."""
    return _TEMPLATE


_TEMPLATE = """\
# Bicameral's configuration. Each setting below has its default value or, where it begins with `#:`, is not set;
# take the `#:` away to set it. Relative paths start at the working folder.
# `bicameral doctor` checks this file and the machine.

# "small" uses the quarantined model for both roles: less memory, less able.
profile = "default"

[folders]
# What tools may reach. Nothing outside can be reached, whatever a path says.
read = ["."]
write = ["."]
# Folders in which nobody but you writes. What is read there counts as your own word, and no tool may write there:
# no mailbox, no downloads, nothing that is shared or synchronised with others.
trusted = []

[toolboxes]
# The toolboxes that plans may use: the standard ones, and those of installed packages.
use = ["files", "lines", "tables", "mail", "calendar", "web", "clock"]
# Your own, found next to this file: Python files with a toolbox, TOML manifests of commands. They run as you do.
files = []

[policy]
# Your own policies, found next to this file: `.cedar` files that forbid more than the defaults, or lift one by its
# name. `bicameral policy show` lists all that hold.
files = []
# Your own addresses and accounts: what goes only to them reaches nobody else.
me = []
# Whether control flow counts: what a stranger's text decided is asked about. "normal" is weaker and does not.
mode = "strict"

[models]
# The model that understands requests and writes plans, and the one that reads untrusted text.
# `bicameral models list` shows the names.
privileged = "1.5b"
quarantined = "0.5b"
# A profile: a YAML file with `llm` and `agent` as below, found next to this file.
#:profile = "profile.yaml"
# Whether the small weights plan first, and the privileged model where there is a reason to doubt their plan.
cascade = false
# Where weights are kept. Not set: the user's cache folder.
#:folder = "~/models"
# Threads that a model may use. Not set: one for each core, at most eight.
#:threads = 4

[journal]
# The SQLite file in which every run is recorded. Not set: journal.db in the user's state folder.
#:file = ".bicameral/journal.db"

[durable]
# Where submitted runs are kept: a SQLite file, or "postgresql://…" where one machine is not enough. `${NAME}` is an
# environment variable. Not set: a file of this folder's own in the user's state folder. Needs
# `pip install "bicameral[durable]"`.
#:database = ".bicameral/durable.db"
# How many runs a worker has under way at the same time.
concurrency = 8
# Seconds after which a worker that is not heard of has lost its runs to others.
lease = 3.0
# Seconds that a question waits for an answer; then the answer is no.
answer_within = 604800.0
# How often in a row workers may die with a run that gets no further, until it counts as failed.
deaths = 10
# Seconds after which runs that have ended are forgotten, and what they hold is erased. Not set: they are kept.
#:keep = 7776000.0

# What all workers together may use at once, and in a time; whoever would exceed it waits.
#:[durable.limits]
#:user = { concurrency = 4, rate = "60/h" }
#:tools.fetch_page = { concurrency = 2, rate = "10/min" }
#:models.privileged = { concurrency = 1 }

[server]
# Where `bicameral serve` listens; any address but the machine's own needs tokens. It needs the extra `server`.
host = "127.0.0.1"
port = 8417
# The file with the hashes of the tokens. Not set: tokens.json in the user's configuration folder.
#:tokens = "tokens.json"
# Bytes that the body of a request may have, and requests a minute for each user.
max_body = 1000000
rate = 600
# Runs that a user may watch or wait for at once, seconds that one watch may last (whoever wants more comes again and
# misses nothing), and requests that are answered at once, of all users together.
watches = 16
watch_seconds = 3600.0
requests = 128
# What becomes of the messages of a chat before the last one of the user: "ignore" leaves them out and says so,
# "refuse" does not answer.
history = "ignore"

[cache]
# Where plans and intents are kept for the next time they are asked for. Not set: the user's cache folder.
#:folder = ".bicameral/cache"

[limits]
# How long a list is taken to be when a plan is checked and its length is not known.
max_items = 100
# A plan that could call tools or ask the quarantined model more often than this is refused.
max_tool_calls = 10000
max_model_calls = 1000
# How often a plan that does not pass the check may be repaired.
repairs = 2
# Seconds that one reply of a model may take.
model_timeout = 900.0
# The caps of one run, over all attempts at it: plans for one request, calls of tools and models, tokens, money, and
# seconds of work (waiting for a person does not count). `work` is what the plan's own expressions may compute in one
# attempt: items gone over, values made, 64 characters of text each; a million of them take about 0.1 s.
rounds = 20
calls = 20000
tokens = 5000000
money = 10.0
seconds = 3600.0
work = 100000000

[reason]
# Where a request is worked on in rounds: how many plans may follow each other, how often the two models may be asked,
# how many tokens they may read and write, how much that may cost, and how many seconds it may take.
rounds = 6
calls = 500
tokens = 1000000
money = 1.0
seconds = 1800.0
# What the planner may see of results: "scalars" is numbers, dates, yes or no. "trusted-text" is weaker: also short
# texts that no third party touched.
level = "scalars"

[reason.price]
# What a million tokens cost that a model reads or writes, in the money of the bound above. Models of your own cost
# nothing.
privileged_read = 0.0
privileged_written = 0.0
quarantined_read = 0.0
quarantined_written = 0.0

[llm]
# Which model answers which call. Without any of this, the two models above do.
# A file with aliases, in YAML: the tables `models`, `model_params` and `default_params` below.
#:config_path = "llm_config.yaml"
# The alias of calls for which nothing else applies.
#:default_model = "main"
# A table of prices of your own, over the one that comes with Bicameral.
#:prices = "prices.toml"

# Aliases: names for models. Keys come from the environment or the keyring, one for each chamber.
#:[llm.models]
#:main = { model = "openai/gpt-4.1", api_key_env = "OPENAI_API_KEY", fallback = ["fast"] }
#:fast = "ollama/llama3"

# How all models are asked, and single ones by alias or name.
#:[llm.default_params]
#:temperature = 0.0
#:[llm.model_params.fast]
#:top_p = 0.9

# An alias for each role.
#:[llm.model_roles]
#:planning = "main"
#:summarizing = "fast"

# Rules over both: the first whose condition holds for a call counts.
#:[llm.routing]
#:enabled = true
#:[[llm.routing.rules]]
#:condition = "message_count > 10 and not label: untrusted"
#:model = "main"

# The most that one run may take, and one role in it.
#:[llm.budget]
#:money = 1.0
#:[llm.role_budgets.planning]
#:calls = 20

[agent]
# "compiled" writes a whole plan and proves it before it runs; "native_react", "plan_and_execute" and "spar" call tools
# as they go. Not set: "compiled".
#:planning_strategy = "spar"

[agent.planning_strategy_params]
# How many rounds one step may take, how many steps a plan may have, and whether SPAR looks back after each step.
max_step_iterations = 3
max_steps = 8
reflect_every_step = true
# An alias for each phase.
#:phase_models = { plan = "main", act = "fast" }

# Toolboxes have settings of their own, each in a table named after the toolbox.

#:[toolbox.mail]
# A Maildir folder or an mbox file, inside the folders that may be read.
#:folder = "Maildir"
# The address that outgoing mail comes from.
#:address = "me@example.com"
# The server that takes outgoing mail. `password_env` names the environment variable that holds the password;
# tls is "starttls", "tls" or "none".
#:smtp = { host = "smtp.example.com", user = "me@example.com", password_env = "SMTP_PASSWORD", tls = "starttls" }

#:[toolbox.tables]
# Whether the planner may be told what the columns of a table are called. It is the only thing it learns from a file.
#:read_headers = false

#:[toolbox.calendar]
# The ICS file of your calendar.
#:file = "calendar.ics"
# Your time zone. Not set: the machine's.
#:timezone = "Europe/Berlin"

#:[toolbox.web]
# The only hosts that pages may be fetched from; "*.example.com" is every host under it. Not set: every public one.
#:hosts = ["example.com", "*.example.org"]
"""
