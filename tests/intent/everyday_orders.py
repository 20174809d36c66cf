"""Everyday orders for notes, messages, lists and calendars in four languages, each with a sentence that orders nothing.

One pair a line: the effect of the order, the order, and its twin with the same words that asks, reports or imagines.
"""

from __future__ import annotations

ENGLISH = """\
write | Write down that the boiler code is 4411 | Who wrote down that the boiler code is 4411?
write | Jot down the meter reading: 3321 | Did Kim jot down the meter reading?
write | Note that the hall closes at nine | Does the note say that the hall closes at nine?
write | Make a note that Kim is allergic to nuts | Did I make a note that Kim is allergic to nuts?
write | Take down this number: 0664 123 | Who took down this number: 0664 123?
write | Take a note: the key is with Ana | Is there a note about the key?
write | Put milk and eggs on the list | Who put milk and eggs on the list?
write | Add candles to my shopping list | Are candles on my shopping list?
write | Stick oat milk on the shopping list | Did oat milk stick on the shopping list?
write | Keep the wifi code in codes.txt | Does Kim keep the wifi code in codes.txt?
write | Save the wifi code for me in codes.txt | Where did I save the wifi code?
write | Store the serial number 77-A in devices.txt | Where is the serial number 77-A stored?
write | Log 30 minutes of running in sport.csv | How many minutes of running did I log?
write | Record that the car was serviced at 81,000 km | When was the record of the car made?
write | File the warranty away in the folder papers | Which file has the warranty?
write | Enter the dentist on Friday at ten in my calendar | When did I enter the dentist?
write | Pencil in lunch with Noor on Thursday | Is lunch with Noor on Thursday pencilled in?
write | Block Friday afternoon for the tax return | Is Friday afternoon blocked?
write | Block off two hours on Monday for reading | Who blocked off two hours on Monday?
write | Schedule a call with the plumber for Tuesday at nine | What is my schedule for Tuesday at nine?
write | Put the school fair in my diary for 12 June | Is the school fair in my diary?
write | Pop a reminder in the calendar for the bins on Sunday | Is there a reminder in the calendar for the bins?
write | Mark 3 May as a holiday in the calendar | Is 3 May marked as a holiday in the calendar?
write | Could you jot down that the spare key is with Ana? | Could it be that Kim jotted that down?
write | Can you note down the reading 3321? | Can the reading 3321 be seen in the notes?
write | Would you write that down in notes.txt? | Would that be written in notes.txt if Kim came?
write | I'd like you to note that the rent went up | I'd like to know what the note about the rent says
write | Make sure to write down that the vet opens at eight | Kim makes sure to write down when the vet opens
write | Remember that the spare key is with Ana | Do you remember that the spare key is with Ana?
write | Keep track of this in spending.csv: 12 euros for bread | Who keeps track of this in spending.csv?
write | Fix a meeting with Kim for Monday at ten | Which meeting with Kim is on Monday at ten?
send | Let Kim know that the hall is booked | Did you let Kim know that the hall is booked?
send | Let the neighbours know the water is off tomorrow | Who let the neighbours know about the water?
send | Drop Kim a line that I will be late | Did Kim drop a line that he will be late?
send | Drop a line to Kim saying that I am late | When did I drop a line to Kim?
send | Text Kim that I am on my way | What does the text from Kim say?
send | Ping Noor about the draft | Did Noor ping me about the draft?
send | Message the landlord that the heating is broken | Is there a message from the landlord?
send | Give the team notice that Friday is off | Did the team get notice that Friday is off?
send | Give Kim a heads-up about the delay | Did Kim give me a heads-up about the delay?
send | Pass on to Kim that the bill is paid | Who passed on to Kim that the bill is paid?
send | Pass the news on to the team | Who passed the news on?
send | Tell Kim that the train is late | Did you tell Kim that the train is late?
send | Tell my sister I will come on Sunday | What did I tell my sister?
send | Inform the tenants about the repairs | Were the tenants informed about the repairs?
send | Notify Noor that the parcel is here | If Noor is notified, how long does it take?
send | Remind Kim by mail about the rent | Did Kim remind me about the rent?
send | Shoot Kim an email about the offer | Who shot Kim an email about the offer?
send | Get word to the team that we meet at eight | Did the team get word that we meet at eight?
send | Get in touch with the plumber and ask for a date | When did I get in touch with the plumber?
send | Reply to Noor that Friday is fine | What was the reply to Noor?
send | Get back to Kim that Friday works | Did Kim get back to me?
send | Could you let Kim know that I am late? | Could Kim know that I am late?
send | Can you drop Noor a line about Friday? | Can Noor see the line about Friday?
send | Would you tell the team that we start at nine? | Would the team start at nine if I told them?
send | Please have a message sent to Kim that I am late | Kim had a message sent to me
"""

GERMAN = """\
write | Notier dir, dass der Code 4411 ist | Wo hast du dir notiert, dass der Code 4411 ist?
write | Notieren Sie bitte den Zählerstand 3321 | Wer hat den Zählerstand 3321 notiert?
write | Schreib auf, dass Kim keine Nüsse verträgt | Hat Kim aufgeschrieben, dass er keine Nüsse verträgt?
write | Schreib dir auf, dass der Schlüssel bei Ana liegt | Wer schreibt sich auf, dass der Schlüssel bei Ana liegt?
write | Halt fest, dass die Miete gestiegen ist | Wo steht, dass die Miete gestiegen ist?
write | Halte in notizen.txt fest, dass der Verein umzieht | Wer hält in notizen.txt fest, dass der Verein umzieht?
write | Vermerk bitte, dass die Rechnung doppelt kam | Ist vermerkt, dass die Rechnung doppelt kam?
write | Merk dir, dass der Ersatzschlüssel bei Ana ist | Was soll ich mir merken?
write | Mach dir eine Notiz, dass der Tierarzt um acht öffnet | Gibt es eine Notiz, dass der Tierarzt um acht öffnet?
write | Setz Milch auf die Einkaufsliste | Wer hat Milch auf die Einkaufsliste gesetzt?
write | Pack Eier mit auf die Einkaufsliste | Sind Eier auf der Einkaufsliste?
write | Nimm Brot in die Einkaufsliste auf | Wer nimmt Brot in die Einkaufsliste auf?
write | Trag den Zahnarzt am Freitag um zehn ein | Wer trägt den Zahnarzt am Freitag ein?
write | Trag mir für Montag den Elternabend ein | Ist der Elternabend für Montag eingetragen?
write | Plan am Dienstag eine Stunde für die Steuer ein | Was ist am Dienstag eingeplant?
write | Block mir den Freitagnachmittag | Ist der Freitagnachmittag blockiert?
write | Blockiere am Montag zwei Stunden zum Lesen | Wer hat am Montag zwei Stunden blockiert?
write | Merk das Treffen mit Noor für Donnerstag vor | Ist das Treffen mit Noor vorgemerkt?
write | Vereinbare einen Termin mit Kim am Montag um zehn | Wann habe ich mit Kim einen Termin vereinbart?
write | Hinterleg die Nummer in nummern.txt | Wo ist die Nummer hinterlegt?
write | Leg die Garantie im Ordner Papiere ab | Wo liegt die Garantie?
write | Erfass 30 Minuten Laufen in sport.csv | Wie viele Minuten sind in sport.csv erfasst?
write | Führ die Ausgabe in ausgaben.csv auf | Welche Ausgaben sind in ausgaben.csv aufgeführt?
write | Kannst du dir notieren, dass der Code 4411 ist? | Kann es sein, dass Kim sich den Code notiert hat?
write | Könntest du aufschreiben, dass Kim später kommt? | Könnte Kim aufgeschrieben haben, dass er später kommt?
write | Könnten Sie bitte festhalten, dass die Tür klemmt? | Könnten Sie sagen, wo das festgehalten ist?
write | Bitte den Zählerstand 3321 aufschreiben | Papier zum Aufschreiben
write | Elternabend am Montag um 18 Uhr eintragen | Wer wollte den Elternabend eintragen?
send | Sag Kim Bescheid, dass die Halle gebucht ist | Wer hat Kim Bescheid gesagt?
send | Gib den Nachbarn Bescheid, dass das Wasser abgestellt wird | Haben die Nachbarn Bescheid bekommen?
send | Lass Kim wissen, dass ich später komme | Wer ließ Kim wissen, dass ich später komme?
send | Richte Kim aus, dass der Zug Verspätung hat | Was hat Kim ausgerichtet?
send | Teil dem Team mit, dass Freitag frei ist | Was teilt das Team mit?
send | Setz den Vermieter davon in Kenntnis, dass die Heizung kaputt ist | Wurde der Vermieter in Kenntnis gesetzt?
send | Verständige den Hausmeister | Wer hat den Hausmeister verständigt?
send | Gib die Nachricht an Kim weiter | Wer gibt die Nachricht an Kim weiter?
send | Melde dich bei Kim und sag, dass es später wird | Wann hat sich Kim gemeldet?
send | Meld Kim, dass die Rechnung bezahlt ist | Was meldet Kim?
send | Simse Kim, dass ich unterwegs bin | Wer simst Kim?
send | Schreib Kim, dass ich unterwegs bin | Was schreibt Kim?
send | Schreib meiner Schwester, dass ich am Sonntag komme | Hat meine Schwester geschrieben, dass sie am Sonntag kommt?
send | Lass Noor eine Nachricht zukommen | Wann kam die Nachricht von Noor?
send | Antworten Sie Frau Krüger, dass Freitag passt | Was hat Frau Krüger geantwortet?
send | Kannst du Kim Bescheid geben, dass ich später komme? | Kann Kim Bescheid wissen, dass ich später komme?
send | Könntest du Noor ausrichten, dass Freitag passt? | Was könnte Noor ausgerichtet haben?
send | Würdest du dem Team sagen, dass wir um neun anfangen? | Würde das Team um neun anfangen?
send | Bitte Kim Bescheid geben | Wenn Kim Bescheid gibt, zeig mir die Mail
send | Dem Team ausrichten, dass wir um neun anfangen | Wer sollte dem Team ausrichten, dass wir um neun anfangen?
"""

FRENCH = """\
write | Note que le code de la chaudière est 4411 | Qui a noté que le code de la chaudière est 4411 ?
write | Notez bien le relevé 3321 | Où est noté le relevé 3321 ?
write | Prends note que Kim ne mange pas de noix | Qui a pris note que Kim ne mange pas de noix ?
write | Prenez note du numéro 0664 123 | As-tu pris note du numéro ?
write | Retiens que la clé est chez Ana | Qu'est-ce que je dois retenir sur la clé ?
write | Marque sur la liste : du lait et des œufs | Qu'est-ce qui est marqué sur la liste ?
write | Mets du lait sur la liste de courses | Qui met du lait sur la liste de courses ?
write | Ajoute des bougies à ma liste de courses | Est-ce qu'il y a des bougies sur ma liste ?
write | Rajoute du pain à la liste | Qui a rajouté du pain à la liste ?
write | Consigne la panne dans journal.txt | Où la panne est-elle consignée ?
write | Garde le code wifi dans codes.txt | Qui garde le code wifi dans codes.txt ?
write | Conserve la garantie dans le dossier papiers | Où est conservée la garantie ?
write | Stocke le numéro de série dans appareils.txt | Où est stocké le numéro de série ?
write | Inscris le dentiste vendredi à dix heures | Quand le dentiste est-il inscrit ?
write | Cale un déjeuner avec Noor jeudi | Est-ce que le déjeuner avec Noor est calé jeudi ?
write | Bloque vendredi après-midi pour les impôts | Est-ce que vendredi après-midi est bloqué ?
write | Programme un appel avec le plombier mardi à neuf heures | Quel est le programme de mardi ?
write | Fixe un rendez-vous avec Kim lundi à dix heures | Quand a-t-on fixé le rendez-vous avec Kim ?
write | Prévois deux heures lundi pour la lecture | Qu'est-ce qui est prévu lundi ?
write | Peux-tu noter que la clé est chez Ana ? | Peut-on lire dans la note que la clé est chez Ana ?
write | Tu peux marquer sur la liste qu'il faut du lait ? | Qui peut voir la liste ?
write | Pourriez-vous inscrire le dentiste vendredi ? | Pourrait-il y avoir un dentiste vendredi ?
write | Noter que le loyer a augmenté | Kim voulait noter que le loyer a augmenté
write | Je voudrais que tu notes que la porte coince | Je voudrais savoir ce que disent les notes
send | Préviens Kim que la salle est réservée | Qui a prévenu Kim que la salle est réservée ?
send | Fais savoir aux voisins que l'eau est coupée | Qui fait savoir aux voisins que l'eau est coupée ?
send | Dis à Kim que le train est en retard | Qu'est-ce que Kim a dit ?
send | Dites à l'équipe que vendredi est libre | Qui dit à l'équipe que vendredi est libre ?
send | Tiens Kim au courant du retard | Kim est-il au courant du retard ?
send | Mets Noor au courant pour vendredi | Noor est-elle au courant pour vendredi ?
send | Donne un coup de main à Kim par mail : dis-lui que ça marche | Qui donne un coup de main à Kim ?
send | Envoie un petit mot à Kim | Qui a envoyé un petit mot à Kim ?
send | Passe le mot à l'équipe : on commence à neuf heures | Qui a passé le mot à l'équipe ?
send | Laisse un message à Noor | Noor a-t-elle laissé un message ?
send | Texte Kim que je suis en route | Quel est le texte de Kim ?
send | Signale au propriétaire que le chauffage est en panne | Le propriétaire a-t-il signalé une panne ?
send | Avise les locataires des travaux | Les locataires ont-ils été avisés des travaux ?
send | Fais passer le message à Ana | Qui fait passer le message à Ana ?
send | Contacte le plombier pour demander une date | Quand a-t-on contacté le plombier ?
send | Annonce à l'équipe que Kim part | Qu'annonce l'équipe ?
send | Tu peux prévenir Kim que je serai en retard ? | Qui peut prévenir Kim ?
send | Pourriez-vous dire à Noor que vendredi convient ? | Pourrait-on dire que vendredi convient à Noor ?
send | Peux-tu laisser un mot à Ana ? | Peut-on voir le mot d'Ana ?
send | Prévenir le gardien que la porte coince | Qui devait prévenir le gardien ?
"""

SPANISH = """\
write | Apunta que el código de la caldera es 4411 | ¿Quién apuntó que el código de la caldera es 4411?
write | Anota la lectura 3321 | ¿Dónde está anotada la lectura 3321?
write | Anote usted que Kim no come nueces | ¿Quién anotó que Kim no come nueces?
write | Toma nota de que la llave está en casa de Ana | ¿Quién tomó nota de que la llave está en casa de Ana?
write | Tome nota del número 0664 123 | ¿Hay una nota con el número 0664 123?
write | Deja apuntado que el alquiler subió | ¿Dónde está apuntado que el alquiler subió?
write | Pon leche y huevos en la lista de la compra | ¿Quién puso leche en la lista de la compra?
write | Añade velas a mi lista de la compra | ¿Hay velas en mi lista de la compra?
write | Mete pan en la lista | ¿Quién metió pan en la lista?
write | Guarda el código del wifi en codigos.txt | ¿Dónde guardé el código del wifi?
write | Registra 30 minutos de carrera en deporte.csv | ¿Cuántos minutos están registrados en deporte.csv?
write | Archiva la garantía en la carpeta papeles | ¿Dónde está archivada la garantía?
write | Agenda una cita con Kim el lunes a las diez | ¿Qué hay en la agenda el lunes?
write | Programa una llamada con el fontanero el martes | ¿Cuál es el programa del martes?
write | Bloquea el viernes por la tarde para los impuestos | ¿Está bloqueado el viernes por la tarde?
write | Fija una reunión con Noor el jueves | ¿Cuándo se fijó la reunión con Noor?
write | Marca el 3 de mayo como festivo en el calendario | ¿Está marcado el 3 de mayo en el calendario?
write | Inscribe al dentista el viernes a las diez | ¿Cuándo está inscrito el dentista?
write | Recuerda que la llave está en casa de Ana | ¿Recuerdas que la llave está en casa de Ana?
write | ¿Puedes apuntar que la llave está en casa de Ana? | ¿Puede ser que Ana apuntara lo de la llave?
write | ¿Podría usted anotar la lectura 3321? | ¿Podría estar anotada la lectura 3321?
write | ¿Me apuntas que la puerta se atasca? | ¿Me apuntó Kim que la puerta se atasca?
write | Apuntar que el veterinario abre a las ocho | Kim quería apuntar que el veterinario abre a las ocho
write | Quiero que anotes que subió el alquiler | Quiero saber quién anotó que subió el alquiler
send | Avisa a Kim de que la sala está reservada | ¿Quién avisó a Kim de que la sala está reservada?
send | Avise a los vecinos de que cortan el agua | ¿Avisaron a los vecinos de que cortan el agua?
send | Dile a Kim que el tren llega tarde | ¿Qué dijo Kim del tren?
send | Dígale al equipo que el viernes es libre | ¿Quién le dijo al equipo que el viernes es libre?
send | Hazle saber a Noor que el viernes va bien | ¿Quién le hizo saber a Noor lo del viernes?
send | Comunica a los inquilinos las obras | ¿Quién comunicó a los inquilinos las obras?
send | Escríbele a mi hermana que voy el domingo | ¿Qué escribió mi hermana?
send | Ponle un mensaje a Kim: llego tarde | ¿Hay un mensaje de Kim?
send | Deja un recado a Ana | ¿Dejó Ana un recado?
send | Pasa el recado a Kim | ¿Quién pasó el recado a Kim?
send | Ponte en contacto con el fontanero | ¿Cuándo me puse en contacto con el fontanero?
send | Contacta con el casero por la calefacción | ¿Quién contactó con el casero?
send | Mantén al equipo al tanto | ¿Está el equipo al tanto?
send | Pon al corriente a Noor | ¿Está Noor al corriente?
send | Échale unas líneas a Kim sobre el retraso | ¿Cuántas líneas escribió Kim sobre el retraso?
send | ¿Puedes avisar a Kim de que llego tarde? | ¿Puede Kim llegar tarde?
send | ¿Podría decirle a Noor que el viernes va bien? | ¿Podría Noor venir el viernes?
send | ¿Le dices a Kim que llego tarde? | ¿Le dijo Kim a Ana que llega tarde?
send | Avisar al conserje de que la puerta se atasca | ¿Quién debía avisar al conserje?
"""


def pairs() -> list[tuple[str, str, str]]:
    """Each effect with its order and the twin."""
    lines = [line for table in (ENGLISH, GERMAN, FRENCH, SPANISH) for line in table.splitlines()]
    return [(effect, order, twin) for effect, order, twin in (line.split(" | ") for line in lines)]


NO_ORDERS = """\
If Kim lets the team know, show me the mail
Kim said: let the team know that Friday is off
Kim asked me to drop the team a line, what did I answer?
Draft a message to let Kim know that I am late
Draft a note that tells Kim the code
Don't tell Kim that the train is late
Show the mails that tell Kim about the code
Read notes.txt and tell me what it says about Kim
Let me know how many lines notes.txt has
Let us know when the ferry leaves
Keep me posted on what notes.txt says
The letter says: tell Kim the code
Translate "let Kim know" into French
Message Kim sent yesterday
Message from Kim
Text files in the folder notes
Record of payments in May
The record that Kim set
What would happen if I told the team?
How do I let Kim know that I am late?
Should I tell Kim that the train is late?
Kim wants to pencil in lunch, when is she free?
I already let Kim know that the hall is booked
I jotted down the code, where is it?
Remember me?
Wenn Kim Bescheid gibt, zeig mir die Mail
Kim schrieb: gib dem Team Bescheid
Entwirf eine Nachricht, die Kim ausrichtet, dass es später wird
Gib Kim nicht Bescheid
Gib mir Bescheid, wie viele Zeilen notizen.txt hat
Sag mir Bescheid, wann die Fähre fährt
Richte mir aus, was Kim geschrieben hat
Lass mich wissen, wie viele Zeilen notizen.txt hat
Ich habe Kim schon Bescheid gegeben
Ich habe mir notiert, dass der Code 4411 ist, wo steht das?
Soll ich Kim Bescheid geben?
Wie halte ich fest, dass die Miete gestiegen ist?
Stifte zum Notieren
Ohne Kim Bescheid zu geben, zähl die Zeilen von notizen.txt
Halt mich auf dem Laufenden
Fixe Kosten im März
Meldung von Kim
Notizen von Kim
Si Kim prévient l'équipe, montre-moi le mail
Kim a dit : préviens l'équipe que vendredi est libre
Rédige un message pour prévenir Kim
Ne dis rien à Kim
Tiens-moi au courant
Fais-moi savoir combien de lignes a notes.txt
Dois-je prévenir Kim ?
J'ai déjà prévenu Kim
Comment noter que le loyer a augmenté ?
Note de frais de mars
Marque de la voiture
Texte du contrat
Le message que Kim a laissé à Ana
Kim dijo: avisa al equipo de que el viernes es libre
Redacta un mensaje para avisar a Kim
No le digas nada a Kim
Dime si Kim avisó al equipo
Hazme saber cuántas líneas tiene notas.txt
¿Debo avisar a Kim?
Ya avisé a Kim
¿Cómo apunto que subió el alquiler?
Nota de Ana
Marca del coche
Aviso de Kim
El recado que dejó Ana
"""
