"""Questions to models: free text, typed forms, choices, and extraction by the quarantined model.

A question has the join of the labels of its parts and of all that its context has opened, and so has the reply. One
with untrusted text in it goes to the quarantined model. A reply that does not fit is shown to the model again with the
exact reason; both have the label of the reply, since a reason may quote it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, LiteralString

from bicameral.boundary import parse_reply
from bicameral.errors import BicameralError, ModelError, RunError
from bicameral.labels import TRUSTED_USER, Label, Labelled, join, join_all, make_labelled, open_labelled
from bicameral.models import Chamber, Message, ModelReply
from bicameral.patterns._outcome import ModelCallEvent
from bicameral.patterns.kernel._conversation import (
    PromptText,
    Role,
    indent_lines,
    must_not_read_error,
    part_label,
    part_text,
)
from bicameral.patterns.kernel._state import ContextState
from bicameral.patterns.strategies import prompt_fingerprint
from bicameral.plans import labels_after_extract
from bicameral.runs import ModelAnswer, StepLabels, label_tree_json
from bicameral.types import ListType, LiteralType, RecordType, Type, type_json_schema

ValueCheck = Callable[[Any], str | None]
"""What is wrong with a value, in the program's own words; None if nothing is."""


@dataclass(frozen=True, slots=True)
class _Rejection:
    """A reply that was not accepted, with the reason."""

    reply: Labelled[str]
    why: str
    fault: LiteralString
    """Which kind of reason it is, without a word of the reply."""

    def messages(self, context: ContextState) -> tuple[Message, ...]:
        """The reply and the reason, as the model that wrote it reads them."""
        why = make_labelled(self.why, self.reply.label)
        asked = context.join_prompt((self.fault, ": ", why, "\nReply again, with the JSON alone."))
        # Some providers refuse a message without text.
        return Message("assistant", open_labelled(self.reply) or "(nothing)"), Message("user", asked)

    def error(self, role: Role) -> ModelError:
        """The error of a participant who is not asked again. A reason may quote the reply, which may be untrusted."""
        why = f": {self.why}" if self.reply.label.trusted else ""
        return ModelError("models.bad-reply", f"{role.name}: {self.fault}{why}")


class Questions(ContextState):
    """The questions that a context asks."""

    __slots__ = ()

    async def ask(
        self,
        role: Role,
        *parts: PromptText,
        stable: Sequence[PromptText] = (),
        schema: Mapping[str, Any] | None = None,
        sample: int = 0,
    ) -> Labelled[str]:
        """What a participant replies. `stable` is what belongs to the fixed beginning of its prompt, after its setup.

        The parts stand in one message, in their order. Another `sample` is another reply if the role has a temperature.
        """
        return await self._ask_again(role, parts, None, stable=stable, schema=schema, sample=sample)

    async def _ask_again(
        self,
        role: Role,
        parts: Sequence[PromptText],
        rejected: _Rejection | None,
        *,
        stable: Sequence[PromptText],
        schema: Mapping[str, Any] | None,
        sample: int,
    ) -> Labelled[str]:
        self.life.require()
        head = self.prompt_head(role, stable)
        asked = join_all(part_label(part) for part in (*self.prompt_heads, *stable, *parts))
        label = join_all((TRUSTED_USER, self.read_label, asked))
        messages = (Message("system", head), Message("user", self.join_prompt(parts)))
        if rejected is not None:
            label = join(label, rejected.reply.label)
            messages = (*messages, *rejected.messages(self))
        if role.reads == "trusted" and not label.trusted:
            raise must_not_read_error(role)
        reply = await self._ask_model(role, messages, label, schema, sample)
        return make_labelled(reply.text, label)

    async def fill(
        self,
        role: Role,
        *parts: PromptText,
        wanted: Type,
        check: ValueCheck | None = None,
        schema: Mapping[str, Any] | None = None,
        stable: Sequence[PromptText] = (),
        retries: int = 1,
        sample: int = 0,
        repair: Role | None = None,
        repair_sees_question: bool = False,
        max_text: int | None = None,
        max_items: int | None = None,
    ) -> Labelled[Any]:
        """What a participant fills into a typed form. Nothing is coerced: what does not fit is asked for again.

        The participant is shown its last reply and the exact reason. Once a reply was rejected, everything that this
        context does carries the label of that reply.

        Args:
            role: Who is asked.
            parts: The question.
            wanted: The type of the form.
            check: What is wrong with a value of that type, in the program's own words.
            schema: A narrower JSON Schema than that of the type, for providers that constrain the reply to it.
            stable: As in `ask`.
            retries: How often it is asked again.
            sample: As in `ask`.
            repair: Who is asked again instead, from the beginning: it sees the reply and the reason.
            repair_sees_question: Whether it sees the question before them.
            max_text: How many characters a free text in the form may have.
            max_items: How many items a form that is a list may have, for providers that constrain the reply.
        """
        schema = _form_schema(wanted, max_text, max_items) if schema is None else schema
        asked: tuple[PromptText, ...] = parts
        rejected: _Rejection | None = None
        for left in range(retries, -1, -1):
            reply = await self._ask_again(role, asked, rejected, stable=stable, schema=schema, sample=sample)
            found = self._parse(reply, wanted, check)
            if not isinstance(found, _Rejection):
                return found
            self.read_label = join(self.read_label, reply.label)
            self.note("reply-rejected", participant=role.name, retries=left)
            if left == 0:
                raise found.error(role)
            if repair is None:
                rejected = found
            else:
                why = make_labelled(found.why, reply.label)
                seen: tuple[PromptText, ...] = (*parts, "\n\n") if repair_sees_question else ()
                role, asked = repair, (*seen, "This does not fit the form:\n", reply, "\n\nWhat is wrong: ", why)
        raise ModelError("models.bad-reply", f"{role.name} was not asked", expected="retries of 0 or more")

    def _parse(self, reply: Labelled[str], wanted: Type, check: ValueCheck | None) -> Labelled[Any] | _Rejection:
        """The value of a reply, or why it is none."""
        try:
            value = parse_reply(open_labelled(reply), wanted)
        except ValueError as error:
            return _Rejection(reply, str(error), "the reply does not fit the form")
        if check is None:
            return make_labelled(value, reply.label)
        try:
            why = check(value)
        except Exception as error:
            # Whether it fails is decided by the value, and its message may quote it.
            self.read_label = join(self.read_label, reply.label)
            raise RunError("pattern.check-failed", f"a check failed with {type(error).__name__}") from None
        if why is not None:
            return _Rejection(reply, why, "the value is not accepted")
        # Read again: the check may have changed the value, or kept it.
        return make_labelled(parse_reply(open_labelled(reply), wanted), reply.label)

    async def choose(
        self,
        role: Role,
        *parts: PromptText,
        options: Sequence[str] | Mapping[str, PromptText],
        stable: Sequence[PromptText] = (),
        retries: int = 1,
        sample: int = 0,
    ) -> Labelled[str]:
        """One of these options, as a participant chooses. It can write nothing else, where its provider has grammars.

        Args:
            role: Who chooses.
            parts: The question.
            options: Their names, or by name what is said of each. They are shown after the question.
            stable: As in `ask`.
            retries: How often it is asked again.
            sample: As in `ask`.

        Example:
            >>> queue = await context.choose(TRIAGE, mail, options={"billing": "Invoices.", "support": "Defects."})
        """
        names = tuple(options)
        if not names or len(set(names)) < len(names) or not all(name.strip() for name in names):
            raise RunError(
                "pattern.bad-options", f"there are {len(names)} options", expected="one or more, each with its own name"
            )
        empty: PromptText = ""
        told: Mapping[str, PromptText] = options if isinstance(options, Mapping) else dict.fromkeys(names, empty)
        asked: list[PromptText] = list(parts)
        asked.append("\n\nChoose one of:")
        for name in names:
            asked += _option_line(name, told[name])
        return await self.fill(role, *asked, wanted=LiteralType(names), stable=stable, retries=retries, sample=sample)

    async def read_form(
        self,
        role: Role,
        *parts: PromptText,
        wanted: Type,
        check: ValueCheck | None = None,
        stable: Sequence[PromptText] = (),
        retries: int = 0,
    ) -> Any:
        """What a participant fills into a form, as in `fill`, opened; None if no reply was accepted."""
        try:
            return self.read(await self.fill(role, *parts, wanted=wanted, check=check, stable=stable, retries=retries))
        except ModelError as error:
            if error.code != "models.bad-reply":
                raise
            return None

    async def extract(self, role: Role, *parts: PromptText, wanted: Type) -> Labelled[Any]:
        """What the quarantined model finds in these parts, as the setup of the role says, in a typed form.

        It is the extraction of plans: the model sees neither tools nor goals, values of most types must stand in the
        text, and what the text does not say is an error (`run.nothing-found`) and never made up.
        """
        self.life.require()
        label = join_all((TRUSTED_USER, self.read_label, *map(part_label, parts)))
        step = self.step_name("extract")
        found = labels_after_extract(label, self.read_label, step, self.read_label)
        labels = StepLabels({"source": label, "instruction": self.read_label}, self.read_label, lambda _: found)
        source = "".join(map(part_text, parts))
        if self.marker is not None and not label.trusted:
            # What is found must stand in the text word for word, so that only its ends are marked.
            source = self.marker.within(self.note).mark(source, verbatim=True)
        try:
            value = await self.shared.handler.extract(step, source, role.setup, wanted, labels)
        except BicameralError:
            # The text decides whether anything is found in it.
            self.read_label = join(self.read_label, found.flat)
            raise
        return make_labelled(value, labels.result_labels(value))

    async def _ask_model(
        self, role: Role, messages: tuple[Message, ...], label: Label, schema: Mapping[str, Any] | None, sample: int
    ) -> ModelReply:
        models = replace(self.shared.models, max_tokens=role.max_tokens, hint=role.hint, tier=role.tier)
        form = dict(schema) if schema is not None else None
        chamber: Chamber = "privileged" if label.trusted else "quarantined"
        options: dict[str, Any] = {"temperature": role.temperature, "seed": sample}
        facts: dict[str, Any] = {
            "asked": role.name,
            "at": self.path,
            "role": role.job,
            "chamber": chamber,
            "trusted": label.trusted,
            "shade": label_tree_json(label),
            "prompt": prompt_fingerprint(messages, (), form, **options, max_tokens=role.max_tokens),
        }

        async def ask() -> ModelAnswer:
            heard = self.shared.audience.text
            return await models.ask(role.job, messages, label, role.phase, json_schema=form, hear=heard, **options)

        try:
            answer = await self.shared.handler.ask_model(f"{self.place}{self.numbers.next('ask')}", facts, ask)
        except BicameralError:
            # Untrusted text in the question may decide whether a model replies at all.
            self.read_label = join(self.read_label, label)
            raise
        reply, self.last_model = answer.reply, answer.model
        if self.marker is not None:
            try:
                self.marker.check_reply(reply.text)
            except BicameralError:
                self.read_label = join(self.read_label, label)
                raise
        prefix = hashlib.sha256(messages[0].text.encode()).hexdigest()[:12]
        asked = ModelCallEvent(self.path, role.name, chamber, answer.model, label, reply.usage, reply.seconds, prefix)
        self.shared.trace.append(asked)
        return reply


def _form_schema(wanted: Type, max_text: int | None, max_items: int | None = None) -> dict[str, Any]:
    """The JSON Schema of a reply; a value that is no record is in a field of its own."""
    schema: dict[str, Any] = type_json_schema(wanted, max_text=max_text)
    if isinstance(wanted, ListType) and max_items is not None:
        schema |= {"maxItems": max_items}
    if isinstance(wanted, RecordType):
        return schema
    alone: dict[str, Any] = {"type": "object", "properties": {"value": schema}, "required": ["value"]}
    return alone | {"additionalProperties": False}


def _option_line(name: str, told: PromptText) -> tuple[PromptText, PromptText]:
    """An option as it is shown. Its name may have come from untrusted text, and then so has the line."""
    named = make_labelled(f"\n- {indent_lines(name)}", part_label(name))  # pyright: ignore[reportArgumentType]
    about = make_labelled(f": {indent_lines(text)}" if (text := part_text(told)) else "", part_label(told))
    return named, about
