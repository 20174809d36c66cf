"""The suites' environments with injections in them, quickly: reading their YAML anew would take most of a benchmark.

The suite's own injection vectors are filled, as the suite fills them; only the text is put in after the YAML is read
and not before, so that no injection can break it.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any, cast

import yaml

from .dojo import environment_text, suite_of


@cache
def vectors(suite: str) -> Mapping[str, str]:
    """The injection vectors of a suite with their harmless texts."""
    defaults = suite_of(suite).get_injection_vector_defaults()
    # The suite pastes these into quoted YAML, where they may hold escapes.
    return {name: str(yaml.safe_load(f'"{text}"') or "") for name, text in defaults.items()}


def environment(suite: str, injections: Mapping[str, str]) -> Any:
    """A fresh environment with these texts at the injection vectors, the harmless ones at all others."""
    return pickle.loads(_pickled(suite, tuple(sorted(injections.items()))))


@lru_cache(256)
def _pickled(suite: str, injections: tuple[tuple[str, str], ...]) -> bytes:
    texts = {_mark(name): text for name, text in {**vectors(suite), **dict(injections)}.items()}
    made = suite_of(suite).environment_type.model_validate(_replaced(_marked(suite), texts))
    return pickle.dumps(made)


@cache
def _marked(suite: str) -> Any:
    """The environment as YAML gives it, with a mark at each vector."""
    return yaml.safe_load(environment_text(suite).format(**{name: _mark(name) for name in vectors(suite)}))


def _mark(name: str) -> str:
    return f"<<{name}>>"


def _replaced(value: Any, texts: Mapping[str, str]) -> Any:
    match value:
        case str():
            for mark, text in texts.items():
                value = value.replace(mark, text)
            return value
        case list():
            return [_replaced(item, texts) for item in cast("list[Any]", value)]
        case dict():
            entries = cast("dict[Any, Any]", value).items()
            return {_replaced(key, texts): _replaced(item, texts) for key, item in entries}
        case _:
            return value
