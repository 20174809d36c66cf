"""`bicameral records`: what is kept between runs, proposals that wait for a person, and erasure."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from bicameral.cli._options import CommandFunction, CommonOptions, DefaultGroup, common_options, complete_records
from bicameral.cli._output import FAILED, OK, Output
from bicameral.cli._plain_values import answer_text, local_time_text, render_table
from bicameral.display import make_visible
from bicameral.errors import RecordError, RunError

if TYPE_CHECKING:
    from bicameral.records import Record, Records, Tombstone


class StoredRecord(NamedTuple):
    """A version of a record and the collection that it is in."""

    records: Records[Any]
    record: Record[Any]


@click.group(short_help="What is kept between runs, and your review of it.", cls=DefaultGroup)
def command() -> None:
    """What is kept between runs: identities, skills, and what programs store. Without a subcommand: the list.

    What untrusted text had a hand in is only a proposal, until somebody has looked at it and accepted it.

    \b
    bicameral records list
    bicameral records review
    bicameral records erase s3
    """


def _store_options(function: CommandFunction) -> CommandFunction:
    """`--database`, `--owner` and `--collection`."""
    database = click.option("--database", metavar="FILE|ADDRESS", help="Instead of the configured one.")
    owner = click.option("--owner", help="Only records of this owner.")
    collection = click.option("--collection", help="Only records of this collection.")
    return database(owner(collection(function)))


def _record_argument(function: CommandFunction) -> CommandFunction:
    return click.argument("id", metavar="ID", shell_complete=complete_records)(function)


@contextmanager
def _open_collections(
    chosen: CommonOptions, database: str | None, owner: str | None, collection: str | None
) -> Generator[list[Records[Any]]]:
    """The chosen collections. Whoever only looks makes no file."""
    from contextlib import ExitStack

    from bicameral.records import Records, record_collections
    from bicameral.types import ANY

    place = database or chosen.config().records_database
    if "://" not in place and not Path(place).exists():
        yield []
        return
    with ExitStack() as opened:
        yield [
            opened.enter_context(Records[Any](place, ANY, owner=each[0], collection=each[1]))
            for each in record_collections(place)
            if owner in (None, each[0]) and collection in (None, each[1])
        ]


def _find_id(collections: list[Records[Any]], id: str) -> Records[Any]:
    """The collection with this record."""
    found = [each for each in collections if id in each.ids()]
    if not found:
        from bicameral.errors import nearest_name

        known = [known for each in collections for known in each.ids()]
        raise RecordError("records.not-found", f"there is no record {id[:60]!r}", nearest=nearest_name(id, known))
    if len(found) > 1:
        where = ", ".join(f"{each.collection} of {each.owner}" for each in found)
        raise RecordError(
            "records.ambiguous", f"several records are called {id[:60]!r}: {where}", fix="Add --owner and --collection."
        )
    return found[0]


def _find_proposal(collections: list[Records[Any]], id: str, version: int | None) -> StoredRecord:
    """The proposal with this id; with several of them the version says which."""
    records = _find_id(collections, id)
    waiting = [each for each in records.pending() if each.id == id and version in (None, each.version)]
    if len(waiting) == 1:
        return StoredRecord(records, waiting[0])
    if waiting:
        versions = ", ".join(str(each.version) for each in waiting)
        raise RecordError(
            "records.ambiguous", f"several versions of {id[:60]!r} wait: {versions}", fix="Add --version."
        )
    raise RecordError("records.not-found", f"no proposal for {id[:60]!r} waits for an answer")


def _chosen_versions(records: Records[Any], *, everything: bool) -> Iterator[Record[Any]]:
    for each in records.versions():
        if everything or each.is_current or each.state == "proposed":
            yield each


@command.command("list")
@click.option("--all", "everything", is_flag=True, help="Also what was superseded, refused, withdrawn or erased.")
@_store_options
@common_options
def list_records(
    chosen: CommonOptions,
    everything: bool = False,
    database: str | None = None,
    owner: str | None = None,
    collection: str | None = None,
) -> dict[str, Any]:
    """What is current, and what waits for a review."""
    with _open_collections(chosen, database, owner, collection) as collections:
        found = [each for records in collections for each in _chosen_versions(records, everything=everything)]
        gone = [each for records in collections for each in records.tombstones()] if everything else []
    rows = [_list_row(each) for each in found]
    rows += [_tombstone_row(each) for each in gone]
    chosen.out.show(render_table(rows, chosen.out.width) if rows else "nothing is kept")
    return {"records": [_brief_facts(each) for each in found], "erased": [each.to_json() for each in gone]}


def _list_row(record: Record[Any]) -> dict[str, object]:
    state = "superseded" if record.superseded_by is not None else record.state
    return {
        "id": make_visible(record.id),
        "of": make_visible(record.owner),
        "in": make_visible(record.collection),
        "version": record.version,
        "state": state,
        "by": make_visible(record.provenance.author),
        "when": _time_text(record.provenance.at),
    }


def _tombstone_row(tombstone: Tombstone) -> dict[str, object]:
    return {
        "id": make_visible(tombstone.id),
        "of": make_visible(tombstone.owner),
        "in": make_visible(tombstone.collection),
        "version": "",
        "state": "erased",
        "by": make_visible(tombstone.by),
        "when": _time_text(tombstone.at),
    }


def _brief_facts(record: Record[Any]) -> dict[str, Any]:
    facts = record.to_json()
    return {name: fact for name, fact in facts.items() if name not in ("value", "label")}


def _time_text(at: float) -> str:
    return local_time_text(datetime.fromtimestamp(at, UTC))


@command.command("show")
@_record_argument
@_store_options
@common_options
def show(
    chosen: CommonOptions, id: str, database: str | None, owner: str | None, collection: str | None
) -> dict[str, Any]:
    """Every version of the record ID, with its origin, its review and its value."""
    with _open_collections(chosen, database, owner, collection) as collections:
        versions = _find_id(collections, id).history(id)
    chosen.out.show("\n\n".join(_record_text(each, chosen.out.width) for each in versions))
    return {"versions": [each.to_json() for each in versions]}


def _record_text(record: Record[Any], width: int) -> str:
    origin, review = record.provenance, record.review
    state = f"superseded by version {record.superseded_by}" if record.superseded_by is not None else record.state
    lines = [
        f"{make_visible(record.id)}, version {record.version}: {state}",
        f"  {make_visible(record.collection)} of {make_visible(record.owner)}",
        f"  written {_time_text(origin.at)} by {make_visible(origin.author)}",
    ]
    lines += [f"  {name} {make_visible(text)}" for name, text in _origin_facts(record) if text]
    if record.sources:
        lines.append(f"  made from untrusted text: {make_visible(', '.join(record.sources))}")
    if review is not None:
        what = "accepted" if review.accepted else "refused"
        why = f": {make_visible(review.reason)}" if review.reason else ""
        lines.append(f"  {what} {_time_text(review.at)} by {make_visible(review.by)}{why}")
    value = make_visible(answer_text(record.to_json()["value"], width))
    return "\n".join([*lines, *(f"    {line}" for line in value.splitlines())])


def _origin_facts(record: Record[Any]) -> tuple[tuple[str, str], ...]:
    origin = record.provenance
    return ("run", origin.run), ("place", origin.place), ("from", origin.source)


@command.command("review")
@_store_options
@common_options
def review(chosen: CommonOptions, database: str | None, owner: str | None, collection: str | None) -> int:
    """Go through the proposals that wait, one after another: yes accepts, no refuses, anything else leaves it."""
    out = chosen.out
    with _open_collections(chosen, database, owner, collection) as collections:
        waiting = [StoredRecord(records, each) for records in collections for each in records.pending()]
        if waiting and not out.is_interactive:
            raise RunError(
                "run.needs-answer",
                f"proposals wait ({len(waiting)}), and nobody is there to be asked",
                fix="`bicameral records accept ID` and `refuse ID` answer one of them.",
            )
        decided = asyncio.run(_review_each(out, waiting))
    out.show(f"{decided.count('accepted')} accepted, {decided.count('refused')} refused, {decided.count('left')} left")
    out.write_json({"ok": True, **{name: decided.count(name) for name in ("accepted", "refused", "left")}})
    return OK


async def _review_each(out: Output, waiting: list[StoredRecord]) -> list[str]:
    from bicameral.cli._prompts import read_line

    decided: list[str] = []
    for records, record in waiting:
        out.say(_record_text(record, out.width))
        reply = ((await read_line("Accept it? [yes/no, Enter leaves it] ")) or "").lower()
        if reply in ("y", "yes"):
            decided.append(_decide(out, StoredRecord(records, record), accepted=True))
        elif reply in ("n", "no"):
            decided.append(_decide(out, StoredRecord(records, record), accepted=False))
        else:
            decided.append("left")
    return decided


def _decide(out: Output, found: StoredRecord, *, accepted: bool) -> str:
    from bicameral.cli._run_records import current_user

    try:
        act = found.records.accept if accepted else found.records.refuse
        act(found.record, by=current_user())
    except RecordError as error:
        # Another proposal for the same record may just have been accepted; the others are still to be asked about.
        out.say(f"error: {error}")
        return "left"
    return "accepted" if accepted else "refused"


def _answer_options(function: CommandFunction) -> CommandFunction:
    version = click.option("--version", type=click.IntRange(min=1), help="Which of several that wait.")
    reason = click.option("--reason", default="", help="Why, for the history.")
    return _record_argument(version(reason(_store_options(function))))


@command.command("accept")
@_answer_options
@click.option("-y", "--yes", is_flag=True, help="Do not show it and ask.")
@common_options
def accept(
    chosen: CommonOptions,
    id: str,
    version: int | None,
    reason: str,
    yes: bool,
    database: str | None,
    owner: str | None,
    collection: str | None,
) -> int:
    """Accept the proposal ID: you vouch for its content, which is served as yours from then on."""
    from bicameral.cli._run_records import current_user

    with _open_collections(chosen, database, owner, collection) as collections:
        found = _find_proposal(collections, id, version)
        question = f"Accept version {found.record.version} of {id}?"
        if not yes and not _confirm(chosen.out, question, _record_text(found.record, chosen.out.width)):
            return FAILED
        accepted = found.records.accept(found.record, by=current_user(), reason=reason)
    chosen.out.show(f"{make_visible(id)}: version {accepted.version} is accepted")
    chosen.out.write_json({"ok": True, "record": _brief_facts(accepted)})
    return OK


@command.command("refuse")
@_answer_options
@common_options
def refuse(
    chosen: CommonOptions,
    id: str,
    version: int | None,
    reason: str,
    database: str | None,
    owner: str | None,
    collection: str | None,
) -> dict[str, Any]:
    """Refuse the proposal ID. It stays in the history and is never served."""
    from bicameral.cli._run_records import current_user

    with _open_collections(chosen, database, owner, collection) as collections:
        found = _find_proposal(collections, id, version)
        refused = found.records.refuse(found.record, by=current_user(), reason=reason)
    chosen.out.show(f"{make_visible(id)}: version {refused.version} is refused")
    return {"record": _brief_facts(refused)}


@command.command("erase")
@click.argument("ids", metavar="[ID]...", nargs=-1, shell_complete=complete_records)
@click.option("--all", "everything", is_flag=True, help="Everything of --owner.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@_store_options
@common_options
def erase(
    chosen: CommonOptions,
    ids: tuple[str, ...],
    everything: bool,
    yes: bool,
    database: str | None,
    owner: str | None,
    collection: str | None,
) -> int:
    """Take away for good every version of the records ID, or with --all everything of an owner.

    What stays is that there was such a record, whose it was, and when it was erased: the chain can still be verified.
    The log and the backups of a PostgreSQL server are out of reach.
    """
    from bicameral.cli._run_records import current_user

    out = chosen.out
    if bool(ids) is everything or (everything and owner is None):
        raise click.UsageError("Say which: ID…, or --all with --owner NAME.")
    with _open_collections(chosen, database, owner, collection) as collections:
        # All of them are looked up first: either every one is erased or none.
        chosen_ids = {records: list(records.ids()) for records in collections} if everything else {}
        for id in ids:
            chosen_ids.setdefault(_find_id(collections, id), []).append(id)
        count = sum(map(len, chosen_ids.values()))
        if not yes and not _confirm(out, f"Erase {count} record{'' if count == 1 else 's'} for good?"):
            return FAILED
        gone = [records.erase(*named, by=current_user()) for records, named in chosen_ids.items()]
    out.show(f"{count} record{'' if count == 1 else 's'} erased")
    scrubbed = all(each.scrubbed for each in gone)
    if not scrubbed:
        out.say(
            "another process has the records open, so that the file may still hold traces: erase once more later",
            style="yellow",
        )
    out.write_json({"ok": True, "records": [id for each in gone for id in each.records], "scrubbed": scrubbed})
    return OK


def _confirm(out: Output, question: str, about: str = "") -> bool:
    if not out.is_interactive:
        raise RunError("run.needs-answer", f"nobody is there to be asked: {question}", fix="--yes says yes.")
    from bicameral.cli._prompts import confirm_yes

    if about:
        out.say(about)
    if asyncio.run(confirm_yes(question)):
        return True
    out.say("nothing was changed")
    return False


@command.command("export")
@_store_options
@common_options
def export(chosen: CommonOptions, database: str | None, owner: str | None, collection: str | None) -> dict[str, Any]:
    """Everything that is kept, as one JSON object a line: every version with its value, its label and its history."""
    with _open_collections(chosen, database, owner, collection) as collections:
        found = [each.to_json() for records in collections for each in _chosen_versions(records, everything=True)]
        gone = [each.to_json() for records in collections for each in records.tombstones()]
    for each in (*found, *({"erased": tomb} for tomb in gone)):
        chosen.out.show(json.dumps(each, sort_keys=True))
    return {"records": found, "erased": gone}
