"""Composed training data: requests with their plans from domains and operations, in four languages.

    python -m training.delta.compose 2000 --seed 1 > composed.txt

A domain is data (`data/LANGUAGE.toml`), a sentence is data (`data/frames_LANGUAGE.toml`), an operation is code.
"""

from .composition import (
    Composition as Composition,
    compose as compose,
    compose_blocks as compose_blocks,
    plan_skeleton as plan_skeleton,
)
from .domains import LANGUAGES as LANGUAGES
