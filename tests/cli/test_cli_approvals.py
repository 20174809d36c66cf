"""`bicameral run` and `chat` where policy asks: at a terminal one question, without one a no."""

from __future__ import annotations

import json

import pytest
from cli_terminal import Terminal, opened
from cli_world import World

POST = '''
from pathlib import Path

from bicameral import tool
from bicameral.tools import Origin


@tool(effect="send", purpose={"to": "directs", "text": "carries"}, origins=Origin("system"), words=("post", "forward"))
def post(to: str, text: str) -> None:
    """Post a text to somebody."""
    with Path("posted.txt").open("a") as file:
        file.write(f"{to}: {text.splitlines()[0]}\\n")
'''
FORWARD = 'text = read_text("mail.txt")\npost("kim@example.com", text)\nanswer("forwarded")\n'
EACH = """\
for line in read_lines("mail.txt"):
    post("kim@example.com", line)
answer("all")
"""
THEIRS = 'line = read_lines("mail.txt")[0]\npost(line, "Hello")\nanswer("greeted")\n'
OWN = 'post("kim@example.com", "Hello")\nanswer("greeted")\n'
FORBID = '@id("stays") forbid (principal, action, resource in Tool::"post");\n'


@pytest.fixture
def office(world: World) -> World:
    """The world with a tool that posts, and a mail that leads somewhere."""
    mail = world.folder / "mail.txt"
    mail.write_text(mail.read_text().replace("hello", "hello, see www.example.org"))
    world.write("own.py", POST)
    world.write("bicameral.toml", '[toolboxes]\nfiles = ["own.py"]\n')
    return world


def posted(world: World) -> list[str]:
    file = world.folder / "posted.txt"
    return file.read_text().splitlines() if file.exists() else []


def test_without_a_terminal_the_answer_is_no_and_yes_does_not_change_that(office: World) -> None:
    office.write("p.py", FORWARD)
    for more in ((), ("--yes",)):
        result = office.call("run", "--plan", "p.py", *more)
        assert result.exit_code == 4, result.output
        assert "[run.needs-approval]" in result.stderr
    assert posted(office) == []


def test_json_has_the_proof_and_what_would_have_been_asked(office: World) -> None:
    office.write("p.py", FORWARD)
    told = office.json("run", "--plan", "p.py", code=4)
    assert told["error"]["code"] == "run.needs-approval"
    assert [call["verdict"] for call in told["proof"]["calls"]] == ["proved", "conditional"]
    [call] = told["question"]
    assert call["arguments"]["to"] == "kim@example.com"
    assert call["arguments"]["text"].startswith("invoice 7")
    assert [part["argument"] for part in call["untrusted"]] == ["text"]
    assert call["untrusted"][0]["sources"][-1]["tool"] == "read_text"


def test_json_has_the_labels_of_the_answer(office: World) -> None:
    office.write("p.py", 'answer(read_text("mail.txt"))\n')
    assert "third_party" in json.dumps(office.json("run", "--plan", "p.py")["shade"])


def test_what_is_all_yours_needs_no_yes(office: World) -> None:
    office.write("p.py", OWN)
    told = office.json("run", "--plan", "p.py")
    assert told["proof"]["proved"] is True
    assert posted(office) == ["kim@example.com: Hello"]


@pytest.mark.parametrize("command", [["check"], ["run", "--plan"], ["explain"]])
def test_a_call_that_a_policy_forbids_fails_the_check(office: World, command: list[str]) -> None:
    office.write("team.cedar", FORBID)
    office.write("bicameral.toml", '[toolboxes]\nfiles = ["own.py"]\n[policy]\nfiles = ["team.cedar"]\n')
    office.write("p.py", OWN)
    told = office.json(*command, "p.py", code=3)
    assert told["ok"] is False
    assert told["proof"]["calls"] == [
        {
            "step": "0",
            "tool": "post",
            "verdict": "refused",
            "why": "post: the policy 'stays' (team.cedar, line 1) forbids it.",
        }
    ]
    report = told.get("report", told)
    assert [finding["code"] for finding in report["findings"]] == ["plan.refused"]
    result = office.call(*command, "p.py")
    assert result.exit_code == 3
    assert "refused" in result.output
    assert "forbids it" in result.output
    assert posted(office) == []


def test_plan_and_explain_say_what_may_be_asked(office: World) -> None:
    planned = office.call("plan", "Forward mail.txt to kim@example.com", "--deterministic", script=[FORWARD] * 3)
    assert planned.exit_code == 0, planned.output
    assert "1  post       conditional: the argument 'text' would carry" in planned.stderr
    office.write("p.py", FORWARD)
    lines = office.call("explain", "p.py").stdout.splitlines()
    assert lines[1].endswith("(sends out of here; conditional)")
    assert "would carry text that a stranger wrote" in lines[2]
    [_, step, *_] = office.json("explain", "p.py")["steps"]
    assert step["verdict"] == "conditional"


def test_a_request_whose_plan_a_policy_forbids_is_not_run(office: World) -> None:
    office.write("team.cedar", FORBID)
    office.write("bicameral.toml", '[toolboxes]\nfiles = ["own.py"]\n[policy]\nfiles = ["team.cedar"]\n')
    result = office.call("run", "Post Hello to kim@example.com", "--deterministic", script=[OWN] * 5)
    assert result.exit_code == 3, result.output
    assert posted(office) == []


def test_forwarding_is_one_question_that_fits_a_screen(office: World, terminals: list[Terminal]) -> None:
    office.write("mail.txt", "".join(f"line {number}\n" for number in range(199)) + "see www.example.org\n")
    office.write("p.py", FORWARD)
    terminal = opened(terminals, "run", "--plan", "p.py", TERM="dumb")
    terminal.wait_for("Allow this call? [y/N")
    question = terminal.shown.partition("One call needs your yes:")[2]
    assert "Post to kim@example.com" in question
    assert "! text  │ line 0" in question
    assert "… (198 more lines, d shows them)" in question
    assert "read_text" in question
    assert question.count("\n") < 24
    assert "Run it?" not in terminal.shown
    assert posted(office) == []
    terminal.type("y\n")
    assert terminal.end() == 0, terminal.shown
    assert posted(office) == ["kim@example.com: line 0"]
    assert terminal.shown.count("[y/N") == 1


def test_no_is_no_and_is_recorded(office: World, terminals: list[Terminal]) -> None:
    office.write("p.py", THEIRS)
    terminal = opened(terminals, "run", "--plan", "p.py")
    terminal.wait_for("Allow this call? [y/N")
    terminal.type("\n")
    assert terminal.end() == 1, terminal.shown
    assert "[run.refused]" in terminal.shown
    assert posted(office) == []
    assert office.json("runs", "list")["runs"][0]["status"] == "failed"
    assert "asked about 1, approved 0" in office.call("runs", "show", "last").stdout
    replayed = office.call("runs", "replay", "last")
    assert "identical" in replayed.stderr


def test_a_loop_of_posts_is_asked_about_once(office: World, terminals: list[Terminal]) -> None:
    office.write("p.py", EACH)
    terminal = opened(terminals, "run", "--plan", "p.py", TERM="dumb")
    terminal.wait_for("Allow these 3 calls?")
    assert "Post × 2" in terminal.shown
    terminal.type("y\n")
    assert terminal.end() == 0, terminal.shown
    assert len(posted(office)) == 4


def test_of_several_calls_each_can_be_answered(office: World, terminals: list[Terminal]) -> None:
    office.write("p.py", EACH)
    terminal = opened(terminals, "run", "--plan", "p.py", TERM="dumb")
    terminal.wait_for("Allow these 3 calls?")
    terminal.type("e\n")
    for number, reply in enumerate(("n", "y", "n"), 1):
        terminal.wait_for(f"Allow call {number} of 3?")
        terminal.type(f"{reply}\n")
    assert terminal.end() == 1, terminal.shown
    assert posted(office) == ["kim@example.com: hello, see www.example.org"]


def test_a_yes_that_was_typed_before_the_question_does_not_count(office: World, terminals: list[Terminal]) -> None:
    """Attack: whatever makes a person press y and Enter early must not approve what he has not seen."""
    office.write("p.py", FORWARD)
    terminal = opened(terminals, "run", "--plan", "p.py", TERM="dumb")
    terminal.type("y\ny\ny\n")
    terminal.wait_for("Allow this call? [y/N")
    terminal.type("n\n")
    assert terminal.end() == 1, terminal.shown
    assert posted(office) == []


ASKING = '@id("look") @ask("Post it?") forbid (principal, action, resource in Tool::"post");\n'
KNOWN = 'write_text("log.txt", "begun")\npost("kim@example.com", "Hello")\nanswer("greeted")\n'


@pytest.fixture
def asking(office: World) -> World:
    """The office, with a policy that asks before every post."""
    office.write("team.cedar", ASKING)
    office.write("bicameral.toml", '[toolboxes]\nfiles = ["own.py"]\n[policy]\nfiles = ["team.cedar"]\n')
    office.write("p.py", KNOWN)
    return office


@pytest.mark.parametrize("reply", ["y", "n"])
def test_what_is_known_before_the_run_is_asked_before_anything_is_done(
    asking: World, terminals: list[Terminal], reply: str
) -> None:
    terminal = opened(terminals, "run", "--plan", "p.py", TERM="dumb")
    terminal.wait_for("Allow this call? [y/N")
    assert "This run may ask you about:" in terminal.shown
    assert "step 1  post: " in terminal.shown
    assert "One call needs your yes, and nothing has been done yet:" in terminal.shown
    assert not (asking.folder / "log.txt").exists()
    terminal.type(f"{reply}\n")
    assert terminal.end() == (0 if reply == "y" else 1), terminal.shown
    assert terminal.shown.count("[y/N") == 1
    assert posted(asking) == (["kim@example.com: Hello"] if reply == "y" else [])
    assert (asking.folder / "log.txt").exists() is (reply == "y")


def test_where_nobody_can_be_asked_nothing_is_begun_and_it_is_said_beforehand(asking: World) -> None:
    for more in ((), ("--yes",)):
        result = asking.call("run", "--plan", "p.py", *more)
        assert result.exit_code == 4, result.output
        assert "This run may stop, since nobody can be asked, at:" in result.stderr
        assert "step 1  post: " in result.stderr
    assert not (asking.folder / "log.txt").exists()
    told = asking.json("run", "--plan", "p.py", code=4)
    assert [(call["tool"], call["ahead"]) for call in told["question"]] == [("post", True)]


def test_in_a_chat_without_a_terminal_the_answer_is_no(office: World) -> None:
    request = "Forward mail.txt to kim@example.com"
    result = office.call("chat", "--deterministic", script=[FORWARD] * 3, stdin=f"{request}\n")
    assert "[run.needs-approval]" in result.stderr
    assert posted(office) == []
