"""Labels: the join, readers, label trees, their order, and released text."""

from __future__ import annotations

from scripts.mutants.mutant import Mutant

LABEL = "labels/_label.py"
TREE = "labels/_label_tree.py"
RELEASED = "labels/_labelled.py"
LAWS = "tests/labels/test_labels_laws.py"
LABELLED = "tests/labels/test_labels_labelled.py"
JSON = "tests/labels/test_labels_json.py"

MUTANTS = (
    Mutant(
        "labels.join-drops-a-side",
        LABEL,
        "join",
        "left.sources | right.sources",
        "left.sources",
        "what is made of two values would be from one of them alone",
        (f"{LAWS}::test_a_join_of_many_is_the_join_of_each", f"{LAWS}::test_giant_sets_are_joined_exactly"),
    ),
    Mutant(
        "labels.readers-of-either",
        LABEL,
        "common_readers",
        "left & right",
        "left | right",
        "a secret joined with another would be read by everyone who may read one of them",
        (f"{LAWS}::test_a_join_of_many_is_the_join_of_each", f"{LAWS}::test_giant_sets_are_joined_exactly"),
    ),
    Mutant(
        "labels.public-wins",
        LABEL,
        "common_readers",
        "return left if isinstance(right, Public)",
        "return right if isinstance(right, Public)",
        "a secret joined with public text would be public",
        (f"{LAWS}::test_a_secret_joined_with_public_text_stays_a_secret",),
    ),
    Mutant(
        "labels.one-trusted-source-is-enough",
        LABEL,
        "_intern_label",
        "all(source.trust",
        "any(source.trust",
        "a stranger's text would be trusted as soon as the user added a word",
        (f"{LAWS}::test_one_word_of_the_users_does_not_make_a_strangers_text_trusted",),
    ),
    Mutant(
        "labels.extract-may-be-trusted",
        LABEL,
        "Source.__post_init__",
        'self.tool == "extract" and self.trust != "third_party"',
        'self.tool == "extract" and self.trust == "system"',
        "what a quarantined model wrote could be labelled as the user's own",
        (f"{LAWS}::test_what_a_quarantined_model_wrote_is_a_strangers_word",),
    ),
    Mutant(
        "labels.text-as-readers",
        LABEL,
        "_check_readers",
        "if isinstance(readers, str):",
        "if isinstance(readers, bytes):",
        "one name would be taken for the set of its letters",
        (f"{LAWS}::test_what_is_no_label_is_refused",),
    ),
    Mutant(
        "labels.known-kind-is-guessed",
        TREE,
        "_join_label",
        ", uniform_list(label)), uniform_record(label))\n        case RecordLabels",
        ", uniform_list(label)), uniform_record(NOTHING))\n        case RecordLabels",
        "a value of unknown kind would be taken for a list, and the fields of a record lose its label",
        (f"{LAWS}::test_what_one_label_is_known_of_may_be_of_any_kind",),
    ),
    Mutant(
        "labels.cut-forgets-what-is-below",
        TREE,
        "_cut_levels",
        ".flat",
        ".own",
        "parts below the deepest level would lose their labels",
        (f"{LAWS}::test_a_shade_is_never_deeper_than_its_bound_and_forgets_nothing",),
    ),
    Mutant(
        "labels.many-fields-forgotten",
        TREE,
        "make_record_labels",
        "own, {}, join_all(",
        "own, {}, NOTHING or join_all(",
        "a record with very many fields would lose the labels of all of them",
        (f"{LAWS}::test_so_many_fields_or_places_are_not_told_apart",),
    ),
    Mutant(
        "labels.taint-misses-the-rest",
        TREE,
        "_map_record",
        ", change(tree.rest))",
        ", tree.rest)",
        "fields that are not named would escape a taint",
        (f"{LAWS}::test_a_taint_reaches_the_fields_that_are_not_named",),
    ),
    Mutant(
        "labels.more-readers-cover",
        TREE,
        "_readers_cover",
        "upper <= lower",
        "upper >= lower",
        "an approval for a public call would hold for a secret one",
        (f"{LAWS}::test_fewer_readers_and_more_sources_cover",),
    ),
    Mutant(
        "labels.one-source-covers",
        TREE,
        "_label_covers",
        "return all(",
        "return any(",
        "an approval would hold for a call with further strangers in it",
        (
            f"{LAWS}::test_fewer_readers_and_more_sources_cover",
            f"{LAWS}::test_the_order_of_shades_is_that_of_their_parts",
        ),
    ),
    Mutant(
        "labels.keys-are-free",
        TREE,
        "make_record_labels",
        "join_all((own, *(",
        "join_all((NOTHING, *(",
        "which keys a record has would no longer count for the whole",
        (f"{LAWS}::test_which_keys_there_are_counts_for_the_whole",),
    ),
    Mutant(
        "labels.released-block-alone",
        RELEASED,
        "_ReleasedTexts.find_label",
        "if block in self._blocks:",
        "if start and block in self._blocks:",
        "a stranger's text that comes back at the beginning of a text would be the user's own",
        (f"{LABELLED}::test_two_blocks_of_a_text_are_recognised_wherever_they_stand",),
    ),
    Mutant(
        "labels.released-short-texts",
        RELEASED,
        "_ReleasedTexts.release",
        "< 3 * BLOCK:",
        "< BLOCK:",
        "an address of a stranger's would come back as the user's own word",
        (f"{LABELLED}::test_a_short_text_does_not_come_back_whole_as_the_users",),
    ),
    Mutant(
        "labels.released-parts-untrusted",
        RELEASED,
        "remember_released",
        ".flat.trusted",
        ".own.trusted",
        "strangers' items in a list that the user made would not be remembered",
        (f"{LABELLED}::test_only_the_parts_that_strangers_wrote_are_remembered",),
    ),
)
