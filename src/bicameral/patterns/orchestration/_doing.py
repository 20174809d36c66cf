"""Whoever can be given a piece of work: a participant that is asked once, or a whole pattern."""

from __future__ import annotations

from typing import Any

from ..kernel import Labelled, Pattern, Role, Stage

Doer = Role | Pattern[[Labelled[str]], Any]


async def done_by(stage: Stage, doer: Doer, words: Labelled[str]) -> Labelled[Any]:
    """What comes of these words, and of nothing else."""
    if isinstance(doer, Role):
        return await stage.ask(doer, words)
    return await doer.on(stage, words)
