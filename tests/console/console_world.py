"""People at the console of a real server, without a browser: they sign in, read pages, and send their forms."""

from __future__ import annotations

import re
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from selectolax.lexbor import LexborHTMLParser
from server_world import Served, serving

from bicameral.journal import Journal, NewEvent
from bicameral.server import TokenFile

HOSTILE = "<img src=x onerror=alert(1)>\"' hx-get=/logout {{7*7}} a\u200bb\u202e"


@contextmanager
def served_console(folder: Path, more: str = "rate = 1000000\n", *words: str) -> Generator[Served]:
    """A server with two users, and one who may see the runs of all."""
    with serving(folder, more, *words) as found:
        found.tokens["ops"] = tokens_of(found).add("ops", all_users=True)[1]
        yield found


def tokens_of(served: Served) -> TokenFile:
    """The tokens of a server."""
    return TokenFile(served.folder / "xdg_config_home" / "bicameral" / "tokens.json")


class Person:
    """Somebody who has signed in with a token, as their browser would."""

    def __init__(self, served: Served, user: str = "ana", *, token: str | None = None, sign_in: bool = True) -> None:
        self.served = served
        self.http = httpx.Client(base_url=served.address, timeout=30, follow_redirects=False)
        self.origin = {"Origin": served.address, "Sec-Fetch-Site": "same-origin"}
        if sign_in:
            answer = self.send("/login", {"token": token or served.tokens[user]}, csrf=False)
            assert answer.status_code == 303, answer.text

    def __enter__(self) -> Person:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()

    def get(self, path: str, code: int = 200, **headers: str) -> Page:
        """A page; it must have this status."""
        answer = self.http.get(path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        assert answer.status_code == code, (path, answer.status_code, answer.text[:3000])
        return Page(answer)

    def part(self, path: str, code: int = 200) -> Page:
        """A part of a page, as htmx asks for it."""
        return self.get(path, code, hx_request="true")

    def csrf(self) -> str:
        """The secret that the forms of this session carry."""
        found = re.search(
            r'name="csrf" value="([^"]+)"', self.http.get("/runs/recorded").text + self.http.get("/ask").text
        )
        assert found is not None
        return found[1]

    def send(
        self, path: str, fields: dict[str, Any], *, csrf: bool = True, headers: dict[str, str] | None = None
    ) -> httpx.Response:
        """Send a form."""
        secret = {"csrf": self.csrf()} if csrf else {}
        return self.http.post(path, data=secret | fields, headers=self.origin | (headers or {}))

    def send_part(self, path: str, fields: dict[str, Any]) -> Page:
        """Send a form as htmx does."""
        return Page(self.send(path, fields, headers={"HX-Request": "true"}))


class Page:
    """A page that was answered."""

    def __init__(self, answer: httpx.Response) -> None:
        self.answer, self.html = answer, answer.text
        self.tree = LexborHTMLParser(answer.text)

    @property
    def text(self) -> str:
        """What a person reads, with blanks as one."""
        return " ".join(self.tree.text(separator=" ").split()) if self.tree.root is not None else ""

    def texts(self, selector: str) -> list[str]:
        """The texts of all elements that fit."""
        return [" ".join(node.text().split()) for node in self.tree.css(selector)]

    def attribute(self, selector: str, name: str) -> str:
        """An attribute of the first element that fits."""
        node = self.tree.css_first(selector)
        assert node is not None, (selector, self.html[:2000])
        return node.attributes[name] or ""

    def typed(self, selector: str) -> str:
        """What stands in the first field of a form that fits, as it was typed."""
        node = self.tree.css_first(selector)
        assert node is not None, (selector, self.html[:2000])
        return node.text()

    def has(self, selector: str) -> bool:
        """Whether an element fits."""
        return self.tree.css_first(selector) is not None

    def is_free_of(self, hostile: str = HOSTILE) -> bool:
        """Whether nothing in it was made of a hostile text: no element, and no attribute that acts."""
        acts = ("onerror", "onload", "onclick")
        nodes = self.tree.css("*")
        attributes = {name for node in nodes for name in node.attributes}
        sources = [node.attributes.get("src") for node in self.tree.css("img")]
        return not attributes.intersection(acts) and "x" not in sources and hostile not in self.html


def record(served: Served, run: str, *events: NewEvent) -> None:
    """Append events to a run, as another process would."""
    with Journal(journal_file(served)) as journal:
        journal.append_all(run, events)


def journal_file(served: Served) -> Path:
    return served.folder / "xdg_state_home" / "bicameral" / "journal.db"


def wait_for_question(person: Person, run: str) -> dict[str, Any]:
    """The question that a run waits with."""
    view = person.served.settled(run)
    assert view["state"] == "waiting", view
    return person.served.ask("GET", f"/v1/approvals/{view['waits_for'][0]}")


def wait_until(check: Any, seconds: float = 20.0) -> None:
    """Wait until a check holds."""
    end = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)
