"""Attacks with a token that has ended, or is somebody else's: whoever holds it wants to be told something more."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import AsyncGenerator, Callable
from typing import Any

import httpx

from bicameral.server import TokenFile

from ..case import Family, World
from ..serving import REQUEST, WAITING, Sent, Serving, events, heard, serving

attacks = Family("tokens")

SECRET = "the secret answer"
ENDED = "server.token-ended"


def _waits(sent: Sent) -> bool:
    return sent.kind == "run-waits"


def _closed(found: list[Sent]) -> bool:
    """Whether a stream ended by saying that its token has."""
    return bool(found) and found[-1].data.get("error", {}).get("code") == ENDED


async def _after(served: Serving, run: str, end_token: Any) -> str | None:
    """What the first token's watch is told after that token has ended, while the run goes on for the second."""
    served.add("second", "ana")
    async with served.client() as http, http.stream("GET", f"/v1/runs/{run}/events") as answer:
        stream = events(answer)
        await heard(stream, _waits)
        end_token()
        state = await served.approve(run, "second")
        assert state == "finished", state
        rest = await heard(stream)
    if [each for each in rest if each.kind not in ("error", "")]:
        return f"events after the token's end: {', '.join(each.kind for each in rest)}"
    return None if _closed(rest) else "the stream does not say why it ends"


@attacks.case("a removed token goes on watching a run")
async def removed_watch(world: World) -> str | None:
    async with serving(world) as served:
        return await _after(served, await served.waiting(), lambda: served.remove("ana"))


@removed_watch.twin()
async def other_removed(world: World) -> bool:
    """That another token of the user is removed ends nothing."""
    async with serving(world) as served:
        run = await served.waiting()
        served.add("third", "ana")
        async with served.client() as http, http.stream("GET", f"/v1/runs/{run}/events") as answer:
            stream = events(answer)
            await heard(stream, _waits)
            served.remove("third")
            await served.approve(run)
            rest = await heard(stream)
        return rest[-1].kind == "end" and rest[-1].data["answer"] == SECRET


@attacks.case("an expired token goes on watching a run")
async def expired_watch(world: World) -> str | None:
    async with serving(world) as served:
        run = await served.waiting()
        served.add("ana", "ana", seconds=60)

        def expire() -> None:
            served.clock[0] += 61

        return await _after(served, run, expire)


@expired_watch.twin()
async def not_yet_expired(world: World) -> bool:
    async with serving(world) as served:
        run = await served.waiting()
        served.add("ana", "ana", seconds=60)
        async with served.client() as http, http.stream("GET", f"/v1/runs/{run}/events") as answer:
            stream = events(answer)
            await heard(stream, _waits)
            served.clock[0] += 59
            await served.approve(run)
            return (await heard(stream))[-1].kind == "end"


@attacks.case("a silent watch outlives its token")
async def silent_watch(world: World) -> str | None:
    """Nothing happens in the run: the watch must notice by itself."""
    async with serving(world) as served:
        run = await served.waiting()
        async with served.client() as http, http.stream("GET", f"/v1/runs/{run}/events") as answer:
            stream = events(answer)
            await heard(stream, _waits)
            served.remove("ana")
            try:
                async with asyncio.timeout(5):
                    return None if _closed(await heard(stream)) else "the stream does not say why it ends"
            except TimeoutError:
                return "the watch is still open"


@silent_watch.twin()
async def silent_and_valid(world: World) -> bool:
    async with serving(world) as served:
        run = await served.waiting()
        async with served.client() as http, http.stream("GET", f"/v1/runs/{run}/events") as answer:
            stream = events(answer)
            await heard(stream, _waits)
            try:
                async with asyncio.timeout(1.2):
                    await heard(stream)
            except TimeoutError:
                return True
        return False


@attacks.case("a long wait answers a token that was removed meanwhile")
async def removed_wait(world: World) -> str | None:
    async with serving(world) as served:
        async with served.client() as http:
            # Not before a while: the run is queued, so the wait waits.
            run = (await http.post("/v1/runs", json={"plan": WAITING, "delay": 3600})).json()["run"]
            waiting = asyncio.create_task(http.get(f"/v1/runs/{run}?wait=15"))
            await asyncio.sleep(0.2)
            served.remove("ana")
            answer = await waiting
        return None if answer.status_code == 401 and run not in answer.text else f"it was told {answer.status_code}"


@removed_wait.twin()
async def wait_in_peace(world: World) -> bool:
    async with serving(world) as served, served.client() as http:
        run = (await http.post("/v1/runs", json={"plan": "answer(6 * 7)"})).json()["run"]
        return (await http.get(f"/v1/runs/{run}?wait=15")).json()["answer"] == 42


@attacks.case("a streamed chat goes on for a token that was removed meanwhile")
async def removed_chat(world: World) -> str | None:
    async with serving(world) as served:
        found = await _streamed(served, lambda: served.remove("ana"))
    if "hello" in "".join(str(each.data) for each in found):
        return "the answer was streamed"
    return None if _closed(found) else "the stream does not say why it ends"


@removed_chat.twin()
async def chat(world: World) -> bool:
    async with serving(world) as served:
        return "hello" in "".join(str(each.data) for each in await _streamed(served, lambda: None))


async def _streamed(served: Serving, meanwhile: Callable[[], None]) -> list[Sent]:
    """A chat over a stream; `meanwhile` happens after it has begun and before its run can have ended."""
    async with served.client() as http, http.stream("POST", "/v1/chat/completions", json=_chat(stream=True)) as chat:
        meanwhile()
        return await heard(events(chat))


def _chat(*, stream: bool) -> dict[str, Any]:
    return {"model": "bicameral", "stream": stream, "messages": [{"role": "user", "content": REQUEST}]}


@attacks.case("a token is given to another user while it watches")
async def owner_changed(world: World) -> str | None:
    async with serving(world) as served:
        run = await served.waiting()

        def give_away() -> None:
            assert served.tokens.file is not None
            written = json.loads(served.tokens.file.read_text())
            for token in written["tokens"]:
                token["user"] = "ben" if token["id"] == served.ids["ana"] else token["user"]
            served.tokens.file.write_text(json.dumps(written))

        return await _after(served, run, give_away)


@owner_changed.twin()
async def file_rewritten(world: World) -> bool:
    """The same tokens written anew are the same tokens."""
    async with serving(world) as served:
        run = await served.waiting()
        assert served.tokens.file is not None
        async with served.client() as http, http.stream("GET", f"/v1/runs/{run}/events") as answer:
            stream = events(answer)
            await heard(stream, _waits)
            served.tokens.file.write_text(served.tokens.file.read_text())
            await served.approve(run)
            return (await heard(stream))[-1].kind == "end"


@attacks.case("a token is removed while the body of its request arrives")
async def removed_in_the_body(world: World) -> str | None:
    async with serving(world) as served:
        body = json.dumps({"plan": "answer(1)"}).encode()

        async def slowly() -> AsyncGenerator[bytes]:
            yield body[:5]
            served.remove("ana")
            yield body[5:]

        async with served.client() as http:
            headers = {"Content-Type": "application/json"}
            answer = await http.post("/v1/runs", content=slowly(), headers=headers)
        served.add("again", "ana")
        async with served.client("again") as http:
            runs = (await http.get("/v1/runs")).json()["runs"]
        return "a run was begun" if runs or answer.status_code != 401 else None


@removed_in_the_body.twin()
async def slow_body(world: World) -> bool:
    async with serving(world) as served:
        body = json.dumps({"plan": "answer(1)"}).encode()

        async def slowly() -> AsyncGenerator[bytes]:
            yield body[:5]
            yield body[5:]

        async with served.client() as http:
            answer = await http.post("/v1/runs", content=slowly(), headers={"Content-Type": "application/json"})
        return answer.status_code == 202


@attacks.case("a rotated file looks like the one before")
async def rotated(world: World) -> str | None:
    """Same size, same time, perhaps the same inode: the server must read it again."""
    file = world.folder / "tokens.json"
    tokens = TokenFile(file)
    old, secret = tokens.add("ana")
    assert tokens.find_holder(secret) is not None
    state = file.stat()
    fresh, _ = TokenFile(world.folder / "fresh.json").add("ana")
    text = file.read_text()
    for before, after in ((old.id, fresh.id), (old.hash, fresh.hash)):
        text = text.replace(before, after)
    with file.open("r+") as stream:
        stream.write(text)
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    return "the old token still holds" if tokens.find_holder(secret) is not None else None


@rotated.twin()
async def rotated_by_command(world: World) -> bool:
    tokens = TokenFile(world.folder / "tokens.json")
    old, _ = tokens.add("ana")
    _, secret = tokens.add("ana")
    tokens.remove(old.id)
    return tokens.find_holder(secret) is not None and len(tokens.all_tokens()) == 1


@attacks.case("a removal is lost because somebody adds a token at the same time")
async def lost_removal(world: World) -> str | None:
    file = world.folder / "tokens.json"
    first = [TokenFile(file).add("ana") for _ in range(6)]

    def remove(token_id: str) -> None:
        TokenFile(file).remove(token_id)

    def add(_: str) -> None:
        TokenFile(file).add("ben")

    threads = [threading.Thread(target=each, args=(token.id,)) for token, _ in first for each in (remove, add)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    back = [token.id for token, secret in first if TokenFile(file).find_holder(secret) is not None]
    return f"{len(back)} removed tokens hold again" if back else None


@lost_removal.twin()
async def all_added(world: World) -> bool:
    file = world.folder / "tokens.json"
    threads = [threading.Thread(target=lambda: TokenFile(file).add("ben")) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(TokenFile(file).all_tokens()) == 6


@attacks.case("a token watches the run of another user")
async def foreign_watch(world: World) -> str | None:
    async with serving(world) as served:
        run = await served.waiting()
        async with served.client("ben") as http:
            paths = ("", "/events", "/journal", "?wait=1")
            told: list[httpx.Response] = [await http.get(f"/v1/runs/{run}{path}") for path in paths]
            told.append(await http.post(f"/v1/runs/{run}/cancel", json={}))
        open_ = [each.request.url.path for each in told if each.status_code != 404]
        return f"answered: {', '.join(open_)}" if open_ else None


@foreign_watch.twin()
async def own_watch(world: World) -> bool:
    async with serving(world) as served:
        run = await served.waiting()
        served.add("second", "ana")
        async with served.client("second") as http:
            return (await http.get(f"/v1/runs/{run}/journal")).status_code == 200
