"""Proposed declarations: what a server's annotations, schemas and names suggest. A person reviews them.

A proposal is the worst of all that the annotations claim and that the words of the tool's name mean; where neither
says anything, it is irreversible. Annotations never lower what a name says: `delete_file` with `readOnlyHint` is still
irreversible. A name says that a tool only reads if it begins with a verb of reading and orders nothing else. What the
sandbox of a server forbids is a fact, and lowers it. Descriptions are shown to the person and decide nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from bicameral.foreign._declarations import ArgumentDeclaration, ForeignEffect, ToolDeclaration
from bicameral.foreign._listing import ForeignTool
from bicameral.foreign._schema_types import type_from_schema
from bicameral.foreign._tools import is_plain_label, name_words, plain_name, tool_name
from bicameral.text import stem
from bicameral.tools import Effect, Purpose, effect_of_words, worst_effect
from bicameral.types import ListType, RecordType, StrType, Type, iter_types, without_optional


def _stems(words: str) -> frozenset[str]:
    return frozenset(map(stem, words.split()))


_READING_VERBS = _stems(
    "read list search find fetch get query lookup look download browse inspect view show status describe retrieve "
    "count compare crawl scrape"
)
"""A name that begins with one of them says that its tool reads. Nouns such as `document` or `table` say nothing."""
_ALSO_NOUNS = _stems(
    "order book post commit run record share transfer purchase trade export import archive patch merge mount format "
    "invite reply release charge refund set change edit copy update upload push broadcast tweet forward assign sync "
    "move stop install grant block"
)
"""Of the verbs that change something, those that are nouns after a verb of reading, as in `list_commits`."""
_CONJUNCTIONS = frozenset("and or then plus also with before after while".split())
"""What follows one of them in a name is an order of its own: `list_and_purge`."""
_EXECUTING = _stems("execute exec run eval install deploy query sql shell command script")
"""A tool that is named with one of them may do what its text says, whatever the argument is called."""

_CONTENT = _stems(
    "body content text message comment note data description title subject caption reason summary observation patch "
    "diff markdown html payload"
)
_ONLY_CONTENT = _stems("body content description caption markdown html")
"""Words for nothing but content. Of a tool that destroys, `message`, `title` and `text` may name what is destroyed."""
_CONTENT_OF = _CONTENT | _stems("email mail issue page new plain")
"""What may stand before them."""
_INTERPRETED = _stems("query sql script code command cmd expression formula pattern regex filter selector")
_TOWARDS = frozenset("to cc bcc recipient recipients receiver receivers".split())
_RECEIVERS = _TOWARDS | _stems("email address channel phone chat room")
_ADDRESS_WORDS = _stems("url uri link href endpoint host hostname domain webhook callback website")
_ADDRESS_FORMATS = {"uri": "url", "url": "url", "uri-reference": "url", "email": "email", "idn-email": "email"}


_PRAISE = frozenset(
    "always approved authentic best better certified endorsed essential exclusive favorite favourite finest genuine "
    "greatest highest important instead mandatory must official prefer preferable preferred premium priority reliable "
    "recommended superior supreme top trusted trustworthy ultimate urgent verified".split()
)
"""Words of a name that say nothing of what a tool does, and that make a model choose it before others."""


@dataclass(frozen=True, slots=True)
class Enforced:
    """What is enforced around a server, whatever it says.

    Args:
        network: Whether it can reach anything but this process.
        writes: Whether it can change any file.
    """

    network: bool = True
    writes: bool = True


NOTHING_ENFORCED = Enforced()


@dataclass(frozen=True, slots=True)
class Proposal:
    """A declaration to review, and why it is proposed."""

    tool: ForeignTool
    declaration: ToolDeclaration
    reasons: tuple[str, ...]


def is_plain_title(text: str, *, most: int) -> bool:
    """Whether what a stranger calls a service can begin names that models read: few plain words, and no praise."""
    return is_plain_label(text, most=most) and _PRAISE.isdisjoint(name_words(text))


def propose_declaration(
    tool: ForeignTool,
    *,
    server: str = "",
    around: Enforced = NOTHING_ENFORCED,
    known: ToolDeclaration | None = None,
) -> Proposal:
    """What to declare of a tool, for a person to review.

    Args:
        tool: The tool as it is listed.
        server: The name of its server in the configuration.
        around: What is enforced around its server.
        known: The declaration that comes with Bicameral for a server of this kind.
    """
    if known is not None and not _unknown_arguments(tool, known):
        # That nobody learns of a call is true of the known server in its sandbox, and not of one with a network.
        outbound = None if around.network and known.outbound is False else known.outbound
        declared = known.model_copy(update={"pin": tool.pin, "outbound": outbound})
        why = ["it is one of a server whose declarations come with Bicameral"]
        if outbound is not known.outbound:
            why.append("nothing keeps it from the network")
        return Proposal(tool, declared, tuple(why))
    prefix: list[str] = []
    if known is not None:
        prefix = [f"its arguments are not those of the known server: {', '.join(_unknown_arguments(tool, known))}"]
    named = _effect_of_name(_own_words(tool.name, server))
    claims: list[tuple[Effect, str]] = list(_annotation_claims(tool.annotations))
    if named is not None:
        claims.append((named, f"the words of its name mean {named!r}"))
    effect = _proposed_effect([each for each, _ in claims], around)
    reasons = [why for each, why in claims if each == effect] or [why for _, why in claims]
    if not claims:
        reasons.append("nothing says what it does")
    if not around.network:
        reasons.append("its sandbox has no network")
    if not around.writes:
        reasons.append("its sandbox has no file to write")
    words = name_words(tool.name)
    plain = [word for word in words if word not in _PRAISE]
    if not is_plain_label(tool.name):
        plain = []
        reasons.append("its name is more of a sentence than a name, so that models read another")
    elif len(plain) < len(words):
        reasons.append("its name praises it, which is left out of the name that models read")
    outbound = around.network or effect == "send"
    arguments = dict(_propose_arguments(tool, effect, named, outbound=outbound))
    declared = ToolDeclaration(
        pin=tool.pin,
        name=None if plain == words else "_".join([plain_name(server), *(plain or ["tool"])]).lstrip("_"),
        doc=_plain_doc(plain),
        effect=effect,
        outbound=None if outbound else False,
        idempotent=True if tool.annotations.get("idempotentHint") is True and effect == "write" else None,
        arguments=arguments,
        receivers=_propose_receivers(arguments) if effect == "send" else None,
    )
    return Proposal(tool, declared, (*prefix, *reasons))


def with_own_names(proposals: Iterable[Proposal], server: str) -> tuple[Proposal, ...]:
    """The proposals with a number where two would have one name in plans, as after long names are cut off."""
    names: set[str] = set()
    found: list[Proposal] = []
    for each in proposals:
        first = name = tool_name(server, each.tool, each.declaration)
        number = 1
        while name in names:
            number += 1
            name = f"{first}_{number}"
        names.add(name)
        if number > 1:
            reasons = (*each.reasons, "its name in plans has a number, since another tool has the same")
            each = replace(each, declaration=each.declaration.model_copy(update={"name": name}), reasons=reasons)
        found.append(each)
    return tuple(found)


def _unknown_arguments(tool: ForeignTool, known: ToolDeclaration) -> list[str]:
    names = _argument_names(tool)
    return sorted({*names} ^ {*known.arguments})


def _argument_names(tool: ForeignTool) -> list[str]:
    properties: object = tool.input_schema.get("properties")
    return list(cast("dict[str, Any]", properties)) if isinstance(properties, dict) else []


def _proposed_effect(claims: list[Effect], around: Enforced) -> ForeignEffect:
    if not around.network and not around.writes:
        # Nothing it does leaves its process, and that ends with the session.
        return "read"
    worst = worst_effect(claims) if claims else "irreversible"
    return "read" if worst == "pure" else worst


def _annotation_claims(annotations: Mapping[str, Any]) -> Iterator[tuple[Effect, str]]:
    """Everything that the annotations claim: a server that contradicts itself is taken at its worse word."""
    read_only, destructive = annotations.get("readOnlyHint"), annotations.get("destructiveHint")
    if read_only is True:
        yield "read", "the server says that it only reads"
    if destructive is True:
        yield "irreversible", "the server says that it may destroy"
    if read_only is False and destructive is False:
        yield "write", "the server says that it adds and destroys nothing"
    elif read_only is False and destructive is not True:
        # By the protocol a tool that changes something is destructive unless it says otherwise.
        yield "irreversible", "the server says that it changes something"


def _own_words(name: str, server: str) -> list[str]:
    """The words of a tool's name without numbers, and without the name of its server at the beginning."""
    words, prefix = ([word for word in name_words(each) if not word.isdigit()] for each in (name, server))
    return words[len(prefix) :] if prefix and words[: len(prefix)] == prefix else words


def _effect_of_name(words: Sequence[str]) -> Effect | None:
    """What the words of a name mean: the worst of what it orders, or `read`; None if it does not say."""
    phrases: list[list[str]] = [[]]
    for word in words:
        if word in _CONJUNCTIONS:
            phrases.append([])
        else:
            phrases[-1].append(word)
    orders: list[Effect] = [effect for phrase in phrases for effect in _orders(phrase)]
    if orders:
        return worst_effect(orders)
    reads = all(phrase and stem(phrase[0]) in _READING_VERBS for phrase in phrases)
    return "read" if reads else None


def _orders(phrase: Sequence[str]) -> Iterator[Effect]:
    """The effects of the words of a phrase that order a change: `delete` always, `commits` after `list` not."""
    reading = bool(phrase) and stem(phrase[0]) in _READING_VERBS
    for word in phrase:
        effect = effect_of_words(word)
        plural = word.endswith("s") and not word.endswith("ss")
        if effect is None or effect in ("pure", "read") or (plural and stem(word) in _ALSO_NOUNS):
            continue
        if reading and (plural or word.endswith("ed") or stem(word) in _ALSO_NOUNS):
            continue
        yield effect


def _propose_arguments(
    tool: ForeignTool, effect: ForeignEffect, named: Effect | None, *, outbound: bool
) -> Iterator[tuple[str, ArgumentDeclaration]]:
    type_ = type_from_schema(tool.input_schema)
    executes = not _EXECUTING.isdisjoint(map(stem, name_words(tool.name)))
    for field in type_.fields if isinstance(type_, RecordType) else ():
        purpose: Purpose = "directs"
        if effect == "read":
            # Whoever is asked for an address learns it, so that untrusted text must not choose it.
            purpose = "directs" if outbound and _holds_address(field.name, field.type) else "selects"
        elif _is_plain_text(field.type) and not executes and _is_content(field.name, effect, named):
            purpose = "carries"
        kind = _ADDRESS_FORMATS.get(str(_property(tool, field.name).get("format")))
        yield field.name, ArgumentDeclaration.model_validate({"purpose": purpose} | ({"format": kind} if kind else {}))


def _property(tool: ForeignTool, name: str) -> Mapping[str, Any]:
    properties: object = tool.input_schema.get("properties")
    found: object = cast("dict[str, Any]", properties).get(name) if isinstance(properties, dict) else None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _propose_receivers(arguments: Mapping[str, ArgumentDeclaration]) -> list[str] | None:
    """The arguments whose names say who gets it; None, the worst case, if none does."""
    directing = [name for name, each in arguments.items() if each.purpose == "directs"]
    return [name for name in directing if not _RECEIVERS.isdisjoint(_stemmed_words(name))] or None


def _is_content(name: str, effect: ForeignEffect, named: Effect | None) -> bool:
    """Whether the name of an argument says that it is content and decides nothing.

    Its last word does: `note_path` is a path. Where a call cannot be undone, the name must have nothing but words for
    content: `delete_comment(comment)` is told by it what to delete.
    """
    words = _stemmed_words(name)
    if not words or words[-1] not in _CONTENT or not {*words}.isdisjoint(_INTERPRETED | _TOWARDS):
        return False
    if effect != "irreversible":
        return True
    only = _ONLY_CONTENT if named == "irreversible" else _ONLY_CONTENT | {"text"}
    return words[-1] in only and {*words} <= _CONTENT_OF


def _is_plain_text(type_: Type) -> bool:
    """Whether values are texts, or lists of them. A record may hold the recipient of what it carries."""
    inner = without_optional(type_)
    inner = without_optional(inner.item) if isinstance(inner, ListType) else inner
    return isinstance(inner, StrType) and inner.format is None


def _holds_address(name: str, type_: Type) -> bool:
    """Whether an argument holds a web address, by its name or by the format of a text in it."""
    inner = list(iter_types(type_))
    names = [name, *(field.name for each in inner if isinstance(each, RecordType) for field in each.fields)]
    return any(each == StrType("url") for each in inner) or any(
        word in _ADDRESS_WORDS or word.endswith(("url", "uri")) for each in names for word in _stemmed_words(each)
    )


def _stemmed_words(name: str) -> list[str]:
    return [stem(word) for word in name_words(name) if not word.isdigit()]


def _plain_doc(words: Sequence[str]) -> str:
    """A line made of the words of a name: `search_issues` is "Search issues."""
    text = " ".join(words)
    return f"{text[:1].upper()}{text[1:120]}." if text else ""
