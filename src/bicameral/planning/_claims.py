"""Claims of effects in a plan's answer, held against the calls that the plan makes.

An answer that says "Sent the list to Kim" claims an effect. `claims_of` finds such claims in a text, in English,
German, French and Spanish; `unsupported_claims` finds those that no call of the plan makes on every path to the answer.
Only the literal parts of an answer are read: what a tool returns, or a model extracts, is content and no claim of ours.
A place for such a value is `HOLE`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any, Literal

from bicameral.plans import (
    Answer,
    Apply,
    Arithmetic,
    Call,
    Choose,
    Compare,
    Comprehension,
    Compute,
    Const,
    Each,
    EvaluationError,
    Format,
    Index,
    Lambda,
    Not,
    Plan,
    Ref,
    Slice,
    Update,
    When,
    children,
    evaluate_expr,
    free_names,
    walk,
)
from bicameral.text import stem
from bicameral.tools import Effect, Registry, Tool

HOLE = "\ufffc"
"""Stands in a text for a value that is known only in the run."""
MAX_PATHS = 256
MAX_TEXTS = 32

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

    past: Mapping[str, ClaimKind]
    participles: Mapping[str, ClaimKind]


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
    _forms(_ENGLISH_REGULAR) | {"sent": "send", "wrote": "write", "put": "write"},
    _forms(_ENGLISH_REGULAR) | {"sent": "send", "written": "write"},
)
_GERMAN = _forms(
    {
        "send": "geschickt gesendet verschickt versendet abgeschickt abgesendet gemailt weitergeleitet geantwortet "
        "beantwortet benachrichtigt informiert mitgeteilt zugeschickt",
        "write": "gespeichert geschrieben abgespeichert notiert kopiert exportiert angehängt abgelegt gesichert",
        "calendar": "eingetragen eingeplant",
        "delete": "gelöscht abgesagt storniert weggeworfen",
        "pay": "bezahlt überwiesen gezahlt beglichen",
        "order": "bestellt gebucht gekauft reserviert",
        "change": "verschoben umbenannt geändert hinzugefügt angelegt erstellt aktualisiert entfernt",
    }
)
_FRENCH_STEMS: dict[ClaimKind, str] = {
    "send": "envoyé transféré répondu transmis prévenu informé averti expédié renvoyé notifié",
    "write": "enregistré sauvegardé écrit noté copié exporté",
    "calendar": "inscrit planifié programmé",
    "delete": "supprimé effacé annulé jeté",
    "pay": "payé versé viré réglé",
    "order": "commandé acheté réservé",
    "change": "ajouté déplacé renommé modifié créé retiré",
}
_FRENCH = {
    form + ending: kind
    for form, kind in _forms(_FRENCH_STEMS).items()
    for ending in ("", "e", "s", "es")
    if form + ending
}
_SPANISH_STEMS: dict[ClaimKind, str] = {
    "send": "enviad mandad reenviad respondid contestad avisad informad notificad remitid",
    "write": "guardad escrit anotad copiad apuntad exportad",
    "calendar": "agendad programad",
    "delete": "borrad eliminad cancelad suprimid anulad",
    "pay": "pagad transferid abonad",
    "order": "pedid comprad reservad encargad",
    "change": "añadid movid renombrad cambiad cread modificad agregad quitad",
}
_SPANISH = {form + ending: kind for form, kind in _forms(_SPANISH_STEMS).items() for ending in ("o", "a", "os", "as")}
_SPANISH_PAST = _forms(
    {
        "send": "envié mandé reenvié respondí contesté avisé informé",
        "write": "guardé escribí anoté copié apunté",
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
_NEGATION = re.compile(
    r"\b(?:no|not|nothing|none|never|nobody|without|neither|cannot|failed|unable|nicht|nichts|kein\w*|nie|niemand|ohne|"
    r"ne|n'|aucun\w*|rien|jamais|sans|nada|ningun\w*|ningún|nunca|sin|nadie)\b|n't\b|\bn['’]",
)
_UNREAL = re.compile(
    r"\b(?:if|would|could|should|can|may|might|will|to be|must|unless|when|once|wenn|würde\w*|könnte\w*|sollte?\w*|"
    r"kann|werden|wird|si|serait|pourrait|peut|sera|seront|quand|sería|podría|puede|será|cuando)\b"
)
_RELATIVE = re.compile(
    rf"(?:\b(?:that|which|who|whom|whose|qui|que|qu|dont|quien|quienes|cuyo)\b|,\s*(?:der|die|das|den|dem)\b|{HOLE}\s)"
    r"(?!\s*(?:i|we|ich|wir|je|j'|nous|yo)\b)"
)
_OTHERS = re.compile(r"^(?!.*\b(?:ich|wir)\b).*\b(?:hat|hatte|haben|hatten)\b")
_SENTENCE = re.compile(r"[^.!?\n]+(?:\.(?=\w)[^.!?\n]*)*[.!?]*")


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], Mapping[str, ClaimKind], bool], ...]:
    """Each form of a claim: its pattern with the verb as a group, the verbs, and whether it may be a report."""

    def verbs(table: Iterable[str]) -> str:
        return rf"(?P<verb>{'|'.join(sorted(map(re.escape, table), key=len, reverse=True))})(?!\w)"

    english = rf"(?:\b(?:i|we)(?:['’]ve|\s+have)?\s+{_ADVERB})"
    everything = {**_ENGLISH.participles, **_GERMAN, **_FRENCH, **_SPANISH}
    first = r"\b(?:ich\s+habe|habe\s+ich|wir\s+haben|hab)\b[^.!?\n]*?\b"
    opened = {**_ENGLISH.past, **_GERMAN, **_FRENCH, **_SPANISH, **_SPANISH_PAST}
    passive = r"\b(?:was|were|has\s+been|have\s+been|been|is\s+now|are\s+now)"
    passive_spanish = r"\b(?:fue|fueron|ha\s+sido|han\s+sido|se\s+han?)"
    no_place = r"(?!\s+(?:on|at|am|um|le|el)\b)"
    return tuple(
        (re.compile(text), table, reported)
        for text, table, reported in (
            (english + verbs(_ENGLISH.past), _ENGLISH.past, False),
            (first + verbs(_GERMAN), _GERMAN, False),
            (rf"\b(?:j['’]ai|nous\s+avons|on\s+a)\s+{_ADVERB}(?:\w+\s+)?{verbs(_FRENCH)}", _FRENCH, False),
            (rf"\b(?:lo|la|los|las|se|le|les)?\s*(?:he|hemos)\s+{verbs(_SPANISH)}", _SPANISH, False),
            (rf"\b(?:(?:se|le|les|te)\s+)?(?:(?:lo|la|los|las)\s+)?{verbs(_SPANISH_PAST)}", _SPANISH_PAST, False),
            (_OPENING + verbs(opened) + _ATTRIBUTION, opened, False),
            (rf"\b{_NOUNS}\s+{_ADVERB}{verbs(everything)}{_ATTRIBUTION}{no_place}", everything, False),
            (rf"{passive}\s+{_ADVERB}{verbs(_ENGLISH.participles)}{_ATTRIBUTION}", _ENGLISH.participles, True),
            (rf"\b(?:wurden?|ist\s+jetzt|sind\s+jetzt)\b[^.!?\n]*?\b{verbs(_GERMAN)}{_ATTRIBUTION}", _GERMAN, True),
            (rf"\b(?:a|ont)\s+(?:bien\s+)?été\s+{_ADVERB}{verbs(_FRENCH)}{_ATTRIBUTION}", _FRENCH, True),
            (rf"{passive_spanish}\s+{_ADVERB}{verbs(_SPANISH)}{_ATTRIBUTION}", _SPANISH, True),
        )
    )


_GERMAN_END = re.compile(
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
            kind = (_ENGLISH.past | _GERMAN | _FRENCH | _SPANISH | _SPANISH_PAST).get(match["verb"])
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
    if _UNREAL.search(before) or _RELATIVE.search(lower[:begin][max(0, clause_start - 2) :]):
        return
    kind = _narrow_kind(kinds[match["verb"]], lower, lower[end:])
    claim = Claim(kind, sentence[begin:end], reported)
    known = spans.get((begin, end))
    if known is None or (known.reported and not reported):
        spans[begin, end] = claim


_CALENDAR_NOUN = re.compile(
    r"\b(?:calendar|events?|appointments?|meetings?|reminders?|kalender|termine?|agenda|rendez-vous|événements?|calendrier|"
    r"calendario|citas?|eventos?|reunión|réunion)\b"
)


_TO_PEOPLE = re.compile(rf"\s+(?:to|an|à)\s+(?![^,;]*\.[a-z]{{2,5}}\b)(?:{HOLE}\s+\w|[^{HOLE}\s])")


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


# Calls that make a claim true -----------------------------------------------------------------------------------------

_EFFECTS: dict[ClaimKind, frozenset[Effect]] = {
    "send": frozenset({"send"}),
    "write": frozenset({"write"}),
    # A tool may delete an event, or change it by sending an invitation.
    "calendar": frozenset({"write", "irreversible", "send"}),
    "delete": frozenset({"irreversible", "write"}),
    "change": frozenset({"write", "irreversible", "send"}),
    "pay": frozenset({"send", "irreversible", "write"}),
    "order": frozenset({"send", "irreversible", "write"}),
}
# Only a tool for it pays or orders: an entry in a calendar or a line in a file does not.
_NEEDED_WORDS: dict[ClaimKind, frozenset[str]] = {
    "pay": frozenset(map(stem, "pay payment transfer wire settle refund money".split())),
    "order": frozenset(
        map(stem, "order buy purchase reserve book reorder rent checkout shop reservation booking".split())
    ),
}
_GENERAL_TOOLBOXES = frozenset({"calendar", "files", "tables", "mail", "lines", "web", "clock"})


def supports_claim(tool: Tool, kind: ClaimKind, phrase: str = "") -> bool:
    """Whether a call of this tool can be what a claim of this kind speaks of."""
    if tool.effect not in _EFFECTS[kind]:
        # A tool of another effect may have the very word: a chat in which `post` is a write.
        return tool.changes and not tool.self_described and stem(phrase.lower()) in map(stem, tool.words)
    needed = _NEEDED_WORDS.get(kind)
    if needed is None:
        return True
    if tool.toolbox in _GENERAL_TOOLBOXES:
        return False
    # What a program says of itself is untrusted: only the name that the settings give it counts.
    said = (tool.toolbox,) if tool.self_described else (tool.name.replace("_", " "), *tool.words)
    return any(stem(word) in needed for text in said for word in text.lower().split())


@dataclass(frozen=True, slots=True)
class UnsupportedClaim:
    """A claim of an answer that no call makes on some path to it; `path` is that of the answer's step."""

    claim: Claim
    path: str


@dataclass(frozen=True, slots=True)
class _Way:
    """One way through a plan: the texts of variables, the tools called, and how conditions were decided."""

    texts: tuple[tuple[str, tuple[str, ...]], ...] = ()
    made: frozenset[str] = frozenset()
    decided: tuple[tuple[Any, bool], ...] = ()

    def bind(self, name: str, texts: tuple[str, ...]) -> _Way:
        kept = tuple((known, value) for known, value in self.texts if known != name)
        # A condition about a variable says nothing any more when the variable has changed.
        decided = tuple((condition, held) for condition, held in self.decided if name not in free_names(condition))
        return replace(self, texts=(*kept, (name, texts)), decided=decided)

    def decision(self, condition: Any) -> bool | None:
        return next((held for known, held in self.decided if known == condition), None)


def unsupported_claims(plan: Plan, registry: Registry, *, done: Iterable[Effect] = ()) -> tuple[UnsupportedClaim, ...]:
    """The claims in a plan's answers that no call makes on every path to that answer.

    A loop counts as done: whether its list is empty is known only in the run, which compares the answer with the
    calls that were made.

    Args:
        plan: The plan.
        registry: Its tools.
        done: The effects of earlier rounds.
    """
    walker = _ClaimWalker(registry, frozenset(done))
    walker.walk(plan.steps, [_Way()], "")
    return tuple(dict.fromkeys(walker.found))


def answer_claims(plan: Plan) -> tuple[Claim, ...]:
    """All claims in the literal parts of a plan's answers, on any path."""
    walker = _ClaimWalker(Registry(), frozenset())
    walker.walk(plan.steps, [_Way()], "")
    return tuple(dict.fromkeys(each.claim for each in walker.found))


def false_claims(plan: Plan, registry: Registry, answer: object, called: Iterable[str]) -> tuple[str, ...]:
    """What an answer claims and the run did not do, a sentence each.

    The check before the run counts a loop as done; here its list may have been empty. Claims are those of the literal
    parts of the plan's answers, as far as the given answer has their words.

    Args:
        plan: The plan that ran.
        registry: Its tools.
        answer: The answer of the run.
        called: The names of the tools whose calls changed something.
    """
    words = str(answer)
    made = [tool for name in set(called) if (tool := registry.get(name)) is not None and tool.changes]
    return tuple(
        f"The answer says {claim.phrase!r}, but no call of this run did that."
        for claim in answer_claims(plan)
        if not claim.reported
        # "Sent 0 mails" is true of an empty list.
        and re.search(rf"\b{re.escape(claim.phrase)}\b(?!\s+(?:0|no|none|nothing)\b)", words)
        and not any(supports_claim(tool, claim.kind, claim.phrase) for tool in made)
    )


class _ClaimWalker:
    def __init__(self, registry: Registry, done: frozenset[Effect]) -> None:
        self._registry = registry
        self._done = done
        self.found: list[UnsupportedClaim] = []

    def walk(self, steps: tuple[Any, ...], ways: list[_Way], at: str) -> list[_Way]:
        """The ways after some steps; those that end in an answer are not among them."""
        for number, step in enumerate(steps):
            path = f"{at}{number}"
            match step:
                case Answer():
                    for way in ways:
                        self._check_answer(step, way, path)
                    return []
                case Call():
                    ways = [self._after_call(step, way) for way in ways]
                case Compute():
                    ways = [way.bind(step.name, _texts(step.value, way)) for way in ways]
                case Update():
                    ways = [
                        way.bind(step.name, _joined(_known(step.name, way), _texts(step.value, way))) for way in ways
                    ]
                case When():
                    ways = self._after_when(step, ways, path)
                case Each():
                    called = frozenset(inner.tool for _, inner in walk(step.steps) if isinstance(inner, Call))
                    inside = [replace(way, made=way.made) for way in ways]
                    ways = [
                        replace(way, made=way.made | called)
                        for way in [*self.walk(step.steps, inside, f"{path}/"), *ways]
                    ]
                case _:
                    if (name := getattr(step, "name", None)) is not None:
                        ways = [way.bind(name, (HOLE,)) for way in ways]
            ways = _bounded(ways)
        return ways

    def _after_call(self, step: Call, way: _Way) -> _Way:
        way = replace(way, made=way.made | {step.tool})
        return way if step.name is None else way.bind(step.name, (HOLE,))

    def _after_when(self, step: When, ways: list[_Way], path: str) -> list[_Way]:
        after: list[_Way] = []
        for branch, steps, side in ((True, step.steps, "then"), (False, step.otherwise, "else")):
            taken = [
                replace(way, decided=(*way.decided, (step.condition, branch)))
                for way in ways
                if way.decision(step.condition) in (None, branch)
            ]
            after += self.walk(steps, taken, f"{path}/{side}/") if taken else []
        return after

    def _check_answer(self, step: Answer, way: _Way, path: str) -> None:
        made = [tool for name in way.made if (tool := self._registry.get(name)) is not None and tool.changes]
        for text in _texts(step.value, way):
            for claim in claims_of(text):
                supported = any(supports_claim(tool, claim.kind, claim.phrase) for tool in made)
                if not supported and not self._done & _EFFECTS[claim.kind]:
                    self.found.append(UnsupportedClaim(claim, path))


def _bounded(ways: list[_Way]) -> list[_Way]:
    """Distinct ways; beyond a limit one that has all texts and only the calls that every way makes: fail closed."""
    distinct = list(dict.fromkeys(ways))
    if len(distinct) <= MAX_PATHS:
        return distinct
    texts: dict[str, tuple[str, ...]] = {}
    for way in distinct:
        for name, found in way.texts:
            texts[name] = tuple(dict.fromkeys((*texts.get(name, ()), *found)))
    return [_Way(tuple(texts.items()), frozenset.intersection(*(way.made for way in distinct)))]


def _known(name: str, way: _Way) -> tuple[str, ...]:
    return next((texts for known, texts in way.texts if known == name), (HOLE,))


def _joined(*parts: tuple[str, ...], between: str = "") -> tuple[str, ...]:
    """The texts that alternatives of parts make together; beyond a limit all of them, one below the other."""
    count = 1
    for part in parts:
        count *= max(1, len(part))
    if count > MAX_TEXTS:
        return ("\n".join(dict.fromkeys(text for part in parts for text in part)),)
    return tuple(dict.fromkeys(between.join(each) for each in product(*parts)))


_TEXT_FUNCTIONS = frozenset(
    "join upper lower title capitalize strip lstrip rstrip removeprefix removesuffix replace str ljust rjust list "
    "tuple sorted reversed unique first last get dict values items flatten zip max min".split()
)
"""Library functions whose result has the texts of their arguments; every other makes a number, a date or the like."""


def _texts(expr: Any, way: _Way) -> tuple[str, ...]:
    """The texts that an expression may have, with HOLE for what the run brings in."""
    match expr:
        case Const(value=str() as text):
            return (text,)
        case Const(value=value):
            return (str(value),)
        case Ref(name=name):
            return _known(name, way)
        case Format(parts=parts):
            return _joined(*((part,) if isinstance(part, str) else _texts(part.value, way) for part in parts))
        case Arithmetic(op="+", left=left, right=right):
            return _joined(_texts(left, way), _texts(right, way))
        case Choose(condition=condition, then=then, otherwise=otherwise):
            held = way.decision(condition)
            ways = [then] if held is True else [otherwise] if held is False else [then, otherwise]
            return tuple(dict.fromkeys(text for each in ways for text in _texts(each, way)))
        case Apply(args=args) if not free_names(expr):
            try:
                return (str(evaluate_expr(expr, {})),)
            except (EvaluationError, ValueError, TypeError):
                return _joined(*(_texts(each, way) for each in args), between="\n")
        case Apply(function=function) if function not in _TEXT_FUNCTIONS:
            return (HOLE,)
        case Comprehension(element=element, key=key):
            return _joined(*(_texts(each, way) for each in (key, element) if each is not None), between="\n")
        case Index(value=value) | Slice(value=value):
            # Some of the texts, and maybe all of one.
            return _texts(value, way)
        case Compare() | Not() | Lambda():
            return (HOLE,)
        case _:
            inner = children(expr)
            return _joined(*(_texts(each, way) for each in inner), between="\n") if inner else (HOLE,)
