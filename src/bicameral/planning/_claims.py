"""Claims of effects in a text, in English, German, French and Spanish.

An answer that says "Sent the list to Kim" claims an effect. `claims_of` finds such claims; whether calls of a plan or a
run make them true is in `_claim_support`. `may_claim` is for texts that must claim nothing. A place for a value that
only the run brings is `HOLE`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from bicameral.planning._lexicon import NEGATIONS
from bicameral.text import lazy_pattern

HOLE = "\ufffc"
"""Stands in a text for a value that is known only in the run."""

ClaimKind = Literal["send", "write", "calendar", "delete", "pay", "order", "change"]


@dataclass(frozen=True, slots=True)
class Claim:
    """An effect that a text says has happened.

    Args:
        kind: What is said to have happened. No standard tool pays or orders.
        phrase: The words that say so, exactly.
        reported: Whether it may as well tell what somebody else did ("was paid"), as the answer to a question does.
    """

    kind: ClaimKind
    phrase: str
    reported: bool = False


@dataclass(frozen=True, slots=True)
class _Verbs:
    """The past forms of one language: those of the active voice, and participles where they are others."""

    past: dict[str, ClaimKind]
    participles: dict[str, ClaimKind]


def _forms(table: Mapping[ClaimKind, str]) -> dict[str, ClaimKind]:
    return {form: kind for kind, forms in table.items() for form in forms.split()}


_ENGLISH_REGULAR: dict[ClaimKind, str] = {
    "send": "mailed emailed e-mailed forwarded replied answered notified informed texted messaged invited posted",
    "write": "saved stored appended exported copied recorded noted logged archived downloaded",
    "calendar": "scheduled rescheduled postponed",
    "delete": "deleted erased cancelled canceled trashed",
    "pay": "paid transferred wired refunded",
    "order": "ordered bought purchased reserved booked",
    "change": "moved renamed changed updated added created removed",
}
_ENGLISH = _Verbs(
    _forms(_ENGLISH_REGULAR) | _forms({"send": "sent", "write": "wrote put"}),
    _forms(_ENGLISH_REGULAR) | _forms({"send": "sent", "write": "written"}),
)
_GERMAN = _forms(
    {
        "send": "geschickt gesendet verschickt versendet abgeschickt abgesendet gemailt weitergeleitet geantwortet "
        "beantwortet benachrichtigt informiert mitgeteilt zugeschickt",
        "write": "gespeichert geschrieben abgespeichert notiert kopiert exportiert angehängt abgelegt gesichert "
        "hinterlegt hinterlassen",
        "calendar": "eingetragen eingeplant",
        "delete": "gelöscht abgesagt storniert weggeworfen",
        "pay": "bezahlt überwiesen gezahlt beglichen",
        "order": "bestellt gebucht gekauft reserviert",
        "change": "verschoben umbenannt geändert hinzugefügt angelegt erstellt aktualisiert entfernt",
    }
)
_FRENCH_STEMS: dict[ClaimKind, str] = {
    "send": "envoyé transféré répondu transmis prévenu informé averti expédié renvoyé notifié",
    "write": "enregistré sauvegardé écrit noté copié exporté laissé déposé",
    "calendar": "inscrit planifié programmé",
    "delete": "supprimé effacé annulé jeté",
    "pay": "payé versé viré réglé",
    "order": "commandé acheté réservé",
    "change": "ajouté déplacé renommé modifié créé retiré",
}
_FRENCH: dict[str, ClaimKind] = {
    form + ending: kind for form, kind in _forms(_FRENCH_STEMS).items() for ending in ("", "e", "s", "es")
}
_SPANISH_STEMS: dict[ClaimKind, str] = {
    "send": "enviad mandad reenviad respondid contestad avisad informad notificad remitid",
    "write": "guardad escrit anotad copiad apuntad exportad dejad",
    "calendar": "agendad programad",
    "delete": "borrad eliminad cancelad suprimid anulad",
    "pay": "pagad transferid abonad",
    "order": "pedid comprad reservad encargad",
    "change": "añadid movid renombrad cambiad cread modificad agregad quitad",
}
_SPANISH: dict[str, ClaimKind] = {
    form + ending: kind for form, kind in _forms(_SPANISH_STEMS).items() for ending in ("o", "a", "os", "as")
}
_SPANISH_PAST = _forms(
    {
        "send": "envié mandé reenvié respondí contesté avisé informé",
        "write": "guardé escribí anoté copié apunté dejé",
        "calendar": "agendé programé",
        "delete": "borré eliminé cancelé suprimí",
        "pay": "pagué transferí",
        "order": "pedí compré reservé encargué",
        "change": "añadí moví renombré cambié creé modifiqué agregué",
    }
)

_ADVERB = (
    r"(?:(?:just|also|already|now|successfully|then|bereits|schon|soeben|gerade|nun|jetzt|bien|aussi|déjà|ya)\s+)*"
)
_OPENING = (
    r"(?:^|(?<=[.!;:,\n(–—-])|(?<=[.!;:,\n(–—-]\s)|"
    rf"\b(?:done|ok|okay|erledigt|fertig|fait|hecho|listo|yes|ja|oui|sí)\b\W*)\s*{_ADVERB}"
)
_NOUNS = (
    r"(?:e-?mails?|mails?|messages?|repl(?:y|ies)|reminders?|invitations?|reports?|lists?|files?|tables?|entr(?:y|ies)|events?|"
    r"appointments?|meetings?|lines?|rows?|payments?|orders?|flights?|rooms?|tickets?|notes?|cop(?:y|ies)|bills?|invoices?|"
    r"everything|all|nachricht(?:en)?|antwort(?:en)?|liste|datei(?:en)?|termine?|eintr(?:ag|äge)|zeilen?|rechnung(?:en)?|"
    r"überweisung|bestellung|flug|einladung(?:en)?|bericht|alles|courriels?|réponses?|fichiers?|rendez-vous|événements?|"
    r"lignes?|factures?|liste|commande|vol|rapport|tout|correos?|mensajes?|respuestas?|archivos?|citas?|eventos?|líneas?|"
    r"facturas?|lista|pedido|vuelo|informe|recordatorios?|todo)"
)
# After these words a participle tells when or by whom something was done: it was not this plan.
_ATTRIBUTION = (
    r"(?!\s*(?:by|since|last|yesterday|before|after|until|ago|von|seit|gestern|vor|par|depuis|hier|por|desde|ayer)\b)"
    r"(?!\s*:)"
)
_NEGATION = lazy_pattern(rf"\b(?:{NEGATIONS}|neither|failed|unable)\b|n't\b|\bn['’]")
_UNREAL = lazy_pattern(
    r"\b(?:if|would|could|should|can|may|might|will|to be|must|unless|when|once|wenn|würde\w*|könnte\w*|sollte?\w*|"
    r"kann|werden|wird|si|serait|pourrait|peut|sera|seront|quand|sería|podría|puede|será|cuando)\b"
)
_NOT_FIRST_PERSON = r"(?!\s*(?:i|we|ich|wir|je|j'|nous|yo)\b)"
_RELATIVE = lazy_pattern(
    r"(?:\b(?:that|which|who|whom|whose|qui|que|qu|dont|quien|quienes|cuyo)\b|,\s*(?:der|die|das|den|dem)\b)"
    + _NOT_FIRST_PERSON
)
_VALUE_BEFORE = lazy_pattern(rf"{HOLE}\s{_NOT_FIRST_PERSON}")
# Where something was put. After a value of the run a verb tells of somebody else (`… sent a mail`), if this is absent.
_INTO_PLACE = (
    r"(?:to|into|in|on|onto|under|as|nach|unter|auf|als|dans|sur|sous|en|a|como)\s+"
    r"(?:(?:the|your|my|a|die|den|das|der|le|la|les|el|los|las|file|datei|fichier|archivo)\s+)*"
    rf"(?:{HOLE}|[\w./-]*\w\.[a-z]{{2,5}}\b|\w*(?:calendar|list|notes|kalender|liste|notizen|agenda|lista|notas)\b)"
)
_PUT_INTO_PLACE = lazy_pattern(rf"\b{_INTO_PLACE}")
_OTHERS = lazy_pattern(r"^(?!.*\b(?:ich|wir)\b).*\b(?:hat|hatte|haben|hatten)\b")
_SENTENCE = lazy_pattern(r"[^.!?\n]+(?:\.(?=\w)[^.!?\n]*)*[.!?]*")


# Verbs of every language that may begin a sentence, or follow "and", without a subject.
_OPENING_VERBS: dict[str, ClaimKind] = _ENGLISH.past | _GERMAN | _FRENCH | _SPANISH | _SPANISH_PAST


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], Mapping[str, ClaimKind], bool], ...]:
    """Each form of a claim: its pattern with the verb as a group, the verbs, and whether it may be a report."""

    def verbs(table: Iterable[str]) -> str:
        return rf"(?P<verb>{'|'.join(sorted(map(re.escape, table), key=len, reverse=True))})(?!\w)"

    english = rf"(?:\b(?:i|we)(?:['’]ve|\s+have)?\s+{_ADVERB})"
    everything = _ENGLISH.participles | _GERMAN | _FRENCH | _SPANISH
    first = r"\b(?:ich\s+habe|habe\s+ich|wir\s+haben|hab)\b[^.!?\n]*?\b"
    passive = r"\b(?:was|were|has\s+been|have\s+been|been|is\s+now|are\s+now)"
    passive_spanish = r"\b(?:fue|fueron|ha\s+sido|han\s+sido|se\s+han?)"
    no_place = r"(?!\s+(?:on|at|am|um|le|el)\b)"
    return tuple(
        (lazy_pattern(text), table, reported)
        for text, table, reported in (
            (english + verbs(_ENGLISH.past), _ENGLISH.past, False),
            (first + verbs(_GERMAN), _GERMAN, False),
            (rf"\b(?:j['’]ai|nous\s+avons|on\s+a)\s+{_ADVERB}(?:\w+\s+)?{verbs(_FRENCH)}", _FRENCH, False),
            (rf"\b(?:lo|la|los|las|se|le|les)?\s*(?:he|hemos)\s+{verbs(_SPANISH)}", _SPANISH, False),
            (rf"\b(?:(?:se|le|les|te)\s+)?(?:(?:lo|la|los|las)\s+)?{verbs(_SPANISH_PAST)}", _SPANISH_PAST, False),
            (_OPENING + verbs(_OPENING_VERBS) + _ATTRIBUTION, _OPENING_VERBS, False),
            (rf"\b{_NOUNS}\s+{_ADVERB}{verbs(everything)}{_ATTRIBUTION}{no_place}", everything, False),
            (rf"{HOLE}\s+{_ADVERB}{verbs(everything)}{_ATTRIBUTION}", everything, True),
            (rf"{HOLE}\s+{_INTO_PLACE}\s+{verbs(_GERMAN)}{_ATTRIBUTION}", _GERMAN, True),
            (rf"{passive}\s+{_ADVERB}{verbs(_ENGLISH.participles)}{_ATTRIBUTION}", _ENGLISH.participles, True),
            (rf"\b(?:wurden?|ist\s+jetzt|sind\s+jetzt)\b[^.!?\n]*?\b{verbs(_GERMAN)}{_ATTRIBUTION}", _GERMAN, True),
            (rf"\b(?:a|ont)\s+(?:bien\s+)?été\s+{_ADVERB}{verbs(_FRENCH)}{_ATTRIBUTION}", _FRENCH, True),
            (rf"{passive_spanish}\s+{_ADVERB}{verbs(_SPANISH)}{_ATTRIBUTION}", _SPANISH, True),
        )
    )


_GERMAN_END = lazy_pattern(
    r"(?:^|[.!;:\n])\s*(?!(?:[A-ZÄÖÜ]?\w+)\s+(?:hat|haben|hatte)\b)[^.!?;:\n]*?\s"
    rf"(?P<verb>{'|'.join(map(re.escape, sorted(_GERMAN)))})\s*(?=[.!;\n]|$|\bund\b)"
)


def claims_of(text: str) -> tuple[Claim, ...]:
    """The effects that a text claims, in order.

    Example:
        >>> claims_of("Sent the list to Kim.")
        (Claim(kind='send', phrase='Sent', reported=False),)
        >>> claims_of("Nothing was sent.")
        ()
    """
    found: list[Claim] = []
    for sentence in _SENTENCE.findall(text):
        if not sentence.rstrip().endswith("?"):
            found += _sentence_claims(sentence)
    return tuple(dict.fromkeys(found))


def _sentence_claims(sentence: str) -> Iterator[Claim]:
    lower = sentence.lower()
    spans: dict[tuple[int, int], Claim] = {}
    for pattern, kinds, reported in _patterns():
        for match in pattern.finditer(lower):
            _add_claim(spans, match, sentence, kinds, reported)
    if HOLE not in lower.split(None, 1)[:1] and not re.search(r"\b(?:hat|haben|hatte|wer|die|der)\s", lower):
        for match in _GERMAN_END.finditer(lower):
            _add_claim(spans, match, sentence, _GERMAN, False)
    if spans:
        # "… and sent it": the subject is that of the claim before.
        start = min(begin for begin, _ in spans)
        for match in re.finditer(rf"\b(?:and|then|und|et|y)\s+{_ADVERB}(?P<verb>[\w-]+)", lower):
            kind = _OPENING_VERBS.get(match["verb"])
            if kind is not None and match.start() > start:
                _add_claim(spans, match, sentence, {match["verb"]: kind}, False)
    return iter([spans[span] for span in sorted(spans)])


def _add_claim(
    spans: dict[tuple[int, int], Claim],
    match: re.Match[str],
    sentence: str,
    kinds: Mapping[str, ClaimKind],
    reported: bool,
) -> None:
    """Keep a claim, unless its clause denies it, imagines it, or tells it of somebody else."""
    begin, end = match.span("verb")
    lower = sentence.lower()
    clause_start = max((lower.rfind(mark, 0, begin) for mark in ",;:\n"), default=-1) + 1
    before = lower[clause_start:begin]
    after = re.split(r"[,;:\n]", lower[end:], maxsplit=1)[0][:24]
    if _NEGATION.search(before) or re.match(r"\s+(?:nothing|no|nobody|none|nichts|rien|nada)\b", after):
        return
    if _OTHERS.search(before) or (re.match(r"\s+at\b", after) and match["verb"] in ("bought", "purchased")):
        return
    own = lower[:begin][max(0, clause_start - 2) :]
    if _UNREAL.search(before) or _RELATIVE.search(own):
        return
    kind = _narrow_kind(kinds[match["verb"]], lower, lower[end:])
    if _VALUE_BEFORE.search(own):
        placed = _PUT_INTO_PLACE.search(before) or re.match(rf"\s+{_INTO_PLACE}", lower[end:])
        if not placed or kind not in ("write", "calendar", "change"):
            return
        reported = True
    claim = Claim(kind, sentence[begin:end], reported)
    known = spans.get((begin, end))
    if known is None or (known.reported and not reported):
        spans[begin, end] = claim


# Words that say that something was done, beside the verbs of claims; a text that must claim nothing has none of them.
_COMPLETIONS = frozenset(
    "done ok okay sure ready finished completed success successfully confirmed told let knows informed set jotted kept "
    "blocked passed dropped pinged reminded handled sorted entered listed filed pencilled penciled shared gave given "
    "delivered submitted uploaded published written "
    "erledigt fertig klar gemacht getan bescheid weiß gegeben gesagt aufgeschrieben festgehalten vermerkt hinterlegt "
    "gemerkt eingefügt ergänzt vorgemerkt ausgerichtet erinnert eingeladen bestätigt abgeheftet hinterlassen "
    "fait faite faits ok c'est bon prêt terminé rappelé mis mise dit laissé posé marqué rangé confirmé ajouté consigné "
    "hecho hecha listo lista queda quedó dicho puesto puesta metido recordado dejado confirmado marcado bloqueado "
    "incluido registrado registrada archivado archivada".split()
)
_WORD = lazy_pattern(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_CLAUSE_END = lazy_pattern(r"[,;:.!?\n]")


def may_claim(text: str) -> bool:
    """Whether a text may tell that something was done, however it says so; `claims_of` reads sure claims alone.

    A text without a value of the run can be nothing but a claim, unless it denies something.

    Example:
        >>> may_claim(f"{HOLE} lines written to notes.txt"), may_claim(f"There are {HOLE} lines"), may_claim("All set")
        (True, False, True)
    """
    lower = text.lower()
    if HOLE not in text:
        return bool(lower.strip()) and _NEGATION.search(lower) is None
    return any(
        _NEGATION.search(clause) is None and any(_is_completion(word) for word in _WORD.findall(clause))
        for clause in _CLAUSE_END.split(lower)
    )


def _is_completion(word: str) -> bool:
    return word in _COMPLETIONS or word in _OPENING_VERBS or word in _ENGLISH.participles


_CALENDAR_NOUN = lazy_pattern(
    r"\b(?:calendar|events?|appointments?|meetings?|reminders?|kalender|termine?|agenda|rendez-vous|événements?|calendrier|"
    r"calendario|citas?|eventos?|reunión|réunion)\b"
)
_TO_PEOPLE = lazy_pattern(rf"\s+(?:to|an|à)\s+(?![^,;]*\.[a-z]{{2,5}}\b)(?:{HOLE}\s+\w|[^{HOLE}\s])")


def _narrow_kind(kind: ClaimKind, sentence: str, after: str) -> ClaimKind:
    """`added` and `booked` are about the calendar if the sentence is, and may be about anything if not.

    `Wrote to 3 customers` is a mail, `Wrote to notes.txt` a file; a single value after `to` may be either, and is read
    as a file.
    """
    if kind == "write" and _TO_PEOPLE.match(after):
        return "send"
    if kind in ("change", "order", "calendar") and _CALENDAR_NOUN.search(sentence):
        return "calendar"
    return kind
