"""Citations on the command line: after the answer for a person, and in JSON for a program."""

from __future__ import annotations

import pytest

from bicameral.cli._output import Output
from bicameral.cli._render import outcome_json, say_citations
from bicameral.labels import Label, Source
from bicameral.runs import Citation, Finished

OWN = Label({Source("user", "request")})
CITED = Citation("4711", "house.md, line 5", "The garage code is 4711.", "note", "house.md", 5, label=OWN)


def test_json_has_the_citations_of_an_answer_and_nothing_where_there_are_none() -> None:
    (cited,) = outcome_json(Finished("r1", "4711", 0.1, citations=(CITED,)))["citations"]
    assert {name: cited[name] for name in ("fact", "where", "quote", "source", "line", "check")} == {
        "fact": "4711",
        "where": "house.md, line 5",
        "quote": "The garage code is 4711.",
        "source": "house.md",
        "line": 5,
        "check": "verbatim",
    }
    assert "citations" not in outcome_json(Finished("r1", "4711", 0.1))


def test_a_person_is_told_the_place_with_its_words(capsys: pytest.CaptureFixture[str]) -> None:
    say_citations(Output(), [CITED])
    told = capsys.readouterr()
    assert "source: 4711: house.md, line 5: “The garage code is 4711.”" in told.out + told.err
