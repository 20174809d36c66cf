"""The index of `find`: what was read, kept in one file of the cache, and the search in it by words and meaning.

    catalogue.json        a hash, then every source with its stamp and its items; if damaged, everything is read again
    index.safetensors     the vectors of the passages (`retrieval.DocumentIndex`); only where meaning is searched

Both files are caches. The world is looked at before each search, and whatever does not agree with it is read again or
dropped. Neither file contains labels: they are made for each result from the place that it was found in.
"""

from __future__ import annotations

import hashlib
import heapq
import shutil
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from bicameral.cache import file_lock, write_private_file
from bicameral.errors import RetrievalError
from bicameral.retrieval import Chunk, Chunking, DocumentIndex, Embedder, TextDocument, estimate_tokens, split_document
from bicameral.toolboxes._find_background import BackgroundWork
from bicameral.toolboxes._find_sources import MISSED, Candidate, Discovery, Item, ReadSource, Sources
from bicameral.toolboxes._find_vectors import Hit, PartialEmbedder, documents_without_vectors, without_distant
from bicameral.toolboxes._find_words import WordSearch, count_words, query_words
from bicameral.toolboxes._mailbox import mail_ids

SearchedBy = Literal["words", "words and meaning"]

_FORMAT = b"bicameral find 4\n"
_LOCK_SECONDS = 20.0
_KEPT_INDEXES = 8
"""Folders of the cache: one for each set of places that is searched. The oldest are removed."""
_MAX_CATALOGUE = 512_000_000
_CANDIDATES = 6
"""Passages that are compared for each one wanted: equals are put in order by day, and copies are left out."""
_SAME_SCORE = 0.02
_MOST_NAMES = 10
_BACKGROUND_PIECE = 8
"""Passages whose meaning the background computes at once."""
_EMBEDDED_FOR_QUERY = 32
"""The most passages whose meaning is computed for one query: those with the most of its words."""
_SAVED_AT_ONCE = 512
_MIN_SIMILARITY = 0.25
"""A passage without any word of the query must be at least this similar to it."""
_MOST_SIMILAR = 1_000
"""Passages whose similarity is looked at. Of a passage beyond them the words alone count."""
_CHUNKING = Chunking(tokens=140, overlap=20)
"""In estimated tokens, of which a real one has up to two: what the encoder reads."""

_NOT_YET = TextDocument("not yet", "")
_CATALOGUE = TypeAdapter(dict[str, ReadSource])


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage that was found, with the source and the item that it comes from."""

    candidate: Candidate
    item: Item
    source: str
    """The path, the id of the mail, or the id of the event."""
    text: str
    score: float
    number: int = 0
    """Which text of its item it is from: a row of a table, a card of a file of contacts."""
    line: int | None = None
    """The line of a note in which it begins; below 1 for the heading that is added to it."""
    similarity: float | None = None
    """How similar in meaning it is to the query; None where meaning is not searched."""


@dataclass(frozen=True, slots=True)
class IndexState:
    """What is searched now, and what is left out for which reason."""

    sources: int
    passages: int
    read: int
    """Sources that had to be read since the last look."""
    skipped: Mapping[str, int]
    missed: tuple[str, ...]
    """Names of some files that are left out and might have been what is asked for."""
    searched_by: SearchedBy
    without_meaning: int = 0
    """Passages that are still searched by words alone."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """One passage in memory."""

    candidate: Candidate
    item: Item
    document: TextDocument
    chunk: Chunk
    number: int
    words: Counter[str]
    """Counted once for each passage, however often the index around it changes."""

    @property
    def line(self) -> int | None:
        if self.item.kind != "note":
            return None
        added = 2 if self.item.title else 0
        return self.document.text.count("\n", 0, self.chunk.start) - added + 1


class FindIndex:
    """Everything that is configured, as passages; looked at anew before each search.

    Args:
        sources: What is searched.
        folder: Where the index is kept; None keeps it in memory alone.
        embedder: Searches by meaning as well; None searches by words alone.
        embed_at_once: The most passages whose meaning is computed in one look, so that the first one ends in time. The
            others are found by their words until a later look, or until the background has come to them.
        background: Whether a thread computes the meaning of the others while nobody waits.

    Example:
        >>> index = FindIndex(Sources(surroundings), folder, None)
        >>> index.refresh()
        >>> index.search("code of the garage", 5)
    """

    def __init__(
        self,
        sources: Sources,
        folder: Path | None,
        embedder: Embedder | None,
        *,
        embed_at_once: int = 192,
        background: bool = False,
    ) -> None:
        self.sources = sources
        self._folder = folder
        self._embedder = None if embedder is None else PartialEmbedder(embedder)
        self._embed_at_once = embed_at_once
        self._known: dict[str, ReadSource] | None = None
        self._entries: dict[str, tuple[tuple[Item, ...], tuple[_Entry, ...]]] = {}
        self._shown: list[_Entry] = []
        self._numbers: dict[tuple[str, int], int] = {}
        self._discovery = Discovery((), {})
        self._vectors: DocumentIndex | None = None
        self._vectors_stamp: tuple[int, ...] = ()
        self._pending: dict[str, TextDocument] = {}
        self._unsaved = 0
        self._words: WordSearch | None = None
        self._background_lock: ExitStack | None = None
        self.background = BackgroundWork(self) if background and embedder is not None else None
        # One look at a time in this process: two would read the same files twice.
        self._lock = RLock()

    def refresh(self) -> IndexState:
        """Look at the world, read what has changed, forget what is gone, and say what is searched."""
        with self._lock:
            discovery = self.sources.discover()
            read = 0
            if self._known is None or self._changed(discovery, self._known):
                # Of two processes the second waits, and finds what the first has read. If the lock cannot be had, the
                # work is done twice and nothing else happens: files are replaced as a whole.
                with self._file_lock():
                    read = self._update(discovery)
            self._discovery = discovery
            self._arrange()
            if self._embedder is not None:
                self._embed()
                if self._pending and self.background is not None:
                    self.background.start()
            return self._state(read)

    def search(self, query: str, count: int, today: date) -> list[Passage]:
        """The passages that match best. Of those that match equally well, the one nearest to today comes first."""
        with self._lock:
            entries = self._shown
            self._embed_matching(query)
            hits = without_distant(self._hits(query, count * _CANDIDATES), self._standing)
        ranked = sorted(hits, key=lambda hit: (-round(hit[1] / _SAME_SCORE), _distance(entries[hit[0]], today), hit[0]))
        found: list[Passage] = []
        seen: set[tuple[str, str]] = set()
        for number, score, similarity in ranked:
            entry = entries[number]
            owner = self.sources.owner(entry.candidate.place, entry.candidate.name)
            # A copy is left out only in favour of one of the same owner: no stranger's text replaces the user's own.
            if (mark := (owner, entry.chunk.fingerprint)) in seen:
                continue
            seen.add(mark)
            source = self.source_id(entry.candidate, entry.item)
            near = None if similarity is None else round(similarity, 4)
            more = entry.number, entry.line, near
            found.append(Passage(entry.candidate, entry.item, source, entry.chunk.text, round(score, 4), *more))
            if len(found) == count:
                break
        return found

    def items(self) -> Iterator[tuple[Candidate, Item]]:
        """All items, the newest source first."""
        with self._lock:
            known = self._known or {}
            pairs = [(each, known[each.key]) for each in self._discovery.candidates if each.key in known]
        for candidate, source in pairs:
            for item in source.items:
                yield candidate, item

    def source_id(self, candidate: Candidate, item: Item) -> str:
        """The path of a file, or the id of a mail or event as their own tools take it."""
        return item.id or self._source_ids.get(candidate.key, candidate.name)

    # Reading and keeping

    def _changed(self, discovery: Discovery, known: Mapping[str, ReadSource]) -> list[Candidate]:
        return [each for each in discovery.candidates if each.key not in known or known[each.key].stamp != each.stamp]

    def _update(self, discovery: Discovery) -> int:
        stored = self._load()
        # What another process has read meanwhile counts as well as what this one has.
        known = {**stored, **(self._known or {})}
        known |= {key: source for key, source in stored.items() if source.stamp}
        changed = self._changed(discovery, known)
        present = {each.key for each in discovery.candidates}
        kept = {key: source for key, source in known.items() if key in present}
        for each in changed:
            kept.pop(each.key, None)
        kept |= self.sources.read(changed)
        if kept != stored:
            self._save(kept)
        self._known = kept
        return len(changed)

    @contextmanager
    def _file_lock(self) -> Generator[None]:
        if self._folder is None:
            yield
            return
        with ExitStack() as held:
            # Without the lock two processes may do the same work; a TimeoutError is an OSError.
            with suppress(OSError):
                self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                held.enter_context(file_lock(self._folder / "lock", seconds=_LOCK_SECONDS))
            yield

    def _load(self) -> dict[str, ReadSource]:
        """What is stored; nothing if the file is missing or damaged, so that everything is read again."""
        if self._folder is None:
            return {}
        path = self._folder / "catalogue.json"
        try:
            if path.stat().st_size > _MAX_CATALOGUE:
                return {}
            head, digest, body = path.read_bytes().split(b"\n", 2)
            if head + b"\n" != _FORMAT or hashlib.sha256(body).hexdigest().encode() != digest:
                return {}
            return _CATALOGUE.validate_json(body)
        except (OSError, ValueError, ValidationError):
            return {}

    def _save(self, known: dict[str, ReadSource]) -> None:
        if self._folder is None:
            return
        body = _CATALOGUE.dump_json(known)
        # A cache that cannot be written is a slower search, not a failed one.
        with suppress(OSError):
            digest = hashlib.sha256(body).hexdigest().encode()
            write_private_file(self._folder / "catalogue.json", [_FORMAT, digest, b"\n", body])
            self._remove_old_indexes()

    def _remove_old_indexes(self) -> None:
        assert self._folder is not None
        others = [each for each in self._folder.parent.iterdir() if each.is_dir() and each != self._folder]
        others.sort(key=lambda each: each.stat().st_mtime_ns, reverse=True)
        for each in others[_KEPT_INDEXES - 1 :]:
            shutil.rmtree(each, ignore_errors=True)

    # Passages

    def _arrange(self) -> None:
        """The passages of what is known now; those of a source that has not changed are kept."""
        known = self._known or {}
        before, self._entries = self._entries, {}
        for candidate in self._discovery.candidates:
            source = known.get(candidate.key)
            if source is None:
                continue
            old = before.get(candidate.key)
            # Only the contents count: the stamp may be a new one.
            if old is None or old[0] != source.items:
                old = (source.items, tuple(_make_entries(candidate, source)))
            self._entries[candidate.key] = old
        if list(before.items()) != list(self._entries.items()):
            self._shown = [entry for _, entries in self._entries.values() for entry in entries]
            self._numbers = {(entry.chunk.document, entry.chunk.start): at for at, entry in enumerate(self._shown)}
            self._words = None
            self.__dict__.pop("_source_ids", None)

    @cached_property
    def _source_ids(self) -> dict[str, str]:
        """The ids of the mails, by key: those that the mail toolbox gives them."""
        known = self._known or {}
        mails = [(key, source) for key, source in known.items() if key.startswith("mail:")]
        keys = [key.removeprefix("mail:") for key, _ in mails]
        ids = mail_ids([(key, source.message_id) for key, (_, source) in zip(keys, mails, strict=True)])
        return {key: id for (key, _), id in zip(mails, ids, strict=True)}

    def _standing(self, number: int) -> int:
        """How hard it is for others to write such a passage: a file of the user's own 2, another file 1, a mail 0."""
        candidate = self._shown[number].candidate
        if self.sources.owner(candidate.place, candidate.name) == "user":
            return 2
        return 1 if candidate.place == "file" else 0

    def _hits(self, query: str, count: int) -> list[Hit]:
        """Passages with their scores: by words, and where there are vectors by words and meaning, half each.

        The third part is the similarity in meaning, where it is known.
        """
        words = self._word_search()
        if self._vectors is None:
            return [(number, score, None) for number, score in words.best(query, count)]
        by_words = words.scores(query)
        # Meaning alone: the words of an index of vectors know neither forms nor compounds.
        wanted = " ".join(query_words(query))
        results = self._vectors.search(wanted, _MOST_SIMILAR, lexical_weight=0, duplicates=True)
        by_meaning = {
            number: hit.similarity or 0.0
            for hit in results.hits
            if (number := self._numbers.get((hit.chunk.document, hit.chunk.start))) is not None
        }
        scores = {
            number: (max(0.0, by_meaning.get(number, 0.0)) + by_words.get(number, 0.0)) / 2
            for number in by_words.keys() | {each for each, near in by_meaning.items() if near >= _MIN_SIMILARITY}
        }
        best = heapq.nsmallest(count, scores.items(), key=lambda each: (-each[1], each[0]))
        return [(number, score, by_meaning.get(number)) for number, score in best]

    def _word_search(self) -> WordSearch:
        if self._words is None:
            self._words = WordSearch([entry.words for entry in self._shown])
        return self._words

    def _embed_matching(self, query: str) -> None:
        """Compute the meaning of the passages that have the words of a query.

        Half of a score is the similarity: without it, the passage that says what is asked for would stand behind others
        that are only known already.
        """
        if self._pending and self._vectors is not None:
            best = self._word_search().best(query, _EMBEDDED_FOR_QUERY)
            self._embed_documents([self._shown[number].document.id for number, _ in best])

    def _embed(self) -> None:
        """Bring the index of vectors in step with the passages, within the limit of one look."""
        assert self._embedder is not None
        if self._vectors is None or (self._pending and self._vectors_stamp != self._stored_stamp()):
            # The first look, or another process has computed something meanwhile.
            self._vectors = self._load_vectors(self._embedder)
            self._pending = dict.fromkeys(documents_without_vectors(self._vectors), _NOT_YET)
        index = self._vectors
        # The newest first, as they were discovered.
        documents = {entry.document.id: entry.document for entry in self._shown}
        present = {document.id: document for document in index.documents}
        gone = [name for name in present if name not in documents]
        changed = [each for name, each in documents.items() if present.get(name) != each]
        for name in gone:
            index.remove(name)
        with self._embedder.postponed():
            index.update(changed)
        waiting = self._pending.keys() | {each.id for each in changed}
        self._pending = {name: each for name, each in documents.items() if name in waiting}
        self._unsaved += len(gone) + len(changed)
        self._embed_some(self._embed_at_once)
        if self._unsaved:
            self._save_vectors()

    def _embed_some(self, most: int) -> None:
        """Compute the meaning of the next passages."""
        self._embed_documents(list(self._pending)[:most])

    def _embed_documents(self, names: Iterable[str]) -> None:
        """Compute the meaning of these, where it is not known yet."""
        index = self._vectors
        now = [self._pending.pop(name) for name in dict.fromkeys(names) if name in self._pending]
        if index is None or not now:
            return
        for each in now:
            # Removed first: a document that is only replaced keeps the vectors that it has.
            with suppress(RetrievalError):
                index.remove(each.id)
        index.update(now)
        self._unsaved += len(now)

    def work(self) -> bool:
        """Compute the meaning of a few passages; False if none is left. For the background."""
        if not self._begin_background():
            return False
        # A question waits for these few at most.
        with self._lock:
            self._embed_some(_BACKGROUND_PIECE)
            if self._unsaved >= _SAVED_AT_ONCE:
                self._save_vectors()
            return bool(self._pending)

    def finish_work(self) -> None:
        """Keep what the background has computed, and let another process go on."""
        with self._lock:
            if self._unsaved:
                self._save_vectors()
        if self._background_lock is not None:
            self._background_lock.close()
            self._background_lock = None

    def _begin_background(self) -> bool:
        """Whether this process is the one that computes in the background: two would do the same work twice."""
        if self._folder is None or self._background_lock is not None:
            return True
        with ExitStack() as held:
            try:
                held.enter_context(file_lock(self._folder / "background", seconds=0))
            except OSError:
                return False
            self._background_lock = held.pop_all()
        return True

    def close(self) -> None:
        """End the background; the index can still be searched."""
        if self.background is not None:
            self.background.stop()

    def _save_vectors(self) -> None:
        self._unsaved = 0
        if self._folder is not None and self._vectors is not None:
            with suppress(RetrievalError):
                self._vectors.save(self._folder / "index.safetensors")
            self._vectors_stamp = self._stored_stamp()

    def _stored_stamp(self) -> tuple[int, ...]:
        if self._folder is None:
            return ()
        try:
            info = (self._folder / "index.safetensors").stat()
        except OSError:
            return ()
        return info.st_mtime_ns, info.st_size, info.st_ino

    def _load_vectors(self, embedder: PartialEmbedder) -> DocumentIndex:
        self._vectors_stamp = self._stored_stamp()
        if self._folder is not None:
            with suppress(RetrievalError, OSError):
                index = DocumentIndex.load(self._folder / "index.safetensors", embedder)
                if index.chunking == _CHUNKING:
                    return index
        return DocumentIndex(embedder, _CHUNKING)

    def _state(self, read: int) -> IndexState:
        skipped = Counter(self._discovery.skipped)
        missed = list(self._discovery.missed)
        known = self._known or {}
        for candidate in self._discovery.candidates:
            source = known.get(candidate.key)
            if source is None or not (source.skipped or source.more):
                continue
            skipped.update([source.skipped] if source.skipped else [])
            skipped["limit"] += source.more
            if source.skipped in MISSED or source.more:
                missed.append("a mail" if candidate.place == "mail" else candidate.name)
        by: SearchedBy = "words" if self._vectors is None else "words and meaning"
        return IndexState(
            len(known),
            len(self._shown),
            read,
            {reason: count for reason, count in skipped.items() if count},
            tuple(missed[:_MOST_NAMES]),
            by,
            len(self._pending),
        )


def _make_entries(candidate: Candidate, source: ReadSource) -> Iterator[_Entry]:
    for item in source.items:
        # The key may be long and is chosen by others: its hash is the id.
        name = hashlib.sha256(f"{candidate.key}\n{item.id}".encode("utf-8", "surrogatepass")).hexdigest()[:32]
        for number, text in enumerate(item.texts):
            # The title is a heading, so that it is searched with every passage and stands above the first.
            document = TextDocument(f"{name}.{number}", f"# {item.title}\n\n{text}" if item.title else text)
            for chunk in split_document(document, estimate_tokens, _CHUNKING):
                yield _Entry(candidate, item, document, chunk, number, count_words(chunk.context))


def _distance(entry: _Entry, today: date) -> int:
    return abs((entry.item.day - today).days) if entry.item.day is not None else 1_000_000
