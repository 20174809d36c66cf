"""A real Chromium, and a watch over all that its pages do.

Debian's browser is started through playwright, which downloads nothing: it is told where the browser is. Each visitor
has a context of their own, with cookies and a cache that nobody else has. What a page asks of other hosts, which rules
of its content-security policy it breaks, and which scripts of strangers it runs, is counted in a `Watch`.
"""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, cast
from urllib.parse import urlsplit

import httpx

from benchmarks.console.world import OTHER_NAME, ConsoleServer

if TYPE_CHECKING:
    from playwright._impl._api_structures import SetCookieParam
    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Dialog, Page, Request

BROWSERS = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
FOREIGN_NAME = "rebound.example"
"""A name of a stranger that leads to this machine."""
CANARY = "xss"
"""The function of every page that only a text which runs as code calls."""
WATCHING = """
addEventListener("securitypolicyviolation", (event) => {
  const { effectiveDirective, blockedURI, sourceFile, lineNumber } = event;
  reportViolation(`${effectiveDirective} ${blockedURI} ${sourceFile}:${lineNumber} at ${location.pathname}`);
});
"""
NAMES = (
    f"MAP {OTHER_NAME} 127.0.0.1, MAP {FOREIGN_NAME} 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"
)
"""No name leads out of this machine, and two lead into it."""
NAVIGATION_MS = 20_000
HTTP_ERROR = "Failed to load resource"
"""How the browser's console begins what it says of an answer such as 404, which journeys ask for."""


@dataclass
class Watch:
    """What pages did that they must not do."""

    outside: list[str] = field(default_factory=list[str])
    """Requests to any origin but the server's."""
    violations: list[str] = field(default_factory=list[str])
    """Broken rules of the content-security policy."""
    executed: list[str] = field(default_factory=list[str])
    """Texts that ran as code."""
    errors: list[str] = field(default_factory=list[str])
    """Errors of our own scripts."""

    def add(self, other: Watch) -> None:
        for name in ("outside", "violations", "executed", "errors"):
            getattr(self, name).extend(getattr(other, name))


@dataclass
class Visitor:
    """A person at a browser: a context of their own with one page, and what it did."""

    server: ConsoleServer
    context: BrowserContext
    page: Page
    watch: Watch
    user: str

    def open(self, path: str) -> Page:
        """Open a page of the console; its address stays the same if it leads nowhere else."""
        self.page.goto(self.server.address + path, wait_until="load")
        return self.page

    @property
    def path(self) -> str:
        """Where the person is, without the name of the host."""
        parts = urlsplit(self.page.url)
        return parts.path + (f"?{parts.query}" if parts.query else "")

    def new_page(self) -> Page:
        """One more tab."""
        return self.context.new_page()


class Chromium:
    """A browser and the visitors that use it."""

    def __init__(self, browser: Browser) -> None:
        self.browser = browser
        self.watch = Watch()
        """What the pages of all visitors did."""
        # Sign-ins are limited by address, and each visitor comes from one of their own.
        self._hosts: Iterator[str] = (f"127.0.{high}.{low}" for high in itertools.count(1) for low in range(1, 255))
        self._cookies: dict[tuple[str, str], SetCookieParam] = {}

    @property
    def version(self) -> str:
        return self.browser.version

    @contextmanager
    def visit(
        self,
        server: ConsoleServer,
        user: str = "",
        *,
        width: int = 1280,
        height: int = 900,
        theme: Literal["light", "dark"] = "light",
        still: bool = False,
        counted: bool = True,
        expected: str = "",
        **options: Any,
    ) -> Generator[Visitor]:
        """A visitor until the block ends.

        Args:
            server: The server.
            user: Who is signed in; nobody if it is empty.
            width: Of the window.
            height: Of the window.
            theme: What the system prefers.
            still: Whether the system asks for no motion.
            counted: Whether what the pages do is added to what all pages did; not for pages of strangers.
            expected: What errors of scripts may speak of, such as a connection that is cut.
            options: More for the context.
        """
        context = self.browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=theme,
            reduced_motion="reduce" if still else "no-preference",
            locale="en-GB",
            **options,
        )
        watch = Watch()
        try:
            context.set_default_timeout(NAVIGATION_MS)
            _watch_context(context, server, watch, expected)
            if user:
                context.add_cookies([self.sign_in(server, user)])
            yield Visitor(server, context, context.new_page(), watch, user)
        finally:
            context.close()
            if counted:
                self.watch.add(watch)

    def sign_in(self, server: ConsoleServer, user: str, *, anew: bool = False) -> SetCookieParam:
        """The cookie of a session as the server sets it, without a browser."""
        key = (server.address, user)
        if anew or key not in self._cookies:
            transport = httpx.HTTPTransport(local_address=next(self._hosts))
            with httpx.Client(base_url=server.address, transport=transport, timeout=20) as client:
                headers = {"Origin": server.address}
                answer = client.post("/login", data={"token": server.tokens[user]}, headers=headers)
                assert answer.status_code == 303, (answer.status_code, answer.text)
                assert "HttpOnly" in answer.headers["set-cookie"], answer.headers
                [(name, value)] = answer.cookies.items()
                cookie: SetCookieParam = {"url": server.address, "name": name, "value": value}
                self._cookies[key] = {**cookie, "httpOnly": True, "sameSite": "Lax"}
        return self._cookies[key]


def _watch_context(context: BrowserContext, server: ConsoleServer, watch: Watch, expected: str) -> None:
    own = (server.address, server.address.replace("127.0.0.1", OTHER_NAME))

    def on_request(request: Request) -> None:
        # What a page makes of itself (`blob:`, `data:`, `about:`) asks nobody.
        if urlsplit(request.url).scheme in ("http", "https", "ws", "wss") and not request.url.startswith(own):
            watch.outside.append(request.url[:300])

    def on_console(message: ConsoleMessage) -> None:
        if "Content Security Policy" in message.text or "Content-Security-Policy" in message.text:
            watch.violations.append(message.text[:300])
        elif message.type == "error" and not message.text.startswith(HTTP_ERROR):
            if expected and expected in message.text:
                return
            watch.errors.append(message.text[:300])

    def on_dialog(dialog: Dialog) -> None:
        watch.executed.append(f"dialog {dialog.message}")
        dialog.dismiss()

    def on_call(*said: object) -> None:
        watch.executed.append(f"{CANARY}({', '.join(map(str, said))})")

    def on_violation(said: object) -> None:
        watch.violations.append(str(said))

    def on_page(page: Page) -> None:
        page.on("pageerror", lambda error: watch.errors.append(str(error)[:300]))
        page.on("dialog", on_dialog)

    context.on("request", on_request)
    context.on("console", on_console)
    context.on("page", on_page)
    expose(context, CANARY, on_call)
    expose(context, "reportViolation", on_violation)
    context.add_init_script(WATCHING)


def expose(context: BrowserContext, name: str, function: Callable[..., None]) -> None:
    """Let the scripts of all pages call a function here."""
    # The library does not say of what type a function is.
    cast("Any", context).expose_function(name, function)


def browser_path() -> str:
    """Where the browser is; empty if there is none."""
    chosen = os.environ.get("CHROMIUM", "")
    return chosen or next((found for name in BROWSERS if (found := shutil.which(name))), "")


def missing_part() -> str:
    """What is missing for these pages, in words; empty if nothing is."""
    for package in ("playwright", "axe_playwright_python"):
        if find_spec(package) is None:
            return f"the package {package.replace('_', '-')} is not installed (`make install`)"
    return "" if browser_path() else "there is no Chromium (`make console-tests` installs Debian's)"


@contextmanager
def chromium() -> Generator[Chromium]:
    """The browser until the block ends."""
    from playwright.sync_api import sync_playwright

    # As root it has no sandbox of its own; the pages are ours, and so is the machine.
    arguments = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--host-resolver-rules={NAMES}"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path(), args=arguments)
        try:
            yield Chromium(browser)
        finally:
            browser.close()
