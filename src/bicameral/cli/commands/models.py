"""`bicameral models`: the weights on this machine, and the names that models go by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bicameral.cli._command_agent import prepare_prompts
from bicameral.cli._options import CommonOptions, DefaultGroup, common_options, completer
from bicameral.cli._output import FAILED, OK
from bicameral.cli._plain_values import render_table
from bicameral.cli.commands.trials import test_model
from bicameral.errors import ModelError

if TYPE_CHECKING:
    from bicameral.models import ProgressReporter, Weights


@click.group(short_help="The models on this machine, and the names they go by.", cls=DefaultGroup)
def command() -> None:
    """The models on this machine. Without a subcommand: the list."""


@completer
def _complete_weights() -> Iterable[str]:
    from bicameral.config import load_config, model_store
    from bicameral.models import known_weights

    own = [weights.alias for weights in model_store(load_config(confirm=lambda _: False)).own_models.entries()]
    return [*(name for weights in known_weights() for name in (weights.alias, weights.id)), *own]


@completer
def _complete_role() -> Iterable[str]:
    from bicameral.routing import PHASES, ROLES

    return [*ROLES, *PHASES]


def _wanted_weights(chosen: CommonOptions, names: tuple[str, ...]) -> list[Weights]:
    """The weights with these names, or those that the configuration uses."""
    from bicameral.config import model_store, needed_weights

    config = chosen.config()
    return [model_store(config).find(name, kind=None) for name in names] if names else needed_weights(config)


def _pull_progress(chosen: CommonOptions) -> ProgressReporter:
    from bicameral.models import SilentProgress, terminal_progress

    return SilentProgress() if chosen.out.as_json else terminal_progress()


@command.command("list")
@common_options
def list_models(chosen: CommonOptions) -> dict[str, Any]:
    """Every model that is known, and whether it is here."""
    from bicameral.config import model_store, needed_weights, size_text

    config = chosen.config()
    store, used = model_store(config), set[str]()
    try:
        used = {weights.sha256 for weights in needed_weights(config)}
    except ModelError as error:
        if error.code != "models.not-added":
            raise
        chosen.out.say(f"{error.message}; `bicameral models pull` adds it")
    names = ("id", "alias", "title", "kind", "licence", "bytes", "sha256", "own")
    facts: list[dict[str, Any]] = [
        {name: getattr(entry.weights, name) for name in names}
        | {"state": entry.state, "bytes_on_disk": entry.bytes_on_disk, "path": str(entry.path)}
        | {"used": entry.weights.sha256 in used}
        for entry in store.list()
    ]
    columns = ("kind", "state", "size", "used", "title")
    sized = ({**each, "size": size_text(each["bytes"])} for each in facts)
    rows: list[dict[str, Any]]
    rows = [{"name": each["alias"]} | {column: each[column] for column in columns} for each in sized]
    chosen.out.show(render_table(rows, chosen.out.width))
    return {"folder": str(store.folder), "models": facts}


@command.command("pull")
@click.argument("names", metavar="[NAME]...", nargs=-1, shell_complete=_complete_weights)
@click.option("--file", type=click.Path(path_type=Path), help="Take the weights from this file.")
@click.option("--offline", is_flag=True, help="Do not use the network.")
@click.option("--no-prepare", "unprepared", is_flag=True, help="Do not let the models read your tools yet.")
@common_options
def pull(
    chosen: CommonOptions, names: tuple[str, ...], file: Path | None, offline: bool, unprepared: bool
) -> dict[str, Any]:
    """Bring weights onto this machine; without a NAME, those that the configuration uses.

    Then the models that the configuration uses read your tools, so that the first plan need not wait for it.
    """
    from bicameral.config import add_hub_models, model_store

    if file is not None and len(names) != 1:
        raise click.UsageError("--file goes with exactly one NAME.")
    store = model_store(chosen.config())
    pulled: list[dict[str, str]] = []
    if not names:
        add_hub_models(chosen.config(), progress=_pull_progress(chosen), offline=offline)
    wanted = _wanted_weights(chosen, names)
    for weights in wanted:
        path = store.pull(weights, file=file, progress=_pull_progress(chosen), offline=offline)
        chosen.out.show(f"{weights.alias}: {path}")
        pulled.append({"id": weights.id, "path": str(path)})
    only = {weights.sha256 for weights in wanted}
    prepared = [] if unprepared else prepare_prompts(chosen.out, chosen.config(), only)
    return {"pulled": pulled, "prepared": prepared}


@command.command("add")
@click.argument("source", metavar="FILE|OWNER/REPO/FILE.gguf")
@click.option("--as", "name", metavar="NAME", help="Its name from now on; without it, that of the file.")
@click.option("--offline", is_flag=True, help="Do not use the network.")
@common_options
def add(chosen: CommonOptions, source: str, name: str | None, offline: bool) -> dict[str, Any]:
    """Add a GGUF model of your own: a file, which stays where it is, or one of the model hub, which is fetched.

    It is tried first: a file that is not whole, has no chat template or cannot follow a grammar is refused. Its SHA-256
    is recorded, and a file that has changed is not used any more.
    """
    from bicameral.config import model_store
    from bicameral.models import parse_source

    config = chosen.config()
    added = model_store(config).add(
        parse_source(source), name, progress=_pull_progress(chosen), offline=offline, threads=config.models.threads
    )
    weights = added.weights
    chosen.out.show(f"{weights.alias}: {added.path}")
    if not added.marked:
        chosen.out.say("its turns are marked by plain text, which untrusted text can imitate: not for the quarantine")
    facts = {"id": weights.id, "title": weights.title, "bytes": weights.bytes, "sha256": weights.sha256}
    return {"added": {**facts, "path": str(added.path), "marked": added.marked}}


@command.command("prepare")
@common_options
def prepare(chosen: CommonOptions) -> dict[str, Any]:
    """Let the models read your tools now, so that the first plan of a process need not wait for it.

    What was read is kept on disk, at most `kept_mb` under [models]; with other tools it is read anew. Weights that
    are not on this machine are left out.
    """
    from bicameral.config import prefixes_folder

    config = chosen.config()
    if config.models.kept_mb == 0:
        chosen.out.say("nothing is kept: `kept_mb` under [models] is 0")
    prepared = prepare_prompts(chosen.out, config)
    for name in prepared:
        chosen.out.show(f"{name}: prepared")
    if not prepared:
        chosen.out.say("no model of this configuration is on this machine; `bicameral models pull` fetches them")
    return {"folder": str(prefixes_folder()), "prepared": prepared}


@command.command("verify")
@click.argument("names", metavar="[NAME]...", nargs=-1, shell_complete=_complete_weights)
@common_options
def verify(chosen: CommonOptions, names: tuple[str, ...]) -> int:
    """Hash the weights in full and compare; without a NAME, those that the configuration uses."""
    from bicameral.config import model_store

    store = model_store(chosen.config())
    results = [store.verify(weights, progress=_pull_progress(chosen)) for weights in _wanted_weights(chosen, names)]
    for result in results:
        chosen.out.show(f"{result.weights.alias}: {result.state} ({result.path})")
    whole = all(result.state == "present" for result in results)
    facts = [
        {"id": result.weights.id, "state": result.state, "path": str(result.path), "sha256": result.found_sha256}
        for result in results
    ]
    chosen.out.write_json({"ok": whole, "models": facts})
    return OK if whole else FAILED


@command.command("rm")
@click.argument("names", metavar="NAME...", nargs=-1, required=True, shell_complete=_complete_weights)
@common_options
def remove(chosen: CommonOptions, names: tuple[str, ...]) -> dict[str, Any]:
    """Delete weights and what unfinished pulls have left of them; the file of an own model stays where it is."""
    from bicameral.config import model_store

    store = model_store(chosen.config())
    removed = {weights.alias: store.remove(weights) for weights in _wanted_weights(chosen, names)}
    for alias, existed in removed.items():
        chosen.out.show(f"{alias}: {'removed' if existed else 'was not here'}")
    return {"removed": removed}


@command.command("path")
@click.argument("name", shell_complete=_complete_weights)
@common_options
def path(chosen: CommonOptions, name: str) -> int:
    """Print where the weights are; the exit code is 1 if they are not here."""
    from bicameral.config import model_store

    store = model_store(chosen.config())
    weights = store.find(name, kind=None)
    found = store.path(weights)
    if found is not None:
        chosen.out.show(str(found))
    else:
        chosen.out.say(f"{weights.alias} is not here; `bicameral models pull {weights.alias}` fetches it")
    chosen.out.write_json({"ok": found is not None, "id": weights.id, "path": str(found) if found else None})
    return OK if found is not None else FAILED


@command.command("aliases")
@common_options
def aliases(chosen: CommonOptions) -> dict[str, Any]:
    """The names that models have in the configuration, and which chambers may use each."""
    from bicameral.cli.commands.route import alias_rows
    from bicameral.config import alias_uses, quarantine_notes, routing_notes

    config = chosen.config()
    uses = alias_uses(config)
    chosen.out.show(render_table(alias_rows(uses), chosen.out.width))
    notes = [*routing_notes(config), *quarantine_notes(config)]
    for note in notes:
        chosen.out.say(f"note: {note}")
    return {"aliases": [asdict(each) for each in uses], "notes": [note.to_json() for note in notes]}


@command.command("explain")
@click.argument("role", shell_complete=_complete_role)
@click.option("--phase", help="The phase of a strategy: sense, plan, act, reflect or final_answer.")
@click.option("--strategy", help="The strategy: native_react, plan_and_execute or spar.")
@click.option("--model", "--hint", "hint", help="What the call itself names: an alias or a hint.")
@click.option("--tools", is_flag=True, help="The call offers tools.")
@click.option("--schema", is_flag=True, help="The reply must fit a JSON Schema.")
@click.option("--messages", type=click.IntRange(0, 100_000), default=1, show_default=True, help="Messages it has.")
@click.option("--prompt-tokens", type=click.IntRange(0, 100_000_000), default=0, help="About how long it is.")
@click.option("--untrusted", is_flag=True, help="The conversation holds untrusted text: the quarantined model answers.")
@click.option("--failures", type=click.IntRange(0), default=0, help="Calls for the same job that failed before.")
@click.option("--tokens-left", type=click.IntRange(0), help="Tokens that are left in the budget.")
@click.option("--money-left", type=float, help="Money that is left in the budget.")
@click.option("--seconds-left", type=float, help="Seconds that are left.")
@click.option("--cost-cap", type=float, help="The most that the call may cost.")
@common_options
def explain(chosen: CommonOptions, role: str, **facts: Any) -> dict[str, Any]:
    """Which model a call of this ROLE would get, by what, and why those before it did not apply.

    ROLE is a role, one of your own, or a phase of a strategy.
    """
    from bicameral.config import CallRoutes

    found = CallRoutes(chosen.config()).explain(role, **facts)
    chosen.out.show("\n".join(found.lines()))
    return found.to_json()


command.add_command(test_model)
