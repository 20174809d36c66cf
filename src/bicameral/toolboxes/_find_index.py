"""The index of `find`: what was read, kept in one file of the cache, and the search in it by words and meaning.

    catalogue.json        a hash, then every source with its stamp and its items; if damaged, everything is read again
    index.safetensors     the vectors of the passages (`retrieval.DocumentIndex`); only where meaning is searched

Both files are caches. The world is looked at before each search, and whatever does not agree with it is read again or
dropped. Neither file contains labels: they are made for each result from the place that it was found in.
"""

from __future__ import annotations

import hashlib
import shutil
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Literal

from pydantic import TypeAdapter, ValidationError

from bicameral.cache import write_private_file
from bicameral.errors import RetrievalError
from bicameral.retrieval import Chunk, Chunking, DocumentIndex, Embedder, TextDocument, estimate_tokens, split_document
from bicameral.text import STOP_WORDS, Ranking
from bicameral.toolboxes._find_sources import Candidate, Discovery, Item, ReadSource, Sources
from bicameral.toolboxes._mailbox import mail_ids

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SearchedBy = Literal["words", "words and meaning"]

_FORMAT = b"bicameral find 1\n"
_LOCK_SECONDS = 20.0
_KEPT_INDEXES = 8
"""Folders of the cache: one for each set of places that is searched. The oldest are removed."""
_MAX_CATALOGUE = 512_000_000
_CANDIDATES = 6
"""Passages that are compared for each one wanted: equals are put in order by day, and copies are left out."""
_SAME_SCORE = 0.02
_MIN_SIMILARITY = 0.25
"""A passage without any word of the query must be at least this similar to it."""
_CHUNKING = Chunking(tokens=140, overlap=20)
"""In estimated tokens, of which a real one has up to two: what the encoder reads."""

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


@dataclass(frozen=True, slots=True)
class IndexState:
    """What is searched now, and what is left out for which reason."""

    sources: int
    passages: int
    read: int
    """Sources that had to be read since the last look."""
    skipped: Mapping[str, int]
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


class WordSearch:
    """Search by words alone, without any package of the extra `retrieval`."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self._ranking = Ranking([chunk.context for chunk in chunks])

    def best(self, query: str, count: int) -> list[tuple[int, float]]:
        scores = self._ranking.scores(query)
        top = max(scores, default=0.0) or 1.0
        order = sorted((number for number, score in enumerate(scores) if score > 0), key=lambda at: (-scores[at], at))
        return [(number, scores[number] / top) for number in order[:count]]


class FindIndex:
    """Everything that is configured, as passages; looked at anew before each search.

    Args:
        sources: What is searched.
        folder: Where the index is kept; None keeps it in memory alone.
        embedder: Searches by meaning as well; None searches by words alone.
        embed_at_once: The most passages whose meaning is computed in one look, so that the first one ends in time. The
            others are found by their words until a later look.

    Example:
        >>> index = FindIndex(Sources(surroundings), folder, None)
        >>> index.refresh()
        >>> index.search("code of the garage", 5)
    """

    def __init__(
        self, sources: Sources, folder: Path | None, embedder: Embedder | None, *, embed_at_once: int = 100
    ) -> None:
        self.sources = sources
        self._folder = folder
        self._embedder = None if embedder is None else _PartialEmbedder(embedder)
        self._embed_at_once = embed_at_once
        self._known: dict[str, ReadSource] | None = None
        self._entries: dict[str, tuple[tuple[Item, ...], tuple[_Entry, ...]]] = {}
        self._shown: list[_Entry] = []
        self._numbers: dict[tuple[str, int], int] = {}
        self._discovery = Discovery((), {})
        self._vectors: DocumentIndex | None = None
        self._words: WordSearch | None = None
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
            return self._state(read)

    def search(self, query: str, count: int, today: date) -> list[Passage]:
        """The passages that match best. Of those that match equally well, the one nearest to today comes first."""
        with self._lock:
            entries = self._shown
            hits = self._hits(query, count * _CANDIDATES)
        ranked = sorted(hits, key=lambda hit: (-round(hit[1] / _SAME_SCORE), _distance(entries[hit[0]], today), hit[0]))
        found: list[Passage] = []
        seen: set[tuple[str, str]] = set()
        for number, score in ranked:
            entry = entries[number]
            owner = self.sources.owner(entry.candidate.place, entry.candidate.name)
            # A copy is left out only in favour of one of the same owner: no stranger's text replaces the user's own.
            if (mark := (owner, entry.chunk.fingerprint)) in seen:
                continue
            seen.add(mark)
            source = self.source_id(entry.candidate, entry.item)
            found.append(Passage(entry.candidate, entry.item, source, entry.chunk.text, round(score, 4)))
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
        # A dependency of huggingface-hub, which is one of ours.
        from filelock import FileLock, Timeout

        lock = None
        with suppress(OSError, Timeout):
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = FileLock(self._folder / "lock", timeout=_LOCK_SECONDS)
            lock.acquire()
        try:
            yield
        finally:
            if lock is not None:
                lock.release()

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

    def _hits(self, query: str, count: int) -> list[tuple[int, float]]:
        # Words like "the" are in every text, and would make every passage a match.
        query = " ".join(word for word in query.split() if word.strip(".,;:?!").lower() not in STOP_WORDS) or query
        if self._vectors is not None:
            results = self._vectors.search(query, min(1_000, max(1, count)), duplicates=True)
            return [
                (number, hit.score)
                for hit in results.hits
                if (number := self._numbers.get((hit.chunk.document, hit.chunk.start))) is not None
                and ((hit.lexical or 0) > 0 or (hit.similarity or 0) >= _MIN_SIMILARITY)
            ]
        if self._words is None:
            self._words = WordSearch([entry.chunk for entry in self._shown])
        return self._words.best(query, count)

    def _embed(self) -> None:
        """Bring the index of vectors in step with the passages, within the limit of one look."""
        assert self._embedder is not None
        index = self._vectors if self._vectors is not None else self._load_vectors(self._embedder)
        # The newest first, as they were discovered.
        documents = {entry.document.id: entry.document for entry in self._shown}
        present = {document.id: document for document in index.documents}
        gone = [name for name in present if name not in documents]
        changed = {name for name, each in documents.items() if present.get(name) != each}
        pending = _documents_without_vectors(index)
        for name in gone:
            index.remove(name)
        if changed or pending:
            order = [each for name, each in documents.items() if name in changed or name in pending]
            now, later = order[: self._embed_at_once], order[self._embed_at_once :]
            for each in now:
                # Removed first: a document that is only replaced keeps the vectors that it has.
                if each.id in pending and each.id in present:
                    index.remove(each.id)
            index.update(now)
            with self._embedder.postponed():
                index.update(each for each in later if each.id in changed)
        if (gone or changed or pending) and self._folder is not None:
            with suppress(RetrievalError):
                index.save(self._folder / "index.safetensors")
        self._vectors = index

    def _load_vectors(self, embedder: _PartialEmbedder) -> DocumentIndex:
        if self._folder is not None:
            with suppress(RetrievalError, OSError):
                index = DocumentIndex.load(self._folder / "index.safetensors", embedder)
                if index.chunking == _CHUNKING:
                    return index
        return DocumentIndex(embedder, _CHUNKING)

    def _state(self, read: int) -> IndexState:
        skipped = Counter(self._discovery.skipped)
        for source in (self._known or {}).values():
            skipped.update([source.skipped] if source.skipped else [])
            skipped["limit"] += source.more
        pending = 0 if self._vectors is None else len(_documents_without_vectors(self._vectors))
        by: SearchedBy = "words" if self._vectors is None else "words and meaning"
        return IndexState(
            len(self._known or {}), len(self._shown), read, {k: n for k, n in skipped.items() if n}, by, pending
        )


def _make_entries(candidate: Candidate, source: ReadSource) -> Iterator[_Entry]:
    for item in source.items:
        # The key may be long and is chosen by others: its hash is the id.
        name = hashlib.sha256(f"{candidate.key}\n{item.id}".encode("utf-8", "surrogatepass")).hexdigest()[:32]
        for number, text in enumerate(item.texts):
            # The title is a heading, so that it is searched with every passage and stands above the first.
            document = TextDocument(f"{name}.{number}", f"# {item.title}\n\n{text}" if item.title else text)
            for chunk in split_document(document, estimate_tokens, _CHUNKING):
                yield _Entry(candidate, item, document, chunk)


def _distance(entry: _Entry, today: date) -> int:
    return abs((entry.item.day - today).days) if entry.item.day is not None else 1_000_000


class _PartialEmbedder:
    """An embedder with one more dimension, for passages whose meaning is not computed yet.

    Such a passage has the vector of that dimension alone, which is perpendicular to every query: it is found by its
    words, and its similarity is 0.
    """

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self._postponed = False

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(f"{self._inner.fingerprint} partial".encode()).hexdigest()

    @property
    def width(self) -> int:
        return self._inner.width + 1

    @property
    def window(self) -> int:
        return self._inner.window

    def lengths(self, texts: Sequence[str]) -> list[int]:
        """Estimated, so that passages are the same with and without an embedder."""
        return estimate_tokens(texts)

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        import numpy as np

        rows = np.zeros((len(texts), self.width), dtype=np.float32)
        if self._postponed:
            rows[:, -1] = 1
        elif texts:
            rows[:, :-1] = self._inner.vectors(texts)
        return rows

    @contextmanager
    def postponed(self) -> Generator[None]:
        """Nothing is embedded inside."""
        self._postponed = True
        try:
            yield
        finally:
            self._postponed = False


def _documents_without_vectors(index: DocumentIndex) -> set[str]:
    stored, _, _ = index.export_contents()
    return {entry.document.id for entry in stored if entry.vectors.shape[0] and float(entry.vectors[0, -1]) > 0.5}
