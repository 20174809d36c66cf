r"""Phrases that speak to a model, in several languages.

Stems are looked for first, at the speed of a text search; patterns are tried only around them. The patterns never go
back over a word (`\w++`), so the time is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from ._marks import Mark, MarkKind

BEFORE, AFTER = 60, 140
_GAP = r"[^\w.!?:]++(?:\w++[^\w.!?:]++){0,5}?"
"""A few words of the same sentence."""

ORDER, ADDRESS, MARKUP, HINT = 0.7, 0.5, 0.6, 0.25


@dataclass(frozen=True, slots=True)
class Phrase:
    """A pattern, the stems of which one is in every match, and what a match weighs."""

    stems: tuple[str, ...]
    pattern: str
    weight: float
    note: str = "words that order a model about"
    kind: MarkKind = "instruction"


def _order(stems: str, verbs: str, things: str) -> Phrase:
    """An order to ignore something: verbs, and things to ignore not far behind."""
    return Phrase(tuple(stems.split()), rf"\b(?:{verbs}){_GAP}(?:{things})", ORDER, "an order to ignore instructions")


_TO_A_MODEL = "words that are meant for a model"
_LATIN = (
    _order(
        "ignor disregard forget overrid bypass",
        r"ignor\w*|disregard\w*|forget|overrid\w*|bypass\w*",
        r"instruction|prompt|rules?\b|direction|guideline|command|of the above|all above"
        r"|everything (?:you|above|before)",
    ),
    # Without "forget": people remind each other of their tasks.
    _order("ignor disregard abandon", r"ignor\w*|disregard\w*|abandon\w*",
           r"your (?:\w++ )?(?:task|goal|job)s?\b|you (?:were|have been|are) (?:told|asked)"),
    _order("ignorier vergiss vergessen missacht", r"ignorier\w*|vergiss|vergessen|missachte\w*",
           r"anweisung|befehl|regel|vorgabe|instruktion|prompt"),
    _order("ignor oubli", r"ignore[rz]?|oublie[rz]?", r"instruction|consigne|r[èe]gle|directive|tout ce"),
    _order("ignor olvid", r"ignor\w+|olvid\w+", r"instrucci|reglas?\b|[óo]rdenes|indicaci|todo lo"),
    _order("ignor dimentic", r"ignor\w+|dimentic\w+", r"istruzion|regol|ordini|tutto ci"),
    _order("ignor esque desconsider", r"ignor\w+|esque[cç]\w+|desconsider\w+", r"instru[cç]|regras?\b|ordens|tudo o"),
    _order("negeer vergeet", r"negeer|vergeet", r"instructie|regels?\b|opdracht"),
    _order("ignoruj zapomnij", r"z?ignoruj\w*|zapomnij", r"instrukcj|polece|zasad"),
    Phrase(("talimat", "komut"), r"(?:talimat|komut)\w*" + _GAP + r"(?:yok ?say|unut|görmezden|dikkate alma)", ORDER),
    Phrase(
        ("instruction", "anweisung", "instruccion", "istruzion", "instruç"),
        r"\b(?:new|updated|real|actual|hidden|secret|system|urgent|neue|nouvelles?|nuevas?|nuove|novas)\W+"
        r"(?:instruction|anweisung|instruccion|istruzion|instruç)",
        ADDRESS,
    ),
    Phrase(
        ("you are now", "from now on", "act as", "pretend"),
        r"\b(?:you are now (?:a|an|the|in)\b|from now on,? you|act as (?:a|an|if|my)\b|pretend (?:to be|that|you))",
        ADDRESS,
        _TO_A_MODEL,
    ),
    Phrase(("du bist jetzt", "du bist nun", "tu es maintenant", "ahora eres", "ora sei un", "agora você é"),
           r"\b(?:du bist (?:jetzt|nun)|tu es maintenant|ahora eres|ora sei un|agora você é)", ADDRESS, _TO_A_MODEL),
    Phrase(
        ("system prompt", "system-prompt", "developer mode", "jailbreak", "prompt injection", "language model"),
        r"system.prompt|developer mode|jailbreak|prompt injection|large language model|as an? (?:ai )?language model",
        ADDRESS,
        _TO_A_MODEL,
    ),
    Phrase(
        (" ai assistant", "ai agent", "dear ai", "attention ai", "to you, gpt", "to you, claude", "dear assistant"),
        r"ai assistant|ai agent|dear (?:ai|assistant)|attention,? ai|to you, (?:gpt|claude)",
        ADDRESS,
        _TO_A_MODEL,
    ),
    Phrase(
        ("before you", "after you do that", "do the following"),
        r"before you (?:can )?(?:solve|continue|proceed|answer|do anything)|after you do that"
        r"|(?:please|must|first) do the following",
        ADDRESS,
        _TO_A_MODEL,
    ),
    Phrase(
        ("the user", "the human", "dem nutzer", "l'utilisateur", "al usuario"),
        r"(?:do not|don't|never|without)\W+(?:tell|inform|ask|alert|notif|mention|reveal)\w*\W+(?:\w++\W++){0,4}?"
        r"(?:the user|the human)|sag\w* dem nutzer nicht|ne dis? pas à l'utilisateur|no le digas al usuario",
        ORDER,
    ),
    Phrase(
        ("forward", "transfer", "send", "upload", "delete"),
        r"\b(?:forward|transfer|send|upload|delete)\W+(?:me\W+)?(?:all|every|each of|the user'?s)\W+(?:\w++\W++){0,4}?"
        r"(?:e-?mail|message|file|password|key|token|credential|data|secret|money|document|contact)",
        HINT,
        "an order to send or delete things",
    ),
    Phrase(("vafgehpgvba",), r"vafgehpgvba", 0.6, "instructions in ROT13", "encoded"),
    Phrase(("snoitcurtsni",), r"snoitcurtsni", 0.6, "instructions written backwards", "encoded"),
    Phrase(("<|",), r"<\|(?:im_start|im_end|system|user|assistant|endoftext|eot_id|start_header_id)\|?>", MARKUP,
           "the marks of a chat with a model", "markup"),
    Phrase(("[inst", "[/inst", "<<sys"), r"\[/?inst\]|<</?sys>>", MARKUP, "the marks of a chat with a model", "markup"),
    Phrase(("tool_call", "function_call", "<system", "</system", "<instruct", "<information", "<assistant", "<admin"),
           r"</?(?:tool_calls?|function_calls?|system|instructions?|information|assistant|admin)\b[^<>]{0,40}>", MARKUP,
           "the marks of a chat with a model", "markup"),
    Phrase(("system:", "assistant:", "developer:", "# system", "# instruction"),
           r"(?:^|\n)\W{0,6}(?:system|assistant|developer):|(?:^|\n)#{2,}\s?(?:system|instruction)", HINT,
           "the marks of a chat with a model", "markup"),
)  # fmt: skip
_OTHER_SCRIPTS = (
    _order("игнорир забудь", r"(?:про)?игнорир\w+|забудь\w*", r"инструкц|указани|правил|команд"),
    Phrase(("ты теперь",), r"ты теперь", ADDRESS, _TO_A_MODEL),
    Phrase(("忽略", "无视", "無視", "忘记", "忘記"),
           r"(?:忽略|无视|無視|忘记|忘記).{0,12}(?:指令|指示|说明|說明|规则|規則|提示)"
           r"|(?:指示|命令|ルール|プロンプト).{0,8}(?:無視|忘れ)", ORDER),
    Phrase(("忘れ",), r"(?:指示|命令|ルール|プロンプト).{0,8}忘れ", ORDER),
    Phrase(("你现在是", "你現在是"), r"你[现現]在是", ADDRESS, _TO_A_MODEL),
    Phrase(("무시", "잊"), r"(?:지시|명령|규칙|프롬프트).{0,10}(?:무시|잊)", ORDER),
    Phrase(("تجاهل", "انس"), r"(?:تجاهل|انس)\w*\W+(?:\w++\W++){0,3}?\w*(?:تعليمات|أوامر|قواعد)", ORDER),
    Phrase(("अनदेखा", "भूल"), r"(?:निर्देश|आदेश).{0,20}(?:अनदेखा|भूल)", ORDER),
)  # fmt: skip


@cache
def _compiled(phrase: Phrase) -> re.Pattern[str]:
    return re.compile(phrase.pattern)


def phrase_marks(lowered: str, *, ascii_only: bool) -> Iterator[Mark]:
    """Marks of phrases in a text of small letters."""
    yield from _found(lowered, _LATIN)
    if not ascii_only:
        yield from _found(lowered, _OTHER_SCRIPTS)


def _found(text: str, phrases: Iterable[Phrase]) -> Iterator[Mark]:
    known: dict[str, list[int]] = {}
    for phrase in phrases:
        for stem in phrase.stems:
            if stem not in known:
                known[stem] = _places(text, stem)
        for start, end in _around(sorted(place for stem in phrase.stems for place in known[stem])):
            for found in _compiled(phrase).finditer(text, start, end):
                yield Mark(phrase.kind, found.start(), found.end(), phrase.weight, phrase.note)


def _around(places: list[int]) -> Iterator[tuple[int, int]]:
    """The parts of a text that are near a stem, each place in one part at most."""
    start = end = 0
    for place in places:
        if place - BEFORE > end:
            if end:
                yield start, end
            start = place - BEFORE
        end = place + AFTER
    if end:
        yield start, end


def _places(text: str, stem: str) -> list[int]:
    places: list[int] = []
    place = text.find(stem)
    while place >= 0:
        places.append(place)
        place = text.find(stem, place + AFTER // 2)
    return places
