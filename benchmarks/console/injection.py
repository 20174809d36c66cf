"""Hostile texts on the pages: whether any of them ran, or became a part of a page.

Three things are looked at. A text that runs as code calls the canary, opens a dialog, breaks the content-security
policy or asks another host (`Watch`). A text that became elements or attributes is found by what no page of ours has.
And a person must see a text as it is, with what is invisible in it written out.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import groupby

from playwright.sync_api import Error, Page

from benchmarks.console import fields, fields_typed
from benchmarks.console.browser import CANARY, Chromium, Visitor, expose
from benchmarks.console.fields import FIELDS, Place
from benchmarks.console.hostile import hostile_texts
from benchmarks.console.world import ConsoleServer
from bicameral.console._pages import MOST_CODES
from bicameral.display import hidden_places

MODULES = (fields, fields_typed)
"""The modules whose fields add themselves to `FIELDS`."""
DRAWN = ("svg", "g", "rect", "path", "text", "title", "defs", "marker")
"""Elements that our scripts make."""
SETTLE_MS = 40
"""How long a page may take to run what it was given, after it was loaded."""
LONGEST_SHOWN = 150
"""Longer texts are cut on some pages."""

PROBE = r"""
({ tags, canary }) => {
  const found = [];
  const known = new Set(tags);
  const own = /^(?:[#?][\x21-\x7e]*|\/(?![\/\\])[\x21-\x7e]*|)$/;
  const addresses = ["href", "src", "action", "formaction", "hx-get", "hx-post", "hx-sse:connect", "xlink:href"];
  const acts = [
    "on", "style$", "srcdoc$", "srcset$", "ping$", "background$", "nonce$", "http-equiv$", "popover", "_$",
    "data-hx", "hx-on", "hx-vals", "hx-headers", "hx-boost", "hx-swap-oob", "hx-ws", "sse-", "ws-", "x-", "v-", "ng-",
  ];
  const never = new RegExp(`^(?:${acts.join("|")})`);
  const foreign = "base, iframe, object, embed, style, link[rel=stylesheet]:not([href^='/static/'])";
  const once = ["main", "panel", "offline", "problem", "keys", "run-result", "run-plan", "runs", "inbox-news", "graph"];
  const note = (what, text) => found.push(`${what} ${text.slice(0, 80)}`);
  for (const each of document.querySelectorAll("*")) {
    const tag = each.localName;
    if (!known.has(tag)) note("element", tag);
    const isOurs = !each.textContent && /^\/static\//.test(each.getAttribute("src"));
    if (tag === "script" && !isOurs) note("script", each.textContent);
    for (const { name, value } of each.attributes) {
      const isCanary = value.toLowerCase().includes(canary);
      if (never.test(name) || name.toLowerCase().includes(canary)) note("attribute", `${name} of ${tag}`);
      if (addresses.includes(name) && !own.test(value)) note("address", value);
      if (["id", "class", "for", "role"].includes(name) && isCanary) note(name, value);
      if (name === "name" && tag !== "meta" && isCanary) note(name, value);
    }
  }
  for (const id of once) if (document.querySelectorAll(`[id="${id}"]`).length > 1) note("twice", id);
  for (const each of document.querySelectorAll(foreign)) note("foreign", each.localName);
  return found;
}
"""


@dataclass
class Injection:
    """What came of all texts in all fields."""

    strings: int = 0
    fields: int = 0
    pages: int = 0
    """Pages that were looked at."""
    planted: list[str] = field(default_factory=list[str])
    """What became a part of a page, with the page."""
    unseen: list[str] = field(default_factory=list[str])
    """Texts that a person does not see where they should."""
    broken: list[str] = field(default_factory=list[str])
    """Pages that did not come."""
    executed: list[str] = field(default_factory=list[str])
    violations: list[str] = field(default_factory=list[str])
    undefended: int = 0
    """Texts that do run or become a part of a page where nothing is escaped."""


def known_tags() -> list[str]:
    """The elements of our own templates, and those that our scripts make."""
    found = set(DRAWN)
    for entry in files("bicameral.console").joinpath("templates").iterdir():
        found |= {tag.lower() for tag in re.findall(r"<([a-zA-Z][\w-]*)", entry.read_text("utf-8"))}
    return sorted(found - {"hx-partial"} | {"tbody"})


def probe(page: Page, tags: Sequence[str]) -> list[str]:
    """What of a page is not ours."""
    return page.evaluate(PROBE, {"tags": list(tags), "canary": CANARY})


def shown_form(text: str) -> str:
    """A text as a person sees it, without blanks: hidden characters that follow one another are one mark."""
    hidden = hidden_places(text).keys() | {found.start() for found in re.finditer("‹(?=[0-9A-Fa-f]{4})", text)}
    seen = ""
    for is_hidden, some in groupby(enumerate(text), lambda pair: pair[0] in hidden):
        run = [each for _, each in some]
        seen += f"‹{_codes(run)}›" if is_hidden else "".join(run)
    return re.sub(r"\s+", "", seen)


def _codes(run: Sequence[str]) -> str:
    repeated = [(each, len(list(same))) for each, same in groupby(run)]
    assert len(repeated) <= MOST_CODES, "a text of the benchmark would need several marks"
    return "".join(f"{ord(each):04x}" + (f"×{times:,}" if times > 1 else "") for each, times in repeated)


def try_fields(
    chromium: Chromium, server: ConsoleServer, only: Iterable[str] = (), texts: Sequence[str] = ()
) -> Injection:
    """Put texts into fields, all into all by default, and look at every page on which they stand."""
    texts, tags, result, wanted = texts or hostile_texts(), known_tags(), Injection(), set(only)
    chosen = [each for each in FIELDS.values() if not wanted or each.name in wanted]
    result.strings, result.fields = len(texts), len(chosen)
    result.undefended = count_undefended(chromium, texts)
    for each in chosen:
        user = server.new_user("xss", all_users=each.all_users)
        with chromium.visit(server, user, counted=False) as visitor:
            try:
                for place in each.places(server, user, texts):
                    _look(visitor, place, tags, result)
            except Exception as error:
                result.broken.append(f"{each.name}: {type(error).__name__}: {str(error)[:300]}")
            result.executed += [f"{each.name}: {said}" for said in visitor.watch.executed]
            result.violations += [f"{each.name}: {said}" for said in visitor.watch.violations]
            # What a page asked of others, and errors of its scripts, counts with those of all other pages.
            chromium.watch.outside += visitor.watch.outside
            chromium.watch.errors += visitor.watch.errors
        print(f"xss: {each.name}: {result.pages} pages", file=sys.stderr, flush=True)
    return result


def _look(visitor: Visitor, place: Place, tags: Sequence[str], result: Injection) -> None:
    page = visitor.page
    result.pages += 1
    try:
        if place.path is not None:
            page.goto(visitor.server.address + place.path, wait_until="load")
        if place.prepare is not None:
            place.prepare(page)
        page.wait_for_timeout(SETTLE_MS)
        result.planted += [f"{place.name}: {each}" for each in probe(page, tags)]
        if place.seen:
            text = re.sub(r"\s+", "", page.locator("body").inner_text())
            result.unseen += [
                f"{place.name}: {each!r}"
                for each in place.seen
                if len(each) <= LONGEST_SHOWN and shown_form(each) not in text
            ]
    except (Error, AssertionError) as error:
        result.broken.append(f"{place.name} {place.path or ''}: {str(error)[:300]}")


def count_undefended(chromium: Chromium, texts: Sequence[str]) -> int:
    """How many of the texts run, or become a part of a page, where they are written as they are.

    Without this nobody would know whether the texts are worth anything.
    """
    context = chromium.browser.new_context()
    called: set[int] = set()
    caught = 0

    def on_call(number: object = -1, *_: object) -> None:
        called.add(int(str(number)))

    try:
        expose(context, CANARY, on_call)
        page = context.new_page()
        page.on("dialog", lambda dialog: dialog.dismiss())
        tags = known_tags()
        for number, text in enumerate(texts):
            page.set_content(f'<p title="{text}">{text}</p>', wait_until="commit")
            page.wait_for_timeout(5)
            try:
                planted = probe(page, [*tags, "html", "head", "body"])
            except Error:
                planted = ["gone"]
            caught += bool(planted) or number in called
    finally:
        context.close()
    return caught
