"""The binder: which names are never bound, and the labels of what is."""

from __future__ import annotations

from scripts.mutants.mutant import Mutant

MATCHING = "binding/_matching.py"
BINDER = "binding/_binder.py"
LADDER = "tests/binding/test_binding_matching.py"
WORLD = "tests/binding/test_binding_binder.py"

MUTANTS = (
    Mutant(
        "binding.suspicious-bound",
        MATCHING,
        "match_words",
        "if id(fit.candidate) not in marked",
        "if fit.candidate is not None",
        "a name with hidden or look-alike letters would be bound without a person",
        (f"{LADDER}::test_a_hostile_name_alone_is_a_question",),
    ),
    Mutant(
        "binding.several-guessed",
        MATCHING,
        "_decide",
        "if len(best) == 1:",
        "if best:",
        "the first of several would be bound",
        (f"{LADDER}::test_several_are_a_question",),
    ),
    Mutant(
        "binding.untrusted-own",
        BINDER,
        "_make_binding",
        "chosen.value == words",
        "match.how",
        "every bound name would count as the user's own words",
        (f"{WORLD}::test_words_are_bound_in_a_real_world",),
    ),
    Mutant(
        "binding.model-sees-suspicious",
        BINDER,
        "Binder._ask_choosers",
        'chooser.by == "person" or not each.suspicions',
        "each.number",
        "a model would be shown names that address it",
        (f"{WORLD}::test_a_model_is_not_offered_suspicious_names_and_cannot_choose_them",),
    ),
    Mutant(
        "binding.model-choice-trusted",
        BINDER,
        "Question.answer",
        'join(self._label, _MODEL_CHOICE) if by == "model" else self._label',
        "self._label",
        "the choice of the quarantined model would not be marked as its own",
        (f"{WORLD}::test_the_choice_of_a_model_is_untrusted",),
    ),
)
