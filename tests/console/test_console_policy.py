"""The policies in the console, and the playground: what is decided on a call, and why; nothing is ever called."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import server_world
from console_world import HOSTILE, Page, Person, served_console
from server_world import Served

from bicameral.console._policy_pages import MAX_READERS, MAX_VALUE
from bicameral.policy import Policy
from bicameral.server import Role, TokenFile

OWN_POLICY = """
// Mail leaves the house only after a look.
@id("leaves-the-house")
@ask("Post it to somebody outside?")
@reason("<img src=x onerror=alert(1)> \u202e goes outside")
forbid (principal, action, resource in Tool::"post")
when { context.domains.contains("example.net") };

@id("never-there")
@reason("nobody posts there")
forbid (principal, action, resource in Tool::"post")
when { context.domains.contains("example.invalid") };
"""
OWN_TOOLS = '''

@tool(effect="read", origins=Origin("third_party"))
def find_letters(words: str, most: int = 5) -> list[str]:
    """Search the mail <img src=x onerror=alert(1)>.

    Args:
        words: What to look for <script>alert(1)</script> \u202e.
        most: How many at most.
    """
    Path("searched.txt").write_text(words)
    return []


@tool(effect="pure")
def one() -> int:
    """The number one."""
    return 1
'''
PUBLIC_POST = {"argument.to.value": "kim@example.com", "argument.text.value": "hello"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with a policy and tools of its user's own."""
    folder = tmp_path_factory.mktemp("console-policy")
    (folder / "team.cedar").write_text(OWN_POLICY)
    more = 'rate = 1000000\n[policy]\nfiles = ["team.cedar"]\n'
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server_world, "POST", server_world.POST + OWN_TOOLS)
        with served_console(folder, more) as found:
            yield found


def stranger(argument: str, source: str = "find_letters", part: str = "[]", readers: str = "public") -> dict[str, str]:
    """The fields that say that untrusted text wrote an argument."""
    key = "control" if argument == "control" else f"argument.{argument}"
    return {f"{key}.whose": "third_party", f"{key}.source": source, f"{key}.part": part, f"{key}.readers": readers}


def verdict(person: Person, tool: str, *fields: Mapping[str, str], **more: str) -> Page:
    """What the playground says of a call."""
    sent = {"tool": tool} | {name: value for each in fields for name, value in each.items()} | more
    page = person.send_part("/policy/verdict", sent)
    assert page.answer.status_code == 200
    return page


def decided(page: Page) -> tuple[str, list[str]]:
    """The decision, and the policies that decided."""
    return page.texts(".decision .badge")[0], page.texts("h3 ~ p > a code")


def toml_of(page: Page) -> str:
    return page.attribute("button[data-text]", "data-text")


# The policies that hold ----------------------------------------------------------------------------------------------


def test_every_policy_that_holds_is_shown_with_its_text(ana: Person) -> None:
    page = ana.get("/policy")
    names = page.texts("#holding summary code")
    assert names == [rule.id for rule in Policy.load().rules] + ["leaves-the-house", "never-there"]
    for rule in Policy.load().rules:
        assert " ".join(rule.text.split()) in page.text
        assert rule.does in page.text
    assert "team.cedar, line 3" in page.text
    assert page.is_free_of()
    assert "\u202e" not in page.text
    assert not page.has("[style]")
    assert not page.has("script:not([src])")


def test_a_server_without_own_policies_says_how_to_add_some(tmp_path: Path) -> None:
    with served_console(tmp_path / "plain") as plain, Person(plain) as person:
        assert "There are none. Name a file" in person.get("/policy").text


# Decisions -----------------------------------------------------------------------------------------------------------

CALLS: Mapping[str, tuple[str, Mapping[str, str], str, tuple[str, ...]]] = {
    "the user's own words": ("post", PUBLIC_POST, "allowed", ()),
    "untrusted text says to whom": (
        "post",
        PUBLIC_POST | stranger("to"),
        "asks a person",
        ("directed-by-strangers",),
    ),
    "a tool says to whom": (
        "post",
        PUBLIC_POST | stranger("to") | {"argument.to.whose": "system"},
        "allowed",
        (),
    ),
    "untrusted text decides": (
        "post",
        PUBLIC_POST | stranger("control"),
        "asks a person",
        ("decided-by-strangers",),
    ),
    "untrusted text decides, and control flow does not count": (
        "post",
        PUBLIC_POST | stranger("control") | {"mode": "normal"},
        "allowed",
        (),
    ),
    "a plan puts the receiver together": (
        "post",
        PUBLIC_POST | {"argument.to.assembled": "1"},
        "asks a person",
        ("assembled-by-the-plan",),
    ),
    "private text goes to whom a tool named": (
        "post",
        PUBLIC_POST
        | stranger("to")
        | {"argument.to.whose": "system"}
        | stranger("text", readers="user")
        | {"argument.text.whose": "system"},
        "asks a person",
        ("leaves-its-readers",),
    ),
    "the same text goes to one who may read it": (
        "post",
        PUBLIC_POST
        | stranger("to")
        | {"argument.to.whose": "system"}
        | stranger("text", readers="some")
        | {"argument.text.whose": "system", "argument.text.names": "Kim@Example.com, ann@example.com"},
        "allowed",
        (),
    ),
    "untrusted text with a link goes out": (
        "post",
        PUBLIC_POST | stranger("text") | {"argument.text.value": "pay at www.evil.example/now"},
        "asks a person",
        ("strangers-text-in-your-name",),
    ),
    "plain untrusted text goes out": (
        "post",
        PUBLIC_POST | stranger("text") | {"argument.text.value": "see you at noon"},
        "allowed",
        (),
    ),
    "untrusted text goes out of which nothing is known": (
        "post",
        {"argument.to.value": "kim@example.com"} | stranger("text"),
        "asks a person",
        ("strangers-text-in-your-name",),
    ),
    "something goes out to somebody of whom nothing is known": (
        "post",
        {"argument.text.value": "hello"},
        "denied",
        ("leaves-the-house", "never-there"),
    ),
    "a file of which nothing is known is copied into a script": (
        "copy_file",
        {"argument.source.value": "letter.txt", "argument.target.value": "run.sh"},
        "asks a person",
        ("strangers-text-executed",),
    ),
    "untrusted text goes into a script": (
        "write_text",
        stranger("text") | {"argument.path.value": "run.sh", "argument.text.value": "rm -r"},
        "asks a person",
        ("strangers-text-executed",),
    ),
    "untrusted text goes into notes": (
        "write_text",
        stranger("text") | {"argument.path.value": "notes.txt", "argument.text.value": "rm -r"},
        "allowed",
        (),
    ),
    "an own policy asks": (
        "post",
        PUBLIC_POST | {"argument.to.value": "kim@example.net"},
        "asks a person",
        ("leaves-the-house",),
    ),
    "an own policy refuses": (
        "post",
        PUBLIC_POST | {"argument.to.value": "kim@example.invalid"},
        "denied",
        ("never-there",),
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_decision_comes_with_the_policies_that_decided_and_their_text(ana: Person, name: str) -> None:
    tool, fields, wanted, rules = CALLS[name]
    page = verdict(ana, tool, fields)
    assert decided(page) == (wanted, list(rules)), page.text
    texts = {rule.id: rule.text for rule in Policy.parse(OWN_POLICY).rules}
    for rule in rules:
        assert " ".join(texts[rule].split()[:6]) in page.text
    assert page.is_free_of()


def test_a_missing_value_is_named_with_the_decision_for_the_worst_one(ana: Person) -> None:
    page = verdict(ana, "post", stranger("text"))
    assert decided(page)[0] == "denied"
    assert "The values of to and text are not known. This is the decision for the worst values" in page.text
    page = verdict(ana, "post", {"argument.to.value": "kim@example.com"}, stranger("text"))
    assert decided(page) == ("asks a person", ["strangers-text-in-your-name"])
    assert "The value of text is not known. This is the decision for the worst value" in page.text
    # What is allowed at worst is allowed whatever the value is, and nothing is missing where all is typed.
    for fields in ({"argument.to.value": "kim@example.com"}, PUBLIC_POST, PUBLIC_POST | stranger("to")):
        assert "not known" not in verdict(ana, "post", fields).text


def test_every_decision_is_a_test_case_that_holds_on_the_command_line(ana: Person) -> None:
    cases = "\n".join(toml_of(verdict(ana, tool, fields)) for tool, fields, _, _ in CALLS.values())
    folder = ana.served.folder
    (folder / "cases.toml").write_text(cases)
    ran = subprocess.run(
        [sys.executable, str(Path(server_world.__file__).with_name("served.py")), "policy", "test", "cases.toml"],
        cwd=folder,
        env=server_environment(folder),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, (ran.stdout, ran.stderr, cases)
    assert f"{len(CALLS)} cases, none failed" in ran.stdout


def server_environment(folder: Path) -> dict[str, str]:
    """The environment of the server, without writing its files again."""
    kept = {name: (folder / name).read_text() for name in ("own.py", "mail.txt", "bicameral.toml")}
    found = server_world.settings(folder)
    for name, text in kept.items():
        (folder / name).write_text(text)
    return found


def test_nothing_is_called_however_often_it_is_tried(ana: Person) -> None:
    runs = ana.served.ask("GET", "/v1/runs?limit=200")["runs"]
    for _ in range(3):
        verdict(ana, "post", PUBLIC_POST)
        verdict(ana, "find_letters", {"argument.words.value": "invoice"})
        verdict(ana, "write_text", {"argument.path.value": "made.txt", "argument.text.value": "x"})
    there = {path.name for path in ana.served.folder.iterdir()}
    assert there.isdisjoint({"posted.txt", "searched.txt", "made.txt"})
    assert ana.served.ask("GET", "/v1/runs?limit=200")["runs"] == runs


# The form ------------------------------------------------------------------------------------------------------------


def test_the_page_works_without_scripts(ana: Person) -> None:
    fields = {"tool": "post"} | PUBLIC_POST | stranger("to", part="[].sender")
    page = Page(ana.send("/policy", fields))
    assert decided(page)[0] == "asks a person"
    # Everything that was chosen is still chosen.
    assert page.attribute("#tool option[selected]", "value") == "post"
    assert page.attribute('[name="argument.to.whose"] option[selected]', "value") == "third_party"
    assert page.attribute('[name="argument.to.source"]', "value") == "find_letters"
    assert page.attribute('[name="argument.to.part"]', "value") == "[].sender"
    value = page.tree.css_first('[name="argument.to.value"]')
    assert value is not None
    assert value.text() == "kim@example.com"
    assert page.has("#holding")


def test_another_tool_brings_its_own_arguments_and_keeps_those_of_the_same_name(ana: Person) -> None:
    page = ana.send_part("/policy/form", {"tool": "write_text"} | PUBLIC_POST)
    legends = page.texts("legend code")
    assert legends == ["path", "text"]
    kept = page.tree.css_first('[name="argument.text.value"]')
    assert kept is not None
    assert kept.text() == "hello"
    assert page.has("#verdict .decision")
    assert "It has no arguments" in ana.get("/policy?tool=one").text


@pytest.mark.parametrize(
    ("tool", "fields", "said"),
    [
        ("post", PUBLIC_POST | stranger("to", source="find_leters"), "console.unknown-source"),
        ("post", PUBLIC_POST | stranger("to", source=""), "console.unknown-source"),
        ("post", PUBLIC_POST | stranger("to", part="x" * 300), "console.unknown-source"),
        ("post", PUBLIC_POST | stranger("to", source="extract") | {"argument.to.whose": "system"}, "labels.forged"),
        ("post", PUBLIC_POST | stranger("text", readers="some"), "console.bad-readers"),
        (
            "post",
            PUBLIC_POST | stranger("text", readers="some") | {"argument.text.names": "a," * (MAX_READERS + 1)},
            "console.bad-readers",
        ),
        ("post", PUBLIC_POST | {"argument.text.value": "x" * (MAX_VALUE + 1)}, "tools.wrong-type"),
        ("find_letters", {"argument.words.value": "a", "argument.most.value": "many"}, "tools.wrong-type"),
        ("find_letters", {"argument.words.value": "a", "argument.most.value": "9" * 3_900}, ""),
        ("nothing_of_this_name", {}, "policy.bad-cases"),
        (HOSTILE, {}, "policy.bad-cases"),
        ("x" * 10_000, {}, "policy.bad-cases"),
    ],
)
def test_what_cannot_be_is_named_in_place_and_nothing_is_lost(
    ana: Person, tool: str, fields: Mapping[str, str], said: str
) -> None:
    page = Page(ana.send("/policy", {"tool": tool} | dict(fields)))
    assert page.answer.status_code == 200
    assert said in page.text
    assert page.has(".decision") == (not said)
    assert page.is_free_of()
    for name, value in fields.items():
        shown = page.tree.css_first(f'input[name="{name}"]:not([type="checkbox"])')
        if shown is not None:
            assert shown.attributes["value"] == value
        area = page.tree.css_first(f'textarea[name="{name}"]')
        if area is not None:
            assert area.text() == value


def test_the_nearest_tool_is_named_for_a_misspelt_source(ana: Person) -> None:
    page = verdict(ana, "post", PUBLIC_POST, stranger("to", source="find_leters"))
    assert "Did you mean find_letters ?" in page.text


def test_hostile_strings_are_text_in_every_field(ana: Person) -> None:
    every = {
        f"{key}.{name}": HOSTILE
        for key in ("argument.to", "argument.text", "control")
        for name in ("value", "whose", "source", "part", "readers", "names", "assembled")
    }
    for more in ({}, {"argument.to.whose": "third_party"}, {"control.readers": "some"}):
        page = Page(ana.send("/policy", {"tool": "post", "mode": HOSTILE} | every | more))
        assert page.answer.status_code == 200
        assert page.is_free_of()
    # A tool's own words may be a stranger's.
    page = ana.get("/policy?tool=find_letters")
    assert page.is_free_of("<script>alert(1)</script>")
    assert "\u202e" not in page.text
    # A case can be copied exactly: what nobody sees is an escape in it.
    fields = PUBLIC_POST | {"argument.to.value": "kim\u200b@example.com"}
    assert "kim\\u200b@example.com" in toml_of(verdict(ana, "post", fields))


def test_an_argument_without_a_value_names_nobody_and_one_that_may_be_left_out_is(ana: Person) -> None:
    case = toml_of(verdict(ana, "find_letters"))
    assert "arguments.words" in case
    assert "arguments.most" not in case


def test_who_may_see_or_run_may_try_and_nobody_else(served: Served) -> None:
    file = TokenFile(served.folder / "xdg_config_home" / "bicameral" / "tokens.json")
    roles: tuple[tuple[Role, int], ...] = (("see", 200), ("run", 200), ("approve", 403))
    for role, code in roles:
        with Person(served, token=file.add("ana", roles=(role,))[1]) as person:
            assert person.http.get("/policy").status_code == code
            if code == 200:
                assert decided(verdict(person, "post", PUBLIC_POST))[0] == "allowed"


def test_a_form_without_the_secret_of_the_session_decides_nothing(ana: Person) -> None:
    for path in ("/policy", "/policy/form", "/policy/verdict", "/architecture", "/architecture/advice"):
        assert ana.send(path, {"tool": "post"}, csrf=False).status_code == 403, path
        assert ana.send(path, {"tool": "post"}).status_code == 200, path
