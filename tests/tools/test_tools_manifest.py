"""A manifest is read whole or refused with the place of what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, strategies as st

from bicameral.errors import ToolError
from bicameral.tools._manifest import manifest_schema, parse_manifest, read_manifest
from bicameral.tools._manifest_rules import OptionalGroup, fill_template, parse_element

ROOT = Path(__file__).parents[2]
SCHEMA = ROOT / "schemas" / "tool-manifest.v1.json"


def manifest(**tool: Any) -> dict[str, Any]:
    return {"manifest": 1, "tools": [{"name": "count", "argv": ["wc"]} | tool]}


def refusal(content: object) -> ToolError:
    with pytest.raises(ToolError) as caught:
        parse_manifest(content, file="tools.toml")
    assert caught.value.code == "tools.bad-manifest"
    assert str(caught.value.place).startswith("tools.toml")
    return caught.value


def test_the_published_schema_is_the_code() -> None:
    assert json.loads(SCHEMA.read_text()) == manifest_schema(), "write what manifest_schema() gives into the file"


def test_the_example_fits_the_code_and_the_schema() -> None:
    import tomllib

    example = ROOT / "examples" / "tools" / "wordcount.toml"
    assert [tool.name for tool in read_manifest(example).tools] == ["count_words", "longest_line", "count_in_files"]
    jsonschema.validate(tomllib.loads(example.read_text()), manifest_schema())


def test_what_is_left_out_is_taken_for_the_worst() -> None:
    (spec,) = parse_manifest(manifest()).tools
    assert (spec.effect, spec.network, spec.needs, spec.scratch) == ("irreversible", False, [], False)


@pytest.mark.parametrize(
    ("content", "key", "nearest"),
    [
        ({"manifest": 1, "tools": [{"name": "a", "argv": ["wc"], "efect": "pure"}]}, "tools[0].efect", "effect"),
        (manifest(arguments={"x": {"typ": "int"}}, argv=["wc", "{x}"]), "tools[0].arguments.x.typ", "type"),
        (manifest(limits={"memory": 5}), "tools[0].limits.memory", "memory_mb"),
        (manifest(argv=["wc", {"when": "x", "ad": ["-x"]}]), "tools[0].argv[1].ad", "add"),
        (manifest(effect="reed"), "tools[0].effect", "read"),
        (manifest(argv=["wc", "{pth}"], arguments={"path": {"type": "path"}}), "tools[0].argv", "path"),
        (manifest(stdin="txt", arguments={"text": {}}), "tools[0].stdin", "text"),
    ],
)
def test_a_misspelt_name_is_told_with_its_key_and_the_nearest_one(content: Any, key: str, nearest: str) -> None:
    error = refusal(content)
    assert error.message.startswith(f"{key}: ")
    assert error.nearest == nearest


@pytest.mark.parametrize(
    "content",
    [
        None,
        [],
        "manifest",
        {},
        {"manifest": 1},
        {"manifest": 1, "tools": []},
        {"manifest": 2, "tools": [{"name": "a", "argv": ["wc"]}]},
        manifest(timeout="30"),
        manifest(timeout=-1),
        manifest(timeout=0),
        manifest(ok_exit_codes=[]),
        manifest(ok_exit_codes=[256]),
        manifest(name="not a name"),
        manifest(name="_hidden"),
        manifest(name="class"),
        manifest(network=["example.com"]),
        manifest(network=["http://example.com:80"]),
        manifest(needs=["lib"]),
        manifest(env={"A B": "x"}),
        manifest(result="xml"),
        manifest(result="text", result_type="int"),
        manifest(result="json", result_type="integer"),
        manifest(result="json", result_type={"list": "date"}),
        manifest(limits={"memory_mb": 0}),
    ],
)
def test_a_wrong_manifest_is_refused(content: object) -> None:
    refusal(content)


@pytest.mark.parametrize("argv", [[], [""], ["bin/wc"], ["./wc"], ["../wc"], ["-c"], ["{x}"], ["/bin/{x}"]])
def test_the_program_is_a_bare_name_or_an_absolute_path_and_never_an_argument(argv: list[str]) -> None:
    error = refusal(manifest(argv=argv, arguments={"x": {}} if "{x}" in "".join(argv) else {}))
    assert "tools[0].argv" in error.message


def test_the_program_cannot_depend_on_an_argument() -> None:
    refusal(manifest(argv=[{"when": "x", "add": ["wc"]}], arguments={"x": {"optional": True}}))


@pytest.mark.parametrize(
    "tool",
    [
        {"argv": ["wc", "{x"], "arguments": {"x": {}}},
        {"argv": ["wc", "x}"], "arguments": {}},
        {"argv": ["wc", "{}"], "arguments": {}},
        {"argv": ["wc", "{0}"], "arguments": {}},
        {"argv": ["wc"], "arguments": {"unused": {}}},
        {"argv": ["wc", "{x}"], "arguments": {"x": {"optional": True}}},
        {"argv": ["wc", "{x}"], "arguments": {"x": {"type": "bool"}}},
        {"argv": ["wc", "a{x}"], "arguments": {"x": {"type": "list[str]"}}},
        {"argv": ["wc", {"when": "x", "add": ["{x}"]}], "arguments": {"x": {}}},
        {"argv": ["wc", "{x}"], "arguments": {"x": {"type": "literal"}}},
        {"argv": ["wc", "{x}"], "arguments": {"x": {"values": ["a"]}}},
        {"argv": ["wc", "{x}"], "arguments": {"x": {"access": "write"}}},
        {"argv": ["wc", "{x}"], "arguments": {"x": {"type": "int", "default": "3"}}},
        {"argv": ["wc", "{x}"], "arguments": {"x": {"type": "int", "default": True}}},
        {"argv": ["wc", "{x}"], "arguments": {"x": {"type": "literal", "values": ["a"], "default": "b"}}},
        {"argv": ["wc", {"when": "x", "add": ["{x}"]}], "arguments": {"x": {"default": "a", "optional": True}}},
        {"argv": ["wc", "{x}"], "arguments": {"x": {"purpose": "decorates"}}},
        {"argv": ["wc"], "stdin": "x", "arguments": {"x": {"type": "int"}}},
        {"argv": ["wc", "{not-a-name}"], "arguments": {"not-a-name": {}}},
    ],
)
def test_arguments_and_their_places_must_fit(tool: dict[str, Any]) -> None:
    refusal(manifest(**tool))


@pytest.mark.parametrize(
    "tool",
    [
        {"effect": "read", "arguments": {"x": {"type": "path", "access": "write"}}},
        {"effect": "pure", "arguments": {"x": {"type": "path", "access": "edit"}}},
        {"effect": "pure", "arguments": {"x": {"type": "path"}}},
        {"effect": "pure", "arguments": {"x": {}}, "network": True},
    ],
)
def test_an_effect_that_its_files_or_network_belie_is_refused(tool: dict[str, Any]) -> None:
    assert "effect" in refusal(manifest(argv=["wc", "{x}"], **tool)).message


def test_the_line_of_a_wrong_key_is_told(tmp_path: Path) -> None:
    file = tmp_path / "tools.toml"
    file.write_text(
        'manifest = 1\n[[tools]]\nname = "one"\nargv = ["wc"]\n\n[[tools]]\nname = "two"\nargv = ["wc", "{x}"]\n'
        '[tools.arguments.x]\ntype = "strr"\n'
    )
    with pytest.raises(ToolError) as caught:
        read_manifest(file)
    assert caught.value.place is not None
    assert (caught.value.place.file, caught.value.place.line) == (str(file), 10)
    assert caught.value.nearest == "str"


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("a.toml", b"manifest = 1\n[[tools\n", 2),
        ("a.json", b'{"manifest": 1,\n"tools": }', 2),
        ("a.json", b"[" * 100_000, None),
        ("a.toml", b"\xff\xfe", None),
        ("a.toml", b"# " + b"x" * (1 << 20), None),
        ("a.json", b"", 1),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_and_named(
    tmp_path: Path, name: str, content: bytes, line: int | None
) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(ToolError) as caught:
        read_manifest(file)
    assert caught.value.code == "tools.bad-manifest"
    assert caught.value.place is not None
    assert (caught.value.place.file, caught.value.place.line) == (str(file), line)


def test_a_file_that_is_not_there_is_refused_and_named(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"gone\.toml"):
        read_manifest(tmp_path / "gone.toml")


def test_braces_are_written_twice() -> None:
    template = (parse_element("{{print $1}}"), parse_element("--n={n}"))
    assert fill_template(template, {"n": 3}) == ["{print $1}", "--n=3"]


def test_zero_and_the_empty_text_are_given_and_none_and_false_are_not() -> None:
    template = (OptionalGroup("x", (parse_element("-x"), parse_element("{x}"))),)
    assert fill_template(template, {"x": 0}) == ["-x", "0"]
    assert fill_template(template, {"x": ""}) == ["-x", ""]
    assert fill_template(template, {"x": None}) == []
    assert fill_template(template, {"x": False}) == []


@given(st.text(), st.lists(st.text(), max_size=5))
def test_a_value_is_exactly_one_element_and_never_an_option(value: str, more: list[str]) -> None:
    template = (parse_element("--fixed={a}"), parse_element("{a}"), parse_element("{more}"))
    if any(text.startswith("-") or "\0" in text for text in (value, *more)):
        with pytest.raises(ToolError, match=r"option-like|bad-argument"):
            fill_template(template, {"a": value, "more": more})
    else:
        assert fill_template(template, {"a": value, "more": more}) == [f"--fixed={value}", value, *more]


@given(st.text().filter(lambda text: "\0" not in text))
def test_after_two_dashes_every_value_is_an_operand(value: str) -> None:
    assert fill_template((("--",), parse_element("{a}")), {"a": value}) == ["--", value]


def test_two_dashes_in_a_group_count_only_when_the_group_is_there() -> None:
    template = (OptionalGroup("safe", (("--",),)), parse_element("{a}"))
    assert fill_template(template, {"safe": True, "a": "-x"}) == ["--", "-x"]
    with pytest.raises(ToolError, match="option-like"):
        fill_template(template, {"safe": False, "a": "-x"})


def test_an_argument_cannot_bring_its_own_two_dashes() -> None:
    with pytest.raises(ToolError, match="option-like"):
        fill_template((parse_element("{a}"), parse_element("{b}")), {"a": "--", "b": "-rf"})


@pytest.mark.parametrize("value", ["a\0b", "\ud800"])
def test_text_that_no_command_can_be_given_is_refused(value: str) -> None:
    with pytest.raises(ToolError, match="bad-argument"):
        fill_template((parse_element("x{a}"),), {"a": value})


def test_more_than_the_kernel_takes_is_refused_before_it_starts() -> None:
    with pytest.raises(ToolError, match="argument-too-large"):
        fill_template((parse_element("x{a}"),), {"a": "x" * 200_000})
    with pytest.raises(ToolError, match="argument-too-large"):
        fill_template((parse_element("{a}"),), {"a": ["x" * 1000] * 2000})
