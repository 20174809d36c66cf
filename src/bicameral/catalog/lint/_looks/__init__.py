"""Checks that need more than a condition: each looks at one section of a stack. Rules name them by their function."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from .._rules import Check
from .._scope import Scope
from .._trouble import Trouble
from ._actions import gates, lowered_gates, watched_actions
from ._agents import own_policies, owned_agents, worker_bounds
from ._knobs import knobs_in_bounds, known_knobs, separate_surfaces
from ._loops import caps_per_layer, loops_have_caps, loops_have_v9
from ._orders import envelope_first, humanizer_order, pipeline
from ._prompts import (
    breakpoint_set,
    dynamic_examples_last,
    long_instructions,
    nothing_varies,
    setup_in_one_block,
    stable_first,
    user_text_after_shared,
)
from ._sessions import authors_judge, judges_share_model
from ._stores import curators, erasers, personal_stores, separate_stores
from ._tools import guards_at, guards_before_output, measured_schemas, three_legs

Look: TypeAlias = Callable[[Scope, Check], Iterator[Trouble]]

LOOKS: Mapping[str, Look] = {
    "authors_judge": authors_judge,
    "breakpoint": breakpoint_set,
    "caps_per_layer": caps_per_layer,
    "curators": curators,
    "dynamic_examples_last": dynamic_examples_last,
    "envelope_first": envelope_first,
    "erasers": erasers,
    "gates": gates,
    "guards_at": guards_at,
    "guards_before_output": guards_before_output,
    "humanizer_order": humanizer_order,
    "judges_share_model": judges_share_model,
    "knobs_in_bounds": knobs_in_bounds,
    "known_knobs": known_knobs,
    "long_instructions": long_instructions,
    "loops_have_caps": loops_have_caps,
    "loops_have_v9": loops_have_v9,
    "lowered_gates": lowered_gates,
    "measured_schemas": measured_schemas,
    "nothing_varies": nothing_varies,
    "own_policies": own_policies,
    "owned_agents": owned_agents,
    "personal_stores": personal_stores,
    "pipeline": pipeline,
    "separate_stores": separate_stores,
    "separate_surfaces": separate_surfaces,
    "setup_in_one_block": setup_in_one_block,
    "stable_first": stable_first,
    "three_legs": three_legs,
    "user_text_after_shared": user_text_after_shared,
    "watched_actions": watched_actions,
    "worker_bounds": worker_bounds,
}
