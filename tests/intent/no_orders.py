"""Sentences in four languages that order nothing, although they have the words of orders.

Reports, questions, prohibitions, conditions, texts to translate, quotations, lines of another mail, phone calls, and
words that are orders only elsewhere (`Wish list`, `Thank God`, `Sag mal`, `Saca las fechas`).
"""

from __future__ import annotations

NO_ORDERS = """\
Anna asked whether I could thank Kim for the flowers
Kim wrote: wish Ana a happy birthday from me
"Wish Kim a happy birthday" is a line in a song
Translate: Wish Kim a happy birthday
Wish Kim had a car
Wish list of Kim
Let me know if a bill is missing
Notify me when the offer is there
Informiere mich, wenn eine Rechnung fehlt
Show the totals without writing a file and sending a mail
I wish Kim a happy birthday every year
Thank you for the list
Thank God it is Friday
Don't thank Kim yet
Don't wish Kim a happy birthday
Never write Kim back
If Anna thanks Kim, what does the plan say?
Draft a mail that thanks Kim
Who congratulates Kim?
Should I thank Kim?
Should we write Kim back?
Wünsche für das Fest: eine Torte
Wünsch Kim nicht alles Gute
Anna bat mich, Kim zu gratulieren
Anna fragte, ob ich mich bei Kim bedanken könnte
Soll ich Kim gratulieren?
Bedank dich nicht bei Kim
Offene Fragen
Drei Fragen an Kim
Kannst du mir sagen, wann der Zug fährt?
Kannst du genau sagen, wann der Zug fährt?
Kannst du Näheres sagen, wann der Zug fährt?
Kannst du mal sagen, wann der Zug fährt?
Sag mal, wann fährt der Zug?
Sag mir, wann der Zug fährt
Sag der Reihe nach, was ansteht
Sag bitte, wann der Zug fährt
Übersetze: Sag Noor, wann der Zug fährt
Kim schrieb: Sag Noor, wann der Zug fährt
Was heißt "Sag Noor, wann der Zug fährt" auf Englisch?
Was heißt "Hallo. Schreib Kaito, dass ich komme" auf Englisch?
Was heißt "Hallo. Bitte Ines um die Unterlagen" auf Englisch?
Bitte zeig mir die Termine um die Mittagszeit
Bitte Termine um die Mittagszeit zeigen
Ne remercie pas Noor
Anna a demandé de remercier Noor
Est-ce que je dois remercier Noor ?
Traduis : remercie Noor pour les fleurs
Qui remercie Noor ?
Réponse à la question : quelle est la date ?
Quelle est la réponse à Kim ?
No felicites a Inés
Anna pidió felicitar a Inés
¿Debo felicitar a Inés?
Traduce: felicita a Inés por su trabajo
Respuesta a la pregunta: ¿qué día es?
Did I write Kim back?
Has anybody written Kim back?
Show what I wrote Kim back
Could Kim ask the caterer for a quote?
Would Kim mind telling Paul?
Don't remind me
Don't give me a reminder for the concert
Don't nudge me on Friday
Can I have the reminder of Friday?
Remind me what the code is
Could I get a reminder of what the code is?
Who nudged me about the rent?
Kim forgot the rent on Friday, did I let Kim forget it?
Erinnere mich nicht an den Zahnarzt
Nicht an den Zahnarzt erinnern
Kann ich die Erinnerung von gestern haben?
Wer soll mich am Montag an den Zahnarzt erinnern?
Ne me rappelle pas le dentiste
Ne me rappeler rien lundi
Je pourrais avoir le rappel de lundi ?
No me recuerdes el dentista
¿Puedo ver un recordatorio?
Who reserved 30 minutes?
Which 30 minutes did Kim reserve on Monday?
Did Kim scrap the dentist in my calendar?
Don't scrap the dentist in my calendar
Kim asked me to scrap the dentist in my calendar
Is there a scrap of paper in my calendar?
Kim wrote: reserve 30 minutes on Monday for me
What should I cross off my list?
Don't cross milk off my list
Kim said: cross milk off your list
Why is milk crossed off the list?
Show what is on the list without the milk
Remove the duplicates from a.txt and show the rest
Count what I took off the list
Wer strich die Milch von der Liste?
Streich die Milch nicht von der Liste
Kim bat mich, die Milch von der Liste zu streichen
Qui a rayé le beurre de la liste ?
Ne raye pas le beurre de la liste
Kim a demandé de rayer le beurre de la liste
¿Quién tachó la mantequilla de la lista?
No taches la mantequilla de la lista
Kim pidió que tache la mantequilla de la lista
What does list += Y do in Python?
Explain x += 1
In Python list += y is slow
Was macht liste += y in Python?
Que fait liste += y en Python ?
¿Qué hace lista += y en Python?
Ne vire pas le dentiste de l'agenda
Kim a dit : vire le dentiste de l'agenda
Faut-il décaler le dentiste ?
Ne garde pas de trace de ce chiffre
Qui garde une trace de ce chiffre ?
No saques el dentista de mi agenda
Kim dijo: saca el dentista de tu agenda
Ändere nichts im Kalender
Zeig mir die andere Datei
Welche anderen Termine sind im Kalender?
Nichts im Kalender ändern
Wer wollte den Zahnarzt im Kalender ändern?
Schreib nicht ins Gartenbuch
Was steht im Gartenbuch?
Kim schrieb ins Gartenbuch, dass die Tomaten gesetzt sind
What did the mail to Kim say?
In which mail to Kim is the date?
In how many mails to Kim is the date?
Find the mail to Kim with the date
Look in the mail to Kim: what is the date?
Was stand in der Mail an Kim?
In welcher Mail an Kim steht das Datum?
Dans quel mail à Kim est la date ?
¿En qué correo a Kim está la fecha?
Tell me when the train leaves
Don't tell Noor when the train leaves
Kim said I should tell Noor when the train leaves
Dis-moi quand part le train
Ne dis pas à Noor quand part le train
Dime cuándo sale el tren
No le digas a Noor cuándo sale el tren
If Kim writes back, what should I do?
Wenn Kim zurückschreibt, was dann?
What happens when I let Kim know?
Kim wants me to let Noor know
Do you think Kim could let Noor know?
Would it be possible that Kim told Noor?
Is it possible to see the mails to Kim?
Can we see the events in my calendar?
Können wir die Termine im Kalender sehen?
On peut voir l'agenda ?
¿Podemos ver la agenda?
Can you check whether Kim wrote back?
Could you see if Noor thanked me?
Kannst du nachsehen, ob Noor zurückgeschrieben hat?
Peux-tu regarder si Noor a répondu ?
¿Puedes mirar si Noor contestó?
Don't forget that the train leaves at nine, when is that?
> Thank Noor for the flowers
> Wish Kim a happy birthday
> Remind me tomorrow
> Sag Noor, wann der Zug fährt
Sors la liste des rendez-vous de l'agenda
Saca las fechas de la agenda
Saca el total de runners.csv
Nimm die Namen aus der Liste
Verlänger meine Bücher in der Bibliothek
Prolonge mon abonnement
Prolonga mi abono
stall list + fee table: owners with a fee over 50
Enlève les doublons de invites.txt et montre le reste
Can you ring the electrician and ask when he comes?
Llama a la abuela y felicítala de mi parte
Peux-tu passer un coup de fil au traiteur et lui dire que c'est annulé ?
"""
