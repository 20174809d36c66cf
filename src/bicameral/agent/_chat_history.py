"""The history of a conversation: which runs its requests led to, sealed in the journal beside the runs.

A turn holds the id of its run and where in the run's request the person's own words begin, and no text: requests, plans
and results are in the records of the runs. So whoever erases a run erases it from the conversation too, and a
conversation never holds a result without its labels. The events of a conversation are chained like those of a run: one
that was changed is refused.
"""

from __future__ import annotations

import getpass
import hashlib
from dataclasses import dataclass, replace
from typing import Any

from bicameral.errors import BicameralError, JournalError
from bicameral.journal import Journal
from bicameral.runs import new_run_id, recorded_request

MAX_TURNS_READ = 40
"""How many of the newest turns are read when a conversation is continued."""
MAX_TURNS = 400
"""How many turns a conversation may have before the next one begins."""


@dataclass(frozen=True, slots=True)
class ChatTurn:
    """One request of a conversation.

    Args:
        request: The request as it was understood, in the person's own words.
        own: Where in it the words begin that were said in this turn; before them are those of the turns it refers to.
        run: The run that it led to; empty if there was none.
        finished: Whether the run has a result.
        changed: Whether the run changed something.
        many: Whether the result is a list.
    """

    request: str
    own: int = 0
    run: str = ""
    finished: bool = False
    changed: bool = False
    many: bool = False

    @property
    def words(self) -> str:
        """What the person said in this turn, without the earlier request that it refers to."""
        return self.request[self.own :].strip()


class ChatHistory:
    """The conversation of one person in one project; it is continued where it was left.

    Args:
        journal: Where it is stored.
        project: The project it belongs to.

    Example:
        >>> history = agent.chat_history()
        >>> history.load()
        >>> [turn.words for turn in history.turns]
        ['How much did I spend in September?', 'How much did I spend in October?']
    """

    def __init__(self, journal: Journal | None, project: str) -> None:
        self._journal = journal
        self._beginning = f"chat-{_person_hash(project)}-"
        self._id: str | None = None
        self.turns: list[ChatTurn] = []

    def load(self) -> None:
        """Read the newest conversation.

        Raises:
            JournalError: It was changed since it was written. Nothing of it is used then, and the next turn begins a
                new one.
        """
        self.turns = []
        self._id = None if self._journal is None else self._journal.newest_chat(self._beginning)
        if self._journal is None or self._id is None:
            return
        try:
            events = self._journal.events_after(self._id, -1)
            turns = [event.body for event in events if event.kind == "chat-turn"]
            kept = [self._read_turn(body) for body in turns[-MAX_TURNS_READ:]]
        except JournalError:
            self._id = None
            raise
        self.turns = [turn for turn in kept if turn is not None]
        if len(turns) >= MAX_TURNS:
            self._id = None

    def add(self, turn: ChatTurn) -> None:
        """Add a turn. One without a run is remembered in this sitting only: it left nothing to refer to."""
        self.turns.append(turn)
        if self._journal is None or not turn.run:
            return
        if self._id is None:
            self._start()
        self._journal.append(str(self._id), "chat-turn", "", {"run": turn.run, "own": turn.own})

    def add_run(self, request: str, run: str, *, continues: ChatTurn | None = None) -> None:
        """Add the turn of a request with the run that it led to.

        Args:
            request: What the person said, as it was understood.
            run: The run; empty if there was none.
            continues: The turn whose result it speaks of: the record of the run has the words of that one as well.
        """
        if not run or self._journal is None:
            self.add(ChatTurn(request))
            return
        turn = read_turn(self._journal, run)
        if turn is None:
            self.add(ChatTurn(request))
            return
        # Answers to questions stand behind the request, so it is found from its beginning.
        own = max(turn.request.rfind(request), 0) if continues is not None else 0
        self.add(replace(turn, own=own))

    def start_new(self) -> None:
        """Begin a new conversation: the next sitting does not refer to this one either."""
        self.turns = []
        self._start()

    def _start(self) -> None:
        if self._journal is None:
            return
        self._id = f"{self._beginning}{new_run_id()}"
        self._journal.append(self._id, "chat-started", "", {})

    def _read_turn(self, body: dict[str, Any]) -> ChatTurn | None:
        """The turn with what the record of its run says; None if that was erased or has gone."""
        if self._journal is None:
            return None
        run, own = body.get("run"), body.get("own")
        if not isinstance(run, str) or not isinstance(own, int):
            raise JournalError("journal.damaged", f"{self._journal.path}: a turn of {self._id} cannot be read")
        return read_turn(self._journal, run, own)


def read_turn(journal: Journal, run: str, own: int = 0) -> ChatTurn | None:
    """The turn that led to a run, as the record of the run has it; None if that was erased or has gone."""
    try:
        events = journal.events(run)
    except BicameralError as error:
        if error.code in ("journal.erased", "journal.unknown-run"):
            return None
        raise
    request = recorded_request(events[0].body)
    if not request:
        return None
    end = events[-1]
    finished = end.kind == "run-finished"
    return ChatTurn(
        request,
        min(max(own, 0), len(request)),
        run,
        finished,
        bool(end.body.get("effects")),
        finished and isinstance(end.body.get("answer"), list),
    )


def _person_hash(project: str) -> str:
    """Keeps the conversations of projects apart, and those of people who share a journal."""
    try:
        person = getpass.getuser()
    except (KeyError, OSError):
        person = ""
    return hashlib.sha256(f"{person}\n{project}".encode("utf-8", "surrogateescape")).hexdigest()[:12]
