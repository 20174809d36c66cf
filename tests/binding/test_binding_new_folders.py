"""A folder that files go into may be new: it has the user's own name, whatever folders somebody else creates."""

from __future__ import annotations

from pathlib import Path

import pytest
from binding_world import BindingWorld

from bicameral.binding import Binder, PlanBinder, WorldSource, binding_doubts
from bicameral.plans import parse
from bicameral.tools import Registry, tool

COPY = 'for f in list_files(folder=folder("own")):\n    copy_file(f.path, folder("{}"))\nanswer("copied")\n'


@pytest.fixture
def world(tmp_path: Path) -> BindingWorld:
    return BindingWorld(tmp_path, own__a="x\n1\n", own__b="x\n2\n")


async def test_a_new_folder_has_the_users_name_and_says_that_it_is_created(world: BindingWorld) -> None:
    bound = await world.bind(COPY.format("backup"))
    new = bound.bindings[-1]
    assert (new.words, new.value, new.how, new.label.trusted) == ("backup", "backup/", "new", True)
    assert [doubt.text for doubt in binding_doubts([new])] == ["there is no folder backup; it is created"]
    await world.run(bound)
    assert sorted(path.name for path in (world.folder / "backup").iterdir()) == ["a.csv", "b.csv"]


async def test_a_folder_that_is_there_is_taken(world: BindingWorld) -> None:
    (world.folder / "backup").mkdir()
    found = (await world.bind(COPY.format("backup"))).bindings[-1]
    assert (found.value, found.how) == ("backup", "exact")


@pytest.mark.parametrize("there", ["bakcup", "back-up"])
async def test_a_folder_of_a_similar_name_is_asked_about(world: BindingWorld, there: str) -> None:
    (world.folder / there).mkdir()
    bound = await world.bind(COPY.format("backup"))
    assert [(question.words, question.note) for question in bound.questions] == [("backup", f"There is {there}.")]


@pytest.mark.parametrize("words", ["../outside", "/etc", ".ssh", "last year", "a/b", "a\nb", "report.csv"])
async def test_what_is_no_plain_name_is_never_created(world: BindingWorld, words: str) -> None:
    bound = await world.bind(COPY.format(words.replace("\n", "\\n")))
    assert [question.words for question in bound.questions] == [words]


async def test_a_folder_that_is_only_read_is_never_new(world: BindingWorld) -> None:
    bound = await world.bind('answer(list_files(folder=folder("backup")))\n')
    assert [question.words for question in bound.questions] == ["backup"]


@tool(effect="irreversible", refers={"folder": "folder"})
def delete_folder(folder: str) -> None:
    """Delete a folder."""


async def test_a_folder_that_is_deleted_is_never_new(world: BindingWorld) -> None:
    registry = Registry([*world.registry, delete_folder])
    binder = PlanBinder(registry, Binder(WorldSource(registry)))
    bound = await binder.bind(parse('delete_folder(folder("backup"))\nanswer("deleted")\n', registry).plan)
    assert [question.words for question in bound.questions] == ["backup"]
