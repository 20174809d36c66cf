"""Orders that take a whole clause to tell, and their twins: questions and reports with the same words."""

from __future__ import annotations

import pytest

from bicameral.planning._clause_orders import effects_in_clauses


@pytest.mark.parametrize(
    ("request_", "effect"),
    [
        ("Ask Elif and Iris whether they can babysit on Sunday", "send"),
        ("Which hotel nights are not confirmed? Ask each of those hotels", "send"),
        ("Excuse Kaito from school, ill today", "send"),
        ("Report the meter reading to the power company", "send"),
        ("If nobody is down as driver, write the team", "send"),
        ("Offer Nils three times tonight", "send"),
        ("The open invoices sorted by day, as open.csv", "write"),
        ("Trag alle Abholungen aus dem Plan, die noch kommen, um 7 Uhr in meinen Kalender ein.", "write"),
        ("Lad die Großeltern zum Geburtstag ein.", "send"),
        ("Sag allen ab, die beim Kurs stehen: der Kurs fällt aus.", "send"),
        ("Sag dem Maler zu, wenn sein Angebot unter 2.800 liegt.", "send"),
        ("Frag bei jeder Hütte per Mail nach, ob noch Betten frei sind.", "send"),
        ("Schreib allen in der Adressliste unsere neue Anschrift.", "send"),
        ("Schreib Kaito und setz Lars in Kopie: die Sitzung beginnt um 19 Uhr.", "send"),
        ("Erinnere mich an die Blumen.", "write"),
        ("Mach eine Sicherungskopie vom Kassenbuch.", "write"),
        ("Mach aus den Rechnungen eine Tabelle deck.csv mit Firma und Betrag.", "write"),
        ("Gib mir die Leseliste ohne die gelesenen Bücher, als nursery.csv.", "write"),
        ("Relance par mail chaque locataire qui a du retard.", "send"),
        ("Décale mon rendez-vous à lundi prochain.", "write"),
        ("Fais une copie du bail dans le dossier archives.", "write"),
        ("Alarga media hora la clase de guitarra", "write"),
        ("Pasa la tabla de citas de mañana al calendario", "write"),
    ],
)
def test_an_order_at_the_start_of_a_clause_is_found(request_: str, effect: str) -> None:
    assert effect in effects_in_clauses(request_)


@pytest.mark.parametrize(
    "request_",
    [
        "What did Kim ask?",
        "Who let the team know about it?",
        "How often did I thank the donors?",
        "Show me what they report to the board",
        "Ask me before you look at the list",
        "Draft a mail to ask Kim whether she comes",
        "Don't ask Kim, just list her mails",
        "Which offer is the cheapest?",
        "Who is in the file open.csv?",
        "Wer hat mich eingeladen?",
        "Was steht in der Einladung, die Nadia geschickt hat?",
        "Welche Termine trage ich ein?",
        "Wer hat abgesagt?",
        "Wie lautet die Frage von Kim?",
        "Frag mich vorher.",
        "Was soll ich dem Maler sagen?",
        "Formulier eine Mail, in der ich die Nachbarn einlade.",
        "Sag mir ab wann ich frei bin",
        "Qui m'a invité ?",
        "Combien de rendez-vous décalés y a-t-il ?",
        "¿Quién me invita a cenar?",
        "¿Qué tengo en la agenda mañana?",
        "¿Quién felicita a los socios?",
    ],
)
def test_a_question_or_a_report_with_the_same_words_orders_nothing(request_: str) -> None:
    assert effects_in_clauses(request_) == frozenset()
