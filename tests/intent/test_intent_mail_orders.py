"""Orders for mails: drafts, folders and the trash, in four languages; questions, reports and prohibitions are none."""

from __future__ import annotations

import pytest
from standard_tools import REGISTRY

from bicameral.planning import asked_effects

WRITE = """\
Move the mail from Kim to the folder Receipts
Move Kim's mail to Archive
Archive the mails from the bank
Put the mail about the roof into the folder House
File the mail from the bank under Receipts
Save a draft to Kim saying that the roof is done
Draft a reply to Kim and save it in my drafts
Put a draft for Kim in my drafts folder
Save the reply to Kim as a draft
Write Kim a mail but only save it as a draft
Verschiebe die Mail von Kim in den Ordner Rechnungen
Schieb die Mail von der Bank ins Archiv
Leg die Mail von Kim in den Ordner Haus
Archiviere die Mails von der Bank
Speichere einen Entwurf an Kim
Entwirf eine Antwort an Kim und speichere sie
Speichere die Antwort an Kim als Entwurf
Leg einen Entwurf an Kim in meinen Entwürfen ab
Déplace le mail de Kim dans le dossier Factures
Mets le mail de Kim dans le dossier Maison
Archive les mails de la banque
Range le mail de la banque dans Factures
Enregistre un brouillon pour Kim
Enregistre la réponse à Kim comme brouillon
Rédige une réponse à Kim et enregistre-la dans les brouillons
Mueve el correo de Kim a la carpeta Facturas
Pasa el correo de Kim a la carpeta Casa
Archiva los correos del banco
Guarda un borrador para Kim
Guarda la respuesta a Kim como borrador
Redacta una respuesta a Kim y guárdala en borradores
"""

DELETE = """\
Delete the mail from Kim
Delete all mails from the newsletter
Trash the mail about the sale
Throw the mail from the shop away
Get rid of the newsletter mails
Bin the mail from the shop
Put the newsletter mails in the trash
Move the mail from the shop to the trash
Remove the mail from the shop from my inbox
Lösche die Mail von Kim
Lösch alle Mails vom Newsletter
Wirf die Mail vom Shop weg
Wirf die Mails vom Shop in den Papierkorb
Entferne die Mail von Kim
Verschiebe die Mail vom Shop in den Papierkorb
Supprime le mail de Kim
Efface les mails de la newsletter
Jette le mail de la boutique
Mets le mail de la boutique à la corbeille
Borra el correo de Kim
Elimina los correos del boletín
Tira el correo de la tienda a la papelera
Manda el correo de la tienda a la papelera
"""

NOTHING = """\
Did Kim throw the mail away?
Which mails did I put in the trash?
The mails in the trash from last week
Hat Kim die Mail in den Papierkorb geworfen?
Warum liegt die Mail im Papierkorb?
¿Quién tiró el correo a la papelera?
Qui a mis le mail à la corbeille ?
Do not put the mail in the trash
Which mails are in the trash?
How many drafts are in my drafts folder?
Show the mails in the folder Receipts
What does the mail that Kim deleted say?
Draft a reply to Kim
Do not delete the mail from Kim
Don't move the mail from Kim to Archive
Read the last draft in my drafts
Did Kim move the mail to the archive?
Which mails could be deleted?
Welche Mails liegen im Papierkorb?
Wie viele Entwürfe sind im Ordner Entwürfe?
Lösche die Mail von Kim nicht
Entwirf eine Antwort an Kim
Zeig die Mails im Ordner Rechnungen
Quels mails sont dans la corbeille ?
Ne supprime pas le mail de Kim
Rédige une réponse à Kim
Combien de brouillons y a-t-il dans le dossier Brouillons ?
¿Qué correos hay en la papelera?
No borres el correo de Kim
Redacta una respuesta a Kim
¿Cuántos borradores hay en la carpeta Borradores?
Compare a.txt with b.txt
What is the difference between old.md and new.md?
When does the bin go out?
Summarise offer.pdf
What is the total in budget.xlsx?
"""


@pytest.mark.parametrize("request_", WRITE.splitlines())
def test_a_mail_is_moved_or_drafted_by_order(request_: str) -> None:
    assert "write" in asked_effects(request_, REGISTRY)


@pytest.mark.parametrize("request_", DELETE.splitlines())
def test_a_mail_is_deleted_by_order(request_: str) -> None:
    assert "irreversible" in asked_effects(request_, REGISTRY)


@pytest.mark.parametrize("request_", NOTHING.splitlines())
def test_what_asks_or_tells_about_mails_changes_nothing(request_: str) -> None:
    assert asked_effects(request_, REGISTRY) == ()


def test_a_mail_of_somebody_is_a_noun() -> None:
    assert "send" not in asked_effects("Move Kim's mail to Archive", REGISTRY)
    assert "send" in asked_effects("Mail Kim's letter to Anna", REGISTRY)
