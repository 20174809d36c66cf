"""For every rule but the requirements: a stack that breaks it, and one near it that does not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lint_conflicts import CONFLICTS
from lint_making import (
    CAPPED,
    EACH,
    FIXED,
    SAFE,
    USERS,
    Case,
    Described,
    both,
    declared,
    hold,
    needed,
    of,
    part,
    so,
)

from bicameral.catalog import catalog

LAWS: list[Case] = [
    needed("LAW1", "V9 S1", "V14"),
    (
        "LAW2",
        of("S1", actions={"pay": {"reversible": False}}),
        of("V1", actions={"pay": {"reversible": False, "gate": "V1"}}),
    ),
    (
        "LAW2",
        of("V1", actions={"pay": {"reversible": False, "gate": "none"}}),
        of("V1", actions={"pay": SAFE | {"gate": "none"}}),
    ),
    needed("LAW3", "S1", "V5", external_input=True),
    needed("LAW3", "S1", "V5", external_input=True),
    ("LAW4", of("O6", "O4", "O17", "V9"), of("O6", "O4", "O17", "V9", "V14", "R4")),
    needed("LAW4", "O6 O4 O17 V9 V14 R4", "O18", shared_prefix_tokens=2000),
    needed("LAW4", "O6 O4 O17 V9 V14", "R4"),
    needed("LAW5", "V5 V9 V14", "V16", production=True),
    needed("LAW6", "S9", "V7", safety_critical=True),
    needed("LAW7", "R8", "V9"),
    ("LAW7", of("S1", loops={"main": CAPPED}), of("V9", loops={"main": CAPPED})),
    needed("LAW8", "H4 K10", "H1"),
    needed("LAW8", "H4 H1", "K11"),
    declared("LAW9", "O6", "measured_gaps"),
    hold("LAW10", "H5", {"unreviewed_changes": False}, {"unreviewed_changes": True}),
]

ANTI_PATTERNS: list[Case] = [
    needed("A1", "S1", "S4", duties=4),
    ("A1", of("S1", prompt=[part("S1", FIXED, tokens=4001)]), of("S1", prompt=[part("S1", FIXED, tokens=4000)])),
    hold("A2", "O8", {"steps_known": False}, {"steps_known": True}),
    ("A3", of("V9", loops={"main": {"steps": 8, "exit": "done"}}), of("V9", loops={"main": CAPPED})),
    ("A3", of("O16", loops={"main": CAPPED}), of("O16", loops={"inner": CAPPED, "outer": CAPPED})),
    (
        "A4",
        of("S1", agents={"a": of("S1", owner="ops"), "b": of("S1")}),
        of("S1", agents={"a": of("S1", owner="ops"), "b": of("S1", owner="ops")}),
    ),
    ("A5", of("V5", guards=["output"]), of("V5", guards=["input", "output"])),
    needed("A6", "S1", "V15", production=True),
    needed("A7", "R4", "K7", keeps_tool_results=True),
    needed("A8", "S1", "O4", serial_independent_steps=True),
    hold("A9", "S1", {"hidden_state": False}, {"hidden_state": True}),
    hold("A10", "S1", {"swallows_errors": False}, {"swallows_errors": True}),
    hold("A11", "S1", {"control_flow": "own"}, {"control_flow": "framework"}),
    ("A12", of("S1", tools={"count": 11, "schema_tokens": 9}), of("S1", tools={"count": 10, "schema_tokens": 9})),
    ("A12", of("V13", tools={"count": 41, "schema_tokens": 9}), of("V13", tools={"count": 40, "schema_tokens": 9})),
    ("A12", of("V13", tools={"count": 11}), of("V13", tools={"count": 11, "schema_tokens": 900})),
    hold("A13", "V18", {"evaluation_data": "real"}, {"evaluation_data": "clean"}),
    hold("A14", "O15", {"agent_output_instructs": False}, {"agent_output_instructs": True}),
    needed("A15", "S1", "V14"),
    hold("HA1", "S3", {"feeling_words": False}, {"feeling_words": True}),
    needed("HA2", "H10", "V5"),
    ("HA2", of("H10", "V5", guards=["write", "output"]), of("H10", "V5", guards=["write", "read", "output"])),
    needed("HA3", "H7", "H1"),
    hold("HA3", "H10 H1", {"identity_guard_in_code": True}, {"identity_guard_in_code": False}),
    needed("HA4", "H5 V1", "V7"),
    hold("HA4", "H5 V1 V7", {"principle_reviewer": "person"}, {"principle_reviewer": "model"}),
    hold("HA5", "H9", {"selfmodel_decays": True}, {"selfmodel_decays": False}),
    ("IA1", of("I3", tools={"count": 3}), of("I3", tools={"count": 3, "servers": {"mail": 700, "files": 300}})),
    hold("IA2", "I4", {"shell_strings": False}, {"shell_strings": True}),
    (
        "IA3",
        of("I2", {"V13": {"max_tools": 5}}, tools={"count": 6}),
        of("I2", {"V13": {"max_tools": 6}}, tools={"count": 6}),
    ),
    needed("IA4", "I6", "I5"),
    hold("IA4", "I6 I5", {"card_verified": True}, {"card_verified": False}),
    needed("IA5", "I6 V14", "V9"),
    hold("IA5", "I6 V14 V9", {"delegation_followed": True}, {"delegation_followed": False}),
    hold("NA1", "O6", {"workers_see_transcript": False}, {"workers_see_transcript": True}),
    (
        "NA2",
        of("V2", actions={"tag": SAFE | {"gate": "V2", "was": "V1"}}),
        of("V2", actions={"tag": SAFE | {"gate": "V2", "was": "V1", "review": "minutes of 2 May"}}),
    ),
    needed("NA3", "S9", "V7", safety_critical=True),
    (
        "NA4",
        of("V7", "V4", sessions={"p": {"policy": "all"}, "q": {"policy": "all", "quarantined": True}}),
        of("V7", "V4", sessions={"p": {"policy": "all"}, "q": {"policy": "all", "quarantined": True, "tools": []}}),
    ),
    hold("NA5", "H8", {"limits_in_code": True}, {"limits_in_code": False}),
    hold("NA6", "V16 V17", {"live_judge": "apart"}, {"live_judge": "shared"}),
    (
        "NA7",
        of("H2", stores={"lessons": {"pattern": "H2", "writers": ["agent"]}}),
        of("H2", stores={"lessons": {"pattern": "H2", "readers": ["agent"], "writers": ["curator"]}}),
    ),
    hold("NA8", "H6", {"narrative": "replaced"}, {"narrative": "appended"}),
    hold("NA9", "H2", {"provisional_expires": True}, {"provisional_expires": False}),
    both("NA10", "R7", "O5", "artefact"),
    needed("NA11", "S3", "S5", persona_claims_authority=True),
]

CACHE_RULES: list[Case] = [
    (
        "C1",
        of("S1", prompt=[part("request", EACH), part("setup", FIXED)]),
        of("S1", prompt=[part("setup", FIXED), part("request", EACH)]),
    ),
    (
        "C2",
        of("S1", prompt=[part("setup", FIXED, holds=["timestamp"])]),
        of("S1", prompt=[part("request", EACH, holds=["timestamp"])]),
    ),
    hold(
        "C2",
        "S1",
        {"prompt_caching": True, "prefix_identical": True},
        {"prompt_caching": True, "prefix_identical": False},
    ),
    ("C3", of("S1", prompt=[part("setup", FIXED, tokens=1023)]), of("S1", prompt=[part("setup", FIXED, tokens=1024)])),
    hold(
        "C4",
        "S1",
        {"prompt_caching": True, "seconds_between_uses": 299},
        {"prompt_caching": True, "seconds_between_uses": 300},
    ),
    (
        "C5",
        of("S3", "S9", prompt=[part("S3", FIXED), part("tools", FIXED), part("S9", FIXED)]),
        of("S3", "S9", prompt=[part("tools", FIXED), part("S3", FIXED), part("S9", FIXED)]),
    ),
    (
        "C6",
        of("S2", prompt=[part("S2", EACH), part("setup", FIXED)]),
        of("S2", prompt=[part("S2", FIXED), part("setup", FIXED)]),
    ),
    (
        "C7",
        so("S2", prompt_caching=True, examples_order_fixed=False),
        so({"S2": {"mode": "dynamic"}}, prompt_caching=True, examples_order_fixed=False),
    ),
    hold("C8", "K7", {"edits_after_boundary": True}, {"edits_after_boundary": False}),
    hold("C9", "K11", {"append_only": True}, {"append_only": False}),
    hold("C10", "K12", {"curation": "session_boundary"}, {"curation": "any_time"}),
    hold(
        "C11", "O4", {"prompt_caching": True, "fan_out_seconds": 239}, {"prompt_caching": True, "fan_out_seconds": 240}
    ),
    ("C12", of("O18", prompt=[part("setup", FIXED)]), of("O18", prompt=[part("setup", FIXED, breakpoint=True)])),
    hold("C13", "O18", {"prefix_identical": True}, {"prefix_identical": False}),
    hold("C14", "O18", {"shared_prefix_tokens": 5001, "workers": 2}, {"shared_prefix_tokens": 5000, "workers": 3}),
    hold("C15", "O18", {"workers": 5, "cache_hit_rate": 0.8}, {"workers": 5, "cache_hit_rate": 0.79}),
    (
        "C16",
        of("H1", "H2", prompt=[part("H2", FIXED), part("H1", FIXED)]),
        of("H1", "H2", prompt=[part("H1", FIXED), part("H2", FIXED)]),
    ),
    (
        "C17",
        of("H7", prompt=[part("H7", USERS), part("setup", FIXED)]),
        of("H7", prompt=[part("H7", USERS), part("request", EACH)]),
    ),
    hold(
        "C18",
        "S9",
        {"prompt_caching": True, "prefix_edits": "batched"},
        {"prompt_caching": True, "prefix_edits": "any_time"},
    ),
    (
        "C19",
        of("H10", prompt=[part("H10.relational", USERS), part("H10.envelope", USERS)]),
        of("H10", prompt=[part("H10.envelope", USERS), part("H10.relational", USERS)]),
    ),
    hold(
        "C20", "V15", {"prompt_caching": True, "setups_stable": True}, {"prompt_caching": True, "setups_stable": False}
    ),
    hold(
        "C21",
        "H9",
        {"prompt_caching": True, "stable_lessons_first": True},
        {"prompt_caching": True, "stable_lessons_first": False},
    ),
    hold(
        "C22",
        "K6",
        {"prompt_caching": True, "compaction_counted": True},
        {"prompt_caching": True, "compaction_counted": False},
    ),
    hold(
        "C23",
        "V10",
        {"prompt_caching": True, "resume_prepends_setup": True},
        {"prompt_caching": True, "resume_prepends_setup": False},
    ),
    hold("C24", "K7", {"prunes_at": "subtask"}, {"prunes_at": "turn"}),
    hold("C25", "O18", {"depends_on_cache": False}, {"depends_on_cache": True}),
]

DRAFT = {"writes": ["draft"], "model": "large"}
OWN: list[Case] = [
    (
        "L1",
        of("V15", sessions={"writer": DRAFT | {"judges": ["draft"]}}),
        of("V15", sessions={"writer": DRAFT, "judge": {"judges": ["draft"], "model": "small"}}),
    ),
    (
        "L2",
        of("V15", sessions={"writer": DRAFT, "judge": {"judges": ["draft"], "model": "large"}}),
        of("V15", sessions={"writer": DRAFT, "judge": {"judges": ["draft"], "model": "small"}}),
    ),
    (
        "L3",
        of("S1", stores={"users": {"personal": True, "eraser": False}}),
        of("S1", stores={"users": {"personal": True, "eraser": True}}),
    ),
    ("L4", of({"R4": {"max_steps": 51}}), of({"R4": {"max_steps": 50}})),
    ("L5", of({"R4": {"max_step": 8}}), of({"R4": {"max_steps": 8}})),
    *(
        (
            "L6",
            of("R4", legs=["untrusted_content"], actions={"post": SAFE | {"gate": "none"}}),
            of("R4", *more, legs=legs, actions={"post": SAFE | {"gate": gate}}),
        )
        for more, legs, gate in (
            (["V4"], ["untrusted_content"], "none"),
            (["V6"], ["untrusted_content"], "none"),
            ([], ["private_data"], "none"),
            ([], ["untrusted_content"], "V1"),
        )
    ),
]


def _waiving(**waiver: Any) -> Described:
    return of("R13", "V9", "V14", waivers=[{"rule": "REQ-R13-V8", **waiver}])


FINE = {"reason": "runs in a microVM of the host", "until": "2027-03-01"}
WAIVERS: list[Case] = [
    ("W1", _waiving(until="2027-03-01", reason=" "), _waiving(**FINE)),
    ("W2", _waiving(reason="runs in a microVM of the host"), _waiving(**FINE)),
    ("W3", _waiving(**FINE | {"until": "2026-11-15"}), _waiving(**FINE | {"until": "2026-11-16"})),
    ("W4", _waiving(**FINE) | {"patterns": ["R13", "V8"]}, _waiving(**FINE)),
]
"""As of the 16th of November 2026."""


def requirement_cases() -> Iterator[Case]:
    """The same of every requirement, out of the requirement itself."""
    facts: dict[str, Any] = {
        "REQ-V4-V6": {"judge_reads_quarantined": True},
        "REQ-H6-V1-V2": {"thinker_effects": "free"},
        "REQ-S3-S5": {"persona_claims_authority": True},
        "REQ-R3-V9": {"replanning": True},
        "REQ-O2-V9": {"step_retries": True},
        "REQ-V18-V8": {"real_tools_in_simulation": True},
        "REQ-I3-V6-V8": {"adversarial_input": True},
    }
    for each in catalog().requirements.values():
        pattern = "H1" if each.pattern == "H*" else each.pattern
        besides = ["V15"] if each.id == "REQ-V4-V6" else []
        said = facts.get(each.id, {})
        lacking = [*each.all_of[1:]]
        wanted = [*each.all_of, *each.any_of[-1:]]
        yield each.id, so(pattern, *besides, *lacking, **said), so(pattern, *besides, *wanted, **said)


CASES: list[Case] = [*LAWS, *requirement_cases(), *CONFLICTS, *ANTI_PATTERNS, *CACHE_RULES, *OWN, *WAIVERS]
