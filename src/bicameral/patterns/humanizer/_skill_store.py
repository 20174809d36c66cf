"""Skills and their store: their texts, the runs that they come from, how often they worked, and reviews by people."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bicameral.errors import LabelError, RunError
from bicameral.labels import Label, join_all, label_tree_from_json, label_tree_to_json
from bicameral.patterns.humanizer._sealed_log import SealedEntry, SealedLog, endorsed_label, third_party_sources
from bicameral.text import index_words

if TYPE_CHECKING:
    from bicameral.retrieval import Embedder


SkillState = Literal["active", "quarantined", "failing"]
FAILS_AFTER = 3
"""A skill is failing after this many uses if fewer than half of them succeeded."""
_SHORT_WORD = 3
_LIST_FIELDS = ("preconditions", "parameters", "steps")


@dataclass(frozen=True, slots=True)
class SkillText:
    """The text of a skill. A planner reads it; nothing in it runs."""

    name: str
    when: str
    preconditions: tuple[str, ...]
    parameters: tuple[str, ...]
    steps: tuple[str, ...]

    @property
    def words(self) -> frozenset[str]:
        """The words that say what it is about."""
        return content_words(" ".join((self.name, self.when, *self.steps)))

    @property
    def lines(self) -> tuple[str, ...]:
        return (*self.preconditions, *self.steps)


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill, its origin and its record. Only uses in trusted runs are counted, so untrusted text cannot change it."""

    id: str
    text: SkillText
    tools: tuple[str, ...]
    runs: tuple[str, ...]
    """The successful runs that it was made from."""
    topic: frozenset[str]
    """The words that all of their tasks have in common, and so no word of a single task."""
    label: Label
    learned: int
    reviewed: bool = False
    uses: int = 0
    successes: int = 0

    @property
    def words(self) -> frozenset[str]:
        """The words that it is found by."""
        return self.text.words | self.topic

    @property
    def state(self) -> SkillState:
        if not self.label.trusted:
            return "quarantined"
        return "failing" if self.uses >= FAILS_AFTER and 2 * self.successes < self.uses else "active"

    @property
    def sources(self) -> tuple[str, ...]:
        """The untrusted sources that influenced it."""
        return third_party_sources(self.label)

    @property
    def usefulness(self) -> float:
        """The smoothed share of successes: one half for a skill that was never used."""
        return (self.successes + 1) / (self.uses + 2)


SkillReviewer = Callable[[Skill], Awaitable[bool]]
"""Asks a person about a skill and its sources. Only True approves."""


def content_words(text: str) -> frozenset[str]:
    """The words of a text that say what it is about."""
    return frozenset(word for word in index_words(text) if len(word) > _SHORT_WORD)


def word_similarity(left: frozenset[str], right: frozenset[str]) -> float:
    """The cosine similarity of two sets of words, 0 to 1."""
    return len(left & right) / (len(left) * len(right)) ** 0.5 if left and right else 0.0


def skill_text_to_json(text: SkillText) -> dict[str, Any]:
    return {"name": text.name, "when": text.when} | {name: list(getattr(text, name)) for name in _LIST_FIELDS}


def skill_text_from_json(data: Mapping[str, Any]) -> SkillText:
    """The text that `skill_text_to_json` wrote; a ValueError for anything else."""
    if set(data) != {"name", "when", *_LIST_FIELDS}:
        raise ValueError("it has other fields than a skill")
    text = SkillText(data["name"], data["when"], *(tuple(data[name]) for name in _LIST_FIELDS))
    if any(type(each) is not str for each in (text.name, text.when, *text.lines, *text.parameters)):
        raise ValueError("a skill is made of texts")
    return text


SAME_SKILL_SIMILARITY = 0.8
"""From this similarity on two skills count as the same."""
MIN_SIMILARITY = 0.2
_LOCK_SECONDS = 5.0


_ToolSequence = tuple[tuple[str, ...], bool]
"""The tools in the order of their calls, and whether the run was trusted."""


@dataclass(frozen=True, slots=True)
class _Success:
    topic: frozenset[str]
    label: Label


@dataclass
class _Library:
    """The state that the entries of a file add up to."""

    skills: dict[str, Skill] = field(default_factory=dict[str, Skill])
    proven: dict[_ToolSequence, dict[str, _Success]] = field(default_factory=dict[_ToolSequence, dict[str, _Success]])
    learned: int = 0


class SkillStore:
    """Skills in one file, appended to and never changed.

    Example:
        >>> store = SkillStore(folder / "skills.jsonl")
        >>> [skill.text.name for skill in store.best_matches("How many people live in Ghent?", 3)]
        ['look up a population']
    """

    def __init__(self, path: Path, *, known: str | None = None) -> None:
        self._file = SealedLog(path, "bicameral skills 1", known, _LOCK_SECONDS)
        self._vectors: dict[tuple[str, str], Any] = {}

    def skills(self) -> tuple[Skill, ...]:
        """All skills that are not retired, in the order in which they were learned."""
        return tuple(self._library().skills.values())

    def best_matches(self, task: str, k: int, embedder: Embedder | None = None) -> list[Skill]:
        """The `k` active skills that fit a task best, by meaning with an embedder and otherwise by words.

        Each score depends on one skill and the task, so a skill in quarantine cannot change the choice.
        """
        active = self._active()
        if not active:
            return []
        asked = content_words(task)
        by_words = [word_similarity(asked, skill.words) for skill in active]
        scores = by_words if embedder is None else self._meaning_scores(task, active, embedder)
        ranked = sorted(zip(scores, active, strict=True), key=lambda pair: (-pair[0], -pair[1].usefulness))
        return [skill for score, skill in ranked[:k] if score > (0 if embedder is None else MIN_SIMILARITY)]

    @property
    def label(self) -> Label:
        """The label of a choice among skills: the join of all active ones, since each has a part in it."""
        return join_all(skill.label for skill in self._active())

    def record_success(self, tools: Sequence[str], run: str, task: str, label: Label) -> int:
        """Record a proven success; how many runs of the same trust have succeeded with these tools."""
        key = (tuple(tools), label.trusted)
        if run not in self._library().proven.get(key, ()):
            facts = {"tools": list(tools), "run": run, "topic": sorted(content_words(task))}
            self._file.append({"what": "succeeded", **facts, "label": label_tree_to_json(label)})
        return len(self._library().proven[key])

    def has_skill(self, tools: Sequence[str], *, trusted: bool) -> bool:
        """Whether there is a skill with these tools. For a trusted run only trusted skills count."""
        return any(skill.tools == tuple(tools) for skill in _comparable_skills(self.skills(), trusted=trusted))

    def learn(self, text: SkillText, tools: Sequence[str], label: Label, *, most: int) -> Skill | None:
        """Store a skill; None if it is similar to another, or if the store is full of more useful ones."""
        library = self._library()
        proven = library.proven.get((tuple(tools), label.trusted), {})
        if not proven:
            raise RunError("pattern.unproven", "a skill is kept only after a success that was proven")
        if any(
            word_similarity(text.words, each.text.words) >= SAME_SKILL_SIMILARITY
            for each in _comparable_skills(library.skills.values(), trusted=label.trusted)
        ):
            return None
        for _ in range(len(library.skills) + 1 - most):
            worst = _least_useful_skill(library.skills.values(), trusted=label.trusted)
            if worst is None:
                return None
            self._file.append({"what": "retired", "skill": worst.id, "why": "the library is full"})
            del library.skills[worst.id]
        body = {"what": "learned", "text": skill_text_to_json(text), "tools": list(tools), "runs": list(proven)}
        topic = frozenset[str].intersection(*(each.topic for each in proven.values()))
        whole = join_all((label, *(each.label for each in proven.values())))
        self._file.append(body | {"topic": sorted(topic), "label": label_tree_to_json(whole)})
        return self.skills()[-1]

    def record_use(
        self, skill: str, *, task: str, values: Mapping[str, str], ok: bool, tokens: int, label: Label
    ) -> Skill:
        """Record a use and whether it succeeded. A use in an untrusted run is recorded and not counted."""
        self.skill(skill)
        facts: dict[str, Any] = {"task": task, "values": dict(values), "ok": ok, "tokens": tokens}
        self._file.append({"what": "used", "skill": skill, **facts, "label": label_tree_to_json(label)})
        return self.skill(skill)

    async def review(self, skill: str, reviewer: SkillReviewer) -> Skill | None:
        """Let a person review a skill: an approved one is trusted from then on, any other is retired."""
        found = self.skill(skill)
        if await reviewer(found) is True:
            label = label_tree_to_json(endorsed_label(found.label))
            self._file.append({"what": "reviewed", "skill": skill, "sources": list(found.sources), "label": label})
            return self.skill(skill)
        self._file.append({"what": "retired", "skill": skill, "why": "a person said no"})
        return None

    def skill(self, id: str) -> Skill:
        for each in self.skills():
            if each.id == id:
                return each
        raise RunError("pattern.no-skill", f"there is no skill {id[:60]!r}")

    def _active(self) -> list[Skill]:
        return [skill for skill in self.skills() if skill.state == "active"]

    def _meaning_scores(self, task: str, skills: Sequence[Skill], embedder: Embedder) -> list[float]:
        texts = [f"{skill.text.name}. {skill.text.when} {' '.join(sorted(skill.topic))}" for skill in skills]
        new = [each for each in dict.fromkeys([*texts, task]) if (embedder.fingerprint, each) not in self._vectors]
        for each, vector in zip(new, embedder.vectors(new), strict=True):
            self._vectors[embedder.fingerprint, each] = vector
        asked = self._vectors.pop((embedder.fingerprint, task))
        return [float(self._vectors.get((embedder.fingerprint, each), asked) @ asked) for each in texts]

    def _library(self) -> _Library:
        library = _Library()
        for entry in self._file.entries():
            try:
                _apply_entry(library, entry)
            except (KeyError, TypeError, ValueError, AttributeError, LabelError):
                why = "it has a record that says nothing about skills"
                raise self._file.damaged_error(why, entry.number) from None
        return library


def _apply_entry(library: _Library, entry: SealedEntry) -> None:
    body = entry.body
    match body["what"]:
        case "succeeded":
            key = (tuple(body["tools"]), _entry_label(body).trusted)
            library.proven.setdefault(key, {})[body["run"]] = _Success(frozenset(body["topic"]), _entry_label(body))
        case "learned":
            library.learned += 1
            id = f"s{library.learned}"
            tools, runs = tuple(body["tools"]), tuple(body["runs"])
            text, topic = skill_text_from_json(body["text"]), frozenset(body["topic"])
            library.skills[id] = Skill(id, text, tools, runs, topic, _entry_label(body), entry.number)
        case "used":
            skill = library.skills[body["skill"]]
            if _entry_label(body).trusted:
                uses, successes = skill.uses + 1, skill.successes + (body["ok"] is True)
                library.skills[skill.id] = replace(skill, uses=uses, successes=successes)
        case "reviewed":
            skill = library.skills[body["skill"]]
            library.skills[skill.id] = replace(skill, label=_entry_label(body), reviewed=True)
        case "retired":
            del library.skills[body["skill"]]
        case _:
            raise ValueError("an unknown record")


def _entry_label(body: Mapping[str, Any]) -> Label:
    return label_tree_from_json(body["label"]).flat


def _comparable_skills(skills: Iterable[Skill], *, trusted: bool) -> list[Skill]:
    """The skills that a new one is compared with. Untrusted ones must not keep a skill of trusted runs out."""
    return [skill for skill in skills if skill.label.trusted or not trusted]


def _least_useful_skill(skills: Iterable[Skill], *, trusted: bool) -> Skill | None:
    """The skill that makes room for a new one: a quarantined one or, for a trusted one, one that has not proven useful.

    An untrusted skill can only replace an untrusted one.
    """
    known = list(skills)
    quarantined = [skill for skill in known if skill.state == "quarantined"]
    candidates = quarantined or ([skill for skill in known if skill.usefulness <= 1 / 2] if trusted else [])
    return min(candidates, key=lambda skill: (skill.usefulness, skill.learned), default=None)
