"""Tools from typed functions: what is declared, what is refused, and registries of them."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, strategies as st
from pydantic import BaseModel, ValidationError

from bicameral.errors import ToolError
from bicameral.tools import REQUIRED, Registry, Settings, Surroundings, Tool, Toolbox, tool
from bicameral.types import INT, STR, ListType, OptionalType


@dataclass(frozen=True)
class Person:
    name: str
    born: date | None = None


class Order(BaseModel):
    items: list[str]


@tool(effect="pure")
def shout(text: Annotated[str, "what to say"], times: int = 1) -> str:
    """Upper case, with feeling."""
    return text.upper() + "!" * times


@tool(effect="send", purpose={"body": "carries"}, words=("send", "mail"), timeout=5)
async def send(to: list[str], body: str, copies: list[str] | None = None) -> None:
    """Send a text."""


def refusal(function: Any, **options: Any) -> ToolError:
    with pytest.raises(ToolError) as caught:
        tool(**options)(function)
    return caught.value


async def call_refused(of: Tool, arguments: dict[str, Any]) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await of.call(arguments)
    return caught.value


# Declarations


def test_a_typed_function_is_a_tool() -> None:
    assert (shout.name, shout.doc, shout.effect, shout.idempotent) == (
        "shout",
        "Upper case, with feeling.",
        "pure",
        True,
    )
    text, times = shout.arguments
    assert (text.type, text.doc, text.required, text.default, text.purpose) == (
        STR,
        "what to say",
        True,
        REQUIRED,
        "selects",
    )
    assert (times.type, times.required, times.default) == (INT, False, 1)
    assert shout.signature == "shout(text: str, times: int = 1) -> str"
    assert shout.argument("times") == times
    assert shout.argument("time") is None


def test_what_changes_the_world_is_directed_by_its_arguments_unless_it_says_otherwise() -> None:
    assert {a.name: a.purpose for a in send.arguments} == {"to": "directs", "body": "carries", "copies": "directs"}
    assert (send.changes, send.idempotent, send.words, send.timeout) == (True, False, ("send", "mail"), 5)
    assert send.arguments[2].type == OptionalType(ListType(STR))
    assert not shout.changes


def test_a_tool_that_does_not_say_its_effect_is_taken_for_the_worst() -> None:
    @tool
    def silent(x: int) -> int:
        return x

    assert (silent.effect, silent.idempotent, silent.arguments[0].purpose) == ("irreversible", False, "directs")


def untyped(x) -> int:  # pyright: ignore
    return x  # pyright: ignore


def no_answer(x: int):  # pyright: ignore
    return x


def unresolved(x: Missing) -> int:  # noqa: F821  # pyright: ignore
    return x  # pyright: ignore


def starred(*xs: int) -> int:
    return len(xs)


def of_bytes(x: bytes) -> int:
    return len(x)


def wrong_default(x: int = "one") -> int:  # pyright: ignore
    return x


def none_default(x: str = None) -> str:  # noqa: RUF013  # pyright: ignore
    return x


def good(x: int) -> int:
    return x


BAD_DECLARATIONS: list[tuple[Any, dict[str, Any], str]] = [
    (untyped, {}, "tools.untyped"),
    (no_answer, {}, "tools.untyped"),
    (unresolved, {}, "tools.untyped"),
    (of_bytes, {}, "tools.untyped"),
    (starred, {}, "tools.bad-signature"),
    (wrong_default, {}, "tools.bad-default"),
    (none_default, {}, "tools.bad-default"),
    (good, {"effect": "harmless"}, "tools.unknown-effect"),
    (good, {"purpose": {"y": "directs"}}, "tools.unknown-argument"),
    (good, {"purpose": {"x": "steers"}}, "tools.unknown-purpose"),
]


@pytest.mark.parametrize(("function", "options", "code"), BAD_DECLARATIONS)
def test_a_declaration_that_cannot_stand_is_refused(function: Any, options: dict[str, Any], code: str) -> None:
    assert refusal(function, **options).code == code


def test_a_record_that_cannot_be_resolved_is_refused() -> None:
    @dataclass
    class Local:
        inner: Hidden  # noqa: F821  # pyright: ignore

    def use(x: int) -> int:
        return x

    use.__annotations__["x"] = Local
    assert refusal(use).code == "tools.untyped"


# Calls


async def test_a_call_fills_in_defaults() -> None:
    assert await shout.call({"text": "a"}) == "A!"
    assert await shout.call({"text": "a", "times": 2}) == "A!!"
    assert await send.call({"to": ["a@example.com"], "body": "x"}) is None


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({}, "tools.missing-argument"),
        ({"text": "a", "tims": 1}, "tools.unknown-argument"),
        ({"text": 5}, "tools.wrong-type"),
        ({"text": "a", "times": True}, "tools.wrong-type"),
        ({"text": "a", "times": "2"}, "tools.wrong-type"),
        ({"text": "a", "times": None}, "tools.wrong-type"),
    ],
)
async def test_wrong_arguments_are_refused_and_never_coerced(arguments: dict[str, Any], code: str) -> None:
    error = await call_refused(shout, arguments)
    assert error.code == code
    assert "shout" in error.message


async def test_a_misspelt_argument_is_answered_with_the_nearest() -> None:
    assert (await call_refused(shout, {"text": "a", "tims": 1})).nearest == "times"


@pytest.mark.parametrize("answer", [5, None, float("nan"), object(), ["x", 5], {"a": 1}])
async def test_an_answer_that_breaks_the_declaration_is_refused(answer: object) -> None:
    @tool(effect="pure")
    def lies() -> list[str]:
        return answer  # pyright: ignore

    assert (await call_refused(lies, {})).code == "tools.bad-result"


async def test_a_tool_that_fails_says_so_with_a_code() -> None:
    @tool(effect="read")
    def broken(x: int) -> float:
        return 1 / x

    @tool(effect="read")
    def picky() -> int:
        raise ToolError("picky.no", "not today")

    error = await call_refused(broken, {"x": 0})
    assert (error.code, error.message) == ("tools.failed", "'broken' failed: ZeroDivisionError: division by zero")
    assert isinstance(error.__cause__, ZeroDivisionError)
    assert (await call_refused(picky, {})).code == "picky.no"


async def test_records_paths_and_models_arrive_as_the_function_asks_for_them() -> None:
    @tool(effect="pure")
    def describe(person: Person, at: Path, orders: list[Order], mode: Literal["a", "b"] = "a") -> str:
        return f"{person.name} {person.born} {at.suffix} {orders[0].items} {mode}"

    arguments = {
        "person": {"name": "Ann", "born": date(2000, 1, 1)},
        "at": "x/y.txt",
        "orders": [{"items": ["pen"]}],
    }
    assert await describe.call(arguments) == "Ann 2000-01-01 .txt ['pen'] a"
    assert (await call_refused(describe, {**arguments, "person": {"nam": "Ann"}})).code == "tools.wrong-type"


async def test_records_leave_as_dicts() -> None:
    @tool(effect="pure")
    def people() -> list[Person]:
        return [Person("Ann")]

    assert await people.call({}) == [{"name": "Ann", "born": None}]


async def test_no_call_can_change_the_default_of_the_next() -> None:
    @tool(effect="pure")
    def collect(into: list[str] = ()) -> list[str]:  # pyright: ignore
        into.append("x")
        return into

    assert await collect.call({}) == await collect.call({}) == ["x"]


async def test_what_may_wait_runs_beside_the_loop_and_what_is_pure_does_not() -> None:
    @tool(effect="read")
    def waiting() -> bool:
        return threading.current_thread() is threading.main_thread()

    @tool(effect="pure")
    def quick() -> bool:
        return threading.current_thread() is threading.main_thread()

    assert await asyncio.gather(waiting.call({}), quick.call({})) == [False, True]


@given(st.dictionaries(st.text(max_size=5), st.none() | st.integers() | st.text(max_size=3) | st.lists(st.none())))
async def test_no_arguments_whatever_end_in_anything_but_an_answer_or_a_tool_error(arguments: dict[str, Any]) -> None:
    try:
        assert isinstance(await shout.call(arguments), str)
    except ToolError as error:
        assert error.code.startswith("tools.")  # noqa: PT017


# Registries


def test_a_registry_finds_tools_by_name_in_order() -> None:
    registry = Registry([shout, send])
    assert registry.names == ("shout", "send")
    assert (registry["send"], registry.get("nothing"), len(registry), "shout" in registry) == (send, None, 2, True)
    assert registry.subset(["send"]).names == ("send",)
    assert (registry.subset(["shout"]) + registry.subset(["send"])).names == registry.names


def test_an_unknown_tool_is_answered_with_the_nearest() -> None:
    with pytest.raises(ToolError) as caught:
        Registry([shout, send])["shuot"]
    assert (caught.value.code, caught.value.nearest) == ("tools.unknown", "shout")


@pytest.mark.parametrize("name", ["", "_hidden", "two words", "a.b", "1st", "if", "None", "ｇrep", "a-b"])
def test_a_name_that_no_plan_could_write_is_refused(name: str) -> None:
    with pytest.raises(ToolError) as caught:
        Registry([shout.with_name(name)])
    assert caught.value.code == "tools.bad-name"


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ToolError) as caught:
        Registry([replace(shout, toolbox="one"), replace(shout, toolbox="two")])
    assert caught.value.code == "tools.duplicate"
    assert "'one'" in caught.value.message


# Fingerprints


@pytest.mark.parametrize(
    "change",
    [
        {"name": "other"},
        {"doc": "Other."},
        {"effect": "read"},
        {"version": "2"},
        {"timeout": 1.0},
        {"words": ("x",)},
        {"idempotent": False},
        {"toolbox": "x"},
        {"arguments": ()},
        {"result": INT},
    ],
)
def test_a_fingerprint_changes_with_everything_that_is_described(change: dict[str, Any]) -> None:
    assert replace(shout, **change).fingerprint != shout.fingerprint
    assert Registry([replace(shout, **change)]).fingerprint != Registry([shout]).fingerprint


def test_a_fingerprint_does_not_depend_on_the_code_or_the_process() -> None:
    assert replace(shout, run=send.run).fingerprint == shout.fingerprint
    program = (
        "from pathlib import Path; from bicameral.tools import *; from bicameral.toolboxes import files, tables\n"
        "here = Surroundings.here(Path('/'))\n"
        "print(Registry([*files.toolbox.open(here), *tables.toolbox.open(here)]).fingerprint)"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(printed) == 1


def test_a_default_that_is_no_json_can_still_be_described() -> None:
    @tool(effect="read")
    def look(at: Path = Path("x"), since: date = date(2025, 1, 5), names: tuple[str, ...] = ()) -> None: ...

    assert [argument["default"] for argument in look.describe()["arguments"]] == ["x", {"$date": "2025-01-05"}, []]
    assert len(look.fingerprint) == 64


# Toolboxes


class Loudness(Settings):
    times: int = 1


def test_a_toolbox_builds_its_tools_from_checked_settings(tmp_path: Path) -> None:
    def build(settings: Loudness, surroundings: Surroundings) -> list[Tool]:
        return [shout.with_name(f"shout{settings.times}")]

    box = Toolbox("voice", "Say things.", Loudness, build)
    here = Surroundings.here(tmp_path)
    assert [(each.name, each.toolbox) for each in box.open(here, {"times": 3})] == [("shout3", "voice")]
    for wrong in ({"tims": 3}, {"times": "many"}):
        with pytest.raises(ValidationError):
            box.open(here, wrong)


def test_the_surroundings_are_the_working_folder_and_the_local_time(tmp_path: Path) -> None:
    here = Surroundings.here(tmp_path)
    assert here.folders.read == here.folders.write == (tmp_path,)
    assert here.now().tzinfo is not None
