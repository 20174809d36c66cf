"""Roles, labelled text for their prompts, and conversations in which a role asks for tools.

Token counts are estimates without a tokenizer, for limits on the length of texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from string import Formatter
from typing import TYPE_CHECKING, Any, Literal, LiteralString, TypeVar

from bicameral.errors import LabelError, ModelError, RunError
from bicameral.labels import (
    TRUSTED_USER,
    Label,
    Labelled,
    LabelTree,
    RecordLabels,
    join,
    join_trees,
    laundered_label,
    make_labelled,
    note_own_words,
    open_labelled,
    vouched_value,
)
from bicameral.limits import PlanningRole
from bicameral.models import ModelReply
from bicameral.patterns.strategies import PhaseName, ToolConversation

if TYPE_CHECKING:
    from bicameral.evaluation import Subject
    from bicameral.patterns.kernel._context import Context
    from bicameral.patterns.strategies import Runtime


UNKNOWN_TOOL = "(unknown)"
"""Stands for the name of a tool that does not exist: a model made it up, perhaps from untrusted text."""


_PIECE = re.compile(r"[A-Za-z]+|[^\s]")
_LETTERS_PER_TOKEN = 5
_MAX_CHARACTERS_PER_TOKEN = 16
CHARACTERS_PER_TOKEN = 4
"""How many characters a token has on average, for limits in characters."""


def approximate_tokens(text: str) -> int:
    """An estimate that is rather too high: words by length; each digit, mark and letter of other scripts as one.

    Example:
        >>> approximate_tokens("The fee is 40 euros.")
        7
    """
    return sum(-(-len(piece) // _LETTERS_PER_TOKEN) for piece in _PIECE.findall(text))


def cut_to_tokens(text: str, most: int) -> str:
    """The beginning of a text, at most `most` tokens by the same estimate.

    White space counts as nothing, so the number of characters has a limit as well.
    """
    left = most
    for found in _PIECE.finditer(text):
        tokens = -(-len(found[0]) // _LETTERS_PER_TOKEN)
        if tokens > left:
            return text[: min(found.start() + left * _LETTERS_PER_TOKEN, most * _MAX_CHARACTERS_PER_TOKEN)]
        left -= tokens
    return text[: most * _MAX_CHARACTERS_PER_TOKEN]


def shorten_text(text: str, most: int) -> str:
    """The beginning of a text as in `cut_to_tokens`, and how much of it is not shown.

    Example:
        >>> shorten_text("one two three four", 2)
        'one two\\n… (11 more characters are not shown)'
    """
    head = cut_to_tokens(text, most).rstrip()
    left = len(text.rstrip()) - len(head)
    return f"{head}\n… ({left:,} more characters are not shown)" if left > 0 else text


T = TypeVar("T")
U = TypeVar("U")


def map_labelled(closed: Labelled[T], change: Callable[[T], U]) -> Labelled[U]:
    """Like `map`, for a function of this package: it stores nothing, and its errors do not quote the value."""
    return make_labelled(change(open_labelled(closed)), closed.label)


def select_fields(closed: Labelled[Any], names: Iterable[str]) -> Labelled[dict[str, Any]]:
    """A record of these fields, each with its own label: those that are left out have no part in the result."""
    taken = {name: closed.field(name) for name in names}
    tree = RecordLabels(closed.label_tree.own, {name: each.label_tree for name, each in taken.items()})
    return make_labelled({name: open_labelled(each) for name, each in taken.items()}, tree)


def join_labelled(values: Iterable[Labelled[T]]) -> Labelled[list[T]]:
    """Several values as one list, each with all labels of all of them."""
    found = list(values)
    tree: LabelTree = TRUSTED_USER
    for each in found:
        tree = join_trees(tree, each.label)
    return make_labelled([open_labelled(each) for each in found], tree.flat)


def format_text(words: LiteralString, **parts: Labelled[Any]) -> Labelled[str]:
    """A fixed text with labelled values in it: `format_text("Question: {question}", question=question)`.

    The text must be a literal of the program, which the type checker enforces; values are passed by name.
    """
    names = {name for _, name, _, _ in Formatter().parse(words) if name is not None}
    if names != set(parts):
        missing = ", ".join(sorted(names ^ set(parts)))
        raise LabelError("labels.malformed", f"the words and the parts of a text do not go together: {missing}")
    label = TRUSTED_USER
    for part in parts.values():
        label = join(label, part.label)
    return make_labelled(
        words.format(**{name: render_value(open_labelled(part)) for name, part in parts.items()}), label
    )


def indent_lines(text: str) -> str:
    """The text with all lines but the first indented: no line of a result can pass for a line of the prompt."""
    return "\n  ".join(text.splitlines())


def render_value(value: object) -> str:
    """A value as a model reads it."""
    from bicameral.patterns.strategies import render_result

    return render_result(value)


def require_tokens(tool: str, value: object, most: int, *, fix: LiteralString) -> None:
    """Raise if the result of a tool, as a model reads it, has more tokens by the estimate."""
    tokens = approximate_tokens(render_value(value))
    if tokens > most:
        raise RunError(
            "pattern.long-result",
            f"the result of {tool!r} has about {tokens} tokens",
            expected=f"at most {most}",
            fix=fix,
        )


PromptText = Labelled[Any] | LiteralString
"""A part of a prompt: a labelled value, or a literal of the program."""


def part_text(part: PromptText) -> str:
    """A part as a model reads it. For the kernel alone."""
    return part if isinstance(part, str) else render_value(open_labelled(part))


def part_label(part: PromptText) -> Label:
    """The label of a part; a literal of the program is trusted."""
    if isinstance(part, Labelled):
        return part.label
    label = unlabelled_value_label(part)
    if label is TRUSTED_USER:
        # A model may repeat its prompt, which does not make the prompt untrusted.
        note_own_words(part)
    return label


def unlabelled_value_label(value: object) -> Label:
    """The label of a value without one in a pattern: the program's own, unless a text in it came from untrusted output.

    The types forbid that, so it happens only by mistake; the value then has its label again, and policy decides.
    """
    found = laundered_label(value)
    return TRUSTED_USER if found is None else join(TRUSTED_USER, found)


RoleTier = Literal["small", "mid", "large"]


@dataclass(frozen=True, slots=True)
class Role:
    """One participant that is a model, by the name it has in the catalogue.

    Args:
        setup: The beginning of every prompt, always the same, so that it can be cached.
        reads: With "trusted", a prompt with untrusted text is refused instead of being sent to the quarantined model.
        job: With `phase` and `hint`, what routers choose a model by.
        hint: A role of the configuration's own, such as `coding`, or a word that its rules test.
        tier: How capable a model it needs. It counts as the hint where there is none and the configuration has a role
            or a rule of this name; otherwise it has no effect.
        temperature: Above 0 each `sample` is another reply.
    """

    name: str
    setup: str
    reads: Literal["anything", "trusted"] = "anything"
    tier: RoleTier = "mid"
    job: PlanningRole = "reasoning"
    phase: PhaseName | None = None
    max_tokens: int = 512
    temperature: float = 0.0
    hint: str | None = None

    def __post_init__(self) -> None:
        if self.hint is not None:
            # A hint chooses a model: what an untrusted text said is none.
            vouched_value(self.hint)
        # A setup is trusted text in every prompt, also in those of the privileged chamber.
        vouched_value(self.setup)

    def as_subject(self, runtime: Runtime, /) -> Subject[str, str]:
        """This role, asked once for each case, as the subject of an evaluation."""
        from bicameral.patterns.kernel._subject import role_subject

        return role_subject(self, runtime)


class RoleConversation:
    """A conversation of one role; it and its context have one label.

    A pattern gets replies and results here without labels, so they count as opened: from the first untrusted text on
    everything that the context does carries its label, and the label of what the context has opened elsewhere is joined
    to this conversation.
    """

    def __init__(self, context: Context, role: Role, talk: ToolConversation) -> None:
        self._context = context
        self._role = role
        self._talk = talk
        for part in context.prompt_heads:
            context.read_label = join(context.read_label, part_label(part))
        talk.system(context.prompt_head(role))

    def tell(self, *parts: PromptText) -> None:
        """Add one message to the participant."""
        for part in parts:
            self._context.read_label = join(self._context.read_label, part_label(part))
        self._join_labels()
        self._talk.tell(self._context.join_prompt(parts))

    async def ask(
        self, *, tools: bool = True, only: Collection[str] | None = None, must_call: bool = False
    ) -> ModelReply:
        """The next reply. With `tools` it may ask for calls, which are made only by `make_calls`.

        Args:
            tools: Whether it may ask for calls.
            only: The names of the tools that it may ask for, by default all of the context.
            must_call: Whether it must ask for one. Where its provider cannot enforce that, or `only`, a reply that
                does otherwise is an error (`models.bad-reply`), and no call of it is made.
        """
        self._context.life.require()
        self._join_labels()
        if self._role.reads == "trusted" and not self._talk.label.trusted:
            raise must_not_read_error(self._role)
        try:
            phase = self._role.phase or "act"
            reply = await self._talk.ask(phase, role=self._role.job, tools=tools, only=only, must_call=must_call)
        finally:
            self._join_labels()
        asked = {str(call.name) for call in reply.calls}
        if (must_call and not asked) or (only is not None and not asked <= set(only)):
            raise ModelError(
                "models.bad-reply",
                f"{self._role.name}: the reply asks for another tool than it may, or for none",
                expected=", ".join(sorted(only)) if only is not None else "a call",
            )
        return reply

    async def make_calls(self, reply: ModelReply, *, most: int | None = None) -> int:
        """Make the calls that a reply asks for, as policy allows; how many gave a result.

        Of more than `most` calls the model reads that the rest were not made.
        """
        self._join_labels()
        made = reply.calls[:most]
        try:
            gave = await self._talk.make_calls(replace(reply, calls=made), because=self._context.read_label)
            for call in reply.calls[len(made) :]:
                self._talk.decline_call(
                    call, f"not made: {len(made)} at a time. Ask for it again if it is still needed."
                )
            return gave
        finally:
            self._join_labels()

    def decline_calls(self, reply: ModelReply, why: LiteralString) -> None:
        """Tell the model that the calls of a reply are not made; the reason is a literal of the program."""
        for call in reply.calls:
            self._talk.decline_call(call, why)

    def _join_labels(self) -> None:
        both = join(self._context.read_label, self._talk.label)
        self._context.read_label = self._talk.label = both


def must_not_read_error(role: Role) -> RunError:
    return RunError(
        "pattern.must-not-read",
        f"{role.name} must not read what strangers wrote",
        expected="only what the user said and what services vouch for",
        fix="Give it typed values, or let another participant read the text.",
    )
