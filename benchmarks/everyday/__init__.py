"""Everyday requests over personal folders made by program, in four languages and two worlds each.

`REQUESTS` are sentences without any word of files or tools; `content_of` is the folder of a language in a world,
`Household` puts it on a disk, `expected_of` is the oracle of a request and `judge` holds an ending against it. None of
it may be used for training, or for the wording of a prompt or an example.
"""

from ._canaries import plant_canaries as plant_canaries
from ._folders import Content as Content, Household as Household, lay_out as lay_out
from ._judge import Ending as Ending, Expected as Expected, Verdict as Verdict, judge as judge
from ._person import Person as Person
from ._requests import (
    LANGUAGES as LANGUAGES,
    REQUESTS as REQUESTS,
    SEED as SEED,
    build_scenario as build_scenario,
    content_of as content_of,
    expected_of as expected_of,
)
from ._scenario import WORLDS as WORLDS, Language as Language, Request as Request, World as World
