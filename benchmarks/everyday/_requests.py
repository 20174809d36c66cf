"""All requests, and what each comes to in a world: the one place that knows the four languages."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from . import _english, _french, _german, _spanish
from ._folders import Content
from ._judge import Expected
from ._scenario import Draw, Language, Request, Scenario, World

SEED = 15
"""The seed of the published figures."""
REQUESTS: tuple[Request, ...] = (*_english.REQUESTS, *_german.REQUESTS, *_french.REQUESTS, *_spanish.REQUESTS)
LANGUAGES: tuple[Language, ...] = ("en", "de", "fr", "es")
_BUILDERS: dict[Language, Callable[[Scenario], None]] = {
    "en": _english.build,
    "de": _german.build,
    "fr": _french.build,
    "es": _spanish.build,
}


@cache
def build_scenario(language: Language, world: World, seed: int = SEED) -> Scenario:
    """The personal folder of a language in one of its two worlds, and the oracle of each request.

    Args:
        language: The language of folder and requests.
        world: Which of the two.
        seed: Decides all values that are drawn.
    """
    scenario = Scenario(language, world, Draw(seed, language, world))
    _BUILDERS[language](scenario)
    return scenario


def content_of(language: Language, world: World, seed: int = SEED) -> Content:
    """What the folder of a language holds in one of its two worlds."""
    return build_scenario(language, world, seed).content()


def expected_of(request: Request, world: World, seed: int = SEED) -> Expected:
    """What a request comes to in a world."""
    return build_scenario(request.language, world, seed).expected[request.id]
