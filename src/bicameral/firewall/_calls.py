"""The calls of a session: tools, documents, typed values of results, and texts that a person lets the model read.

Each is judged by a gate of its own with the session's labels. An answer carries the label of all that it says, also
where it only says that a call failed: whether it does may depend on what others wrote.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from bicameral.errors import BicameralError, JournalError, RunError, ToolError, nearest_name
from bicameral.firewall._approvals import CallPerson, PersonMemory, PersonQuestion, question_hash
from bicameral.firewall._documents import DocumentKind, DocumentReader
from bicameral.firewall._listing import REVEAL_TOOL
from bicameral.firewall._results import SessionResults, redact, shown_text
from bicameral.firewall._settings import server_of
from bicameral.labels import NOTHING, USER, Label, LabelTree, Source, join, join_all, taint
from bicameral.models import ToolCall
from bicameral.patterns.handles import (
    EXTRACT_TOOL,
    FINAL_CODES,
    describe_failure,
    join_written_labels,
    parse_extraction,
)
from bicameral.plans import labels_after_call, labels_after_extract
from bicameral.runs import (
    ActionableText,
    CallGate,
    LiveEffectHandler,
    PendingCall,
    ReplaceRule,
    StepLabels,
    UntrustedPart,
)
from bicameral.types import ANY, STR

if TYPE_CHECKING:
    from bicameral.firewall._firewall import Firewall
    from bicameral.tools import Tool

_NOT_CALLED = ("policy.denied", *FINAL_CODES)
"""Codes of a call that was not made: its tool has decided nothing."""
_WORDS = {
    "firewall.busy": "too many calls are under way; wait for one to end",
    "firewall.ended": "the session has ended; connect anew",
    "firewall.failed": "something went wrong here, so that it was not done",
    "firewall.question-too-long": "it is too large to be put to the user",
    "firewall.unknown-document": "there is no such document",
    "firewall.unshown": "it was done, and its result cannot be shown",
    "foreign.bad-argument": "the server does not take these arguments",
    "foreign.bad-output": "the server gave something else than it declares",
    "foreign.tool-failed": "the server says that it failed",
    "mcp.bad-answer": "the server gave no valid answer",
    "mcp.cannot-start": "the server cannot be started",
    "mcp.changed": "the server has changed this tool since the user reviewed it; they must review it again",
    "mcp.not-reviewed": "nobody has reviewed this tool",
    "mcp.server-down": "the server has ended or cannot be reached",
    "mcp.server-error": "the server reported an error",
    "mcp.timeout": "the server took too long",
    "mcp.tool-gone": "the server has this tool no longer",
    "mcp.unreachable": "the server cannot be reached",
    "openapi.bad-answer": "the service gave no valid answer",
    "pattern.canary-leaked": "it has a word in it that only a text of others can have suggested",
    "rates.exceeded": "this server is called too often; wait before you call it again",
    "run.cap": "the session has used up what it may take",
    "run.needs-answer": "the server asked the user something, and there was no answer",
    "run.needs-approval": "the user must approve this, and cannot be asked",
    "run.refused": "the user did not approve this",
}
"""Fixed words for errors that a client may know of; their messages may quote anything."""
_OTHER_CODE = "tools.failed"
_MAX_ERROR = 1_000
MAX_NAME = 200
MOST_REFUSED = 1_000
"""Calls of a session that were refused before a decision are recorded up to this number; its end counts the rest."""


@dataclass(frozen=True, slots=True)
class CallAnswer:
    """What the client's model reads of a call, the label of that, the code of a failure, and the name of the result."""

    text: str
    label: Label
    failed: str = ""
    handle: str = ""


@dataclass(slots=True, eq=False)
class ClientCall:
    """A call of the client that is under way: either it is answered, or it asks the client's person something."""

    name: str
    arguments: Mapping[str, Any]
    questions: asyncio.Queue[PersonQuestion] = field(default_factory=asyncio.Queue[PersonQuestion])
    task: asyncio.Task[CallAnswer] | None = None

    async def next(self) -> CallAnswer | PersonQuestion:
        """What comes next: a question that must be answered first, or the answer."""
        assert self.task is not None
        asked = asyncio.ensure_future(self.questions.get())
        try:
            await asyncio.wait({self.task, asked}, return_when=asyncio.FIRST_COMPLETED)
            return self.task.result() if self.task.done() else asked.result()
        finally:
            asked.cancel()

    def cancel(self) -> None:
        """Nobody waits for it any longer. What it has begun to change is finished; nothing else of it is done."""
        if self.task is not None:
            self.task.cancel()


@dataclass(slots=True, eq=False)
class SessionState:
    """What the calls of one session share.

    Args:
        firewall: What all sessions share.
        results: The results of the session, by name.
        label: The join of everything that the client's model has read.
        handler: The way of the run to tools, models and people.
        documents: The documents of servers; None if there are none.
        memory: What people have answered.
        places: The labels of the names that things were written to.
        stored: By toolbox, the labels of all that was passed into it.
        written: The labels of the places that were, or may have been, written to.
        actionable: Links, addresses and the like in what calls wrote.
        started: The steps whose tool was called. The code of an error does not say it: a tool can raise any code.
        changing: The steps of calls that change something.
        refused: How many calls never came as far as a decision.
    """

    firewall: Firewall
    results: SessionResults
    label: Label
    documents: DocumentReader | None = None
    handler: LiveEffectHandler | None = None
    memory: PersonMemory = field(default_factory=PersonMemory)
    places: dict[str, LabelTree] = field(default_factory=dict[str, LabelTree])
    stored: dict[str, Label] = field(default_factory=dict[str, Label])
    written: dict[str, LabelTree] = field(default_factory=dict[str, LabelTree])
    actionable: ActionableText = field(default_factory=lambda: ActionableText(None))
    started: set[str] = field(default_factory=set[str])
    changing: set[str] = field(default_factory=set[str])
    refused: int = 0

    def gate(self, person: CallPerson, tool: Tool | None = None) -> CallGate:
        """A gate for one call. One that is refused stops nothing else, so that it is not shared."""
        handler = self.handler_for(person)
        replacing = None
        if tool is not None and tool.target is not None:
            # No words of a person say here that a file may be replaced.
            replacing = ReplaceRule.for_request("", None, self.firewall.registry, handler.changes.touched)
        decider, grants = self.firewall.decider, tuple(self.memory.grants)
        return CallGate(decider, handler, self.actionable, grants=grants, replacing=replacing)

    def note_stored(self, tool: Tool, passed: Iterable[LabelTree], read: Label) -> None:
        """Keep the label of what a call passes into a toolbox."""
        known = self.stored.get(tool.toolbox, NOTHING)
        self.stored[tool.toolbox] = join_all((known, read, *(tree.flat for tree in passed)))

    def with_stored(self, tool: Tool, arguments: Mapping[str, Any], tree: LabelTree) -> LabelTree:
        """The labels of a result, with those of what was passed into its toolbox if the result may hold it.

        What is read by the name it was written to has the label of that name already (`places`). Any other read, such
        as a list of everything, may bring back all that was written.
        """
        stored = self.stored.get(tool.toolbox)
        if stored is None or tool.changes or tool.effect == "pure":
            return tree
        writers = (each for each in self.firewall.tools.tools.values() if each.toolbox == tool.toolbox and each.changes)
        named = {part.name for each in writers for part in each.arguments if part.purpose != "carries"}
        return tree if named & arguments.keys() else taint(tree, stored)

    def handler_for(self, person: CallPerson) -> LiveEffectHandler:
        """The run for one call, with the person who is asked about it."""
        assert self.handler is not None
        return self.handler.for_part(approver=person if person.can_approve else None, asker=person)


CallArguments = tuple[dict[str, Any], dict[str, LabelTree]]
"""The arguments of a call, and the labels of each."""
Work = Callable[[SessionState, ClientCall, str, CallPerson], Awaitable[CallAnswer]]
"""Does a call, at a step of the run, with the person who is asked about it."""


async def perform(state: SessionState, call: ClientCall, do: Work, step: str, person: CallPerson) -> CallAnswer:
    """The answer to a call, whatever happens; only what the record says fails here."""
    read = state.label
    try:
        return await do(state, call, step, person)
    except JournalError:
        raise
    except BicameralError as error:
        failed, words = error.code, own_words(error)
        _note_refused(state, step, call, failed)
    except Exception as error:
        failed, words = "firewall.failed", _fixed_words("firewall.failed")
        _note_refused(state, step, call, type(error).__name__)
    finally:
        state.started.discard(step)
    # Whether a name has a part, and whether it fits, depends on the result that it stands for.
    return CallAnswer(f"error: {words}", join(read, state.results.label_of_names(call.arguments)), failed)


def _note_refused(state: SessionState, step: str, call: ClientCall, code: str) -> None:
    """Record a call that never came as far as a decision, up to a number: these count against no limit of calls."""
    assert state.handler is not None
    state.refused += 1
    if state.refused > MOST_REFUSED:
        return
    facts = {"noted": "call-refused", "tool": call.name[:MAX_NAME], "code": code}
    state.handler.record_note(f"{step}/refused", facts)


async def call_tool(state: SessionState, call: ClientCall, step: str, person: CallPerson) -> CallAnswer:
    """Call a tool of the registry, as policy and people allow it."""
    tools = state.firewall.tools.tools
    tool = tools.get(call.name)
    if tool is None:
        # Also one that the server has and nobody has let through: only what is listed can be called.
        nearest = nearest_name(call.name[:60], (name for name, each in tools.items() if not each.self_described))
        raise ToolError("tools.unknown", f"there is no tool {call.name[:60]!r}", nearest=nearest)
    state.results.check_canary(call.arguments)
    read = state.label
    filled = state.results.fill(tool, call.arguments, read)
    state.firewall.count_call(server_of(tool))
    return await _make_call(state, step, tool, (filled.arguments, filled.trees), read, person)


def document_work(server: str, kind: DocumentKind, number: int | None) -> Work:
    """Reads a document of a server by its number, or lists them if that is None."""

    async def read_document(state: SessionState, call: ClientCall, step: str, person: CallPerson) -> CallAnswer:
        documents = state.documents
        if documents is None:
            raise ToolError("firewall.unknown-document", f"no server has a {kind}")
        tool, arguments = documents.tool(server, kind, number)
        state.firewall.count_call(server)
        read = state.label
        written: CallArguments = (dict(arguments), dict.fromkeys(arguments, read))
        return await _make_call(state, step, tool, written, read, person, documents)

    return read_document


async def _make_call(
    state: SessionState,
    step: str,
    tool: Tool,
    written: CallArguments,
    read: Label,
    person: CallPerson,
    documents: DocumentReader | None = None,
) -> CallAnswer:
    arguments, trees = written
    if tool.changes:
        state.changing.add(step)
        # Before the call: one that fails may have stored something all the same.
        state.note_stored(tool, trees.values(), read)
    note = partial(join_written_labels, state.written)
    try:
        gate = state.gate(person, tool)
        given = await gate.make_call(step, tool, arguments, trees, read, state.places, note, needed=True)
    except JournalError:
        raise
    except BicameralError as error:
        if error.code == "run.refused" and person.unasked:
            # Nobody was asked: the run takes that for a refusal.
            error = RunError(person.unasked, _WORDS[person.unasked])
        return _failure(state, step, tool, trees, read, error)
    except Exception:
        # A fault of a policy or of ours, before the tool was called: its own faults come as typed errors.
        return _failure(state, step, tool, trees, read, RunError("firewall.failed", _WORDS["firewall.failed"]))
    if given is None:
        raise ToolError("tools.failed", f"{tool.name!r} was not called")
    value, tree = given
    tree = state.with_stored(tool, arguments, tree)
    if documents is not None:
        tree = taint(tree, documents.found)
    try:
        # The field names of a tool that nobody has reviewed are untrusted text.
        type_ = ANY if tool.self_described else tool.result
        as_text = state.firewall.settings.shows_text(server_of(tool))
        shown = state.results.show(value, type_, tree, as_text=as_text)
    except Exception:
        return CallAnswer(f"error: {_fixed_words('firewall.unshown')}", tree.flat, "firewall.unshown")
    return CallAnswer(shown.text, shown.label, handle=shown.handle)


def _failure(
    state: SessionState,
    step: str,
    tool: Tool,
    trees: Mapping[str, LabelTree],
    read: Label,
    error: BicameralError,
) -> CallAnswer:
    """What is told of a failed call: fixed words and a code. The message may quote anything, so it gets a name."""
    label = join_all((read, *(tree.flat for tree in trees.values())))
    if step not in state.started:
        if error.code not in _NOT_CALLED:
            # What the arguments name may have decided it, such as a file that is to be attached.
            label = join(label, labels_after_call(tool, dict(trees), None, step, read).flat)
        # The names of the rules are the user's own; the reason may quote anything.
        rules = f" {error.fix}" if error.code == "policy.denied" and error.fix else ""
        return CallAnswer(f"error: {_fixed_words(error.code)}{rules}", label, error.code)
    # What the tool has read, or who answers behind it, may have decided that it fails.
    label = join(label, labels_after_call(tool, dict(trees), None, step, read).flat)
    message = Label({Source("third_party", tool.name, "error", step)}, {USER})
    name = state.results.keep(error.message, STR, join(label, message))
    words = f"error: {_fixed_words(error.code)}. What {tool.name} said of it is kept as ${name}."
    # A tool can raise any code, which then would be its own text.
    known = error.code in _WORDS or f"[{error.code}]" in describe_failure(error.code)
    return CallAnswer(words, label, error.code if known else _OTHER_CODE, name)


async def extract_value(state: SessionState, call: ClientCall, step: str, person: CallPerson) -> CallAnswer:
    """Let the quarantined model fill one typed blank from results."""
    read = state.label
    state.results.check_arguments(call.arguments)
    asked = parse_extraction(ToolCall("", EXTRACT_TOOL, dict(call.arguments)), state.results.names)
    tree = asked.source.label_tree
    found = labels_after_extract(tree, read, step, read)
    labels = StepLabels({"source": tree, "instruction": read}, read, lambda _: found)
    try:
        handler = state.handler_for(person)
        value = await handler.extract(step, asked.source.value, asked.what, asked.wanted, labels)
    except JournalError:
        raise
    except BicameralError as error:
        # Whether the text holds a value at all is what the text says.
        return CallAnswer(f"error: {_fixed_words(error.code)}", join(read, found.flat), error.code)
    shown = state.results.show_view(state.results.keep(value, asked.wanted, found))
    return CallAnswer(shown.text, shown.label, handle=shown.handle)


async def reveal_text(state: SessionState, call: ClientCall, step: str, person: CallPerson) -> CallAnswer:
    """Ask the person whether the client's model may read a text; with their yes it is shown, with its label."""
    read = state.label
    if set(call.arguments) != {"handle"}:
        raise ToolError("tools.wrong-type", "this names no result", expected="a handle, and nothing else")
    name, content = state.results.find(call.arguments["handle"])
    text, label = shown_text(content.value), content.label_tree.flat
    pending = PendingCall(
        step,
        REVEAL_TOOL,
        "pure",
        MappingProxyType({"text": text}),
        question_hash(REVEAL_TOOL, [name, text]),
        "Shall the model of your client read this text? It may do what the text says; each of its later calls that "
        "changes or sends something is put to you.",
        (UntrustedPart("text", label.third_parties),),
        carries=("text",),
    )
    try:
        agreed = await state.gate(person).ask_person(pending)
    except JournalError:
        raise
    except BicameralError as error:
        return CallAnswer(f"error: {_fixed_words(error.code)}", read, error.code)
    if not agreed:
        return CallAnswer(f"error: {_fixed_words('run.refused')}", read, "run.refused")
    # A part such as `$r1[0].body` gets a name of its own, whose text is shown.
    shown = state.results.show_text(state.results.keep(content.value, content.type, content.label_tree))
    return CallAnswer(shown.text, shown.label, handle=shown.handle)


def _fixed_words(code: str) -> str:
    """Words for an error whose message may quote anything."""
    if code.startswith("journal."):
        return f"nothing can be recorded, so that nothing is done [{code}]"
    return f"{_WORDS[code]} [{code}]" if code in _WORDS else describe_failure(code)


def own_words(error: BicameralError) -> str:
    """The words for an error of a call that was not made; only those of the firewall's own checks quote anything.

    What they quote is what the client wrote itself, and names of tools that a person has reviewed.
    """
    if error.code.startswith(("tools.", "firewall.")):
        return redact(str(error))[:_MAX_ERROR]
    return _fixed_words(error.code)
