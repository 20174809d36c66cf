"""Actions of a context: calls of tools, conversations in which a model asks for them, approvals, and other effects."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, LiteralString, TypeVar, cast

from bicameral.errors import BicameralError, JournalError, RunError, ToolError
from bicameral.labels import (
    NOTHING,
    TRUSTED_USER,
    Label,
    Labelled,
    join,
    join_all,
    label_tree_from_json,
    make_labelled,
    open_labelled,
)
from bicameral.limits import BudgetSpent, LimitReached
from bicameral.patterns._conversation import FINAL_CODES, join_written_labels
from bicameral.patterns._error_log import CompactError
from bicameral.patterns._outcome import ModelCallEvent, ToolCallEvent
from bicameral.patterns.kernel._conversation import UNKNOWN_TOOL, Role, RoleConversation, unlabelled_value_label
from bicameral.patterns.kernel._state import ContextState
from bicameral.patterns.reasoner import describe_failure
from bicameral.patterns.strategies import ModelTurn, ToolConversation, parse_arguments
from bicameral.plans import labels_after_ask, labels_after_call
from bicameral.runs import PendingCall, StepLabels, UntrustedPart, label_tree_json
from bicameral.types import Type, to_plain, value_from_json, value_to_json

if TYPE_CHECKING:
    from bicameral.patterns.kernel._context import Context


T = TypeVar("T")
QUESTION = "question"
"""What a person sees as the tool where a pattern asks a question of its own."""
_NOT_CALLED_CODES = ("policy.denied", *FINAL_CODES)
"""Codes of a call that was not made, or of which only a person's no is known: the tool decided nothing."""


_RUN_CODES = ("run.", "pattern.", "policy.")


def _is_of_run(error: BicameralError) -> bool:
    """Whether the run itself refuses or ends a call: such an error quotes nothing that was given or read.

    By the code, since a recorded error of a tool need not come back as the class that it had.
    """
    return error.code.startswith(_RUN_CODES) or isinstance(error, LimitReached | BudgetSpent | JournalError)


class CallFailed(ToolError):
    """A call failed after untrusted text had a part in it: the code is that of its error, the words are the kernel's.

    `report` is the message of the tool, which may quote that text; `exit_code` is that of a command that ended.
    """

    def __init__(self, tool: str, error: BicameralError, label: Label) -> None:
        from bicameral.tools import CommandFailed

        super().__init__(error.code, f"the call of {tool!r} failed, and its message may quote untrusted text")
        self.report = make_labelled(error.message, label)
        self.exit_code = error.exit_code if isinstance(error, CommandFailed) else None


class Actions(ContextState):
    """What a context does to the world, and the person it asks."""

    __slots__ = ()

    async def call(self, tool: str, arguments: Mapping[str, Any], *, because: Label = NOTHING) -> Labelled[Any]:
        """Call a tool as policy allows. Arguments are values or labelled values; `because` is the label of whatever
        chose this call, where that was not opened here."""
        if self.error_log is not None:
            self.error_log.require()
        decided = join_all((TRUSTED_USER, self.read_label, because))
        found = self.find_tool(tool, decided)
        given_for = {name: self._argument(each).with_label(decided) for name, each in arguments.items()}
        trees = {name: each.label_tree for name, each in given_for.items()}
        values = {name: open_labelled(each) for name, each in given_for.items()}
        self.meter.count_tool_call()
        step, begun = self.step_name("call"), time.perf_counter()
        label = join_all((decided, *(tree.flat for tree in trees.values())))
        try:
            given = await self.call_gate.make_call(
                step,
                found,
                parse_arguments(found, values),
                trees,
                decided,
                self.shared.places,
                partial(join_written_labels, self.shared.written_labels),
                needed=True,
            )
        except BicameralError as error:
            if error.code not in _NOT_CALLED_CODES:
                # The source of a result may decide whether the tool returns anything at all.
                label = join(label, labels_after_call(found, trees, None, step, decided).flat)
            self.read_label = join(self.read_label, label)
            self.shared.trace.append(ToolCallEvent(self.path, tool, label, time.perf_counter() - begun, error.code))
            if self.error_log is not None and error.code not in FINAL_CODES:
                # By its code: nobody has read more of it here, and a count is to say no more than that.
                self.error_log.add(CompactError.of(error.code, tool, describe_failure(error.code)))
                self.error_log.require()
            if self.read_label.trusted or _is_of_run(error):
                raise
            # The message may quote the arguments, or what the tool has read.
            raise CallFailed(tool, error, self.read_label) from None
        if given is None:
            raise ToolError("tools.failed", f"{tool!r} was not called")
        if self.error_log is not None:
            self.error_log.add_success()
        value, tree = given
        self.shared.trace.append(ToolCallEvent(self.path, tool, tree.flat, time.perf_counter() - begun))
        return make_labelled(value, tree)

    def _argument(self, value: Any) -> Labelled[Any]:
        if isinstance(value, Labelled):
            return cast("Labelled[Any]", value)
        # The label of what was opened here covers whatever was computed from it; anything else comes from outside.
        return make_labelled(value, unlabelled_value_label(value) if self.read_label.trusted else TRUSTED_USER)

    def conversation(
        self,
        role: Role,
        *,
        sample: int = 0,
        shorten_result: Callable[[str], str] | None = None,
        history: int | None = None,
    ) -> RoleConversation:
        """A conversation with a role that may ask for tools itself, in the same run and with the same label rules.

        Args:
            role: Who takes part.
            sample: Another one is another conversation if the role has a temperature.
            shorten_result: The text of a result as the role reads it. Its label stays that of the whole result.
            history: Characters beyond which the oldest parts are shortened. None where untrusted spans are marked.
        """
        shared, registry = self.shared, self.registry

        def turned(turn: ModelTurn) -> None:
            asked = ModelCallEvent(self.path, role.name, turn.chamber, turn.model, turn.read, turn.usage, turn.seconds)
            shared.trace.append(asked)

        def called(tool: str, label: Label, seconds: float, failed: str | None) -> None:
            # The name of a tool that does not exist was made up by a model, and may be untrusted text.
            shared.trace.append(
                ToolCallEvent(self.path, tool if tool in registry else UNKNOWN_TOOL, label, seconds, failed)
            )

        talk = ToolConversation(
            replace(shared.models, max_tokens=role.max_tokens, hint=role.hint, tier=role.tier),
            self.call_gate,
            shared.handler,
            registry,
            self.meter,
            replace(shared.audience, turn=turned, call=called),
            written_labels=shared.written_labels,
            label=self.read_label,
            places=shared.places,
            path=f"{self.step_name('talk')}/",
            temperature=role.temperature,
            seed=sample,
            marker=None if self.marker is None else self.marker.within(self.note),
            shorten_result=shorten_result,
            # A short form of a marked span has no end mark: what follows it would count as untrusted, or it as trusted.
            history=history if self.marker is None else None,
            errors=self.error_log,
        )
        return RoleConversation(cast("Context", self), role, talk)

    # People and other effects ---------------------------------------------------------------------------------------

    async def approve(self, question: LiteralString, **details: Labelled[Any]) -> bool:
        """Whether a person says yes to a question of the program, and to exactly these details.

        The person sees which details are untrusted. Their yes is no permit for a call: policy still decides about each.
        Where the run may wait, it waits without a process until there is an answer; with nobody to ask, it fails.

        Example:
            >>> if not await context.approve("Is this the reply that should go out?", reply=draft):
            ...     return program_text("Nothing was sent.")
        """
        self.life.require()
        step = self.step_name("approve")
        trees = {name: each.with_label(self.read_label) for name, each in details.items()}
        shown = {name: to_plain(open_labelled(each)) for name, each in trees.items()}
        labels = {name: each.label for name, each in trees.items()} | {"": self.read_label}
        text = json.dumps([step, question, {name: value_to_json(value) for name, value in shown.items()}])
        call = PendingCall(
            step,
            QUESTION,
            "pure",
            MappingProxyType(shown),
            hashlib.sha256(text.encode()).hexdigest(),
            question,
            tuple(UntrustedPart(name, label.third_parties) for name, label in labels.items() if not label.trusted),
        )
        return await self.shared.call_gate.ask_person(call)

    async def ask_person(
        self, question: LiteralString, *, wanted: Type, about: Sequence[Labelled[Any]] = ()
    ) -> Labelled[Any]:
        """What a person replies to a question of the program, as a value of this type.

        Whatever they were shown before (`about`) may have decided what they reply, so the reply has its label. Where
        the run may wait, it waits without a process until there is a reply; with nobody to ask, it fails.

        Example:
            >>> reason = await context.ask_person("Why should it not go out?", wanted=STR, about=[draft])
        """
        self.life.require()
        step = self.step_name("question")
        shown = join_all((self.read_label, *(each.label for each in about)))
        label = labels_after_ask(shown, step, self.read_label)
        labels = StepLabels({"question": shown}, self.read_label, lambda _: label)
        return make_labelled(await self.shared.handler.ask(step, question, wanted, labels), label)

    async def once(
        self, name: LiteralString, work: Callable[[], Awaitable[Labelled[T]]], *, repeatable: bool = False
    ) -> Labelled[T]:
        """The result of work that has an effect outside of the tools, such as a write to a store, done once a run.

        It is recorded before it begins and when it has ended; whoever resumes the run gets the recorded result. Work
        whose process died in between may have been done: a person is asked before it is done again.

        Args:
            name: What the work is called in the record.
            work: The work. `call_key()` of `bicameral.tools` is the same each time it is tried.
            repeatable: Whether it may be done again without a question.

        Example:
            >>> async def save() -> Labelled[str]:
            ...     return context.derive(store.add(text))
            >>> id = await context.once("save the note", save)
        """
        self.life.require()
        step = f"{self.place}once {self.numbers.next('once')}"
        for interceptor in self.interceptors:
            await interceptor.admit_work(cast("Context", self), step, name)
        done = await self.shared.handler.do_once(step, name, work, self.read_label, repeatable=repeatable)
        return done.with_label(self.read_label)

    def recall(self, name: LiteralString, read: Callable[[], Labelled[T]]) -> Labelled[T]:
        """A value from a store outside of the run, read once a run and recorded.

        Whoever resumes or replays the run gets the recorded value, whatever the store holds by then. The value is
        plain: text, numbers, lists and dicts.

        Example:
            >>> facts = context.recall("facts", lambda: store.snapshot())
        """
        self.life.require()
        place = self.step_name("recall")
        recorded = self.shared.handler.recorded_note(place)
        if recorded is None:
            found = read()
            facts = {"recalled": name, "value": value_to_json(to_plain(open_labelled(found)))}
            recorded = facts | {"shade": label_tree_json(found.label_tree)}
        self.shared.handler.record_note(place, dict(recorded))
        value = cast("T", value_from_json(recorded["value"]))
        return make_labelled(value, label_tree_from_json(recorded["shade"])).with_label(self.read_label)

    def save(self, what: LiteralString, **facts: str | float | bool) -> Mapping[str, Any]:
        """Save the state of the run: everything that was recorded so far is on the disk, and these facts with it.

        Whoever resumes or replays the run gets the facts that were saved then. A run without a record fails here.

        Example:
            >>> asked = context.save("question", at=time.time())["at"]
        """
        self.life.require()
        handler = self.shared.handler
        if not handler.is_recorded:
            raise RunError(
                "pattern.no-record",
                "the state cannot be saved: this run has no record",
                expected="a runtime with a journal in a file or in a database",
            )
        place = self.step_name("save")
        saved = handler.recorded_note(place) or {"saved": what, **facts}
        handler.record_note(place, dict(saved), sync=True)
        return saved
