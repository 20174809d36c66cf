"""Short requests in German, French and Spanish, and the effects that they ask for.

One request a line: its effects (`-` for none), then its words. The tables of words were tuned on the requests with an
even number; those with an odd number only report.
"""

from __future__ import annotations

GERMAN = """\
send | Schick Kim die Liste der Gäste an kim@example.com
send | Leite die Mail vom Vermieter an Jonas weiter
send | Antworte Frau Krüger, dass Freitag passt
send | Sag Kim Bescheid, dass ich später komme
send | Schick den Bericht bitte ab
send | Kannst du die Rechnung an das Büro senden?
send | Bitte teile dem Team mit, dass der Termin ausfällt
send | Maile mir die Summe an ich@example.org
send | Informiere alle Teilnehmer über den neuen Raum
send | Verschick die Einladung an alle aus gaeste.csv
send | Schreib Anna eine Mail, dass der Kuchen fertig ist
send | Erinnere Paul per Mail an die Miete
write | Speichere die Liste in gaeste.txt
write | Trag den Zahnarzt morgen um 10 in den Kalender ein
write | Schreib die Summe in summe.txt
write | Leg einen Ordner namens Belege an
write | Häng die Zeile an notizen.txt an
write | Verschiebe den Termin auf Dienstag
write | Kopiere vertrag.pdf in den Ordner Archiv
write | Benenne alt.txt in neu.txt um
write | Notiere in ideen.txt, dass wir Farbe brauchen
write | Erstelle einen Termin für Samstag, 14 Uhr
write | Ich möchte die Tabelle als tabelle.csv abspeichern
irreversible | Lösch die Datei alt.log
irreversible | Lösche den Termin mit Herrn Bauer
irreversible | Wirf entwurf.txt weg
irreversible | Sag den Termin am Montag ab
irreversible | Kannst du die alten Mails von der Bank löschen?
irreversible | Die Datei tmp.txt soll gelöscht werden
irreversible | Entferne die Datei kopie.csv aus dem Ordner
send write | Speichere die Liste in liste.txt und schick sie an kim@example.com
send irreversible | Lösch den Termin am Freitag und sag Kim Bescheid
write | Speicher einen Entwurf der Antwort in antwort.txt
- | Was hat Kim mir gestern geschickt?
- | Zeig mir die Mails, die Kim geschickt hat
- | Wie viele Zeilen hat notizen.txt?
- | Schick mir die Liste der offenen Rechnungen
- | Entwirf eine Mail an Kim
- | Bereite eine Antwort an Frau Krüger vor, ohne sie zu senden
- | Formuliere eine Absage an den Verein
- | Welche Termine habe ich am Tag vor Ostern?
- | Entferne doppelte Zeilen aus gaeste.txt und zeig den Rest
- | Lösch die Leerzeilen und zähl, was bleibt
- | Welche Dateien wurden letzte Woche gelöscht?
- | Wer hat den Termin abgesagt?
- | Was steht in der letzten gesendeten Mail?
- | Sag mir, wann die Fähre fährt
- | Zeige die Summe der Ausgaben im März
- | Liste alle Ordner auf
- | Wann wurde die Rechnung bezahlt?
- | Schick nichts ab, zeig mir nur den Text
- | Was steht im Kalender für morgen?
- | Wie lautet der Code der Garage?
- | Hat jemand auf meine Mail geantwortet?
- | Nenne die drei größten Posten aus kosten.csv
- | Vergleiche plan.txt mit log.txt
- | Wie viel habe ich gespart?
- | Mach einen Entwurf für die Einladung
- | Fass die Notizen zusammen
- | Welche Anhänge hat die Mail vom Notar?
- | Gib mir den Namen des Absenders
- | Wer sendet mir am meisten Mails?
- | Zähle die nicht gelesenen Mails
- | Was kostet der Versand laut preise.csv?
- | Such die Mail, in der Kim den Termin verschoben hat
- | Berechne den Mittelwert der Spalte Menge
- | Sind heute Nachrichten eingetragen worden?
"""

FRENCH = """\
send | Envoie la liste des invités à kim@example.com
send | Envoie-le à Paul
send | Réponds à Madame Petit que vendredi convient
send | Transfère le mail du propriétaire à Jeanne
send | Peux-tu envoyer la facture au bureau ?
send | Préviens Kim que je serai en retard
send | Dis à Anna que le gâteau est prêt
send | Fais suivre ce message à toute l'équipe
send | Écris à Marc que la réunion est annulée
send | Merci d'envoyer le rapport à ana@example.org
send | Informe les participants du changement de salle
send | Il faut que tu envoies le total à Kim
write | Enregistre la liste dans invites.txt
write | Mets-le dans le fichier notes.txt
write | Ajoute le dentiste demain à 10 h dans mon agenda
write | Crée un dossier Factures
write | Sauvegarde le tableau sous tableau.csv
write | Note dans idees.txt qu'il faut de la peinture
write | Déplace le rendez-vous à mardi
write | Copie contrat.pdf dans le dossier archive
write | Renomme vieux.txt en neuf.txt
write | Peux-tu inscrire la réunion de samedi dans le calendrier ?
write | Écris la somme dans somme.txt
irreversible | Supprime le fichier vieux.log
irreversible | Efface le rendez-vous avec Monsieur Blanc
irreversible | Annule le rendez-vous de lundi
irreversible | Peux-tu supprimer les vieux mails de la banque ?
irreversible | Jette brouillon.txt à la corbeille
irreversible | Le fichier tmp.txt doit être supprimé
irreversible | Retire l'événement de vendredi du calendrier
send write | Enregistre la liste dans liste.txt et envoie-la à kim@example.com
send irreversible | Annule le rendez-vous de vendredi et préviens Kim
write | Enregistre un brouillon de la réponse dans reponse.txt
- | Qu'est-ce que Kim m'a envoyé hier ?
- | Montre-moi les mails que Kim a envoyés
- | Combien de lignes y a-t-il dans notes.txt ?
- | Envoie-moi la liste des factures ouvertes
- | Prépare un mail pour Kim
- | Prépare une réponse à Madame Petit sans l'envoyer
- | Rédige un brouillon d'invitation
- | Comment s'appelle l'expéditeur du dernier message ?
- | Enlève les doublons de invites.txt et montre le reste
- | Supprime les lignes vides et compte ce qui reste
- | Quels fichiers ont été supprimés la semaine dernière ?
- | Qui a annulé le rendez-vous ?
- | Que dit le dernier mail envoyé ?
- | Dis-moi quand part le ferry
- | Affiche la somme des dépenses de mars
- | Liste tous les dossiers
- | Quand la facture a-t-elle été payée ?
- | N'envoie rien, montre seulement le texte
- | Qu'y a-t-il dans mon agenda demain ?
- | Quel est le code du garage ?
- | Quelqu'un a-t-il répondu à mon mail ?
- | Donne les trois plus gros postes de frais.csv
- | Compare plan.txt et log.txt
- | Combien ai-je économisé ?
- | Qui m'envoie le plus de mails ?
- | Résume les notes de la réunion
- | Quelles pièces jointes a le mail du notaire ?
- | Donne-moi le nom du client
- | Compte les messages non lus
- | Combien coûte l'envoi selon prix.csv ?
- | Cherche le mail où Kim a déplacé le rendez-vous
- | Calcule la moyenne de la colonne montant
- | Propose une réponse au courriel de Luc
"""

SPANISH = """\
send | Manda la lista de invitados a kim@example.com
send | Mándaselo a Pablo
send | Responde a la señora Ruiz que el viernes va bien
send | Reenvía el correo del casero a Juana
send | ¿Puedes enviar la factura a la oficina?
send | Avisa a Kim de que llego tarde
send | Dile a Ana que la tarta está lista
send | Envíale el informe al jefe
send | Escríbele a Marcos que la reunión se cancela
send | Por favor, envíe el total a ana@example.org
send | Informa a los participantes del cambio de sala
send | Quiero que mandes el resumen a Kim
write | Guarda la lista en invitados.txt
write | Guárdalo en notas.txt
write | Añade el dentista mañana a las 10 en mi calendario
write | Crea una carpeta Facturas
write | Apunta en ideas.txt que hace falta pintura
write | Mueve la cita al martes
write | Copia contrato.pdf a la carpeta archivo
write | Renombra viejo.txt como nuevo.txt
write | ¿Puedes anotar la reunión del sábado en la agenda?
write | Escribe la suma en suma.txt
write | Ponlo en la tabla gastos.csv
irreversible | Borra el archivo viejo.log
irreversible | Elimina la cita con el señor Blanco
irreversible | Cancela la cita del lunes
irreversible | ¿Puedes borrar los correos antiguos del banco?
irreversible | Tira borrador.txt a la papelera
irreversible | El archivo tmp.txt debe ser eliminado
irreversible | Quita el evento del viernes del calendario
irreversible | Bórralo de la carpeta antes del viernes
send write | Guarda la lista en lista.txt y mándala a kim@example.com
send irreversible | Cancela la cita del viernes y avisa a Kim
write | Guarda un borrador de la respuesta en respuesta.txt
- | ¿Qué me mandó Kim ayer?
- | Muéstrame los correos que Kim envió
- | ¿Cuántas líneas tiene notas.txt?
- | Mándame la lista de facturas pendientes
- | Prepara un correo para Kim
- | Prepara un borrador para la señora Ruiz sin enviarlo
- | Redacta una invitación
- | ¿Qué citas tengo antes del lunes?
- | Quita los duplicados de invitados.txt y muestra el resto
- | Elimina las líneas vacías y cuenta las que quedan
- | ¿Qué archivos se borraron la semana pasada?
- | ¿Quién canceló la cita?
- | ¿Qué dice el último correo enviado?
- | Dime cuándo sale el ferry
- | Muestra la suma de los gastos de marzo
- | Enumera todas las carpetas
- | ¿Cuándo se pagó la factura?
- | No envíes nada, solo muestra el texto
- | ¿Qué hay en mi agenda mañana?
- | ¿Cuál es el código del garaje?
- | ¿Alguien ha respondido a mi correo?
- | Da las tres partidas más grandes de gastos.csv
- | Compara plan.txt con log.txt
- | ¿Cuánto he ahorrado?
- | ¿Quién me manda más correos?
- | Resume las notas de la reunión
- | ¿Qué adjuntos tiene el correo del notario?
- | Dame el nombre del cliente
- | Cuenta los mensajes no leídos
- | ¿Cuánto cuesta el envío según precios.csv?
- | Busca el correo en el que Kim movió la cita
- | Calcula la media de la columna importe
- | Propón una respuesta al correo de Luis
"""


def effect_requests() -> list[tuple[str, frozenset[str], str]]:
    """Language, effects and words of each request, in order."""
    found: list[tuple[str, frozenset[str], str]] = []
    for language, table in (("de", GERMAN), ("fr", FRENCH), ("es", SPANISH)):
        for line in table.splitlines():
            effects, _, request = line.partition(" | ")
            found.append((language, frozenset(effects.split()) - {"-"}, request))
    return found
