"""Skills and their store: their texts, the runs that they come from, how often they worked, and reviews by people."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from bicameral.errors import RecordError, RunError
from bicameral.labels import Label, Labelled, join_all, make_labelled, open_labelled
from bicameral.postgres import masked_address
from bicameral.records import Proposal, Record, RecordLimits, Records
from bicameral.text import index_words

if TYPE_CHECKING:
    from bicameral.retrieval import Embedder


SkillState = Literal["active", "quarantined", "failing"]
FAILS_AFTER = 3
"""A skill is failing after this many uses if fewer than half of them succeeded."""
_SHORT_WORD = 3


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
    proven_at: float = 0.0
    """When it was last proven: by a success of its shape, by a use, or by a person. Untrusted runs prove nothing."""

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
        return tuple(str(source) for source in self.label.third_parties)

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


def skill_text_from_plain(facts: Mapping[str, Any]) -> SkillText:
    """The text that became a plain value."""
    lists = (tuple(facts[name]) for name in ("preconditions", "parameters", "steps"))
    return SkillText(facts["name"], facts["when"], *lists)


SAME_SKILL_SIMILARITY = 0.8
"""From this similarity on two skills count as the same."""
MIN_SIMILARITY = 0.2
_AUTHOR = "skill accumulation"
_ATTEMPTS = 20
_LIMITS = RecordLimits(records=100_000, proposals=10_000)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StoredSkill:
    """A skill as a record has it."""

    text: SkillText
    tools: tuple[str, ...]
    runs: tuple[str, ...]
    topic: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SkillSuccess:
    """A run that has verifiably succeeded."""

    tools: tuple[str, ...]
    run: str
    topic: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SkillUse:
    """One use of a skill, and whether it succeeded."""

    skill: str
    task: str
    values: dict[str, str]
    ok: bool
    tokens: int


@dataclass(frozen=True)
class SkillStore:
    """Skills, successes and uses, as records of one owner.

    What untrusted runs have taught is a proposal, which `bicameral records review` shows as well.

    Args:
        place: A file, or the address of a database.
        owner: Whose skills these are, and the name under which they are reviewed.
        known: The seal of an entry of the skills that the caller has stored elsewhere; a store without it is refused.

    Example:
        >>> store = SkillStore(folder / "records.db", owner="ada")
        >>> [skill.text.name for skill in store.best_matches("How many people live in Ghent?", 3)]
        ['look up a population']
    """

    place: Path | str = field(repr=False)
    owner: str = "owner"
    known: str | None = None

    def __post_init__(self) -> None:
        # A run records the fields of its pattern: the password of an address must be known as a secret by then.
        masked_address(str(self.place))

    @cached_property
    def _skills(self) -> Records[StoredSkill]:
        return Records(self.place, StoredSkill, owner=self.owner, collection="skills", limits=_LIMITS, known=self.known)

    @cached_property
    def _successes(self) -> Records[SkillSuccess]:
        return Records(self.place, SkillSuccess, owner=self.owner, collection="skill successes", limits=_LIMITS)

    @cached_property
    def _uses(self) -> Records[SkillUse]:
        return Records(self.place, SkillUse, owner=self.owner, collection="skill uses", limits=_LIMITS)

    @cached_property
    def _vectors(self) -> dict[tuple[str, str], Any]:
        """The vectors of texts, by the fingerprint of the embedder."""
        return {}

    def skills(self) -> tuple[Skill, ...]:
        """All skills that are not retired, in the order in which they were learned."""
        used: dict[str, tuple[int, int]] = {}
        proven: dict[str | tuple[str, ...], float] = {}
        # Uses in untrusted runs are proposals that nobody decides about: they are recorded and not counted.
        for record in self._uses.all():
            use = open_labelled(record.value)
            uses, successes = used.get(use.skill, (0, 0))
            used[use.skill] = (uses + 1, successes + use.ok)
            if use.ok:
                proven[use.skill] = record.provenance.at
        for record in self._successes.all():
            proven[open_labelled(record.value).tools] = record.provenance.at
        versions = self._skills.versions()
        learned = {id: number for number, id in enumerate(dict.fromkeys(record.id for record in versions))}
        return tuple(
            _skill(
                record,
                learned[record.id],
                *used.get(record.id, (0, 0)),
                max(proven.get(record.id, 0.0), proven.get(open_labelled(record.value).tools, 0.0)),
            )
            for record in versions
            if record.is_current or record.state == "proposed"
        )

    def best_matches(
        self, task: str, k: int, embedder: Embedder | None = None, *, proven_since: float = 0.0
    ) -> list[Skill]:
        """The `k` active skills that fit a task best, by meaning with an embedder and otherwise by words.

        A skill that was last proven before `proven_since` is not among them until it is proven again. Each score
        depends on one skill and the task, so a skill in quarantine cannot change the choice.
        """
        active = [skill for skill in self._active() if skill.proven_at >= proven_since]
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
        """Record a proven success; how many runs of the same trust have succeeded with these tools.

        Of untrusted runs no more are recorded once too many wait.
        """
        if run not in self._proven(tools, trusted=label.trusted):
            success = SkillSuccess(tuple(tools), run, tuple(sorted(content_words(task))))
            _add_if_room(self._successes, make_labelled(success, label))
        return len(self._proven(tools, trusted=label.trusted))

    def has_skill(self, tools: Sequence[str], *, trusted: bool) -> bool:
        """Whether there is a skill with these tools. For a trusted run only trusted skills count."""
        return any(skill.tools == tuple(tools) for skill in _comparable_skills(self.skills(), trusted=trusted))

    def learn(self, text: SkillText, tools: Sequence[str], label: Label, *, most: int) -> Skill | None:
        """Store a skill; None if it is similar to another, or if the store is full of more useful ones."""
        proven = self._proven(tools, trusted=label.trusted)
        if not proven:
            raise RunError("pattern.unproven", "a skill is kept only after a success that was proven")
        known = list(self.skills())
        if any(
            word_similarity(text.words, each.text.words) >= SAME_SKILL_SIMILARITY
            for each in _comparable_skills(known, trusted=label.trusted)
        ):
            return None
        for _ in range(len(known) + 1 - most):
            worst = _least_useful_skill(known, trusted=label.trusted)
            if worst is None:
                return None
            self._skills.withdraw(worst.id, by=_AUTHOR, reason="the library is full")
            known.remove(worst)
        topics = (frozenset(open_labelled(each.value).topic) for each in proven.values())
        topic = tuple(sorted(frozenset[str].intersection(*topics)))
        whole = join_all((label, *(each.label for each in proven.values())))
        return self._add_skill(make_labelled(StoredSkill(text, tuple(tools), tuple(proven), topic), whole))

    def _add_skill(self, value: Labelled[StoredSkill]) -> Skill:
        for _ in range(_ATTEMPTS):
            id = self._unused_id()
            try:
                self._skills.add(value, author=_AUTHOR, id=id)
            except RecordError as error:
                # Another process may take the same number.
                if error.code != "records.conflict":
                    raise
                continue
            return self.skill(id)
        raise RunError("pattern.store-busy", "other processes learn skills all the time", fix="Try again later.")

    def _unused_id(self) -> str:
        """An id that no skill has had, erased ones included."""
        had = {*self._skills.ids(), *(each.id for each in self._skills.tombstones())}
        return f"s{len(had) + 1}"

    def record_use(
        self,
        skill: str,
        *,
        task: str,
        values: Mapping[str, str],
        ok: bool,
        tokens: int,
        label: Label,
        key: str | None = None,
    ) -> Skill:
        """Record a use and whether it succeeded. A use in an untrusted run is recorded and not counted.

        With a `key` it is recorded once, however often this is called.
        """
        self.skill(skill)
        if key is None or key not in self._uses.ids():
            use = SkillUse(skill, task, dict(values), ok, tokens)
            _add_if_room(self._uses, make_labelled(use, label), id=key)
        return self.skill(skill)

    async def review(self, skill: str, reviewer: SkillReviewer) -> Skill | None:
        """Let a person review a skill: an approved one is trusted from then on, any other is retired."""
        found = self.skill(skill)
        record = self._skills.history(skill)[-1]

        async def ask(_: Proposal[StoredSkill]) -> bool:
            return await reviewer(found)

        if record.state == "proposed":
            reviewed = await self._skills.review(record, ask, by=self.owner)
            return self.skill(skill) if reviewed.is_current else None
        if await reviewer(found) is True:
            return found
        self._skills.withdraw(skill, by=self.owner, reason="a person said no")
        return None

    def skill(self, id: str) -> Skill:
        for each in self.skills():
            if each.id == id:
                return each
        raise RunError("pattern.no-skill", f"there is no skill {id[:60]!r}")

    def _active(self) -> list[Skill]:
        return [skill for skill in self.skills() if skill.state == "active"]

    def _proven(self, tools: Sequence[str], *, trusted: bool) -> dict[str, Record[SkillSuccess]]:
        """The successes with these tools, by their runs: of trusted runs, or of untrusted ones, which only wait."""
        records = self._successes.all() if trusted else self._successes.pending()
        found = ((open_labelled(each.value), each) for each in records)
        return {success.run: each for success, each in found if success.tools == tuple(tools)}

    def _meaning_scores(self, task: str, skills: Sequence[Skill], embedder: Embedder) -> list[float]:
        texts = [f"{skill.text.name}. {skill.text.when} {' '.join(sorted(skill.topic))}" for skill in skills]
        new = [each for each in dict.fromkeys([*texts, task]) if (embedder.fingerprint, each) not in self._vectors]
        for each, vector in zip(new, embedder.vectors(new), strict=True):
            self._vectors[embedder.fingerprint, each] = vector
        asked = self._vectors.pop((embedder.fingerprint, task))
        return [float(self._vectors.get((embedder.fingerprint, each), asked) @ asked) for each in texts]


def _add_if_room(records: Records[T], value: Labelled[T], *, id: str | None = None) -> None:
    try:
        records.add(value, author=_AUTHOR, id=id)
    except RecordError as error:
        # A flood of untrusted runs must not stop the run of a user who reads one of them.
        if error.code != "records.full" or value.label.trusted:
            raise


def _skill(record: Record[StoredSkill], learned: int, uses: int, successes: int, proven_at: float) -> Skill:
    stored = open_labelled(record.value)
    return Skill(
        record.id,
        stored.text,
        stored.tools,
        stored.runs,
        frozenset(stored.topic),
        record.label,
        learned,
        record.review is not None,
        uses,
        successes,
        max(proven_at, 0.0 if record.review is None else record.review.at),
    )


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
