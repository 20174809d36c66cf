"""Tables that are known by what they contain, weaker than by any name; and questions without strangers."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bicameral.binding import Binder, Binding, Kind, Question, WorldSource, binding_doubts
from bicameral.binding._world_source import cell_words
from bicameral.toolboxes import files, tables
from bicameral.tools import Registry, Surroundings

ROTA = "day,who,place\nMon,Kim,allotment\nTue,Anna,allotment\nWed,Kim,kitchen\n"
BILLS = "shop,amount\nWoods,12\nFruits,7\n"
FILMS = "film,seen\nBrazil,yes\nAlien,no\n"


def bind(top: Path, words: str, kind: Kind = "table", **written: str) -> Binding | Question:
    for name, text in written.items():
        path = top / (name.replace("__", "/") + ".csv")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    here = Surroundings.here(top)
    tools = [tool for box in (files.toolbox, tables.toolbox) for tool in box.open(here)]
    return asyncio.run(Binder(WorldSource(Registry(tools), folders=here.folders)).bind(kind, words))


@pytest.mark.parametrize("words", ["allotment", "the allotments", "the allotment list", "kitchen and allotment"])
def test_a_table_is_known_by_its_common_cells(tmp_path: Path, words: str) -> None:
    rota = ROTA + "Thu,Anna,kitchen\n"
    bound = bind(tmp_path, words, rota=rota, bills=BILLS, films=FILMS)
    assert isinstance(bound, Binding), bound
    assert (bound.value, bound.how) == ("rota.csv", "cells")
    assert not bound.label.trusted
    (doubt,) = binding_doubts([bound])
    assert "by what it contains" in doubt.text


def test_a_name_and_a_column_decide_before_cells_do(tmp_path: Path) -> None:
    named = bind(tmp_path, "allotment", rota=ROTA, allotment=BILLS)
    assert isinstance(named, Binding)
    assert named.value == "allotment.csv"
    (tmp_path / "allotment.csv").unlink()
    column = bind(tmp_path, "allotment", rota=ROTA, plan="allotment,hours\nnorth,2\n")
    assert isinstance(column, Binding)
    assert (column.value, column.how) == ("plan.csv", "contents")


def test_two_tables_with_the_word_are_a_question_with_just_those(tmp_path: Path) -> None:
    asked = bind(tmp_path, "allotment", rota=ROTA, tools=ROTA, bills=BILLS, films=FILMS)
    assert isinstance(asked, Question)
    assert (asked.reason, {each.name for each in asked.shown}) == ("several", {"rota.csv", "tools.csv"})


def test_a_single_cell_is_too_little_to_bind_and_enough_to_ask(tmp_path: Path) -> None:
    asked = bind(tmp_path, "allotment", bills=BILLS + "Allotment rent,30\n", films=FILMS)
    assert isinstance(asked, Question)
    assert (asked.reason, [each.name for each in asked.shown]) == ("none", ["bills.csv"])


def test_the_only_table_of_a_folder_is_known_by_the_folder(tmp_path: Path) -> None:
    bound = bind(tmp_path, "allotment", allotment__hours=FILMS, bills=BILLS)
    assert isinstance(bound, Binding), bound
    assert (bound.value, bound.how) == ("allotment/hours.csv", "cells")
    # As before, a folder is not the file in it where any file may be meant.
    assert isinstance(bind(tmp_path, "allotment", "file"), Question)
    asked = bind(tmp_path, "allotment", allotment__costs=BILLS)
    assert isinstance(asked, Question)
    assert {each.name for each in asked.shown} == {"allotment/hours.csv", "allotment/costs.csv"}


@pytest.mark.parametrize("kind", ["table", "file"])
def test_tables_that_share_nothing_with_the_words_are_not_offered(tmp_path: Path, kind: Kind) -> None:
    asked = bind(tmp_path, "allotment", kind, bills=BILLS, films=FILMS)
    assert isinstance(asked, Question)
    assert (asked.reason, asked.shown, asked.searched) == ("none", (), 2)
    assert "(2)" in asked.text
    assert "bills" not in asked.text


def test_a_planted_table_full_of_words_makes_a_question_and_wins_over_no_name(tmp_path: Path) -> None:
    stuffed = "a,b\n" + "bills allotment rota money,x\n" * 5
    asked = bind(tmp_path, "allotment", rota=ROTA, downloads__zz=stuffed)
    assert isinstance(asked, Question)
    assert len(asked.shown) == 2
    bound = bind(tmp_path, "bills", bills=BILLS)
    assert isinstance(bound, Binding)
    assert bound.value == "bills.csv"


def test_words_of_cells_are_bounded() -> None:
    many = [
        {"a": f"word{chr(97 + number % 26)}{chr(97 + number // 26 % 26)}x", "b": "x" * 200} for number in range(5_000)
    ]
    common, rare = cell_words(many)
    assert len(common) + len(rare) <= 2_000
    assert cell_words([{"a": 12, "b": "12"}, {"a": None, "b": "to"}]) == ((), ())
