"""The search over everything and its citations: whose text it is, where a fact stands, and what is not invented."""

from __future__ import annotations

from scripts.mutants.mutant import Mutant

CITATIONS = "runs/_citations.py"
SUPPORT = "boundary/_support.py"
INDEX = "toolboxes/_find_index.py"
SOURCES = "toolboxes/_find_sources.py"
CITED = "tests/runs/test_runs_citations.py"
FIND = "tests/toolboxes/test_toolboxes_find.py"
BACKGROUND = "tests/toolboxes/test_toolboxes_find_background.py"

MUTANTS = (
    Mutant(
        "find.part-of-a-number",
        SUPPORT,
        "find_support",
        "if evidence.has_phrase(fact.value):",
        "if evidence.has_words(fact.value):",
        "a passage with 4711 would be cited for 471",
        (f"{CITED}::test_support_is_the_words_of_the_passage",),
    ),
    Mutant(
        "find.numbers-unchecked",
        SUPPORT,
        "_has_most_words",
        "if not all(evidence.has_number(float(number)) for number in find_numbers(sentence.casefold())):",
        "if not evidence.text:",
        "a sentence with an invented number would be cited",
        (f"{CITED}::test_a_sentence_is_supported_by_its_numbers_and_most_of_its_words",),
    ),
    Mutant(
        "find.copy-cited",
        CITATIONS,
        "CitationLog._passages_in",
        "if any(each.record == record for record in records)",
        'if any(each.text == record.get("text") for record in records)',
        "the user's own note would be cited for what a stranger's copy says",
        (f"{CITED}::test_a_copy_elsewhere_is_not_cited_for_what_was_read_from_another_place",),
    ),
    Mutant(
        "find.label-of-one-passage",
        CITATIONS,
        "_cite",
        "join(label, passage.label)",
        "passage.label",
        "what was read together with a stranger's passage would be told as the user's own",
        (f"{CITED}::test_the_label_of_a_citation_is_that_of_what_was_read_and_a_mixture_is_untrusted",),
    ),
    Mutant(
        "find.label-of-the-whole-result",
        CITATIONS,
        "_label_at",
        "for step in path:",
        "for step in ():",
        "a passage of the user's own would have the label of everything that was found with it",
        (f"{CITED}::test_the_label_of_a_citation_is_that_of_what_was_read_and_a_mixture_is_untrusted",),
    ),
    Mutant(
        "find.uncited-unsaid",
        CITATIONS,
        "CitationLog.add_reading",
        "            if not chosen:\n",
        "            if not texts:\n",
        "a fact that stands in no passage would be told without a doubt",
        (f"{CITED}::test_a_fact_that_stands_in_no_passage_is_a_doubt_and_has_no_citation",),
    ),
    Mutant(
        "find.cited-to-anybody",
        CITATIONS,
        "Citation.text_for",
        'return str(self) if allowed else "a passage that is not for you"',
        "return str(self)",
        "a citation would tell a reader of data that is not for them",
        (f"{CITED}::test_the_label_of_a_citation_is_that_of_what_was_read_and_a_mixture_is_untrusted",),
    ),
    Mutant(
        "find.raw-citation",
        CITATIONS,
        "Citation.__post_init__",
        "shown_text(getattr(self, name), most)",
        "getattr(self, name)",
        "the subject of a mail could write control characters to a terminal",
        (f"{CITED}::test_a_citation_comes_back_from_json_and_is_made_safe_where_it_is_made",),
    ),
    Mutant(
        "find.subject-as-place",
        "toolboxes/find.py",
        "_note_passage",
        "where = f\"mail from {item.people[0] if item.people else 'nobody'} of {day}, “{item.title}”\"",
        "where = item.title",
        "a mail with the name of a file as its subject would be shown as that file",
        (f"{CITED}::test_a_mail_cannot_pose_as_a_file_in_a_citation",),
    ),
    Mutant(
        "find.empty-result-read",
        "runs/_effects.py",
        "LiveEffectHandler.extract",
        "empty = self.citations.found_nothing(source)",
        "empty = False",
        "a model would be asked about a search that found nothing, and invent an answer",
        (f"{CITED}::test_nothing_found_asks_no_model_and_ends_honestly",),
    ),
    Mutant(
        "find.empty-list-read",
        "boundary/_extract.py",
        "Extractor.extract",
        "if source is None or not text.strip() or not source_words(source).strip():",
        "if source is None or not text.strip():",
        "a model would be asked to read an empty list, and invent a value",
        ("tests/boundary/test_boundary_extract.py::test_nothing_is_read_from_an_empty_text_or_list",),
    ),
    Mutant(
        "find.mail-as-own",
        SOURCES,
        "Sources.owner",
        'return "others"\n',
        'return "user"\n',
        "a stranger's mail would be the user's own text",
        (f"{FIND}::test_each_passage_has_the_label_of_its_own_source",),
    ),
    Mutant(
        "find.copy-replaces-own",
        INDEX,
        "FindIndex.search",
        "if (mark := (owner, entry.chunk.fingerprint)) in seen:",
        'if (mark := ("", entry.chunk.fingerprint)) in seen:',
        "a stranger's copy of a note would take its place in the result",
        (f"{FIND}::test_a_planted_text_never_takes_the_label_or_the_place_of_the_users_own",),
    ),
    Mutant(
        "find.skipped-unnamed",
        SOURCES,
        "SkippedSources.add",
        "if reason in MISSED and",
        "if not reason and",
        "the file with the answer could be left out without its name",
        (f"{CITED}::test_files_that_could_not_be_searched_are_named_in_a_doubt",),
    ),
    Mutant(
        "find.stale-vectors",
        INDEX,
        "FindIndex._embed",
        "changed = [each for name, each in documents.items() if present.get(name) != each]",
        "changed = [each for name, each in documents.items() if name not in present]",
        "a changed note would be found by what it said before",
        (f"{BACKGROUND}::test_a_changed_note_is_not_found_by_what_it_meant_before",),
    ),
    Mutant(
        "find.thread-keeps-owner",
        "toolboxes/_find_background.py",
        "BackgroundWork.__init__",
        "self._owner = weakref.ref(owner)",
        "self._owner = lambda: owner",
        "a thread would keep an index alive after its agent is gone",
        (f"{BACKGROUND}::test_no_thread_outlives_its_index",),
    ),
)
