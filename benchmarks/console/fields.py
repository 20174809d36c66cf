"""The fields that the world fills, and the pages on which they are shown."""

from __future__ import annotations

import json
import mailbox
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from email.message import EmailMessage
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Page, expect

from benchmarks.console.equipment import ARGUMENTS, Equipment
from benchmarks.console.hostile import file_name, printable, storable
from benchmarks.console.world import ConsoleServer

BATCH = 20
"""Items of a list that a page shows at once."""
INBOX = 50
"""Questions on one page of the inbox."""
Prepare = Callable[[Page], None]


@dataclass(frozen=True, slots=True)
class Place:
    """A page with texts on it.

    Args:
        name: The field.
        path: The address; None for the page that is open.
        prepare: What is done there first.
        seen: Texts that a person must see there.
    """

    name: str
    path: str | None
    prepare: Prepare | None = None
    seen: Sequence[str] = ()


Places = Callable[[ConsoleServer, str, Sequence[str]], Iterable[Place]]


@dataclass(frozen=True, slots=True)
class Field:
    """A field by its name."""

    name: str
    places: Places
    all_users: bool = False
    """Whether who looks sees the runs of all users."""


FIELDS: dict[str, Field] = {}


def field_of_world(*, all_users: bool = False) -> Callable[[Places], Places]:
    """Count a function among the fields; its name is that of the field."""

    def add(places: Places) -> Places:
        name = places.__name__.replace("_", "-")
        FIELDS[name] = Field(name, places, all_users)
        return places

    return add


def joined(texts: Sequence[str], size: int = 3, most: int = 300) -> Iterator[str]:
    """Some texts at a time in one: what a field of a form or an address can hold, each up to so many characters."""
    for batch in batches(texts, size):
        yield " ".join(storable(text)[:most] for text in batch)


def batches(texts: Sequence[str], size: int = BATCH) -> Iterator[Sequence[str]]:
    for start in range(0, len(texts), size):
        yield texts[start : start + size]


def open_steps(page: Page) -> None:
    """Open the inputs and outputs of all steps."""
    for summary in page.locator("li.step summary").all():
        summary.click()
    expect(page.get_by_text("loading …")).to_have_count(0)


def open_panel(page: Page) -> None:
    """Ask where the last value came from that the page shows."""
    open_steps(page)
    page.locator('a[hx-target="#panel"]').last.click()
    expect(page.locator("#panel h2")).to_be_visible()


@field_of_world()
def values(server: ConsoleServer, user: str, texts: Sequence[str]) -> Iterator[Place]:
    """Texts of a file as a list: results, answers, inputs, panels, journals, downloads."""
    for batch in batches(texts):
        kept = [storable(text) for text in batch]
        server.write("values.json", json.dumps(kept))
        run = server.finished(user, plan='found = read_json("values.json")\nlook_after(str(found))\nanswer(found)\n')
        yield Place("answer", f"/runs/{run}", seen=kept)
        yield Place("result", None, open_steps)
        yield Place("panel", f"/runs/{run}", open_panel)
        yield Place("provenance", f"/runs/{run}/value?side=answer", seen=kept)
        yield Place("journal", f"/runs/{run}/journal")


@field_of_world()
def long_text(server: ConsoleServer, user: str, texts: Sequence[str]) -> Iterator[Place]:
    """One text with many hostile ones in it, as a mail or a page would have."""
    for batch in batches(texts, 60):
        server.write("long.txt", "\n".join(storable(text).replace("\x00", "") for text in batch))
        run = server.finished(user, plan='text = read_text("long.txt")\nanswer(text)\n')
        yield Place("text", f"/runs/{run}")
        yield Place("text-result", None, open_steps)


@field_of_world()
def columns(server: ConsoleServer, user: str, texts: Sequence[str]) -> Iterator[Place]:
    """Names of columns and fields, with cells, and the parts of addresses that they become."""
    for batch in batches(texts, 10):
        kept = [storable(text)[:300] for text in batch]
        server.write("rows.json", json.dumps([dict.fromkeys(kept, text) for text in kept[:2]]))
        run = server.finished(user, plan='rows = read_json("rows.json")\nanswer(rows)\n')
        yield Place("columns", f"/runs/{run}", open_steps)
        server.write("rows.json", json.dumps({text: {text: [text]} for text in kept}))
        run = server.finished(user, plan='rows = read_json("rows.json")\nanswer(rows)\n')
        yield Place("fields", f"/runs/{run}", open_panel)
        at = "/" + kept[0].replace("~", "~0").replace("/", "~1")
        yield Place("part", f"/runs/{run}/value?{urlencode({'side': 'answer', 'at': at}, errors='replace')}")


@field_of_world()
def file_names(server: ConsoleServer, user: str, texts: Sequence[str]) -> Iterator[Place]:
    """Names of files in a folder."""
    for number, batch in enumerate(batches(texts)):
        folder = server.folder / f"names{number}"
        folder.mkdir(exist_ok=True)
        names = [file_name(storable(text)) for text in batch]
        for name in names:
            (folder / name.encode("utf-8", "replace").decode()[:60]).write_text("x")
        run = server.submit(user, plan=f'found = list_files("names{number}")\nanswer(found)\n')
        server.settled(run, user)
        yield Place("file-names", f"/runs/{run}", open_steps)


@field_of_world()
def mails(server: ConsoleServer, user: str, texts: Sequence[str]) -> Iterator[Place]:
    """Subjects, senders, bodies and attachments of mails."""
    for batch in batches(texts, 15):
        file = server.folder / "mail.mbox"
        file.unlink(missing_ok=True)
        box = mailbox.mbox(file)
        for number, text in enumerate(batch):
            line = printable(storable(text)).replace("\\", "")[:200] or "xss"
            message = EmailMessage()
            message["Subject"], message["Date"] = line, f"Thu, 19 Nov 2026 10:{number:02d}:00 +0000"
            message["Message-ID"], message["To"] = f"<{number}@example.com>", "me@example.com"
            message["From"] = f'"{line.replace(chr(34), "")[:60]}" <eve{number}@example.com>'
            message.set_content(storable(text).replace("\r", "\n")[:900])
            message.add_attachment(b"x", maintype="text", subtype="html", filename=line[:60])
            box.add(message)
        box.close()
        run = server.submit(user, plan="found = search_mail(limit=50)\nanswer(found)\n")
        server.settled(run, user)
        yield Place("mails", f"/runs/{run}", open_steps)


@field_of_world()
def questions(server: ConsoleServer, user: str, texts: Sequence[str]) -> Iterator[Place]:
    """Goals of plans, their questions, constants, replies and notices: the inbox, runs, and the list of them."""
    for batch in batches(texts, INBOX):
        runs: dict[str, str] = {}
        for text in batch:
            kept = storable(text).replace("\x00", "")[:900]
            plan = f"name = ask({kept!r}, str)\nanswer([name, {kept!r}])\n"
            if found := _submit(server, user, kept, plan):
                runs[found] = kept
        waits = {run: server.settled(run, user)["waits_for"] for run in runs}
        yield Place("inbox", "/approvals", seen=[text for text in runs.values() if text.strip()])
        for number, (run, text) in enumerate(runs.items()):
            if not waits[run]:
                continue
            [question] = waits[run]
            if number % 10:
                server.ask("POST", f"/v1/approvals/{question}/reply", user, json={"value": text})
            else:
                yield Place("notice", f"/approvals/{question}", _reply_with(text))
        yield Place("answered", "/approvals?all=1")
        for run, text in runs.items():
            yield Place("request", f"/runs/{run}", seen=[text] if text.strip() else ())
    yield Place("list", "/runs")
    for _ in range(len(texts) // 50):
        yield Place("older", None, _click_older)


def _submit(server: ConsoleServer, user: str, goal: str, plan: str) -> str:
    """A run of a plan with a goal; without one if the goal cannot be one."""
    for text in (f"{json.dumps(goal)}\n{plan}", plan):
        with server.client(user) as client:
            answer = client.post("/v1/runs", json={"plan": text})
        if answer.status_code == 202:
            return answer.json()["run"]
    return ""


def _reply_with(text: str) -> Prepare:
    def prepare(page: Page) -> None:
        page.get_by_label("Your reply").fill(text.replace("\n", " ")[:300] or "xss")
        page.get_by_role("button", name="Reply").click()
        expect(page.get_by_role("status").first).to_contain_text("Replied")

    return prepare


def _click_older(page: Page) -> None:
    link = page.get_by_role("link", name="Older runs")
    if link.count():
        link.click()
        page.wait_for_load_state("load")


@field_of_world()
def choices(server: ConsoleServer, user: str, texts: Sequence[str]) -> Iterator[Place]:
    """Replies that a question allows."""
    for batch in batches(texts):
        kept = sorted({printable(storable(text))[:100] for text in batch} - {""})
        run = server.submit(
            user, plan=f"much = ask('How much?', Literal[{', '.join(map(repr, kept))}])\nanswer(much)\n"
        )
        if server.settled(run, user)["state"] == "waiting":
            yield Place("choices", "/approvals", seen=kept)
            server.ask("POST", f"/v1/runs/{run}/cancel", user, code=202)


@field_of_world()
def waiting_calls(server: ConsoleServer, user: str, texts: Sequence[str]) -> Iterator[Place]:
    """Arguments of calls that wait: to whom, what, with sources and offers."""
    for batch in batches(texts, 15):
        kept = [storable(text) for text in batch]
        lines: list[str] = []
        replies: dict[str, str] = {}
        for number, text in enumerate(kept):
            server.write(f"to{number}.txt", f"recipient {number} of {user}")
            server.write(f"letter{number}.txt", text)
            replies[f"recipient {number} of {user}"] = text[:1500]
            lines += [
                f'to{number} = extract(read_text("to{number}.txt"), "who gets it", str)',
                f'text{number} = read_text("letter{number}.txt")',
            ]
        server.write("replies.json", json.dumps(replies))
        lines += [f"post(to{number}, text{number})" for number in range(len(kept))]
        run = server.submit(user, plan="\n".join([*lines, 'answer("sent")\n']))
        view = server.settled(run, user)
        if view["state"] == "waiting":
            yield Place("waiting-calls", f"/approvals/{view['waits_for'][0]}", seen=kept)
        yield Place("waiting-run", f"/runs/{run}", open_steps)
        if view["state"] == "waiting":
            server.ask("POST", f"/v1/runs/{run}/cancel", user, code=202)


@field_of_world()
def errors(server: ConsoleServer, user: str, texts: Sequence[str]) -> Iterator[Place]:
    """Errors of tools, with the words that these took from the world."""
    runs: dict[str, str] = {}
    for number, text in enumerate(texts):
        server.write(f"errors/{number}.txt", storable(text))
        runs[server.submit(user, plan=f'answer(fail_at("errors/{number}.txt"))\n')] = storable(text)
    for run, kept in runs.items():
        server.settled(run, user)
        yield Place("error", f"/runs/{run}", seen=[kept] if kept.strip() and "\r" not in kept else ())
    yield Place("errors", "/runs")


@field_of_world()
def streams(server: ConsoleServer, user: str, texts: Sequence[str]) -> Iterator[Place]:
    """Texts that come to an open page as it goes on, in server-sent events."""
    for batch in batches(texts):
        kept = [storable(text) for text in batch]
        server.write("stream.json", json.dumps(kept))
        run = server.submit(user, plan='look(1)\nlook_after("x")\nfound = read_json("stream.json")\nanswer(found)\n')
        yield Place("stream", f"/runs/{run}", _await_end, seen=kept)


def _await_end(page: Page) -> None:
    expect(page.locator("#run-result .badge.is-finished")).to_be_visible(timeout=20_000)


@field_of_world()
def bindings(server: ConsoleServer, user: str, texts: Sequence[str]) -> Iterator[Place]:
    """Words of a person that fit several names of the world: the names are what can be chosen."""
    for batch in batches(texts, 8):
        files: list[Path] = []
        for text in batch:
            name = f"walrus {file_name(storable(text))[:40]}.txt".replace("\n", " ")
            files.append(server.folder / name)
            files[-1].write_text("x")
        yield Place("binding-check", "/ask", _type_text('answer(read_text(file("walrus")))\n'))
        run = server.submit(user, request="Read the walrus file", deterministic=True)
        view = server.settled(run, user)
        yield Place("binding-run", f"/runs/{run}", open_steps)
        if view["state"] == "waiting":
            yield Place("binding", f"/approvals/{view['waits_for'][0]}")
            server.ask("POST", f"/v1/runs/{run}/cancel", user, code=202)
        for file in files:
            file.unlink(missing_ok=True)


def _type_text(text: str) -> Prepare:
    def prepare(page: Page) -> None:
        with page.expect_response("**/ask/check"):
            page.locator("#plan").fill(text)

    return prepare


@field_of_world()
def changes(server: ConsoleServer, user: str, texts: Sequence[str]) -> Iterator[Place]:
    """Contents and names of files in what a run would change, in what can be taken back, and in two runs compared."""
    before = ""
    for batch in batches(texts):
        kept = [storable(text).replace("\x00", "") for text in batch]
        name = printable(file_name(kept[0]))[:40]
        server.write("changed.txt", "\n".join(kept))
        plan = (
            f'write_text("changed.txt", {kept[-1]!r})\nwrite_text({("new/" + name.replace(chr(92), ""))!r}, "x")\n'
            f"answer({kept[0]!r})\n"
        )
        yield Place("preview", "/ask", _preview(plan))
        run = server.submit(user, plan=plan)
        server.settled(run, user)
        yield Place("undo", f"/runs/{run}/undo")
        if before:
            yield Place("comparison", f"/runs/{run}/diff?with={before}")
        before = run


def _preview(plan: str) -> Prepare:
    def prepare(page: Page) -> None:
        page.get_by_label("A plan of your own").fill(plan)
        button = page.get_by_role("button", name="What would it change?")
        button.click()
        expect(page.locator("#ask-preview .card")).to_be_visible()

    return prepare


@field_of_world(all_users=True)
def descriptions(server: ConsoleServer, user: str, texts: Sequence[str]) -> Iterator[Place]:
    """Descriptions of tools, arguments, policies and MCP servers, by whoever wrote them."""
    yield Place("policies", "/policy", _open_details)
    for number in range((len(texts) + ARGUMENTS - 1) // ARGUMENTS):
        yield Place("tool", None, _choose_tool(f"note_{number}"))
    yield Place("servers", "/operations/servers", _open_details)


def _open_details(page: Page) -> None:
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")


def _choose_tool(name: str) -> Prepare:
    def prepare(page: Page) -> None:
        with page.expect_response("**/policy/form"):
            page.get_by_label("Tool", exact=True).select_option(name)
        expect(page.locator("#tool")).to_have_value(name)

    return prepare


@field_of_world(all_users=True)
def records(server: ConsoleServer, user: str, texts: Sequence[str]) -> Iterator[Place]:
    """Alerts, models and refusals in the records of runs."""
    for batch in batches(texts, 40):
        run = server.finished(user, plan="answer(look(1))\n")
        Equipment([storable(text) for text in batch]).record(server.folder, run)
        yield Place("record", f"/runs/{run}", _open_details)
        yield Place("record-steps", None, open_steps)
        yield Place("record-journal", f"/runs/{run}/journal")
        # Figures are worked out every few seconds.
        yield Place("alerts", "/operations/alerts", _wait_for_figures)
        yield Place("overview", "/operations")
        yield Place("costs", "/operations/costs?by=model", _open_details)
        yield Place("refusals", "/operations/servers")


def _wait_for_figures(page: Page) -> None:
    page.wait_for_timeout(1_000)
    page.reload()
