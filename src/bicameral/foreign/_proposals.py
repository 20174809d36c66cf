"""Proposed declarations: what a server's annotations, schemas and names suggest. A person reviews them.

A proposal is the worst of three things: what the annotations claim, what the words of the tool's name mean, and
nothing at all (which counts as irreversible). Annotations never lower what a name says: `delete_file` with
`readOnlyHint` is still irreversible. What the sandbox of a server forbids is a fact, and lowers it. Descriptions are
shown to the person and decide nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from bicameral.foreign._declarations import ArgumentDeclaration, ForeignEffect, ToolDeclaration
from bicameral.foreign._listing import ForeignTool
from bicameral.foreign._schema_types import type_from_schema
from bicameral.foreign._tools import is_plain_label, name_words, plain_name, tool_name
from bicameral.text import stem
from bicameral.tools import Effect, Purpose, effect_of_words, worst_effect
from bicameral.types import RecordType, StrType, iter_types, without_optional

_CONTENT_WORDS = frozenset(
    map(
        stem,
        "body content contents text message messages comment comments note notes data value values description title "
        "subject caption reason summary observation observations entity entities patch diff markdown html "
        "payload".split(),
    )
)
_RECEIVER_WORDS = frozenset(
    map(stem, "to cc bcc recipient recipients receiver receivers email emails address channel phone chat room".split())
)
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
        declared = known.model_copy(update={"pin": tool.pin})
        return Proposal(tool, declared, ("it is one of a server whose declarations come with Bicameral",))
    prefix: list[str] = []
    if known is not None:
        prefix = [f"its arguments are not those of the known server: {', '.join(_unknown_arguments(tool, known))}"]
    claims = [*_annotation_claims(tool.annotations), *_name_claims(tool.name)]
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
    declared = ToolDeclaration(
        pin=tool.pin,
        name=None if plain == words else "_".join([plain_name(server), *(plain or ["tool"])]).lstrip("_"),
        doc=_plain_doc(plain),
        effect=effect,
        outbound=None if outbound else False,
        idempotent=True if tool.annotations.get("idempotentHint") is True and effect == "write" else None,
        arguments=dict(_propose_arguments(tool, effect, outbound=outbound)),
        receivers=_propose_receivers(tool) if effect == "send" else None,
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
    read_only, destructive = annotations.get("readOnlyHint"), annotations.get("destructiveHint")
    if read_only is True:
        yield "read", "the server says that it only reads"
    elif destructive is True:
        yield "irreversible", "the server says that it may destroy"
    elif read_only is False and destructive is False:
        yield "write", "the server says that it adds and destroys nothing"
    elif read_only is False:
        # By the protocol a tool that changes something is destructive unless it says otherwise.
        yield "irreversible", "the server says that it changes something"


def _name_claims(name: str) -> Iterator[tuple[Effect, str]]:
    words = " ".join(re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)).lower()
    if (effect := effect_of_words(words)) is not None:
        yield effect, f"the words of its name mean {effect!r}"


def _propose_arguments(
    tool: ForeignTool, effect: ForeignEffect, *, outbound: bool
) -> Iterator[tuple[str, ArgumentDeclaration]]:
    type_ = type_from_schema(tool.input_schema)
    for field in type_.fields if isinstance(type_, RecordType) else ():
        purpose: Purpose = "selects"
        if effect != "read":
            purpose = "carries" if _is_content(field.name) and _is_text(field.type) else "directs"
        schema = _property(tool, field.name)
        kind = _ADDRESS_FORMATS.get(str(schema.get("format")))
        if effect == "read" and kind == "url" and outbound:
            # Whoever is asked for an address learns it, so that untrusted text must not choose it.
            purpose = "directs"
        yield field.name, ArgumentDeclaration.model_validate({"purpose": purpose} | ({"format": kind} if kind else {}))


def _property(tool: ForeignTool, name: str) -> Mapping[str, Any]:
    properties: object = tool.input_schema.get("properties")
    found: object = cast("dict[str, Any]", properties).get(name) if isinstance(properties, dict) else None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _propose_receivers(tool: ForeignTool) -> list[str] | None:
    """The arguments whose names say who gets it; None, the worst case, if none does."""
    found = [name for name in _argument_names(tool) if _words(name) & _RECEIVER_WORDS]
    return found or None


def _is_content(name: str) -> bool:
    return bool(_words(name) & _CONTENT_WORDS)


def _is_text(type_: Any) -> bool:
    return any(isinstance(without_optional(each), StrType) for each in iter_types(type_))


def _words(name: str) -> set[str]:
    return {stem(word.lower()) for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


def _plain_doc(words: Sequence[str]) -> str:
    """A line made of the words of a name: `search_issues` is "Search issues."""
    text = " ".join(words)
    return f"{text[:1].upper()}{text[1:120]}." if text else ""
