"""The effect that a program's own description suggests. A person confirms it; until then it counts for nothing.

The proposal is the worst of three things: what the program declares (`effect`, `effects`, `permissions`,
`side_effects`, hints such as `readOnlyHint`), what the words of its capabilities and its name mean (`delete-mail`), and
what its sandbox lets it do. A program with the network needs a word that says what it does there, or stays
irreversible. Each reason is a sentence of our own, with the words of the description quoted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from bicameral.display import make_visible
from bicameral.text import stem
from bicameral.tools._argument import EFFECTS, Effect

if TYPE_CHECKING:
    from bicameral.tools._manifest import ToolSpec

_WORDS: Mapping[Effect, str] = {
    "irreversible": "delete remove erase wipe destroy drop purge shred kill terminate stop shutdown reboot restart "
    "format execute exec run eval install uninstall deploy deprovision pay transfer purchase buy order book "
    "trade withdraw cancel revoke merge grant clear reset truncate empty rm unlink overwrite flush drain nuke zap void "
    "discard dismiss disable deactivate suspend ban approve reject deny charge refund wire donate redeem hire fire "
    "close abort rollback revert undo rid",
    # No nouns such as `mail`: a search in mails sends nothing.
    "send": "send post publish upload push notify share submit tweet broadcast invite reply forward announce dial "
    "release",
    "write": "write save store create update edit modify change rename move copy append insert add set put sync import "
    "export archive compress zip unzip patch mount commit record replace assign enable toggle lock unlock subscribe "
    "unsubscribe rotate",
    "read": "read list search find fetch get query lookup download browse inspect monitor watch view show status index "
    "crawl scrape readonly",
    "pure": "ocr parse convert conversion translate translation summarize summary hash checksum digest count sort "
    "filter detect classify classification recognise recognize recognition transcribe transcription validate lint "
    "render compute calculate math compare diff tokenize stem spellcheck pretty uppercase lowercase encode decode "
    "extract extraction analyse analyze analysis text image document file table",
}
_BY_STEM: Mapping[str, Effect] = {stem(word): effect for effect in EFFECTS for word in _WORDS[effect].split()}
_SAID: Mapping[str, Effect] = {
    **dict[str, Effect](zip(EFFECTS, EFFECTS, strict=True)),
    "none": "pure",
    **dict.fromkeys(("read-only", "readonly", "filesystem-read", "fs-read", "file-read"), "read"),
    **dict.fromkeys(("writes", "filesystem", "filesystem-write", "fs-write", "file-write", "read-write"), "write"),
    **dict.fromkeys(("sends", "network", "net", "internet", "outbound", "http"), "send"),
    **dict.fromkeys(
        ("destructive", "dangerous", "exec", "execute", "process", "shell", "admin", "root"), "irreversible"
    ),
}
"""What others write under `effects` and `permissions`."""
_MOST_REASONS = 4
"""Claims of the description that are shown; what the sandbox allows is always shown."""
_MOST_PHRASES = 3


@dataclass(frozen=True, slots=True)
class EffectProposal:
    """An effect that a description suggests, and why."""

    effect: Effect
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.effect}: {'; '.join(self.reasons)}"


def worst_effect(effects: Iterable[Effect]) -> Effect:
    """The most severe of these effects; `pure` if there are none."""
    return EFFECTS[max(map(EFFECTS.index, effects), default=0)]


def propose_effect(spec: ToolSpec, description: Mapping[str, Any], declared: Effect | None) -> EffectProposal:
    """The effect to propose for a tool of a program.

    Args:
        spec: The tool with what the user grants it, such as the network.
        description: All that the program printed.
        declared: The effect that it declares for this tool.
    """
    claims = [*_declared_claims(declared, description), *_word_claims(spec, description)]
    limits = list(_sandbox_limits(spec))
    facts = [why for _, why in limits]
    if spec.network and worst_effect(effect for effect, _ in claims) == "pure":
        # What leaves by the network is limited by nothing, so that a word must say what it is for.
        facts.append("your settings give it the network, and nothing says what it does there")
        return EffectProposal("irreversible", tuple(facts))
    effect = worst_effect(effect for effect, _ in (*claims, *limits))
    decisive = [why for each, why in claims if each == effect] or [why for _, why in claims]
    return EffectProposal(effect, (*tuple(dict.fromkeys(decisive))[:_MOST_REASONS], *facts))


def _sandbox_limits(spec: ToolSpec) -> Iterator[tuple[Effect, str]]:
    """What the sandbox lets the tool do, with the effect that this is at least."""
    written = any(argument.access != "read" for argument in spec.arguments.values())
    if written:
        yield "write", "it writes a file that a call names"
    if spec.needs or any(argument.type in ("path", "list[path]") for argument in spec.arguments.values()):
        yield "read", "it reads files"
    if not spec.network and not written:
        yield "pure", "its sandbox has no network and no file to write"


def _declared_claims(declared: Effect | None, description: Mapping[str, Any]) -> Iterator[tuple[Effect, str]]:
    if declared is not None:
        yield declared, f"it declares the effect {declared!r}"
    for key in ("effect", "effects", "permissions"):
        for word in _texts(description.get(key)):
            plain = re.sub(r"[\s_:.]+", "-", word.strip().lower())
            effect = _SAID.get(plain)
            if effect is None and key == "permissions":
                effect = effect_of_words(plain)
            # An effect or a permission that is not known may be any.
            yield effect or "irreversible", f"it declares {key}: {_quoted(word)}"
    changes = description.get("side_effects")
    if changes is True or (isinstance(changes, list | str) and changes):
        yield "irreversible", "it declares side effects"
    elif changes is False or changes == []:
        yield "read", "it declares no side effects"
    hints: object = description.get("annotations")
    if isinstance(hints, dict):
        given = cast("dict[str, object]", hints)
        if given.get("destructiveHint") is True:
            yield "irreversible", "it declares destructiveHint"
        if given.get("readOnlyHint") is True:
            yield "read", "it declares readOnlyHint"
        elif given.get("readOnlyHint") is False:
            yield "write", "it declares that it is not read-only"


def _word_claims(spec: ToolSpec, description: Mapping[str, Any]) -> Iterator[tuple[Effect, str]]:
    """What the words of capabilities, of the name and of those that ask for it mean."""
    phrases: dict[Effect, list[str]] = {}
    for phrase in dict.fromkeys((*_texts(description.get("capabilities")), spec.name, *spec.words)):
        if (effect := effect_of_words(phrase)) is not None:
            phrases.setdefault(effect, []).append(phrase)
    for effect, named in phrases.items():
        quoted = ", ".join(map(_quoted, named[:_MOST_PHRASES])) + (" and others" if len(named) > _MOST_PHRASES else "")
        yield effect, f"{quoted}: the name of something {_MEANINGS[effect]}"


_MEANINGS: Mapping[Effect, str] = {
    "pure": "that changes nothing",
    "read": "that reads",
    "write": "that writes",
    "send": "that sends",
    "irreversible": "that cannot be undone",
}


def effect_of_words(phrase: str) -> Effect | None:
    """The most severe effect that a word of a name or a capability means; None if no word means any."""
    words = re.findall(r"[a-z]+", phrase.lower())
    found: list[Effect] = [effect for word in words if (effect := _BY_STEM.get(stem(word))) is not None]
    return worst_effect(found) if found else None


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list):
        return []
    return [each for each in cast("list[object]", value) if isinstance(each, str)]


def _quoted(text: str) -> str:
    """A word of the description as a person may see it: short, on one line, without controls."""
    plain = make_visible(" ".join(text.split()))
    return f"“{plain if len(plain) <= 60 else plain[:57] + '…'}”"
