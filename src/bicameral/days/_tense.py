"""The direction of a clause: whether its verb speaks of the past or of the future.

A text is divided into clauses; in each the strongest sign decides, and of equally strong ones the nearest before the
date, else the nearest after it. Auxiliary verbs are stronger than participles and orders (`will be paid` is future),
these stronger than nouns (an invoice lies in the past, a meeting in the future).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from bicameral.days._tokens import Token

Direction = Literal[-1, 0, 1]
AUXILIARY, VERB, NOUN = 3, 2, 1


def _signs(strength: int, direction: Direction, text: str) -> dict[str, tuple[int, Direction]]:
    return dict.fromkeys(text.split(), (strength, direction))


# Words with their accents: in Spanish `pagó` is past and `pago` is not.
_SIGNS: dict[str, tuple[int, Direction]] = {
    **_signs(
        NOUN, -1, "invoice invoices bill bills receipt receipts expense expenses sales revenue mail mails email emails"
    ),
    **_signs(NOUN, -1, "message messages statement statements log logs history spending payments"),
    **_signs(NOUN, -1, "rechnung rechnungen ausgaben beleg belege umsatz umsätze nachricht nachrichten kontoauszug"),
    **_signs(NOUN, -1, "facture factures dépense dépenses reçus courriel courriels ventes relevé historique"),
    **_signs(NOUN, -1, "factura facturas gasto gastos recibo recibos correo correos mensajes ventas"),
    **_signs(NOUN, 1, "event events appointment appointments meeting meetings trip flight holiday vacation deadline"),
    **_signs(NOUN, 1, "birthday conference reminder upcoming termin termine treffen besprechung urlaub flug reise"),
    **_signs(NOUN, 1, "geburtstag frist erinnerung rendez-vous réunion réunions voyage vacances anniversaire rappel"),
    **_signs(NOUN, 1, "cita citas reunión reuniones viaje vuelo vacaciones cumpleaños recordatorio"),
    **_signs(
        VERB, -1, "paid spent bought sent wrote written received got came went made met said told ate took taken sold"
    ),
    **_signs(VERB, -1, "gave given found lost ran saw seen done been began held left flew drove earned ago already"),
    **_signs(VERB, -1, "bezahlt gezahlt ausgegeben gekauft geschickt gesendet geschrieben bekommen erhalten gewesen"),
    **_signs(VERB, -1, "gemacht gegangen gekommen überwiesen gekostet verkauft gegessen getroffen gesagt verdient"),
    **_signs(
        VERB, -1, "gearbeitet passiert bezahlte zahlte kaufte kam kamen ging gingen schrieb schrieben bekam kostete"
    ),
    **_signs(VERB, -1, "gab schickte angekommen eingegangen eingetroffen stattgefunden"),
    **_signs(VERB, -1, "reçu écrit eu venu vendu perdu dû"),
    **_signs(VERB, -1, "hice hizo hubo tuve tuvo vino vinieron fui dijo dieron escrito hecho visto puesto"),
    **_signs(VERB, 1, "due fällig vence vencen échéance"),
    **_signs(AUXILIARY, -1, "did didn was were wasn weren had war waren warst hatte hatten hattest wurde wurden"),
    **_signs(AUXILIARY, -1, "était étaient avait avaient étais avais fue fueron era eran había habían estuvo estaba"),
    **_signs(AUXILIARY, 1, "will won shall ll going gonna werde wirst wird werdet"),
    **_signs(AUXILIARY, 1, "vais vas va allons allez vont sera seront aura auront voy vas vamos van será serán habrá"),
}
# An order about an event is about the future, where it begins a clause.
_EVENT_ORDERS = frozenset(
    "book schedule remind arrange invite reserve postpone reschedule cancel erinnere erinner buche reserviere lade "
    "verschiebe vereinbare rappelle rappelez réserve réservez planifie planifiez invite invitez recuerda recuérdame "
    "reserva programa agenda planifica invita".split()
)
# These are as often about records: "add the invoices of May". A noun nearer to the date is the better sign.
_PLACING_ORDERS = frozenset(
    "add plan block enter create move set put trage trag plane organisiere ajoute ajoutez inscris prévois organise "
    "mets añade agrega pon apunta crea organiza mueve".split()
)
_OTHER_ORDERS = frozenset(
    "send mail email forward tell write call pay ask let make give finish submit print buy order meet show list find "
    "save schicke schick sende maile ruf rufe sag sage schreib schreibe zahle bezahle kaufe zeig zeige suche "
    "envoie envoyez dis écris appelle paie achète montre cherche envía manda dile escribe llama paga compra "
    "busca".split()
)
_ORDERS = _EVENT_ORDERS | _PLACING_ORDERS | _OTHER_ORDERS
# Behind an order a participle describes a thing ("send the corrected report"), unless somebody did it ("I paid").
_SUBJECTS = frozenset(
    "i we you he she they it who that ich wir du er sie es ihr je j tu il elle on nous vous ils elles yo él "
    "ella".split()
)
_ORDER_PLACE = 3
_FIRST_NAMES = 2
_NAMING = frozenset(("called", "named", "titled", "entitled", "labelled"))
# Words in -ed that say nothing about when.
_NOT_PAST = frozenset(
    "need needed feed speed red bed hundred scheduled planned booked expected supposed related named called dated "
    "shared embed exceed proceed succeed seed indeed shed wed weed unread attached signed unpaid interested".split()
)
_SENTENCE_ENDS = frozenset(".?!;\u2026")
_CLAUSE_WORDS = frozenset("that which who whom what qui que dont qué cuando when wann quand lo".split())
_JOINING_WORDS = frozenset("and then und dann et puis y luego but aber mais pero".split())
_HAVE = frozenset(
    "ai as a avons avez ont suis est sont habe hast hat haben habt ist sind bin he has ha hemos han".split()
)
_PARTICIPLE_REACH = 6
# After one of these a participle is passive and says nothing about when: `is invited on 26 May`.
_BE = frozenset("is are be being isn aren".split())
_PASSIVE_REACH = 3
_SHORTEST = 5


def _sign(word: str, since_have: int) -> tuple[int, Direction] | None:
    known = _SIGNS.get(word)
    if known is not None:
        return known
    if len(word) < _SHORTEST:
        return None
    if word.endswith("ed") and word not in _NOT_PAST:
        return VERB, -1
    if word.endswith(("aste", "iste", "aron", "ieron", "aba", "aban", "qué", "gué", "ió")):
        return VERB, -1
    if word.endswith(("aré", "eré", "iré", "ará", "erá", "irá", "arán", "erán", "irán", "aremos", "iremos")):
        return VERB, 1
    if word.endswith(("erai", "irai", "eras", "erons", "erez", "eront", "iront", "drai", "dra", "dront")):
        return VERB, 1
    if since_have <= _PARTICIPLE_REACH:
        # A participle is one only after its auxiliary: `été`, `année`, `gesamt` and `estado` have other meanings.
        if word.endswith(("é", "ée", "és", "ées", "ado", "ido")):
            return VERB, -1
        if word.endswith("t") and (word.startswith("ge") or "ge" in word[2:6]):
            return VERB, -1
    if word.endswith(("té", "ré", "só", "tó", "ró", "gó", "pró")) and not word.endswith("été"):
        return VERB, -1
    return None


class Tenses:
    """The direction of every place of a text, computed once in time linear in the number of tokens."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        count = len(tokens)
        self._clause = [0] * count
        self.sentence = [0] * count
        signs: list[tuple[int, Direction] | None] = [None] * count
        clause = sentence = 0
        in_clause = 0
        ordered = False
        since_have = _PARTICIPLE_REACH + 1
        since_be = _PASSIVE_REACH + 1
        for at, token in enumerate(tokens):
            word = token.text.lower() if token.kind == "word" else token.text
            following = tokens[at + 1].text.lower() if at + 1 < count else ""
            if self._ends_sentence(tokens, at):
                sentence += 1
                clause += 1
                in_clause, ordered = 0, False
                since_be = _PASSIVE_REACH + 1
            elif word == "," or word in _CLAUSE_WORDS or (word in _JOINING_WORDS and _begins_clause(following)):
                clause += 1
                in_clause, ordered = 0, False
                since_be = _PASSIVE_REACH + 1
            self._clause[at], self.sentence[at] = clause, sentence
            since_have = 0 if word in _HAVE else since_have + 1
            since_be = 0 if word in _BE else since_be + 1
            if token.kind == "word":
                in_clause += 1
                signs[at] = _sign(word, since_have)
                begins = word in _ORDERS and in_clause <= _ORDER_PLACE and following != "up"
                if begins and word not in _OTHER_ORDERS:
                    signs[at] = (VERB if word in _EVENT_ORDERS else NOUN), 1
                if signs[at] == (VERB, -1) and since_be <= _PASSIVE_REACH:
                    signs[at] = None
                elif signs[at] == (VERB, -1) or word in _NAMING:
                    before = tokens[at - 1] if at else token
                    is_done = before.text.lower() in _SUBJECTS or (
                        before.text[:1].isupper() and in_clause > _FIRST_NAMES
                    )
                    signs[at] = (VERB, -1) if is_done or (not ordered and word not in _NAMING) else None
                ordered = ordered or begins
        # A clause without a sign ("In May, how much did I spend?") takes that of its sentence.
        self._of_sentence: dict[int, tuple[int, Direction]] = {}
        for at, sign in enumerate(signs):
            if sign is not None and sign[0] > self._of_sentence.get(self.sentence[at], (0, 0))[0]:
                self._of_sentence[self.sentence[at]] = sign
        self._before = self._sweep(signs, range(count))
        self._after = self._sweep(signs, range(count - 1, -1, -1))

    @staticmethod
    def _ends_sentence(tokens: Sequence[Token], at: int) -> bool:
        token = tokens[at]
        if (
            token.text == "."
            and at > 0
            and (tokens[at - 1].kind == "number" or len(tokens[at - 1].text) <= _SHORTEST - 1)
        ):
            # `15. März`, `15.3.`, `Sept. 5`, `p.m.`: a sentence begins only with a capital after a blank.
            following = tokens[at + 1] if at + 1 < len(tokens) else None
            return (
                tokens[at - 1].kind == "word"
                and following is not None
                and following.start > token.end
                and following.text[:1].isupper()
            )
        return token.text in _SENTENCE_ENDS or token.text.startswith("\n")

    def _sweep(self, signs: Sequence[tuple[int, Direction] | None], order: range) -> list[dict[int, Direction]]:
        """For each place the last sign of each strength that was passed in the same clause."""
        found: list[dict[int, Direction]] = [{}] * len(signs)
        seen: dict[int, Direction] = {}
        clause = -1
        for at in order:
            if self._clause[at] != clause:
                clause, seen = self._clause[at], {}
            sign = signs[at]
            if sign is not None:
                seen = {**seen, sign[0]: sign[1]}
            found[at] = seen
        return found

    def direction(self, at: int) -> tuple[Direction, int]:
        """The direction at a token and the strength of the sign; 0 where nothing says it."""
        for strength in (AUXILIARY, VERB, NOUN):
            for side in (self._before, self._after):
                if strength in side[at]:
                    return side[at][strength], strength
        strength, direction = self._of_sentence.get(self.sentence[at], (0, 0))
        return direction, strength


def _begins_clause(word: str) -> bool:
    return word in _ORDERS or _sign(word, _PARTICIPLE_REACH + 1) is not None
