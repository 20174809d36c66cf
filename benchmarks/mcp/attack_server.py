"""An MCP server that does what a file says: `python attack_server.py SCENARIO FOLDER`.

It reads `FOLDER/SCENARIO.json`, speaks JSON-RPC on standard input and output, and appends all that it receives to
`FOLDER/SCENARIO.log`, one JSON object a line. It needs nothing but the standard library, so that a process starts in
milliseconds, and it holds back nothing: what a real library would refuse to send is what is tried here.

The file has `phases`, a list of `tools`, `resources`, `templates` and `prompts` each, of which the first one is
offered until a `turn` says otherwise. Tools, resources and prompts have `do`, a list of actions:

    ["text", TEXT], ["result", OBJECT], ["error", OBJECT]        answer
    ["echo", ARGUMENT], ["lookup", ARGUMENT, TABLE, OTHERWISE]   answer with what was given, or what a table has for it
    ["encode", ARGUMENT]                                         answer with the text in base64
    ["write" | "read" | "delete", ARGUMENT...]                   a file in FOLDER/files
    ["notify", METHOD, PARAMS], ["request", METHOD, PARAMS]      tell or ask the client something; its reply is logged
    ["input", REQUESTS, STATE]                                   ask by an InputRequiredResult (2026-07-28)
    ["raw", TEXT], ["flood", UNIT, MEGABYTES], ["repeat", N, ACTION]
    ["sleep", SECONDS], ["hang"], ["die"], ["orphan"], ["stderr", MEGABYTES]

In a raw text `ID` stands for the id of the request. The same actions may stand in `on`, by the method that they answer
before anything else is done.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
Message = dict[str, Any]
Actions = Sequence[Sequence[Any]]


class AttackServer:
    """Answers one client."""

    def __init__(self, scenario: str, folder: Path) -> None:
        self.folder = folder
        self.name = scenario
        self.spec: dict[str, Any] = json.loads((folder / f"{scenario}.json").read_text("utf-8"))
        self.phase: int = self.spec.get("starts_with", 0)
        self.counts: dict[str, int] = {}
        self.requests = 0
        self.waiting: list[Message] = []

    @property
    def offer(self) -> dict[str, Any]:
        return self.spec["phases"][self.phase]

    def serve(self) -> None:
        self.act(self.spec.get("on", {}).get("start", ()), {})
        while (message := self.next_message()) is not None:
            if "method" in message:
                self.handle(message)

    def next_message(self) -> Message | None:
        if self.waiting:
            return self.waiting.pop(0)
        return self.read_message()

    def read_message(self) -> Message | None:
        while line := sys.stdin.buffer.readline():
            try:
                found = json.loads(line)
            except ValueError:
                continue
            if isinstance(found, dict):
                return cast("Message", found)
        return None

    def handle(self, message: Message) -> None:
        method, params = message["method"], given_params(message)
        if "id" not in message:
            return
        if self.act(self.spec.get("on", {}).get(method, ()), message):
            return
        match method:
            case "initialize":
                self.log("initialize", client=params.get("clientInfo", {}).get("name"))
                self.answer(message, self.greeting(params))
            case "server/discover" if self.spec.get("modern"):
                self.answer(message, {"supportedVersions": [MODERN], **self.greeting(None)})
            case "ping":
                self.answer(message, {})
            case "tools/list":
                self.answer_listing(message, "tools")
            case "resources/list":
                self.answer_listing(message, "resources")
            case "resources/templates/list":
                self.answer_listing(message, "templates", "resourceTemplates")
            case "prompts/list":
                self.answer_listing(message, "prompts")
            case "tools/call":
                name = params.get("name")
                arguments: Message = params.get("arguments") or {}
                self.log("call", tool=name, arguments=arguments, meta=params.get("_meta"))
                self.use(message, self.find("tools", "name", name), arguments)
            case "resources/read":
                self.log("read", uri=params.get("uri"))
                self.use(message, self.find("resources", "uri", params.get("uri")), params)
            case "prompts/get":
                self.log("prompt", name=params.get("name"), arguments=params.get("arguments"))
                self.use(message, self.find("prompts", "name", params.get("name")), params)
            case "completion/complete":
                self.log("complete", params=params)
                self.answer(message, {"completion": self.spec.get("completion", {"values": []})})
            case _ if method in self.spec.get("methods", {}):
                self.log("method", method=method, params=params)
                self.answer(message, self.spec["methods"][method])
            case _:
                self.fail(message, -32601, "Method not found")

    def greeting(self, params: Message | None) -> Message:
        capabilities: Message = {"tools": {"listChanged": True}, "logging": {}}
        for phase in self.spec["phases"]:
            if "resources" in phase or "templates" in phase:
                capabilities["resources"] = {"listChanged": True, "subscribe": True}
            if "prompts" in phase:
                capabilities["prompts"] = {"listChanged": True}
        if "completion" in self.spec:
            capabilities["completions"] = {}
        greeting: Message = {"capabilities": capabilities}
        if params is not None:
            wanted = params.get("protocolVersion", LEGACY)
            greeting["protocolVersion"] = self.spec.get("protocol", LEGACY if wanted == MODERN else wanted)
            greeting["serverInfo"] = {"name": self.name, "version": "1.0", **self.spec.get("info", {})}
        if self.spec.get("instructions"):
            greeting["instructions"] = self.spec["instructions"]
        return greeting

    def answer_listing(self, message: Message, kind: str, key: str = "") -> None:
        self.count(f"list:{kind}")
        offered = [each for each in self.offer.get(kind, ()) if not each.get("hidden")]
        size: int = self.spec.get("page", 0) if kind == "tools" else 0
        result: Message = {}
        if self.spec.get("endless"):
            at = int(given_params(message).get("cursor") or 0)
            result["nextCursor"] = str(at + 1)
            offered = [{**each, "name": f"{each['name']}{at}"} for each in offered] if at else offered
        elif size:
            at = int(given_params(message).get("cursor") or 0)
            if at + size < len(offered):
                result["nextCursor"] = str(at + size)
            offered = offered[at : at + size]
        shown = [{name: value for name, value in each.items() if name not in ("do", "hidden")} for each in offered]
        self.answer(message, {key or kind: shown, **result})

    def find(self, kind: str, key: str, name: object) -> Message | None:
        return next((each for each in self.offer.get(kind, ()) if each.get(key) == name), None)

    def use(self, message: Message, found: Message | None, arguments: Mapping[str, Any]) -> None:
        if found is None:
            return self.fail(message, -32602, "Unknown")
        # First, so that a client that is told of a change knows it before it has the answer.
        self.count(f"call:{found.get('name')}")
        if not self.act(found.get("do", ()), message, arguments):
            self.answer(message, {"content": [{"type": "text", "text": "done"}]})
        return None

    def count(self, event: str) -> None:
        """Turn to another phase where the scenario says so."""
        self.counts[event] = self.counts.get(event, 0) + 1
        for turn in self.spec.get("turns", ()):
            if turn["on"] == event and turn.get("times", 1) == self.counts[event]:
                self.phase = turn["phase"]
                for kind in turn.get("notify", ()):
                    self.send({"jsonrpc": "2.0", "method": f"notifications/{kind}/list_changed"})

    def act(self, actions: Actions, message: Message, arguments: Mapping[str, Any] | None = None) -> bool:
        """Do what the scenario says; whether the message is answered by it."""
        answered = False
        for action in actions:
            done = self.act_once(action, message, arguments or {})
            if done and action[0] == "input":
                return True
            answered = answered or done
        return answered

    def act_once(self, action: Sequence[Any], message: Message, arguments: Mapping[str, Any]) -> bool:
        verb, *given = action
        match verb:
            case "text":
                self.answer_text(message, given[0])
            case "result":
                self.answer(message, given[0])
            case "error":
                self.send({"jsonrpc": "2.0", "id": message.get("id"), "error": given[0]})
            case "echo":
                self.answer_text(message, str(arguments.get(given[0], "")))
            case "encode":
                self.answer_text(message, base64.b64encode(str(arguments.get(given[0], "")).encode()).decode())
            case "lookup":
                self.answer_text(message, given[1].get(str(arguments.get(given[0])), given[2]))
            case "write" | "read" | "delete":
                self.answer_text(message, self.touch_file(verb, [str(arguments.get(each, "")) for each in given]))
            case "input":
                return self.ask_input(message, *given)
            case "raw" if "ID" in given[0]:
                self.write(given[0].replace("ID", json.dumps(message.get("id"))).encode())
            case _:
                self.act_unanswered(verb, given, message, arguments)
                return False
        return True

    def act_unanswered(self, verb: str, given: list[Any], message: Message, arguments: Mapping[str, Any]) -> None:
        match verb:
            case "notify":
                self.send({"jsonrpc": "2.0", "method": given[0], "params": given[1]})
            case "request":
                self.request(given[0], given[1])
            case "raw":
                self.write(given[0].encode("utf-8", "surrogateescape"))
            case "flood":
                chunk = given[0].encode() * max(1, 65_536 // len(given[0]))
                for _ in range(given[1] * 2**20 // len(chunk)):
                    self.write(chunk)
            case "repeat":
                for _ in range(given[0]):
                    self.act_once(given[1], message, arguments)
            case "stderr":
                for _ in range(given[0] * 16):
                    sys.stderr.write("x" * 65_536)
            case "sleep":
                time.sleep(given[0])
            case "hang":
                while True:
                    time.sleep(60)
            case "die":
                os._exit(1)
            case "orphan":
                # A grandchild that keeps the pipes open after its parent has gone.
                subprocess.Popen([sys.executable, "-I", "-S", "-c", "import time; time.sleep(20)"])
            case _:
                raise SystemExit(f"unknown action {verb!r}")

    def touch_file(self, verb: str, given: list[str]) -> str:
        path = self.folder / "files" / given[0]
        try:
            match verb:
                case "write":
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(given[1], "utf-8")
                    return "written"
                case "read":
                    return path.read_text("utf-8")
                case _:
                    path.unlink()
                    return "deleted"
        except OSError as error:
            return f"error: {type(error).__name__}"

    def ask_input(self, message: Message, requests: Mapping[str, Any], state: str) -> bool:
        """Ask in the way of 2026-07-28; what the client replies, and the state that it gives back, are logged."""
        params = given_params(message)
        if (replies := params.get("inputResponses")) is not None:
            self.log("reply", method="input", reply=replies, state=params.get("requestState"))
            return False
        self.answer(message, {"resultType": "input_required", "inputRequests": requests, "requestState": state})
        return True

    def request(self, method: str, params: Message) -> None:
        self.requests += 1
        id_ = f"s{self.requests}"
        self.send({"jsonrpc": "2.0", "id": id_, "method": method, "params": params})
        while (message := self.read_message()) is not None:
            if message.get("id") == id_ and "method" not in message:
                self.log("reply", method=method, reply=message.get("result", message.get("error")))
                return
            self.waiting.append(message)

    def answer_text(self, message: Message, text: str) -> None:
        if message.get("method") == "resources/read":
            uri = given_params(message).get("uri")
            return self.answer(message, {"contents": [{"uri": uri, "mimeType": "text/plain", "text": text}]})
        if message.get("method") == "prompts/get":
            return self.answer(message, {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]})
        return self.answer(message, {"content": [{"type": "text", "text": text}]})

    def answer(self, message: Message, result: Message) -> None:
        if self.spec.get("modern"):
            cached = {"ttlMs": 0, "cacheScope": "private"} if "call" not in str(message.get("method")) else {}
            meta = {"io.modelcontextprotocol/serverInfo": {"name": self.name, "version": "1.0"}}
            result = {"resultType": "complete", "_meta": meta, **cached, **result}
        self.send({"jsonrpc": "2.0", "id": message.get("id"), "result": result})

    def fail(self, message: Message, code: int, text: str) -> None:
        self.send({"jsonrpc": "2.0", "id": message.get("id"), "error": {"code": code, "message": text}})

    def send(self, message: Message) -> None:
        self.write(json.dumps(message).encode() + b"\n")

    def write(self, content: bytes) -> None:
        try:
            sys.stdout.buffer.write(content)
            sys.stdout.buffer.flush()
        except OSError:
            # The client has hung up: there is nobody to attack any more.
            os._exit(0)

    def log(self, event: str, **facts: Any) -> None:
        with (self.folder / f"{self.name}.log").open("a", encoding="utf-8") as file:
            file.write(json.dumps({"event": event, **facts}) + "\n")


def given_params(message: Message) -> Message:
    return message.get("params") or {}


def main() -> None:
    scenario, folder = sys.argv[1:]
    AttackServer(scenario, Path(folder)).serve()


if __name__ == "__main__":
    main()
