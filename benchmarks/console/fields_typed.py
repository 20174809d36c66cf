"""The fields that people fill, with what they pasted or were sent: forms, and addresses with their parameters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from urllib.parse import quote

from playwright.sync_api import Page, expect

from benchmarks.console.fields import Place, Prepare, field_of_world, joined
from benchmarks.console.hostile import printable
from benchmarks.console.world import ConsoleServer


@field_of_world()
def requests(server: ConsoleServer, user: str, texts: Sequence[str]) -> Iterator[Place]:
    """What a person types or pastes as a request and as a plan, with the findings about it."""
    for number, text in enumerate(joined(texts)):
        yield Place("plan-typed", "/ask" if number % 5 == 0 else None, _type_plan(text))
        yield Place("request-typed", None, _write_request(text))


def _type_plan(text: str) -> Prepare:
    def prepare(page: Page) -> None:
        name = re.sub(r"\W", "", text)[:40] or "xss"
        with page.expect_response("**/ask/check"):
            page.locator("#plan").fill(f"answer({name}({text!r}))\n{text}\n")

    return prepare


def _write_request(text: str) -> Prepare:
    def prepare(page: Page) -> None:
        page.get_by_label("What do you want?").fill(text)
        page.get_by_label("without the first model").check()
        with page.expect_response("**/ask/plan"):
            page.get_by_role("button", name="Write the plan").click()
        expect(page.locator(".htmx-request, [aria-busy=true]")).to_have_count(0)

    return prepare


ADDRESSES = (
    "/runs?q={0}&state={0}&user={0}&before={0}",
    "/runs/{1}",
    "/runs/RUN?part={0}",
    "/runs/RUN/step?path={0}&first={0}",
    "/runs/RUN/value?side={0}&step={0}&name={0}&at={0}",
    "/runs/RUN/value?side=output&step=0&at={0}",
    "/runs/RUN/journal?after={0}&part={0}",
    "/runs/RUN/diff?with={0}",
    "/runs/recorded?q={0}",
    "/approvals?all={0}&seen={0}",
    "/approvals/{1}",
    "/ask?request={0}&run={0}",
    "/login?next={0}",
    "/patterns?q={0}&category={0}&can={0}",
    "/patterns/{1}",
    "/patterns/R5?size.{0}={0}&knob.{0}={0}&knob.max_steps={0}",
    "/architecture?example={0}",
    "/operations/models?role={0}&phase={0}&strategy={0}&hint={0}&messages={0}",
    "/operations/costs?period={0}&by={0}&show={0}",
    "/operations/costs?from={0}&to={0}",
    "/operations/alerts?kind={0}",
    "/{1}",
    "/static/{1}",
)


@field_of_world(all_users=True)
def addresses(server: ConsoleServer, user: str, texts: Sequence[str]) -> Iterator[Place]:
    """Parameters and parts of addresses: ids, searches, filters, pages to go back to."""
    run = server.finished(user, plan='answer(read_text("mail.txt"))\n')
    for text in joined(texts):
        whole, part = (
            quote(text.encode("utf-8", "replace"), safe=""),
            quote(text.encode("utf-8", "replace")[:900], safe=""),
        )
        for address in ADDRESSES:
            yield Place("address " + address, address.format(whole, part).replace("RUN", run))


@field_of_world()
def search_box(server: ConsoleServer, user: str, texts: Sequence[str]) -> Iterator[Place]:
    """What is typed or pasted into the search of runs."""
    server.finished(user, plan='answer("x")\n')
    yield Place("search", "/runs")
    for text in joined(texts):
        yield Place("search", None, _search(printable(text) or "xss"))


def _search(text: str) -> Prepare:
    def prepare(page: Page) -> None:
        with page.expect_response(re.compile("/runs")):
            page.get_by_role("searchbox").fill(text)

    return prepare


@field_of_world()
def knobs(server: ConsoleServer, user: str, texts: Sequence[str]) -> Iterator[Place]:
    """Sizes and knobs of a pattern, and its request."""
    for number, text in enumerate(joined(texts)):
        yield Place("sizes", "/patterns/R5" if number % 5 == 0 else None, _type_size(text))
        yield Place("knobs", None, _run_with_knobs(text))


def _type_size(text: str) -> Prepare:
    def prepare(page: Page) -> None:
        with page.expect_response(re.compile("/patterns/R5")):
            page.locator("#cost input").first.fill(f"{printable(text)[:300]} x")

    return prepare


def _run_with_knobs(text: str) -> Prepare:
    def prepare(page: Page) -> None:
        page.locator("#request").fill(text or "xss")
        page.evaluate("document.querySelector('#run details').open = true")
        page.locator("#run details input").first.fill(printable(text)[:190] or "xss")
        page.get_by_role("button", name="Run R5").click()
        expect(page.get_by_role("alert").first).to_be_visible()

    return prepare


@field_of_world()
def stacks(server: ConsoleServer, user: str, texts: Sequence[str]) -> Iterator[Place]:
    """Architectures with hostile names, patterns and keys, and facts for the advisor."""
    yield Place("stack", "/architecture")
    for text in joined(texts, 2):
        yield Place("stack", None, _type_stack(text))
    yield Place("advice", "/architecture/advice")
    for text in joined(texts, 5, 60):
        yield Place("advice", None, _type_fact(text))


def _type_stack(text: str) -> Prepare:
    def prepare(page: Page) -> None:
        line = printable(text)[:300]
        quoted = "'" + line.replace("'", "''") + "'"
        # One of three is no YAML at all, one names what is not known, one is a stack with a hostile name.
        form = (
            f"{text[:1500]}\n",
            f"name: x\npatterns: [R4, {quoted}]\n{quoted}: 1\n",
            f"name: {quoted}\npatterns: [R4]\nagents: [{{name: {quoted}}}]\n",
        )[len(text) % 3]
        with page.expect_response("**/architecture"):
            page.get_by_label("The stack, in YAML").fill(f"# {len(text)}\n{form}")

    return prepare


def _type_fact(text: str) -> Prepare:
    def prepare(page: Page) -> None:
        with page.expect_response("**/architecture/advice"):
            page.locator("input[id^='fact.']").first.fill(f"{printable(text)[:200]} x")

    return prepare


@field_of_world()
def playground(server: ConsoleServer, user: str, texts: Sequence[str]) -> Iterator[Place]:
    """Values, sources and readers of a call that is tried on the policies."""
    yield Place("playground", "/policy", _choose_post)
    for text in joined(texts):
        yield Place("playground", None, _type_value(text))


def _choose_post(page: Page) -> None:
    page.get_by_label("Tool", exact=True).select_option("post")
    page.get_by_role("group", name="to ").get_by_label("Whose it is").select_option("third_party")
    page.get_by_role("group", name="to ").get_by_label("Who may read it").select_option(index=2)


def _type_value(text: str) -> Prepare:
    def prepare(page: Page) -> None:
        to = page.get_by_role("group", name="to ")
        line = printable(text)[:190] or "xss"
        for label in ("Came from the tool", "Part of its result", "These"):
            field = to.get_by_label(label)
            if field.is_visible():
                field.fill(line)
        with page.expect_response("**/policy/verdict"):
            to.get_by_label("Value").fill(f"{text[:1500]} x")

    return prepare
