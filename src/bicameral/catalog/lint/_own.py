"""Rules of the linter itself: about sessions, stores and knobs, about patterns of one's own, and about waivers."""

from __future__ import annotations

from collections.abc import Iterator

from ..stacks import Defined
from ._finding import Severity
from ._rules import Check, Rule


def _own(id: str, name: str, severity: Severity, rule: str, why: str, fix: str, *looks: str, of: str = "") -> Rule:
    checks = tuple(Check("look", at=each) for each in looks)
    return Rule(id, name, "linter", severity, rule, why, fix, tuple(of.split()), checks)


OWN = (
    _own(
        "L1",
        "The author is the judge",
        "error",
        "nobody judges what it wrote itself",
        "whoever judges its own work finds it good",
        "Let another session judge, on another model.",
        "authors_judge",
        of="V15 O5",
    ),
    _own(
        "L2",
        "A judge of the author's model",
        "warning",
        "author and judge have different models",
        "a model prefers what it would have written",
        "Give the judge another model.",
        "judges_share_model",
        of="V15 O5",
    ),
    _own(
        "L3",
        "A store that nobody can erase",
        "error",
        "a store of personal data has an eraser",
        "a user may ask to be forgotten",
        "Register an eraser with the store.",
        "personal_stores",
        of="H7 H10",
    ),
    _own(
        "L4",
        "A knob out of its bounds",
        "warning",
        "knobs lie within the bounds that the pattern gives",
        "outside of them the pattern is known to fail",
        "Set it within the bounds.",
        "knobs_in_bounds",
    ),
    _own(
        "L5",
        "A knob that does not exist",
        "warning",
        "every knob is one of the pattern's, or a fact",
        "a misspelt knob does nothing",
        "Use the name that the pattern gives.",
        "known_knobs",
    ),
    _own(
        "W1",
        "A waiver without a reason",
        "error",
        "who waives says why",
        "nobody can tell later whether it still holds",
        "Write the reason.",
    ),
    _own(
        "W2",
        "A waiver without an end",
        "error",
        "a waiver has a last day",
        "what is waived for ever is never looked at again",
        "Give it a day under `until`.",
    ),
    _own(
        "W3",
        "A waiver that is over",
        "warning",
        "after its last day a waiver waives nothing",
        "it was meant to be looked at by then",
        "Mend what it waived, or decide again.",
    ),
    _own(
        "W4",
        "A waiver that waives nothing",
        "warning",
        "a waiver goes when what it waived is mended",
        "it would hide the same fault when that comes back",
        "Remove it.",
    ),
)


def rules_of(defined: Defined) -> Iterator[Rule]:
    """What a pattern of one's own asks for, as rules."""
    used = frozenset({defined.id})

    def rule(id: str, said: str, fix: str, check: Check) -> Rule:
        return Rule(id, said, "requirement", "error", said, defined.why, fix, (defined.id,), (check,))

    if defined.needs:
        wanted = ", ".join(defined.needs)
        check = Check("require", if_all=used, all_of=defined.needs)
        yield rule(f"REQ-{defined.id}", f"{defined.id} needs {wanted}", f"Add {wanted}.", check)
    if defined.needs_one_of:
        wanted = " or ".join(defined.needs_one_of)
        check = Check("require", if_all=used, any_of=defined.needs_one_of)
        yield rule(f"ONE-{defined.id}", f"{defined.id} needs {wanted}", f"Add {wanted}.", check)
    for other in defined.not_with:
        check = Check("together", all=(defined.id, other), apart_by="task")
        yield rule(f"NOT-{defined.id}-{other}", f"{defined.id} does not go with {other}", "Choose one.", check)
    if defined.loops:
        check = Check("require", if_all=used, all_of=("V9",))
        yield rule(f"LOOP-{defined.id}", f"{defined.id} loops and needs V9", "Add V9.", check)
