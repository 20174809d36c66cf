"""Calls of an API: with the user's keys, to the user's address, and with bounds on what comes back."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from bicameral.display import make_visible
from bicameral.errors import ConfigError, ToolError, describe_error, nearest_name
from bicameral.foreign import ForeignResult, read_secret
from bicameral.openapi._answers import (
    AnswerTooLarge,
    BadAnswer,
    BodyReader,
    decode_body,
    is_json,
    is_text,
    media_type,
    read_json_body,
    redirect_target,
    same_origin,
)
from bicameral.openapi._document import SecurityScheme, require_openapi
from bicameral.openapi._operations import Operation
from bicameral.openapi._requests import ApiRequest, build_request, encode_text
from bicameral.openapi._settings import OpenApiSettings
from bicameral.rates import CallRate
from bicameral.secrets import mask, mask_value
from bicameral.tools import call_key

if TYPE_CHECKING:
    import ssl

    import httpx

_MAX_REDIRECTS = 3
_READING = ("GET", "HEAD")
_KEY_VALUE = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")


@dataclass(frozen=True, slots=True)
class _Keys:
    """What is sent with a call besides its arguments."""

    headers: tuple[tuple[str, str], ...] = ()
    query: tuple[str, ...] = ()
    cookies: tuple[tuple[str, str], ...] = ()


class ApiServer:
    """One API at the address that its settings say.

    Args:
        name: Its name in the configuration.
        settings: Its settings.
        schemes: The security schemes of its document, by name.
        environment: Where keys are looked up; by default the environment of this process.
    """

    def __init__(
        self,
        name: str,
        settings: OpenApiSettings,
        schemes: Mapping[str, SecurityScheme],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name, self.settings = name, settings
        self._schemes, self._environment = schemes, environment
        self._rate = CallRate(settings.rate, f"the API {name!r}")
        for each in settings.keys:
            if each not in schemes:
                raise ConfigError(
                    "openapi.unknown-key",
                    f"the document of {name!r} has no security scheme {each!r} that is known here",
                    expected=", ".join(make_visible(known)[:60] for known in schemes) or "`bearer` or `headers`",
                    nearest=nearest_name(each, schemes),
                )

    async def call(
        self,
        operation: Operation,
        arguments: Mapping[str, Any],
        *,
        seconds: float,
        path_arguments: frozenset[str] = frozenset(),
        keyed: bool = False,
    ) -> ForeignResult:
        """Call an operation with JSON values that were checked against its schema.

        Args:
            operation: What is called.
            arguments: By the names of its arguments.
            seconds: How long the whole call may take.
            path_arguments: Arguments that may be paths of several parts.
            keyed: Send the key of the call as `Idempotency-Key`, so that a repeated one does the thing once.
        """
        require_openapi()
        request = build_request(operation, arguments, path_arguments=path_arguments)
        keys = self._keys(operation)
        self._rate.count_call()
        more = (("Idempotency-Key", key),) if keyed and (key := call_key()) is not None else ()
        # The user's keys come last and replace what an argument says under the same name.
        headers = _merged((*request.headers, *more, *keys.headers))
        own = {name.lower() for name, _ in keys.cookies}
        cookies = [*(each for each in request.cookies if each[0].lower() not in own), *keys.cookies]
        if cookies:
            # A list is several cookies of one name.
            headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in cookies)
        headers["Accept-Encoding"] = "gzip"
        if not any(name.lower() == "user-agent" for name in headers):
            headers["User-Agent"] = "bicameral"
        query = "&".join((*request.query, *keys.query))
        address = self.settings.server.rstrip("/") + request.path + (f"?{query}" if query else "")
        try:
            async with asyncio.timeout(seconds):
                return await self._send(operation, request, address, headers, seconds)
        except TimeoutError:
            raise ToolError(
                "openapi.timeout", f"the API {self.name!r} did not answer {operation.tool.name!r} within {seconds:g} s"
            ) from None

    async def _send(
        self, operation: Operation, request: ApiRequest, address: str, headers: dict[str, str], seconds: float
    ) -> ForeignResult:
        import httpx

        target = _exact_url(address, self.settings.server)
        what = f"the API {self.name!r} at {operation.tool.name!r}"
        try:
            # A client for each call: no cookie of one answer is sent with the next call.
            async with httpx.AsyncClient(verify=_tls(), follow_redirects=False, timeout=seconds) as client:
                for _ in range(_MAX_REDIRECTS + 1):
                    made = client.build_request(request.method, target, headers=headers, content=request.content)
                    answer = await client.send(made, stream=True)
                    try:
                        if not answer.has_redirect_location:
                            return await self._read(operation, answer)
                        target = self._following(operation, request, target, answer)
                    finally:
                        await answer.aclose()
        except AnswerTooLarge:
            raise ToolError(
                "openapi.too-large",
                f"the answer of {what} has more than {self.settings.max_result:,} bytes",
                fix=f"Ask for less, or raise `max_result` in [openapi.{self.name}].",
            ) from None
        except BadAnswer as error:
            raise ToolError("openapi.bad-answer", f"the answer of {what} cannot be read: {error}") from None
        except UnicodeError:
            # The client reads the address of a redirect although it does not follow it, `http://xn--a/` for example.
            raise ToolError(
                "openapi.bad-answer", f"the answer of {what} cannot be read: an address in it is none"
            ) from None
        except httpx.TransportError as error:
            raise ToolError(
                "openapi.unreachable", f"{what} cannot be reached: {make_visible(describe_error(error))[:300]}"
            ) from None
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            raise ToolError(
                "openapi.bad-answer", f"the answer of {what} is no HTTP: {make_visible(describe_error(error))[:300]}"
            ) from None
        raise ToolError("openapi.redirected", f"{what} redirects without end")

    def _following(
        self, operation: Operation, request: ApiRequest, target: httpx.URL, answer: httpx.Response
    ) -> httpx.URL:
        """Where a redirect leads, if it is followed: of a call that reads, and on the same server."""
        following = redirect_target(target, answer)
        if request.method in _READING and same_origin(target, following):
            return following
        why = "which is not followed, since the call is not one that reads"
        if not same_origin(target, following):
            # Keys and arguments are for this server alone.
            why = f"at {make_visible(following.raw_host.decode())[:100]!r}, which is not followed"
        raise ToolError(
            "openapi.redirected",
            f"the API {self.name!r} redirects {operation.tool.name!r} to another address, {why}",
            fix=f"If it has moved, change `server` in [openapi.{self.name}].",
        )

    async def _read(self, operation: Operation, answer: httpx.Response) -> ForeignResult:
        limit = self.settings.max_result
        announced = answer.headers.get("content-length", "")
        if announced.isdecimal() and len(announced) < 20 and int(announced) > limit and operation.method != "HEAD":
            raise AnswerTooLarge
        reader = BodyReader(answer.headers.get("content-encoding"), limit)
        async for piece in answer.aiter_raw():
            reader.feed(piece)
        body, kind = reader.finish(), answer.headers.get("content-type")
        media = media_type(kind)
        if not answer.is_success:
            text = mask(decode_body(body[:4_000], kind)) if is_text(media) or is_json(media) else ""
            return ForeignResult(f"HTTP {answer.status_code} {text}".strip(), is_error=True)
        if not body or operation.tool.output_schema == {"type": "null"}:
            # An operation that describes no answer gives none, also where the server says more.
            return ForeignResult("", None, has_structured=True)
        text = decode_body(body, kind)
        # An API may send back the key that it was sent, and no model may read that.
        masked = mask(text)
        if is_json(media):
            value = await asyncio.to_thread(read_json_body, body)
            return ForeignResult(masked, value if masked == text else mask_value(value), has_structured=True)
        if not is_text(media):
            raise BadAnswer("it is neither JSON nor text")
        return ForeignResult(masked)

    def _keys(self, operation: Operation) -> _Keys:
        """The keys of the first alternative for which all are set, and those that are sent with every call."""
        given = [(SecurityScheme("header", name), where) for name, where in self.settings.headers.items()]
        if self.settings.bearer is not None:
            given.append((SecurityScheme("bearer"), self.settings.bearer))
        # Where a key is optional, one that the user gave is sent.
        for alternative in sorted(operation.security, key=lambda each: not each):
            if all(name in self.settings.keys for name in alternative):
                given = [*((self._schemes[name], self.settings.keys[name]) for name in alternative), *given]
                break
        else:
            if operation.security and not given:
                raise self._no_key_error(operation)
        headers: list[tuple[str, str]] = []
        query: list[str] = []
        cookies: list[tuple[str, str]] = []
        for scheme, where in given:
            value = self._read_key(where)
            match scheme.kind:
                case "header":
                    headers.append((scheme.name, value))
                case "bearer":
                    headers.append(("Authorization", f"Bearer {value}"))
                case "basic":
                    headers.append(("Authorization", f"Basic {base64.b64encode(value.encode()).decode()}"))
                case "query":
                    query.append(f"{encode_text(scheme.name)}={encode_text(value)}")
                case "cookie":
                    cookies.append((scheme.name, encode_text(value)))
        return _Keys(tuple(headers), tuple(query), tuple(cookies))

    def _read_key(self, where: str) -> str:
        value = read_secret(where, self._environment, what=f"the API {self.name!r}").reveal()
        if not _KEY_VALUE.fullmatch(value):
            raise ConfigError(
                "openapi.bad-key",
                f"the key of {self.name!r} from {where!r} has a sign that cannot be sent",
                expected="visible ASCII characters",
            )
        return value

    def _no_key_error(self, operation: Operation) -> ConfigError:
        needed = " or ".join(" and ".join(make_visible(name)[:60] for name in each) for each in operation.security)
        return ConfigError(
            "openapi.no-key",
            f"{operation.tool.name!r} of the API {self.name!r} needs a key: {needed[:300]}",
            fix=f"Name where it is under `keys` in [openapi.{self.name}].",
        )


def _merged(pairs: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Headers by name, whatever its case: the last of several counts."""
    found: dict[str, tuple[str, str]] = {}
    for name, value in pairs:
        found[name.lower()] = (name, value)
    return dict(found.values())


def _exact_url(address: str, server: str) -> httpx.URL:
    """The address as it is; an error if it would be sent as another one, or to another server."""
    import httpx

    try:
        target, own = httpx.URL(address), httpx.URL(server)
    except httpx.InvalidURL:
        raise ToolError("openapi.bad-argument", "the arguments make no address") from None
    host_and_path = re.match(r"https?://[^/]+(.*)", address, re.DOTALL)
    if not same_origin(target, own) or host_and_path is None or target.raw_path.decode() != (host_and_path[1] or "/"):
        raise ToolError("openapi.bad-argument", "the arguments would make another address")
    return target


@cache
def _tls() -> ssl.SSLContext:
    """One context for all calls: reading the certificates takes longer than a call."""
    import httpx

    return httpx.create_ssl_context()
