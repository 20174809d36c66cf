"""Quoted text of a request is copied into its plan to the letter, by code where the model does not."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from bicameral.models import ScriptedProvider
from bicameral.planning import Delta, understand
from bicameral.plans import print_plan
from bicameral.tools import Folders, Registry, Surroundings, load_toolboxes

STANDARD = ("files", "lines", "tables", "mail", "calendar", "web", "clock")
TODAY = dt.date(2026, 3, 10)


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    folders = Folders(tmp_path, (tmp_path,), (tmp_path,))
    return load_toolboxes({name: {} for name in STANDARD}, Surroundings(folders))


async def planned(request: str, plan: str, registry: Registry) -> str:
    delta = Delta(ScriptedProvider([f"{plan}```"] * 3, name="scripted", grammars=False), cache={})
    compiled = await delta.compile(understand(request, registry, TODAY), registry)
    return print_plan(compiled.plan.model_copy(update={"goal": ""}), registry)


@pytest.mark.parametrize(
    ("request_", "written", "restored"),
    [
        ('Mail kim@example.com: "The train is at 9:40 now."', "The train is at 9:40.", "The train is at 9:40 now."),
        ('Mail kim@example.com: "Bus at 7:10 tonight."', "Bus at 7:10.", "Bus at 7:10 tonight."),
        ('Mail kim@example.com "I bring Salad, bread"', "I bring salad, bread", "I bring Salad, bread"),
        ('Maile kim@example.com: „Der Zug fährt um 9:40 Uhr."', "Der Zug fährt um 9:40", "Der Zug fährt um 9:40 Uhr."),
        ("Écris à kim@example.com : « Le train part à 9 h 40 »", "Le train part à 9 h", "Le train part à 9 h 40"),
    ],
)
async def test_a_quotation_is_copied_to_the_letter(
    request_: str, written: str, restored: str, registry: Registry
) -> None:
    plan = f'send_mail(["kim@example.com"], "News", "{written}")\nanswer("Sent the mail")\n'
    code = await planned(request_, plan, registry)
    assert f'"{restored}"' in code
    assert f'"{written}"' not in code


async def test_a_quotation_in_a_longer_text_stays(registry: Registry) -> None:
    plan = 'send_mail(["kim@example.com"], "News", "Hello Kim. I am late today. Bye.")\nanswer("Sent the mail")\n'
    assert "Hello Kim. I am late today. Bye." in await planned(
        'Greet kim@example.com by mail and say "I am late today."', plan, registry
    )


async def test_one_of_two_quotations_does_not_become_the_other(registry: Registry) -> None:
    request = 'Mail kim@example.com with the subject "Room of Monday" and the text "Room of Tuesday"'
    plan = 'send_mail(["kim@example.com"], "Room of Monday", "Room of Monday")\nanswer("Sent the mail")\n'
    assert '"Room of Monday", "Room of Monday"' in await planned(request, plan, registry)


async def test_another_text_is_no_quotation(registry: Registry) -> None:
    request = 'Write "Room of Monday" to a.txt'
    plan = 'write_text("a.txt", "Nothing of it at all")\nanswer("Wrote a.txt")\n'
    assert '"Nothing of it at all"' in await planned(request, plan, registry)
