"""Canaries in everything that strangers write: none is ever in a privileged prompt, and the watch would see it."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from canary_world import FAULTY, SENTENCE, captured, page, planted
from click.testing import CliRunner

from bicameral import Agent
from bicameral.binding import Candidate
from bicameral.cli import main
from bicameral.config import Config, open_registry
from bicameral.labels import TRUSTED_USER
from bicameral.models import Message, ModelRequest, ScriptedProvider
from bicameral.patterns.reasoner import Answered
from bicameral.runs import Failed
from bicameral.sessions import Session
from bicameral.tools import Registry
from canaries import MARK, Watch, canary, watching
from canaries_plugin import REQUIRED, WHOLE_SUITE, missing_kinds

TESTS = Path(__file__).parents[1]

READS = {
    "mail": ("Read my mails", "found = search_mail()"),
    "file": ("Read notes.txt", 'found = read_text("notes.txt")'),
    "lines": ("Read the lines of notes.txt", 'found = read_lines("notes.txt")'),
    "folder": ("List the files", "found = list_files()"),
    "matches": ("Search the files for canary", 'found = search_files("canary")'),
    "table": ("Read table.csv", 'found = read_csv("table.csv")'),
    "sentence": ("Read named.csv", 'found = read_csv("named.csv")'),
    "json": ("Read data.json", 'found = read_json("data.json")'),
    "calendar": ("List the events of 2026-03-03", 'found = list_events(date("2026-03-03"))'),
    "command": ("Tell the weather", "found = weather()"),
    "extraction": (
        "Read notes.txt and say what it is about",
        'text = read_text("notes.txt")\nfound = extract(text, "what it says", str)',
    ),
    "record": (
        "Read notes.txt and say what it is about",
        'text = read_text("notes.txt")\nfound = {"a": extract(text, "what it says", str), "n": len(text)}',
    ),
}
LAST = 'answer("seen")\n'


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    monkeypatch.chdir(tmp_path)
    return planted(tmp_path)


@pytest.fixture
def address() -> Iterator[str]:
    with page() as found:
        yield found


def agent_of(config: Config, *plans: str, **options: Any) -> Agent:
    """An agent in the planted world, with all its tools, whose planner writes these plans."""
    registry = Registry([*open_registry(config), *FAULTY])
    writes = ScriptedProvider(list(plans), grammars=False)
    given: dict[str, Any] = {"privileged": writes, "quarantined": captured(), "config": config, "cache": {}}
    return Agent(registry, **(given | options))


def seen_of(watch: Watch) -> str:
    assert watch.prompts, "nobody was asked, so that nothing was tried"
    return "\n".join(text for _, text in watch.prompts)


@pytest.mark.parametrize("what", READS)
def test_what_is_read_in_a_round_is_not_in_the_next_prompt(
    config: Config, what: str, privileged_prompts: Watch
) -> None:
    request, read = READS[what]
    reasoned = agent_of(config, f"{read}\nlook(found)\n", LAST).sync.reason(request, deterministic=True)
    assert isinstance(reasoned, Answered), reasoned
    assert len(reasoned.rounds) == 2
    assert "found = " in seen_of(privileged_prompts).rpartition("plan 1:")[2]
    assert privileged_prompts.leaks == []


@pytest.mark.parametrize("what", READS)
def test_the_grammar_of_the_next_plan_holds_no_canary_either(
    config: Config, what: str, privileged_prompts: Watch
) -> None:
    request, read = READS[what]
    statements = iter([*(f"{line}\n" for line in read.splitlines()), "look(found)\n", LAST])
    writes = ScriptedProvider(lambda asked: next(statements))
    reasoned = agent_of(config, privileged=writes).sync.reason(request, deterministic=True)
    assert isinstance(reasoned, Answered), reasoned
    assert '"found"' in privileged_prompts.prompts[-1][1], "the next plan can use what was found"


def test_a_page_is_not_in_the_next_prompt(config: Config, address: str, privileged_prompts: Watch) -> None:
    read = f'found = read_page("{address}")\nlook(found)\n'
    agent = agent_of(config, read, LAST)
    name = next(tool.name for tool in agent.registry if tool.toolbox == "web")
    agent = agent_of(config, read.replace("read_page", name), LAST)
    reasoned = agent.sync.reason(f"Read {address}", deterministic=True)
    assert isinstance(reasoned, Answered), reasoned
    assert "plan 1:" in seen_of(privileged_prompts)


@pytest.mark.parametrize("read", ["broken()", "crashing()", 'int(read_text("notes.txt"))', 'read_csv("notes.txt")[5]'])
def test_an_error_that_quotes_what_it_read_is_not_in_the_next_prompt(
    config: Config, read: str, privileged_prompts: Watch
) -> None:
    request = "Read notes.txt" if "notes.txt" in read else "Read what is broken"
    reasoned = agent_of(config, f"found = {read}\nlook(found)\n", LAST).sync.reason(request, deterministic=True)
    assert isinstance(reasoned, Answered), reasoned
    assert isinstance(reasoned.rounds[0].outcome, Failed)
    assert "failed at step" in seen_of(privileged_prompts)


def test_neither_names_of_columns_nor_cells_reach_a_planner(config: Config, privileged_prompts: Watch) -> None:
    """Nothing of a file is in a prompt: what the request says of it is all that the planner reads."""
    plan = 'rows = read_csv("table.csv")\nanswer(rows)\n'
    agent_of(config, plan).sync.run("Read table.csv", deterministic=True)
    assert "Read table.csv" in seen_of(privileged_prompts)
    assert "amount" not in seen_of(privileged_prompts).rpartition("Read table.csv")[2]
    agent_of(config, plan.replace("table", "named")).sync.run("Read named.csv", deterministic=True)
    assert SENTENCE not in seen_of(privileged_prompts)


def test_a_mended_plan_is_told_what_is_wrong_without_a_strangers_word(
    config: Config, privileged_prompts: Watch
) -> None:
    wrong = 'rows = read_csv("table.csv")\nanswer(row[0].nothing)\n'
    agent_of(config, wrong, 'rows = read_csv("table.csv")\nanswer(rows)\n').sync.run(
        "Read table.csv", deterministic=True
    )
    assert "This plan is wrong" in seen_of(privileged_prompts)


def test_chat_shows_no_request_what_the_one_before_has_read(config: Config, privileged_prompts: Watch) -> None:
    plans = [f"{read}\nanswer(found)\n" for _, read in READS.values()]
    requests = [request for request, _ in READS.values()]
    result = CliRunner().invoke(
        main,
        ["chat", "--deterministic", "--config", str(config.source)],
        obj=lambda _: agent_of(config, *plans),  # pyright: ignore[reportUnknownLambdaType]
        input="\n".join(requests) + "\n",
    )
    assert result.exit_code == 0, result.output
    assert MARK in result.output.casefold(), "the person sees what was asked for"
    assert len(privileged_prompts.prompts) >= len(requests) - 1


def test_rounds_at_the_command_line_show_the_person_and_not_the_planner(
    config: Config, privileged_prompts: Watch
) -> None:
    result = CliRunner().invoke(
        main,
        ["run", "--deterministic", "--rounds", "3", "--config", str(config.source), "Read notes.txt"],
        obj=lambda _: agent_of(config, 'text = read_text("notes.txt")\nlook(text)\n', "answer(text)\n"),  # pyright: ignore[reportUnknownLambdaType]
    )
    assert result.exit_code == 0, result.output
    assert canary("file") in result.stdout
    assert "told: text = <text>" in result.stderr
    assert len(privileged_prompts.prompts) == 2


# The watch itself --------------------------------------------------------------------------------------------------


async def _leak(text: str, *, role: Any = "delta", **options: Any) -> Watch:
    with watching() as watch:
        session = Session(role, ScriptedProvider([("", "x")]), (Message("system", "You plan."),))
        await session.ask(text, **options)
    return watch


@pytest.mark.parametrize("between", ["", " ", "-", "_\n"])
async def test_the_watch_sees_a_canary_however_it_is_spelt(between: str) -> None:
    watch = await _leak(f"Mails: {between.join(canary('body'))}".upper())
    with pytest.raises(AssertionError, match="was shown a canary"):
        watch.verify()


@pytest.mark.parametrize(
    "part", [{"prefill": canary("x")}, {"grammar": canary("x")}, {"json_schema": {canary("x"): 1}}]
)
async def test_the_watch_sees_a_canary_in_every_part_of_a_request(part: dict[str, Any]) -> None:
    assert (await _leak("Hello", **part)).leaks


async def test_the_watch_sees_a_canary_in_the_setup_and_when_the_model_fails() -> None:
    with watching() as watch:
        session = Session("echo", ScriptedProvider([]), (Message("system", canary("setup")),))
        with pytest.raises(Exception, match="no reply"):
            await session.ask("Hello")
    assert watch.leaks


async def test_the_watch_sees_what_a_tool_returned_without_a_canary(config: Config) -> None:
    text = "This is what a stranger has written in a file, and nobody planted it."
    (config.base / "own.txt").write_text(text)
    with watching() as watch:
        [reads] = [tool for tool in open_registry(config) if tool.name == "read_text"]
        found = await reads.call({"path": "own.txt"})
        await Session("delta", ScriptedProvider([("", "x")]), ()).ask(f"The file says: {found}")
    with pytest.raises(AssertionError, match="what a stranger wrote"):
        watch.verify()


async def test_the_quarantined_model_may_read_what_it_must() -> None:
    from bicameral.sessions import Quarantined

    with watching() as watch:
        await Session("quarantined", Quarantined(ScriptedProvider([("", "x")])), ()).ask(canary("text"))
    assert watch.prompts == []


def test_a_test_that_leaks_fails_by_itself(tmp_path: Path) -> None:
    """The watch stands over every test of the suite: one that leaks and asserts nothing fails."""
    (tmp_path / "test_it.py").write_text(
        "from canaries import canary\nfrom bicameral.models import ScriptedProvider\n"
        "from bicameral.sessions import Session\n\n\n"
        "async def test_it() -> None:\n"
        "    await Session('delta', ScriptedProvider([('', 'x')]), ()).ask(canary('mail'))\n"
    )
    (tmp_path / "conftest.py").write_text((TESTS / "conftest.py").read_text())
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null"),
            *("--rootdir", str(tmp_path), "-o", f"pythonpath={TESTS}", "-o", "asyncio_mode=auto", str(tmp_path)),
        ],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=120,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "delta was shown a canary" in done.stdout
    assert "1 privileged prompts were searched for canaries (prompts of delta 1)" in done.stdout


def test_a_whole_suite_that_saw_nothing_fails() -> None:
    seen = Counter[str](REQUIRED)
    assert missing_kinds(seen, WHOLE_SUITE) == []
    assert missing_kinds(Counter(), WHOLE_SUITE - 1) == [], "a part of the suite need not ask a model"
    assert missing_kinds(Counter(), WHOLE_SUITE) == list(REQUIRED)


async def test_the_watch_sees_a_name_that_a_binding_has_read() -> None:
    with watching() as watch:
        watch.found([Candidate("file", "taxes/letter_to_kim.txt", ("letter_to_kim.txt",), ("taxes",))])
        session = Session("delta", ScriptedProvider(["", "", ""]), (Message("system", "You plan."),))
        await session.ask("Read the letter to Kim")
        assert watch.leaks == []
        await session.ask("Which is meant: letter_to_kim.txt or letter_to_jim.txt?")
    assert watch.leaks == ["delta was shown a name of the world: 'letter_to_kim.txt'"]


async def test_a_name_that_the_user_or_the_planner_said_first_is_no_canary() -> None:
    with watching() as watch:
        watch.found([Candidate("file", name, (name,)) for name in ("letter_to_kim.txt", "letter_to_jim.txt")])
        watch.said("Read letter_to_kim.txt")
        session = Session("delta", ScriptedProvider(['read_text("letter_to_jim.txt")', ""]), ())
        await session.ask("Read letter_to_kim.txt")
        await session.ask('This plan is wrong: read_text("letter_to_jim.txt")')
        assert watch.leaks == []
        watch.found([Candidate("file", "own_notes.txt", ("own_notes.txt",), label=TRUSTED_USER)])
        assert "own_notes.txt" not in watch.names, "a name in a trusted folder is the user's"


def _sends_request(node: ast.AST) -> bool:
    """Whether this is a call of a provider: `.generate(request...)` or `.stream(request...)`."""
    match node:
        case ast.Call(func=ast.Attribute(attr="generate" | "stream"), args=[ast.Name(id=name), *_]):
            return name.startswith("request")
        case _:
            return False


def test_every_request_to_a_model_goes_through_a_session() -> None:
    """The watch stands at one door; there must be no other."""
    source = TESTS.parent / "src" / "bicameral"
    asking = {
        str(file.relative_to(source))
        for file in source.rglob("*.py")
        if any(_sends_request(node) for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
    }
    assert {name for name in asking if not name.startswith(("models/", "routing/"))} == {
        "config/_models.py",
        "sessions/_session.py",
    }


def test_a_request_is_what_the_watch_takes_it_for() -> None:
    """Every part of a request that a model reads is one that the watch searches."""
    parts = set(ModelRequest.__dataclass_fields__)
    harmless = {"max_tokens", "temperature", "seed", "adapter", "timeout", "model", "confidence", "fixed", "must_call"}
    assert parts == {"messages", "prefill", "json_schema", "grammar", "stop", "tools"} | harmless
