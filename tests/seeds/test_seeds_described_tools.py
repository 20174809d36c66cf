"""The document's `--describe` contract: tools are found by it, shown by it, and their effect is confirmed once."""

from __future__ import annotations

import pytest
from seed_examples import DESCRIPTION, program
from seed_world import World

from bicameral import Registry, Tool, tool
from bicameral.planning import relevant_tools
from bicameral.tools import Surroundings, find_tools, load_file


def described(world: World) -> Tool:
    (found,) = load_file(world.program("agx-ocr", program()), Surroundings.here())
    return found


@pytest.mark.parametrize(
    "query",
    [
        {"accepts": ["application/pdf"]},
        {"accepts": ["image/png"], "gives": ["text/plain"]},
        {"can": ["document-ocr"]},
        {"accepts": [".pdf"], "can": ["image-to-text"]},
    ],
)
def test_the_tool_of_the_document_is_found_by_what_it_says(world: World, query: dict[str, list[str]]) -> None:
    assert [each.name for each in find_tools([described(world)], **query).tools] == ["agx_ocr"]


@pytest.mark.parametrize("query", [{"accepts": ["audio/mpeg"]}, {"can": ["translation"]}, {"gives": ["image/png"]}])
def test_it_is_not_found_by_what_it_does_not_say(world: World, query: dict[str, list[str]]) -> None:
    assert not find_tools([described(world)], **query).tools


def test_the_command_finds_it(world: World) -> None:
    world.program("agx-ocr", program())
    world.write("bicameral.toml", '[toolboxes]\nfiles = ["agx-ocr"]\n')
    result = world.call("tools", "find", "--accepts", "application/pdf", "--gives", "text/plain")
    assert result.exit_code == 0, result.output
    assert "agx_ocr" in result.output


def test_of_many_tools_those_are_shown_that_take_the_kind_of_file(world: World) -> None:
    @tool(effect="pure")
    def unrelated(text: str) -> str:
        """Nothing in particular."""
        return text

    many = Registry([described(world), *(unrelated.with_name(f"unrelated_{n}") for n in range(100))])
    assert "agx_ocr" in relevant_tools("What stands in scan.pdf?", many).names
    assert "agx_ocr" not in relevant_tools("What is the capital of Norway?", many).names


def test_its_effect_is_proposed_and_counts_once_it_is_confirmed(world: World) -> None:
    world.program("agx-ocr", program())
    world.write("bicameral.toml", '[toolboxes]\nfiles = ["agx-ocr"]\n')

    def effect() -> str:
        return world.json("tools", "show", "agx_ocr")["tool"]["effect"]

    assert effect() == "irreversible"
    result = world.call("tools", "accept", "agx_ocr", "--yes")
    assert result.exit_code == 0, result.output
    assert effect() in ("pure", "read")
    # Another program of the same name is another matter.
    world.program("agx-ocr", program(DESCRIPTION | {"version": "0.2.0"}))
    assert effect() == "irreversible"
