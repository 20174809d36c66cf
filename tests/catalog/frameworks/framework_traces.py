"""Traces as exporters write them: OTLP JSON, lines of it, and the JSON of the console exporter."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass
class TraceMaker:
    """Spans one after another; times are seconds."""

    spans: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def add(
        self,
        name: str,
        attributes: Mapping[str, Any],
        *,
        parent: str = "",
        at: tuple[float, float] = (0, 1),
        failed: bool = False,
        id: str = "",
    ) -> str:
        id = id or f"{len(self.spans) + 1:016x}"
        self.spans.append(
            {
                "traceId": f"{7:032x}",
                "spanId": id,
                "parentSpanId": parent,
                "name": name,
                "kind": 1,
                "startTimeUnixNano": str(int(at[0] * 1e9) + 10**18),
                "endTimeUnixNano": str(int(at[1] * 1e9) + 10**18),
                "attributes": [{"key": key, "value": _value(value)} for key, value in attributes.items()],
                "status": {"code": 2} if failed else {},
            }
        )
        return id

    def agent(self, name: str, *, parent: str = "", at: tuple[float, float] = (0, 100)) -> str:
        attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}
        return self.add(f"invoke_agent {name}", attributes, parent=parent, at=at)

    def chat(self, parent: str, at: float, *, model: str = "gpt-4o", tokens: tuple[int, int] = (100, 10)) -> str:
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": model,
            "gen_ai.usage.input_tokens": tokens[0],
            "gen_ai.usage.output_tokens": tokens[1],
        }
        return self.add(f"chat {model}", attributes, parent=parent, at=(at, at + 1))

    def tool(self, name: str, parent: str, at: float, *, failed: bool = False, until: float | None = None) -> str:
        attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
        return self.add(f"execute_tool {name}", attributes, parent=parent, at=(at, until or at + 1), failed=failed)

    def otlp(self, *, indent: int | None = None) -> str:
        """One export with every span."""
        return json.dumps(_export(self.spans), indent=indent)

    def lines(self) -> str:
        """A line for each span, as the file exporter of the collector writes them."""
        return "".join(f"{json.dumps(_export([span]))}\n" for span in self.spans)

    def openinference(self) -> str:
        """The same trace by the conventions of OpenInference."""
        kinds = {"invoke_agent": "AGENT", "chat": "LLM", "execute_tool": "TOOL"}

        def rename(old: Mapping[str, Any]) -> dict[str, Any]:
            return {
                "openinference.span.kind": kinds[old["gen_ai.operation.name"]],
                "agent.name": old.get("gen_ai.agent.name"),
                "tool.name": old.get("gen_ai.tool.name"),
                "llm.model_name": old.get("gen_ai.request.model"),
                "llm.token_count.prompt": old.get("gen_ai.usage.input_tokens"),
                "llm.token_count.completion": old.get("gen_ai.usage.output_tokens"),
            }

        return self._renamed(rename)

    def traceloop(self) -> str:
        """The same trace by the conventions of OpenLLMetry."""
        kinds = {"invoke_agent": "agent", "execute_tool": "tool"}

        def rename(old: Mapping[str, Any]) -> dict[str, Any]:
            return {
                "traceloop.span.kind": kinds.get(old["gen_ai.operation.name"]),
                "traceloop.entity.name": old.get("gen_ai.agent.name") or old.get("gen_ai.tool.name"),
                "llm.request.type": "chat" if old["gen_ai.operation.name"] == "chat" else None,
                "gen_ai.request.model": old.get("gen_ai.request.model"),
                "gen_ai.usage.prompt_tokens": old.get("gen_ai.usage.input_tokens"),
                "gen_ai.usage.completion_tokens": old.get("gen_ai.usage.output_tokens"),
            }

        return self._renamed(rename)

    def _renamed(self, rename: Callable[[Mapping[str, Any]], dict[str, Any]]) -> str:
        spans: list[dict[str, Any]] = []
        for span in self.spans:
            old = {each["key"]: _plain(each["value"]) for each in span["attributes"]}
            given = {key: value for key, value in rename(old).items() if value is not None}
            spans.append({**span, "attributes": [{"key": key, "value": _value(value)} for key, value in given.items()]})
        return json.dumps(_export(spans))


def _export(spans: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    scope = {"scope": {"name": "opentelemetry.instrumentation"}, "spans": spans}
    return {"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": [scope]}]}


def _value(value: Any) -> dict[str, Any]:
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}


def _plain(value: Mapping[str, Any]) -> Any:
    return int(value["intValue"]) if "intValue" in value else value["stringValue"]


def mail_assistant() -> TraceMaker:
    """An agent that reads a page and then sends a mail."""
    trace = TraceMaker()
    root = trace.agent("assistant")
    trace.chat(root, 1)
    trace.tool("fetch_page", root, 3)
    trace.chat(root, 5)
    trace.tool("send_email", root, 7)
    trace.chat(root, 9)
    return trace
