"""`benchmarks.robustness`: wordings are made by rule, never change a value, and are compared by what they did."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.everyday import REQUESTS as EVERYDAY
from benchmarks.everyday._run import oracle_planner
from benchmarks.intent._requests import load_requests
from benchmarks.planning import REQUESTS, world_files
from benchmarks.planning.runner import Models, perfect_reader
from benchmarks.robustness import CASES, DATA, Case, Result, run_wording, summarise, wordings_of
from benchmarks.robustness.__main__ import choose, main, parse_arguments
from benchmarks.robustness.figures import read_results, to_line
from benchmarks.robustness.runner import run_reference_plan
from benchmarks.robustness.variants import Wording
from benchmarks.shards import SHARDED, Shard
from bicameral.models import ModelRequest, Provider, ScriptedProvider

VALUE = re.compile(r'"[^"]*"|[\w.+-]+@[\w.-]+\w|\{site\}\S*\w|\b\w+\.(?:txt|csv|md|json|html)\b|(?<![\w.-])\d[\d:.-]*')
"""Quoted texts, addresses, file names and numbers."""


def values_in(text: str) -> list[str]:
    return sorted(each.rstrip(".:") for each in VALUE.findall(text))


def case_called(id: str) -> Case:
    return next(case for case in CASES if case.id == id)


def test_there_are_enough_requests_and_wordings() -> None:
    assert len(CASES) >= 30
    assert len({case.id for case in CASES}) == len(CASES)
    for case in CASES:
        assert len(set(case.paraphrases)) >= 4, case.id
        texts = [wording.text for wording in wordings_of(case)]
        assert len(texts) == len(set(texts)) >= 10, case.id


def test_the_page_says_how_many_there_are() -> None:
    page = (Path(__file__).parents[2] / "docs" / "figures.md").read_text(encoding="utf-8")
    assert f"\n{len(CASES)} requests about files, tables, mail, a calendar and a website" in page
    assert {len(wordings_of(case)) for case in CASES} == {13}


def test_wordings_by_rule_are_the_same_for_the_same_seed_and_others_for_another() -> None:
    first = [wordings_of(case) for case in CASES]
    assert first == [wordings_of(case) for case in CASES]
    assert first != [wordings_of(case, seed=1) for case in CASES]


@pytest.mark.parametrize("seed", range(5))
def test_no_wording_changes_a_quoted_text_an_address_a_file_name_or_a_number(seed: int) -> None:
    for case in CASES:
        values = values_in(case.request.text)
        for wording in wordings_of(case, seed):
            # A paraphrase may name a file twice, and none may leave a value out or bring in another one.
            found = set(values_in(wording.text)) if wording.kind == "paraphrase" else values_in(wording.text)
            assert found == (set(values) if wording.kind == "paraphrase" else values), (case.id, wording.key)


@pytest.mark.parametrize("seed", range(5))
def test_typos_spare_columns_names_and_days(seed: int) -> None:
    for case in CASES:
        typos = next(each for each in wordings_of(case, seed) if each.kind == "typos").text
        for name in case.keep:
            assert (name in case.request.text) == (name in typos), case.id
        for name in re.findall(r"(?<=[a-z] )[A-Z]\w+", case.request.text):
            assert name in typos, case.id


def test_typos_are_typos() -> None:
    for case in CASES:
        typos = next(each for each in wordings_of(case) if each.kind == "typos").text
        before, after = case.request.text.split(), typos.split()
        assert len(before) == len(after)
        assert 1 <= sum(one != other for one, other in zip(before, after, strict=True)) <= 2


def test_the_requests_are_in_no_other_evaluation_set_and_share_no_file_with_its_worlds() -> None:
    def plain(text: str) -> str:
        return " ".join(re.findall(r"\w+", text.lower()))

    others = {plain(each.text) for each in (*REQUESTS, *EVERYDAY, *load_requests())}
    own = {plain(wording.text) for case in CASES for wording in wordings_of(case)}
    assert not own & others
    assert not {path.rpartition("/")[2] for path in DATA.files()} & world_files()


def test_the_requests_are_in_no_training_data_and_no_prompt() -> None:
    root = Path(__file__).parents[2]
    prompts = [root / "src/bicameral/planning/examples.txt"]
    corpora = [path for path in (root / "training").rglob("*") if path.suffix in {".txt", ".jsonl", ".json", ".md"}]
    text = "\n".join(path.read_text(encoding="utf-8") for path in (*prompts, *corpora)).lower()
    for case in CASES:
        for wording in (case.request.text, *case.paraphrases):
            assert wording.lower().rstrip(".?") not in text, wording
    for name in ("repairs.csv", "spare_parts.csv", "door_log.txt", "hire_terms.txt", "farid.noor"):
        assert name not in text


@pytest.mark.parametrize("case", [case for case in CASES if case.request.obstacle is None], ids=lambda case: case.id)
async def test_every_request_can_be_served(case: Case) -> None:
    result = await run_reference_plan(case)
    assert result.right, result.why
    assert result.ending == "finished"


def scripted(case: Case, other: str = "", other_plan: str = "") -> Models:
    """Models that plan every wording alike, apart from the one whose words are `other`."""

    def reply(request: ModelRequest) -> str:
        asked = request.messages[-1].text
        return f"{other_plan if other and other in asked else case.request.plan}```"

    planner: Provider = ScriptedProvider(reply, name="planner", grammars=False)
    return Models(planner, perfect_reader(DATA))


async def run_all(case: Case, models: Models) -> list[Result]:
    return [await run_wording(case, each, models, deterministic=True) for each in wordings_of(case)]


@pytest.mark.parametrize("id", ["flyer-copy", "repairs-open", "event-add", "mail-short"])
async def test_wordings_with_the_same_plan_have_the_same_effects(id: str) -> None:
    case = case_called(id)
    results = await run_all(case, scripted(case))
    figures = summarise(results)
    assert figures["same_effects"] == figures["all_same"] == figures["right"] == 1.0
    assert figures["requests"] == 1
    assert figures["wordings"] == len(results) >= 10
    assert figures["same_wrong"] == 0.0
    assert figures["worst"] == []


async def test_a_wording_that_does_something_else_is_listed() -> None:
    case = case_called("repairs-open")
    odd = next(each for each in wordings_of(case) if each.key == "paraphrase-3")
    plan = 'rows = read_csv("repairs.csv")\nanswer(len(rows))\n'
    results = await run_all(case, scripted(case, odd.text, plan))
    figures = summarise(results)
    assert figures["same_effects"] == round((len(results) - 2) / (len(results) - 1), 4)
    assert figures["all_same"] == 0.0
    assert figures["by_kind"]["paraphrase"] == {"n": 4, "same_effects": 0.75, "right": 0.75}
    assert figures["by_kind"]["typos"]["same_effects"] == 1.0
    (worst,) = figures["worst"]
    assert worst["id"] == case.id
    assert worst["differing"] == {"paraphrase-3": "wrong"}


async def test_a_base_wording_that_is_wrong_makes_the_same_wrong() -> None:
    case = case_called("repairs-open")
    wrong = replace(case, request=replace(case.request, plan='rows = read_csv("repairs.csv")\nanswer(len(rows))\n'))
    results = await run_all(case, scripted(wrong))
    figures = summarise(results)
    assert (figures["same_effects"], figures["same_wrong"], figures["right"]) == (1.0, 1.0, 0.0)


async def test_a_mail_in_other_words_is_the_same_and_one_to_somebody_else_is_not() -> None:
    case = case_called("mail-total")
    plan = case.request.plan
    reworded = plan.replace("The total is {total}.", "Hello, it comes to {total} altogether.")
    other_number = plan.replace("{total}.", "{total + 1}.")
    base = Wording("base", "base", case.request.text)
    effects = [
        (await run_wording(case, base, Models(oracle_planner(each), perfect_reader(DATA)), deterministic=True)).effects
        for each in (plan, reworded, other_number)
    ]
    assert effects[0] == effects[1] != effects[2]


async def test_a_refusal_is_an_outcome_of_its_own() -> None:
    case = case_called("phone-call")
    base = Wording("base", "base", case.request.text)
    plan = 'send_mail(["noah.beck@example.com"], "Glove", "Your glove is here")\nanswer("Called him")\n'
    result = await run_wording(case, base, Models(oracle_planner(plan), perfect_reader(DATA)), deterministic=True)
    assert result.ending != "finished"
    assert json.loads(result.effects) == {"ending": result.ending}


def test_shards_take_each_wording_once_and_sum_up_to_the_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "robustness" in SHARDED
    whole = choose((), None, 17)
    parts = [choose((), Shard(number, 6), 17) for number in range(1, 7)]
    assert sorted((case.id, each.key) for part in parts for case, each in part) == sorted(
        (case.id, each.key) for case, each in whole
    )
    results = [
        Result(case.id, each.key, each.kind, each.text, "x" if n % 7 else "y", n % 3 > 0, "", "finished", n / 10, "")
        for n, (case, each) in enumerate(whole)
    ]
    files = [tmp_path / f"{number}.jsonl" for number in range(6)]
    for number, file in enumerate(files):
        file.write_text("".join(map(to_line, Shard(number + 1, 6).take(results))), encoding="utf-8")
    # Also in the order of its keys, so that the last lines of two runs can be compared as text.
    assert json.dumps(summarise(read_results(files[::-1]))) == json.dumps(summarise(results))
    main(["--model", "0.5b", "--sum-up", *map(str, files)])
    printed = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert printed["model"] == "0.5b"
    assert printed["requests"] >= 30
    assert printed["wordings"] >= 10
    assert 0 < printed["same_effects"] < 1
    assert printed["worst"]


def test_a_request_whose_base_was_not_run_is_left_out_and_counted() -> None:
    wordings = wordings_of(CASES[0])[1:]
    results = [Result(CASES[0].id, each.key, each.kind, each.text, "", True, "", "asked", 1, "") for each in wordings]
    figures = summarise(results)
    assert (figures["requests"], figures["without_base"], figures["same_effects"]) == (0, 1, None)


def test_an_unknown_request_is_refused() -> None:
    with pytest.raises(SystemExit, match="no such request: nothing"):
        choose(("nothing",), None, 17)
    assert parse_arguments(["--model", "0.5b", "--json"]).json
