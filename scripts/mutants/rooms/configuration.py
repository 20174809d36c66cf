"""Acceptance of configurations, and the masking of secrets."""

from __future__ import annotations

from scripts.mutants.mutant import Mutant

ACCEPTANCE = "config/_acceptance.py"
CONFIG = "config/_config.py"
SECRETS = "secrets.py"
ACCEPT = "tests/config/test_config_acceptance.py"
MASKING = "tests/test_secrets.py"

MUTANTS = (
    Mutant(
        "acceptance.changed-since",
        ACCEPTANCE,
        "find_unaccepted",
        'known.get("fingerprint") == widening.fingerprint',
        '"fingerprint" in known',
        "a configuration that changed after the yes would be used",
        (f"{ACCEPT}::test_a_change_is_shown_as_a_change", f"{ACCEPT}::test_a_yes_is_remembered_for_what_was_seen"),
    ),
    Mutant(
        "acceptance.files-not-hashed",
        ACCEPTANCE,
        "Widening.parts",
        "| dict(self.files)",
        "| dict.fromkeys(self.files, '')",
        "code that a configuration names could be exchanged after the yes",
        (ACCEPT,),
    ),
    Mutant(
        "acceptance.folder-outside",
        CONFIG,
        "is_inside",
        "os.path.commonpath((found, real)) == real",
        "found.startswith(os.path.dirname(real))",
        "a strange configuration could open a folder beside the working folder",
        (f"{ACCEPT}::test_a_folder_beside_the_working_folder_is_withheld_by_whatever_name",),
    ),
    Mutant(
        "acceptance.folder-further-out",
        ACCEPTANCE,
        "_is_listed",
        "os.path.dirname(real) in named",
        "any(real.startswith(each) for each in named)",
        "a whole tree of projects would be accepted with one folder",
        (f"{ACCEPT}::test_a_folder_further_out_does_not_count",),
    ),
    Mutant(
        "acceptance.damaged-record",
        ACCEPTANCE,
        "_read_record",
        "if not isinstance(accepted, dict):\n        return {}",
        "if not isinstance(accepted, dict):\n        raise ValueError",
        "a damaged record would end the program instead of accepting nothing",
        (f"{ACCEPT}::test_a_damaged_record_accepts_nothing",),
    ),
    Mutant(
        "acceptance.toolbox-files",
        ACCEPTANCE,
        "_split_toolboxes",
        'elif key == "files" and value != []:',
        'elif key == "files" and value == []:',
        "code in a strange folder would be loaded unasked",
        (ACCEPT,),
    ),
    Mutant(
        "acceptance.everything-harmless",
        ACCEPTANCE,
        "_split_listed",
        "_HARMLESS_KEYS.get(name, frozenset())",
        "_HARMLESS_KEYS.get(name)",
        "tables that nobody has thought of would count as harmless",
        (f"{ACCEPT}::test_every_table_is_harmless_by_decision_or_withheld", ACCEPT),
    ),
    Mutant(
        "secrets.shorter-first",
        SECRETS,
        "register_secret",
        ", reverse=True)",
        ")",
        "the rest of a longer secret would stand in a text in the clear",
        (f"{MASKING}::test_of_two_secrets_the_longer_is_masked_whole",),
    ),
    Mutant(
        "secrets.base64-forgotten",
        SECRETS,
        "_encoded_forms",
        " in range(3):",
        " in range(1):",
        "a secret in the middle of base64 would not be seen",
        (f"{MASKING}::test_every_shape_of_it_is_masked",),
    ),
    Mutant(
        "secrets.quoted-forgotten",
        SECRETS,
        "_encoded_forms",
        ".add(quote_plus(value))",
        ".add(quote(value))",
        "a secret in a form that was sent would not be seen",
        (f"{MASKING}::test_every_shape_of_it_is_masked",),
    ),
    Mutant(
        "secrets.keys-of-objects",
        SECRETS,
        "mask_value",
        "{mask(key): mask_value(part)",
        "{key: mask_value(part)",
        "a secret that is the name of a field would be written down",
        (MASKING,),
    ),
    Mutant(
        "secrets.numbers",
        SECRETS,
        "mask_value",
        "return value if (",
        "return value if True or (",
        "a secret of digits would be written down as a number",
        (f"{MASKING}::test_a_secret_that_is_a_number_is_masked_as_a_number",),
    ),
    Mutant(
        "secrets.shown-by-itself",
        SECRETS,
        "Secret.__str__",
        'return f"[secret {self.name}]"',
        "return self._value",
        "a secret that gets into a text by accident would be shown",
        (f"{MASKING}::test_a_secret_shows_its_name_and_nothing_else",),
    ),
)
