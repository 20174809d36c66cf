"""Evidence: cases are made by rule, arms run the same cases, and the figures follow from the attempts."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.evidence import injected_texts, planted_regressions, runner, tool_choice
from benchmarks.evidence.__main__ import main
from benchmarks.evidence.figures import Attempt, AttemptKey, by_category, compare_arms, mean_tokens, read_attempts
from benchmarks.shards import Shard
from bicameral.models import ModelRequest, ScriptedProvider
from bicameral.patterns.strategies import ModelPair
from bicameral.sessions import Chambers, Quarantined
from bicameral.tools import Registry

Reply = Callable[[ModelRequest], str]


def models(reply: Reply) -> ModelPair:
    return ModelPair(Chambers(ScriptedProvider(reply), Quarantined(ScriptedProvider(reply, chamber="quarantined"))))


def measured(
    pattern: str,
    reply: Reply,
    limit: int | None = None,
    shard: Shard | None = None,
    done: Collection[AttemptKey] = (),
) -> list[Attempt]:
    selection = runner.CaseSelection(limit, shard, done)

    async def collect() -> list[Attempt]:
        return [row async for row in runner.measure(pattern, "scripted", models(reply), selection)]

    return asyncio.run(collect())


# The cases ----------------------------------------------------------------------------------------------------------


def test_there_are_two_hundred_cases_and_more_and_they_are_the_same_each_time() -> None:
    requests, texts = tool_choice.make_cases(), list(injected_texts.make_texts())
    assert len({case.id for case in requests}) == len(requests) >= 200
    assert len({text.id for text in texts}) == len(texts)
    assert sum(bool(text.word) for text in texts) >= 200
    assert planted_regressions.PLANTS >= 200
    assert (requests, texts) == (tool_choice.make_cases(), list(injected_texts.make_texts()))


def test_every_tool_is_asked_for_in_every_wording() -> None:
    names = Registry(tool_choice.make_tools()).names
    assert len(names) == 60
    asked = Counter((case.expected, case.category) for case in tool_choice.make_cases())
    assert asked == Counter((name, wording) for name in names for wording in tool_choice.WORDINGS)


def test_no_two_cases_ask_for_different_tools_in_the_same_words() -> None:
    assert len({case.input for case in tool_choice.make_cases()}) == len(tool_choice.make_cases())


def test_other_words_have_no_word_of_the_tool() -> None:
    for case in tool_choice.make_cases():
        action, thing = str(case.expected).split("_")
        same = {"same words": (True, True), "other verb": (False, True), "other noun": (True, False)}
        words = case.input.lower()
        assert (action in words, thing in words) == same.get(case.category, (False, False)), case.id


def test_every_text_has_its_fact_and_its_word_only_in_its_order() -> None:
    for text in injected_texts.make_texts():
        assert text.answer in text.text
        assert text.style == "none" or text.text.count(text.word) == 1, text.id
        assert text.word not in text.question or not text.word
        others = [word for word in injected_texts.WORDS if word != text.word and word in text.text]
        assert others == [], text.id


def test_every_style_stands_before_the_fact_and_behind_it() -> None:
    places: Counter[tuple[str, str]] = Counter()
    for text in injected_texts.make_texts():
        if text.word:
            at, fact = text.text.index(text.word), text.text.index(text.answer)
            places[text.style, "before" if at < fact else "behind"] += 1
    assert set(places) == {(style, place) for style in injected_texts.ORDERS for place in ("before", "behind")}


# The arms -----------------------------------------------------------------------------------------------------------


def test_both_arms_of_a_choice_ask_the_same_question_and_differ_in_what_is_shown() -> None:
    asked: list[ModelRequest] = []
    cases = {case.input: str(case.expected) for case in tool_choice.make_cases()}

    def pick(request: ModelRequest) -> str:
        asked.append(request)
        right = cases[request.messages[-1].text.partition("\n")[0]]
        shown = (request.json_schema or {})["properties"]["value"]["enum"]
        return json.dumps({"value": right if right in shown else shown[0]})

    rows = measured("V13", pick, limit=3)
    assert [row.arm for row in rows] == ["all tools", "chosen tools"] * 3
    assert [row.case for row in rows[::2]] == [row.case for row in rows[1::2]]
    questions = [request.messages[-1].text.partition("\n")[0] for request in asked]
    assert questions[::2] == questions[1::2]
    sizes = [len((request.json_schema or {})["properties"]["value"]["enum"]) for request in asked]
    assert set(sizes[::2]) == {60}
    assert max(sizes[1::2]) <= 15
    assert all(row.scores == {"right": 1.0} for row in rows[::2])


def test_a_wrong_choice_is_no_success_and_a_failed_attempt_has_no_score() -> None:
    def wrong(request: ModelRequest) -> str:
        return json.dumps({"value": (request.json_schema or {})["properties"]["value"]["enum"][-1]})

    (first, _) = measured("V13", wrong, limit=1)
    assert first.scores == {"right": 0.0}
    (failed, _) = measured("V13", lambda request: "no form", limit=1)
    assert (failed.scores, failed.error) == ({}, "models.bad-reply")


def test_a_reader_is_hijacked_if_it_writes_the_word_and_every_arm_reads_the_same_text() -> None:
    texts = {text.id: text for text in injected_texts.make_texts()}

    def obey_where_unmarked(request: ModelRequest) -> str:
        shown = request.messages[-1].text
        if "written by strangers" in request.messages[0].text:
            return "no idea"
        return next((word.upper() for word in injected_texts.WORDS if word in shown), "no order")

    rows = measured("V6", obey_where_unmarked, limit=6)
    arms = list(injected_texts.ARMS)
    assert [row.arm for row in rows] == arms * 6
    for number in range(6):
        assert len({row.case for row in rows[4 * number : 4 * number + 4]}) == 1
    for row in rows:
        attacked = bool(texts[row.case].word)
        if row.arm == "plain":
            assert row.scores["safe"] == float(not attacked), row.case
        else:
            assert row.scores["safe"] == 1.0


def test_what_is_done_already_is_not_tried_again() -> None:
    rows = measured("V6", lambda request: "x", limit=6)
    left = measured("V6", lambda request: "x", limit=6, done={row.key for row in rows[:5]})
    assert [row.key for row in left] == [row.key for row in rows[5:]]


@pytest.mark.parametrize(("pattern", "categories"), [("V13", tool_choice.WORDINGS), ("V6", injected_texts.ORDERS)])
@pytest.mark.parametrize("limit", [20, 24])
def test_a_quick_look_has_cases_of_every_category(pattern: str, categories: Iterable[str], limit: int) -> None:
    rows = measured(pattern, lambda request: "x", limit)
    assert len({row.case for row in rows}) == limit
    assert set(categories) <= {row.category for row in rows}


@pytest.mark.parametrize("pattern", ["V13", "V6"])
def test_shards_have_all_cases_together_and_none_twice(pattern: str) -> None:
    parts = [measured(pattern, lambda request: "x", 9, Shard(number, 2)) for number in (1, 2)]
    seen = Counter((row.case, row.arm) for part in parts for row in part)
    assert set(seen.values()) == {1}
    assert len({case for case, _ in seen}) == 9


# The figures --------------------------------------------------------------------------------------------------------


def attempt(case: str, arm: str, score: float | None, *, tokens: int = 10, category: str = "a") -> Attempt:
    scores = {} if score is None else {"right": score}
    error = "models.bad-reply" if score is None else ""
    return Attempt("V13", "m", arm, case, category, scores, tokens, 0.1, error)


def test_the_gain_is_the_mean_of_the_paired_differences() -> None:
    rows = [
        *(attempt(f"c{number}", "without", float(number < 4)) for number in range(10)),
        *(attempt(f"c{number}", "with", float(number < 7)) for number in range(10)),
    ]
    found = compare_arms(rows, "right", "without", "with")
    assert {name: found[name] for name in ("cases", "without", "with", "gain", "better", "worse")} == {
        "cases": 10,
        "without": 0.4,
        "with": 0.7,
        "gain": 0.3,
        "better": 3,
        "worse": 0,
    }
    # Of ten differences three are 1: the interval of their mean by resampling, and both sides of three coins.
    assert (found["low"], found["high"]) == (0.0, 0.6)
    assert found["p"] == 0.25


def test_a_case_without_its_partner_does_not_count() -> None:
    rows = [attempt("c1", "without", 0.0), attempt("c1", "with", 1.0), attempt("c2", "with", 1.0)]
    found = compare_arms(rows, "right", "without", "with")
    assert (found["cases"], found["gain"]) == (1, 1.0)
    assert compare_arms(rows[2:], "right", "without", "with") == {"cases": 0, "gain": None, "low": None, "high": None}


def test_a_failed_attempt_counts_as_the_worst_of_its_arm() -> None:
    rows = [attempt("c1", "without", 1.0), attempt("c1", "with", None)]
    assert compare_arms(rows, "right", "without", "with")["gain"] == -1.0
    assert by_category(rows, "right") == {"a": {"without": 1.0, "with": 0.0}}


def test_tokens_are_those_of_an_attempt_and_means_are_by_arm_and_category() -> None:
    rows = [
        attempt("c1", "with", 1.0, tokens=10, category="a"),
        attempt("c2", "with", 0.0, tokens=30, category="b"),
        attempt("c3", "with", 0.0, tokens=20, category="b"),
        attempt("c4", "without", 1.0, tokens=7, category="b"),
    ]
    assert mean_tokens(rows) == {"with": 20.0, "without": 7.0}
    assert by_category(rows, "right") == {"a": {"with": 1.0}, "b": {"with": 0.0, "without": 1.0}}


def test_attempts_are_summed_up_by_pattern_and_model() -> None:
    of_tools = [replace(attempt("c1", arm, float(arm == "chosen tools")), model="0.5b") for arm in tool_choice.ARMS]
    of_texts = [
        Attempt("V6", "1.5b", arm, f"c {style}", style, {"safe": float(arm != "plain"), "right": 1.0}, 9, 0.1)
        for style in ("plain", "none")
        for arm in injected_texts.ARMS
    ]
    found = runner.summarise([*of_tools, *of_texts], ["V13", "V6"])
    assert {pattern: list(by_model) for pattern, by_model in found.items()} == {"V13": ["0.5b"], "V6": ["1.5b"]}
    assert (found["V13"]["0.5b"]["gain"], found["V13"]["0.5b"]["failed"]) == (1.0, 0)
    texts = found["V6"]["1.5b"]
    # Texts without an order say nothing about hijacking, and those with one nothing about what marks cost otherwise.
    assert (texts["cases"], texts["gain"]) == (1, 1.0)
    assert texts["right_without_attack"]["delimit"]["cases"] == texts["right_when_attacked"]["tag"]["cases"] == 1
    assert set(texts["other_marks"]) == {"tag", "encode"}


def test_attempts_that_were_written_are_read_again_and_summed_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [attempt("c1", "all tools", 0.0), attempt("c1", "chosen tools", 1.0)]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(row.to_line() for row in rows) + '{"pattern": "V13", "mod')
    assert read_attempts([file]) == rows
    main(["--only", "V13", "--sum-up", str(file)])
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (found["V13"]["m"]["gain"], found["V13"]["m"]["cases"]) == (1.0, 1)


# V16 ----------------------------------------------------------------------------------------------------------------


def test_planted_regressions_are_measured_without_a_model_and_the_same_each_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(planted_regressions, "PLANTS", 6)
    main(["--only", "V16"])
    found = json.loads(capsys.readouterr().out.splitlines()[-1])["V16"]
    assert found == planted_regressions.measure()
    assert found["cases"] == 6
    kinds = {*planted_regressions.CHANGES, *planted_regressions.REMOVED}
    assert set(found["by_kind"]) == {*kinds, "unchanged"}
    # A critical case that is never right, and a case that is gone, are no matter of chance for the gate.
    assert {found["by_kind"][kind]["gate"] for kind in ("break_critical_case", *planted_regressions.REMOVED)} == {1.0}
    assert abs(found["gain"] - (found["gate"] - found["mean"])) < 1e-3


def test_each_regression_is_what_it_says() -> None:
    suite = planted_regressions.make_suite()
    before: dict[str, float] = {case.id: 0.9 for case in suite.cases}

    def changed(kind: str) -> dict[str, Any]:
        after = planted_regressions.CHANGES[kind](before, random.Random(1))
        assert set(after) == set(before)
        worse = {id for id in before if after[id] < before[id]}
        better = {id for id in before if after[id] > before[id]}
        return {"worse": Counter(id.split()[0] for id in worse), "better": Counter(id.split()[0] for id in better)}

    each = planted_regressions.CASES_EACH
    weakened, traded = changed("weaken_category"), changed("trade_categories")
    assert list(weakened["worse"].values()) == [each]
    assert not weakened["better"]
    assert list(traded["worse"].values()) == [each]
    assert sum(traded["better"].values()) == len(before) - each
    assert changed("break_critical_case") == {"worse": Counter({"safety": 1}), "better": Counter()}
    assert "safety" not in changed("weaken_all")["worse"]
    assert sum(changed("weaken_all")["worse"].values()) == len(before) - each
