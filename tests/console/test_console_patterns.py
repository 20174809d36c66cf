"""The catalogue in the console: search, the page of each pattern, estimates, runs; the linter and the advisor."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from console_world import HOSTILE, Page, Person
from server_world import Served

from bicameral.catalog import catalog
from bicameral.catalog.costs import LOCAL_RATES, estimate
from bicameral.catalog.lint import lint
from bicameral.catalog.stacks import compositions, parse_stack
from bicameral.console._architecture_pages import MAX_FINDINGS, MAX_STACK_CHARS
from bicameral.console._pattern_pages import MAX_HITS
from bicameral.patterns import IMPLEMENTED, text_patterns
from bicameral.server import Role, TokenFile

FORWARD = "forward mail.txt to kim@example.com"
SECONDS = 20.0
"""How long the server may take over the worst stack that it accepts to read: 3 s alone, more beside other tests."""


def signed_in(served: Served, *roles: Role) -> Person:
    """Somebody with a token of these roles alone."""
    file = TokenFile(served.folder / "xdg_config_home" / "bicameral" / "tokens.json")
    return Person(served, token=file.add("ana", roles=roles)[1])


def count_runs(served: Served) -> int:
    return len(served.ask("GET", "/v1/runs?limit=200")["runs"])


# The catalogue -------------------------------------------------------------------------------------------------------


def test_the_catalogue_has_a_card_for_every_pattern(ana: Person) -> None:
    page = ana.get("/patterns")
    links = [node.attributes["href"] for node in page.tree.css(".tile h2 a")]
    assert links == [f"/patterns/{id}" for id in catalog().patterns]
    assert len(links) == 94


def test_a_search_finds_what_the_catalogue_finds(ana: Person) -> None:
    page = ana.part("/patterns?q=workers+that+run+in+parallel")
    shown = [(node.attributes["href"] or "").removeprefix("/patterns/") for node in page.tree.css(".tile h2 a")]
    found = [hit.pattern.id for hit in catalog().search("workers that run in parallel", limit=MAX_HITS)]
    assert shown == found
    # A part of the page, and not the page.
    assert not page.has("html > head > title")


def test_filters_leave_what_fits_them(ana: Person) -> None:
    page = ana.get("/patterns?category=reliability&can=run")
    shown = {(node.attributes["href"] or "").removeprefix("/patterns/") for node in page.tree.css(".tile h2 a")}
    assert shown == {id for id in IMPLEMENTED if id.startswith("V")}
    assert page.attribute("#category option[selected]", "value") == "reliability"
    on_text = ana.get("/patterns?can=text")
    assert len(on_text.tree.css(".tile")) == len(text_patterns())
    assert "No pattern fits" in ana.get("/patterns?q=zzzzqqq").text


def test_a_hostile_search_is_shown_as_text(ana: Person) -> None:
    page = Page(ana.http.get("/patterns", params={"q": HOSTILE, "category": HOSTILE, "can": HOSTILE}))
    assert page.answer.status_code == 200
    assert page.is_free_of()
    assert HOSTILE[:20] in page.attribute("#search", "value")


def test_every_pattern_has_a_page_with_its_facts_and_a_diagram(ana: Person) -> None:
    known = catalog()
    for pattern in known.patterns.values():
        page = ana.get(f"/patterns/{pattern.id}")
        assert pattern.name in page.texts("h1")[0]
        boxes = len(page.tree.css("svg.diagram rect"))
        assert boxes > len(pattern.participants), pattern.id
        drawn = page.texts("svg.diagram text.as-name")
        assert sorted(drawn) == sorted(each.name for each in pattern.participants)
        facts = [*pattern.when, *(each.rule for each in pattern.invariants), *pattern.sources]
        facts += [each.figure for each in pattern.measured] + [each.what for each in pattern.failures]
        facts += [need.why for need in known.requirements_of(pattern.id)]
        facts += [clash.rule for clash in known.conflicts_of(pattern.id)]
        for fact in (*facts, *pattern.knobs):
            assert " ".join(fact.split()) in page.text, (pattern.id, fact)
        assert not page.has("[style]")
        assert not page.has("script:not([src])")


def test_a_pattern_that_is_none_is_not_found_and_the_nearest_is_named(ana: Person) -> None:
    page = ana.get("/patterns/V99", 404)
    assert "catalog.unknown-pattern" in page.text
    assert "Did you mean" in page.text
    assert Page(ana.http.get(f"/patterns/{'x' * 3000}")).answer.status_code == 404


# Estimates -----------------------------------------------------------------------------------------------------------


def test_an_estimate_is_that_of_the_cost_model(ana: Person) -> None:
    page = ana.part("/patterns/R4?size.steps=6&knob.max_steps=9")
    found = estimate([{"R4": {"max_steps": 9}}], {"steps": 6}, LOCAL_RATES)
    row = next(each for each in page.tree.css("table.figures tbody tr") if "Agent" in each.text())
    cells = [" ".join(cell.text().split()) for cell in row.css("td")]
    assert cells[0] == f"{found.expected.calls:g} / {found.worst.calls:g}" == "6 / 9"
    assert page.text != ana.part("/patterns/R4").text


@pytest.mark.parametrize(
    ("field", "typed"),
    [
        ("knob.max_steps", "999"),
        ("knob.max_steps", "0"),
        ("size.steps", "many"),
        ("size.steps", "-1"),
        ("size.steps", "nan"),
        ("size.steps", "1e999"),
        ("size.input", "1e13"),
        ("size.input", "9" * 500),
        ("size.input", HOSTILE),
    ],
)
def test_a_number_that_cannot_be_is_named_beside_the_form_and_kept(ana: Person, field: str, typed: str) -> None:
    page = Page(ana.http.get("/patterns/R4", params={field: typed, "size.output": "77"}))
    assert page.answer.status_code == 200
    assert "catalog.bad-number" in page.text
    assert page.is_free_of()
    inputs = {node.attributes["name"]: node.attributes["value"] or "" for node in page.tree.css("#cost input")}
    assert inputs["size.output"] == "77"
    assert inputs[field].startswith(typed[:40].strip()[:20])


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("R4?size.steps=1e-320", "0, or a number from 1e-09 to 1e+12"),
        ("O15?knob.max_depth=1e308", "a number 1 to 1e+12"),
        ("R3?size.items=1e-320", "0, or a number from 1e-09 to 1e+12"),
    ],
)
def test_a_number_that_has_no_end_or_is_next_to_nothing_is_no_fault_of_the_server(
    ana: Person, address: str, expected: str
) -> None:
    page = ana.get(f"/patterns/{address}")
    assert "catalog.bad-number" in page.text
    assert expected in page.text
    # The largest that may be given is counted.
    assert "catalog." not in ana.part("/patterns/R4?size.steps=1e12").text


def test_a_pattern_without_models_costs_nothing_of_its_own(ana: Person) -> None:
    silent = next(
        each for each in catalog().patterns.values() if not each.cost.sessions and each.cost.tools.text == "0"
    )
    assert "It takes nothing of its own" in ana.get(f"/patterns/{silent.id}").text


def test_a_pattern_that_works_beside_runs_is_not_said_to_cost_nothing(ana: Person) -> None:
    known = {id: estimate([{id: {}}], {}, LOCAL_RATES).parts for id in catalog().patterns}
    beside = [id for id, parts in known.items() if parts and all(part.apart for part in parts)]
    assert "S8" in beside
    for id in beside:
        shown = ana.get(f"/patterns/{id}").text
        assert "It takes nothing of its own" not in shown
        assert "A run takes nothing for it" in shown
        assert "beside runs, each time:" in shown


# Running one ---------------------------------------------------------------------------------------------------------


def test_a_pattern_is_run_on_a_request_with_its_knobs(ana: Person, ben: Person) -> None:
    answer = ana.send("/patterns/R5/run", {"request": FORWARD, "knob.max_calls": "5", "knob.cite": "false"})
    assert answer.status_code == 303, answer.text
    run = answer.headers["location"].removeprefix("/runs/")
    view = ana.served.settled(run)
    assert (view["pattern"], view["request"], view["user"]) == ("R5", FORWARD, "ana")
    assert ana.get(f"/runs/{run}").has("h1")
    # It is hers alone.
    ben.get(f"/runs/{run}", 404)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"request": FORWARD, "knob.max_calls": "999"}, "pattern.bad-knob"),
        ({"request": FORWARD, "knob.max_calls": "NaN"}, "pattern.bad-knob"),
        ({"request": FORWARD, "knob.max_calls": "Infinity"}, "pattern.bad-knob"),
        ({"request": FORWARD, "knob.max_calls": "many"}, "pattern.bad-knob"),
        ({"request": FORWARD, "knob.max_calls": "[" * 90}, "pattern.bad-knob"),
        ({"request": FORWARD, "knob.max_calls": "1" * 5000}, "server.bad-request"),
        ({"request": FORWARD, "knob.cite": "yes"}, "pattern.bad-knob"),
        ({"request": "  "}, "server.bad-request"),
        ({"request": "a\x00b"}, "server.bad-request"),
        ({"request": "x" * 100_000}, "server.bad-request"),
        ({}, "server.bad-request"),
    ],
)
def test_what_cannot_be_run_is_said_beside_the_form_and_nothing_is_lost(
    ana: Person, fields: dict[str, str], said: str
) -> None:
    before = count_runs(ana.served)
    page = Page(ana.send("/patterns/R5/run", fields))
    assert page.answer.status_code == 422
    assert said in page.text
    typed = page.tree.css_first("#request")
    assert typed is not None
    assert typed.text().strip() == fields.get("request", "").replace("\x00", "\ufffd").strip()
    if "knob.max_calls" in fields:
        assert page.attribute('#run input[name="knob.max_calls"]', "value") == fields["knob.max_calls"]
    assert count_runs(ana.served) == before


def test_a_hostile_request_that_fails_is_shown_as_text(ana: Person) -> None:
    page = Page(ana.send("/patterns/R5/run", {"request": HOSTILE, "knob.max_calls": HOSTILE}))
    assert page.answer.status_code == 422
    assert page.is_free_of()


def test_patterns_that_need_more_than_a_text_say_how_they_are_run(ana: Person) -> None:
    page = ana.get("/patterns/V1")
    assert "bicameral patterns run V1" in page.text
    assert not page.has('form[action="/patterns/V1/run"]')
    assert ana.send("/patterns/V1/run", {"request": "hello"}).status_code == 409
    assert "There is no code for it yet" in ana.get("/patterns/K3").text
    assert ana.send("/patterns/K3/run", {"request": "hello"}).status_code == 409
    assert "The runtime itself is this pattern" in ana.get("/patterns/V4").text


def test_only_the_role_run_runs_a_pattern(served: Served) -> None:
    with signed_in(served, "see") as reader:
        assert not reader.get("/patterns/R5").has('form[action="/patterns/R5/run"]')
        before = count_runs(served)
        assert reader.send("/patterns/R5/run", {"request": FORWARD}).status_code == 403
        assert count_runs(served) == before
    with signed_in(served, "approve") as approver:
        for path in ("/patterns", "/patterns/R5", "/architecture", "/architecture/advice"):
            assert approver.http.get(path).status_code == 403, path
    with signed_in(served, "run") as runner:
        # Who may not see runs stays here.
        answer = runner.send("/patterns/R5/run", {"request": FORWARD})
        assert (answer.status_code, answer.headers["location"]) == (303, "/patterns/R5")
        assert "Submitted" in runner.get("/patterns/R5").text


# The linter ----------------------------------------------------------------------------------------------------------


def test_the_linter_says_what_where_why_and_how_to_mend_it(ana: Person) -> None:
    text = "name: Mine\npatterns:\n  - R4\n  - O6\n"
    page = ana.send_part("/architecture", {"stack": text})
    report = lint(parse_stack(text))
    decided = [each for each in report.findings if not each.undecided]
    assert len(page.tree.css("li.finding")) == len(decided)
    for each in decided:
        assert " ".join(each.message.split()) in page.text
        assert each.fix in page.text
        assert each.rule in page.text
        assert f"Line {each.place.line}, column {each.place.column}" in page.text
        assert text.splitlines()[(each.place.line or 1) - 1].strip() in page.texts("li.finding p code")
    assert f"{len(report.of_severity('error'))} error" in page.text


def test_a_stack_that_holds_every_rule_has_no_error(ana: Person) -> None:
    assert "0 errors" in ana.send_part("/architecture", {"stack": "runtime: bicameral\npatterns: [S1]\n"}).text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("patterns: [R4, V99]\n", "Did you mean V9"),
        ("patterns: [R4\n", "config.bad-yaml"),
        ("", "stack.empty"),
        ("- R4\n", "config.bad-yaml"),
        ("patterns: !!python/object/apply:os.system [ls]\n", "cannot stand here"),
        ("a\x07b: 1", "this is not YAML"),
    ],
)
def test_a_stack_that_cannot_be_read_is_named_with_its_place_and_kept(ana: Person, text: str, said: str) -> None:
    page = Page(ana.send("/architecture", {"stack": text}))
    assert page.answer.status_code == 200
    assert said in page.text
    typed = page.tree.css_first("#stack")
    assert typed is not None
    assert typed.text() == text


def attack_texts() -> dict[str, str]:
    laughs = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{each}: &{each} [{','.join([f'*{before}'] * 9)}]\n"
        for before, each in zip("abcdefgh", "bcdefghi", strict=True)
    )
    own = "".join(f" X{n}: {{not_with: [{', '.join(f'X{m}' for m in range(100) if m != n)}]}}\n" for n in range(100))
    used = ", ".join(f"X{n}" for n in range(100))
    agents = "".join(f" a{n}: {{patterns: [{', '.join(f'X{m}' for m in range(5))}]}}\n" for n in range(80))
    return {
        "laughs": laughs,
        "brackets": "patterns: " + "[" * 50_000,
        "braces": "patterns: " + "{a: " * 15_000,
        "indented": "".join(" " * n + "a:\n" for n in range(300)),
        "unclosed": 'name: "' + "a" * 50_000,
        "items": "patterns:\n" + "- R4\n" * 11_000,
        "pairs": "patterns:\n" + "".join(f"- R4: {{task: a{n}}}\n- R5: {{task: b{n}}}\n" for n in range(1_200)),
        "agents": "agents:\n" + "".join(f" a{n}: {{patterns: [R4, R5, O6]}}\n" for n in range(1_500)),
        "own patterns": f"define:\n{own}patterns: [{used}]\n",
        "own patterns of agents": f"define:\n{own}agents:\n{agents}",
        "waivers": "patterns: [R4]\nwaivers:\n" + "- {rule: [LAW1, W1], reason: x, until: 2030-01-01}\n" * 1_000,
        "too long": "patterns: [R4] #" + "x" * MAX_STACK_CHARS,
    }


@pytest.mark.parametrize("name", attack_texts())
def test_no_stack_keeps_the_server_busy_for_long(ana: Person, name: str) -> None:
    began = time.monotonic()
    page = ana.send_part("/architecture", {"stack": attack_texts()[name]})
    assert time.monotonic() - began < SECONDS
    assert page.answer.status_code == 200
    assert page.has(".fault") or len(page.tree.css("li.finding")) <= MAX_FINDINGS
    assert len(page.html) < 1_000_000
    # And the server answers others as before.
    assert ana.get("/patterns/R4").has("h1")


def test_hostile_names_in_a_stack_are_shown_as_text(ana: Person) -> None:
    name = HOSTILE.replace('"', "'").replace("'", "''")
    for text in (
        f"name: '{name}'\npatterns: [R4]\n",
        f"'{name}': 1\n",
        f"patterns: ['{name}']\n",
        f"patterns: [R4]\nactions:\n  '{name}': {{reversible: false, gate: none}}\n",
        f"agents:\n  '{name}': {{patterns: [R4]}}\n  b: {{patterns: [R5]}}\n",
        f"define: {{'{name}': {{needs: [V9], why: '{name}'}}}}\npatterns: ['{name}']\n",
    ):
        page = Page(ana.send("/architecture", {"stack": text}))
        assert page.is_free_of(HOSTILE.replace('"', "'")), text
        # Unseen characters are written out where they are shown.
        shown = page.tree.css_first("#findings")
        assert shown is not None
        assert "\u202e" not in shown.text()


def test_an_example_of_the_catalogue_can_be_begun_with(ana: Person) -> None:
    page = ana.get("/architecture?example=EX3")
    text = page.tree.css_first("#stack")
    assert text is not None
    assert parse_stack(text.text()).name == compositions()["EX3"].name
    assert ana.get("/architecture?example=nothing").has("li.finding")


# The advisor ---------------------------------------------------------------------------------------------------------


def facts(**known: str) -> dict[str, Any]:
    return {f"fact.{name}": value for name, value in known.items()}


def test_the_advisor_chooses_with_reasons_and_says_what_is_open(ana: Person) -> None:
    page = ana.send_part("/architecture/advice", facts(tools="4", calls_independent="yes") | {"runtime": "other"})
    chosen = {node.text() for node in page.tree.css('table.stack td[data-name="Pattern"] a')}
    assert chosen == {"V9", "V14", "R5", "I2"}
    assert "calls_independent: yes" in page.text
    assert "What to find out next" in page.text
    assert page.has("table.figures")
    # The question that is open leads to its field.
    form = ana.get("/architecture/advice")
    open_links = [node.attributes["href"] or "" for node in page.tree.css("ol a")]
    assert open_links
    assert all(form.has(f'[id="{link.removeprefix("#")}"]') for link in open_links)


def test_the_runtime_brings_what_need_not_be_built(ana: Person) -> None:
    page = ana.send_part("/architecture/advice", facts(tools="4", calls_independent="yes"))
    chosen = {node.text() for node in page.tree.css('table.stack td[data-name="Pattern"] a')}
    assert "V9" not in chosen
    assert "The runtime brings" in page.text


def test_the_advised_stack_goes_on_into_the_linter(ana: Person) -> None:
    page = ana.send_part("/architecture/advice", facts(irreversible_actions=f"pay,{HOSTILE}", private_data="yes"))
    assert page.is_free_of()
    text = page.attribute('input[name="stack"]', "value")
    linted = Page(ana.send("/architecture", {"stack": text}))
    assert "0 errors" in linted.text
    assert linted.is_free_of()


@pytest.mark.parametrize(
    ("name", "typed"),
    [
        ("tools", "many"),
        ("tools", "-1"),
        ("tools", "1e308"),
        ("tools", "nan"),
        ("schema_tokens", "9" * 400),
        ("quality_gap", "3"),
        ("blast_radius", "6"),
        ("stakes", HOSTILE),
        ("production", "perhaps"),
        ("irreversible_actions", ",".join(f"a{n}" for n in range(60))),
        ("core_written", "x" * 3_000),
    ],
)
def test_a_fact_that_cannot_be_is_named_and_the_others_count(ana: Person, name: str, typed: str) -> None:
    page = Page(ana.send("/architecture/advice", facts(**{name: typed, "untrusted_content": "yes"})))
    assert page.answer.status_code == 200
    assert "catalog.bad-fact" in page.text
    assert "V5" in {node.text() for node in page.tree.css('table.stack td[data-name="Pattern"] a')}
    assert page.is_free_of()
    if page.has(f'input[name="fact.{name}"]'):
        assert page.attribute(f'input[name="fact.{name}"]', "value") == typed
    assert page.attribute('select[name="fact.untrusted_content"] option[selected]', "value") == "yes"


def test_the_form_asks_for_every_fact_once_in_its_group(ana: Person) -> None:
    from bicameral.catalog.advice import questions

    page = ana.get("/architecture/advice")
    asked = re.findall(r'name="fact\.([a-z_]+)"', page.html)
    assert asked == list(questions())
    groups = page.texts("summary strong")
    assert groups == list(dict.fromkeys(each.group for each in questions().values()))
