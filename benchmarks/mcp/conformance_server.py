"""The server that the reference conformance suite prescribes for its scenarios: fixed tools, resources and prompts.

Over standard input and output it stands behind the firewall; `--port N` serves it over HTTP without one, which shows
that a scenario that fails behind the firewall does not fail because of this server.

    python -m benchmarks.mcp.conformance_server --port 8900
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Mapping
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server.caching import CacheHint
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
SCHEMA_TOOL: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
NAME_FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
OK_FORM = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
COLOR_FORM = {"type": "object", "properties": {"color": {"type": "string"}}, "required": ["color"]}
CONTEXT_FORM = {"type": "object", "properties": {"context": {"type": "string"}}, "required": ["context"]}
REPLY_FORM = {
    "type": "object",
    "properties": {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    },
    "required": ["username", "email"],
}
NO_ARGUMENTS: dict[str, Any] = {"type": "object", "properties": {}}
TOOLS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "test_simple_text": ("Returns a text.", NO_ARGUMENTS),
    "test_image_content": ("Returns an image.", NO_ARGUMENTS),
    "test_audio_content": ("Returns a sound.", NO_ARGUMENTS),
    "test_embedded_resource": ("Returns a resource.", NO_ARGUMENTS),
    "test_multiple_content_types": ("Returns a text, an image and a resource.", NO_ARGUMENTS),
    "test_error_handling": ("Fails.", NO_ARGUMENTS),
    "test_tool_with_progress": ("Reports progress.", NO_ARGUMENTS),
    "test_elicitation": (
        "Asks the user.",
        {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]},
    ),
    "json_schema_2020_12_tool": ("Has a schema with many keywords.", SCHEMA_TOOL),
    "test_input_required_result_elicitation": ("Asks for a name.", NO_ARGUMENTS),
    "test_input_required_result_request_state": ("Asks, and keeps a state.", NO_ARGUMENTS),
    "test_input_required_result_tampered_state": ("Asks, and keeps a state.", NO_ARGUMENTS),
    "test_input_required_result_multi_round": ("Asks twice.", NO_ARGUMENTS),
}

Context = Any


def text(words: str) -> types.TextContent:
    return types.TextContent(text=words)


def embedded(uri: str, words: str, kind: str = "text/plain") -> types.EmbeddedResource:
    return types.EmbeddedResource(resource=types.TextResourceContents(uri=uri, mime_type=kind, text=words))


CONTENTS: Mapping[str, list[types.ContentBlock]] = {
    "test_simple_text": [text("This is a simple text response for testing.")],
    "test_image_content": [types.ImageContent(data=PNG, mime_type="image/png")],
    "test_audio_content": [types.AudioContent(data=WAV, mime_type="audio/wav")],
    "test_embedded_resource": [embedded("test://embedded-resource", "This is an embedded resource content.")],
    "test_multiple_content_types": [
        text("Multiple content types test:"),
        types.ImageContent(data=PNG, mime_type="image/png"),
        embedded("test://mixed-content-resource", '{"test":"data","value":123}', "application/json"),
    ],
    "json_schema_2020_12_tool": [text("done")],
}


def asked(key: str, message: str, form: dict[str, Any], state: str | None = None) -> types.InputRequiredResult:
    """A result that asks the person first."""
    form_request = types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=form))
    return types.InputRequiredResult(input_requests={key: form_request}, request_state=state)


def reply_to(params: types.CallToolRequestParams | types.GetPromptRequestParams, key: str) -> types.ElicitResult | None:
    found = (params.input_responses or {}).get(key)
    return found if isinstance(found, types.ElicitResult) else None


async def list_tools(_: Context, __: Any) -> types.ListToolsResult:
    return types.ListToolsResult(
        tools=[types.Tool(name=name, description=words, input_schema=schema) for name, (words, schema) in TOOLS.items()]
    )


async def call_tool(
    context: Context, params: types.CallToolRequestParams
) -> types.CallToolResult | types.InputRequiredResult:
    name = params.name
    if name in CONTENTS:
        return types.CallToolResult(content=CONTENTS[name])
    match name:
        case "test_error_handling":
            words = "This tool intentionally returns an error for testing"
            return types.CallToolResult(content=[text(words)], is_error=True)
        case "test_tool_with_progress":
            for done in (0, 50, 100):
                await context.session.report_progress(done, 100, f"Completed step {done} of 100")
                await asyncio.sleep(0.05)
            return types.CallToolResult(content=[text("Tool with progress executed successfully")])
        case "test_elicitation":
            return await ask_user(context, params)
        case _ if name.startswith("test_input_required_result_"):
            return ask_first(params)
        case _:
            raise MCPError(types.INVALID_PARAMS, f"there is no tool {name!r}")


async def ask_user(
    context: Context, params: types.CallToolRequestParams
) -> types.CallToolResult | types.InputRequiredResult:
    """Ask in the way of the client's protocol."""
    message = str((params.arguments or {}).get("message", ""))
    if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
        reply = reply_to(params, "user")
        if reply is None:
            return asked("user", message, REPLY_FORM)
    else:
        reply = await context.session.elicit_form(message, REPLY_FORM, context.request_id)
    told = f"User response: action={reply.action}, content={json.dumps(reply.content)}"
    return types.CallToolResult(content=[text(told)])


def ask_first(params: types.CallToolRequestParams) -> types.CallToolResult | types.InputRequiredResult:
    """The tools that ask before they answer, as the protocol of 2026-07-28 does it."""
    match params.name.removeprefix("test_input_required_result_"):
        case "elicitation":
            reply = reply_to(params, "user_name")
            if reply is None:
                return asked("user_name", "What is your name?", NAME_FORM)
            return types.CallToolResult(content=[text(f"Hello, {(reply.content or {}).get('name')}!")])
        case "request_state" | "tampered_state":
            if reply_to(params, "confirm") is None or params.request_state != "begun":
                return asked("confirm", "Please confirm", OK_FORM, "begun")
            return types.CallToolResult(content=[text("state-ok")])
        case "multi_round":
            if params.request_state == "second" and reply_to(params, "step2") is not None:
                return types.CallToolResult(content=[text("both steps are done")])
            if params.request_state == "first" and reply_to(params, "step1") is not None:
                return asked("step2", "Step 2: What is your favorite color?", COLOR_FORM, "second")
            return asked("step1", "Step 1: What is your name?", NAME_FORM, "first")
        case _:
            raise MCPError(types.INVALID_PARAMS, f"there is no tool {params.name!r}")


async def list_resources(_: Context, __: Any) -> types.ListResourcesResult:
    return types.ListResourcesResult(
        resources=[
            types.Resource(uri="test://static-text", name="Static text", description="A text", mime_type="text/plain"),
            types.Resource(
                uri="test://static-binary", name="Static binary", description="An image", mime_type="image/png"
            ),
        ]
    )


async def list_templates(_: Context, __: Any) -> types.ListResourceTemplatesResult:
    return types.ListResourceTemplatesResult(
        resource_templates=[
            types.ResourceTemplate(
                uri_template="test://template/{id}/data",
                name="Template",
                description="A resource with a parameter",
                mime_type="application/json",
            )
        ]
    )


async def read_resource(_: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    uri = str(params.uri)
    if uri == "test://static-text":
        words = "This is the content of the static text resource."
        return types.ReadResourceResult(
            contents=[types.TextResourceContents(uri=uri, mime_type="text/plain", text=words)]
        )
    if uri == "test://static-binary":
        return types.ReadResourceResult(contents=[types.BlobResourceContents(uri=uri, mime_type="image/png", blob=PNG)])
    id = uri.removeprefix("test://template/").removesuffix("/data")
    if uri != f"test://template/{id}/data":
        raise MCPError(types.INVALID_PARAMS, "there is no such resource", {"uri": uri})
    words = json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})
    return types.ReadResourceResult(
        contents=[types.TextResourceContents(uri=uri, mime_type="application/json", text=words)]
    )


def argument(name: str) -> types.PromptArgument:
    return types.PromptArgument(name=name, description=f"The argument {name}", required=True)


async def list_prompts(_: Context, __: Any) -> types.ListPromptsResult:
    named = {
        "test_simple_prompt": [],
        "test_prompt_with_arguments": [argument("arg1"), argument("arg2")],
        "test_prompt_with_embedded_resource": [argument("resourceUri")],
        "test_prompt_with_image": [],
        "test_input_required_result_prompt": [],
    }
    return types.ListPromptsResult(
        prompts=[types.Prompt(name=name, description=name, arguments=each) for name, each in named.items()]
    )


async def get_prompt(
    _: Context, params: types.GetPromptRequestParams
) -> types.GetPromptResult | types.InputRequiredResult:
    given = params.arguments or {}
    contents: list[types.ContentBlock]
    match params.name:
        case "test_simple_prompt":
            contents = [text("This is a simple prompt for testing.")]
        case "test_prompt_with_arguments":
            contents = [text(f"Prompt with arguments: arg1='{given.get('arg1')}', arg2='{given.get('arg2')}'")]
        case "test_prompt_with_embedded_resource":
            words = "Embedded resource content for testing."
            contents = [
                embedded(given.get("resourceUri", ""), words),
                text("Please process the embedded resource above."),
            ]
        case "test_prompt_with_image":
            image = types.ImageContent(data=PNG, mime_type="image/png")
            contents = [image, text("Please analyze the image above.")]
        case "test_input_required_result_prompt":
            if (reply := reply_to(params, "user_context")) is None:
                return asked("user_context", "What context should the prompt use?", CONTEXT_FORM)
            contents = [text(f"In the context of {(reply.content or {}).get('context')}")]
        case _:
            raise MCPError(types.INVALID_PARAMS, f"there is no prompt {params.name!r}")
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=each) for each in contents])


async def complete(_: Context, __: Any) -> types.CompleteResult:
    return types.CompleteResult(completion=types.Completion(values=["paris", "park", "party"], total=3, has_more=False))


def fixture_server() -> Server[Any]:
    """The prescribed server."""
    listed = ("tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read")
    server = Server[Any](
        "conformance-fixture",
        version="1",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_completion=complete,
        cache_hints={each: CacheHint(ttl_ms=1000) for each in listed},  # pyright: ignore[reportArgumentType]
    )
    server.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience="fixture"))
    return server


async def serve_stdio() -> None:
    server = fixture_server()
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int)
    port = parser.parse_args().port
    if port is None:
        asyncio.run(serve_stdio())
    else:
        uvicorn.run(fixture_server().streamable_http_app(), host="127.0.0.1", port=port, log_level="error")
