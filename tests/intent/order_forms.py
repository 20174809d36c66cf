"""Orders by category in four languages, each with a sentence that orders nothing.

One pair a line: the effect of the order, the order, and its twin with the same words that asks, reports or names it.
"""

from __future__ import annotations

from collections.abc import Iterator

WISHES = """\
send | Wish Kim a happy birthday | Did I wish Kim a happy birthday?
send | Wish my sister all the best for the exam by mail | My sister wished me all the best for the exam
send | Thank Noor for the flowers | Noor thanked me for the flowers
send | Say thank you to the neighbours for the cake | The neighbours say thank you for the cake
send | Congratulate Ines on the new job | Who congratulated Ines on the new job?
send | Send my apologies to the choir for Thursday | Did the choir get my apologies for Thursday?
send | Apologise to Mr Okafor for the noise | Has Mr Okafor apologised for the noise?
send | Tell Ruth I'm sorry about the delay | Ruth told me she is sorry about the delay
send | Give Paul my condolences | Paul gave me his condolences
send | Could you congratulate my boss on her promotion? | Why should I congratulate my boss on her promotion?
send | My best wishes to Ana for her exam, by mail | Did my best wishes reach Ana?
send | Wünsch Kim alles Gute zum Geburtstag | Hat Kim mir alles Gute zum Geburtstag gewünscht?
send | Wünsche meiner Schwester viel Erfolg für die Prüfung | Meine Schwester wünscht sich viel Erfolg
send | Bedank dich bei Noor per Mail für die Blumen | Noor hat sich bei mir für die Blumen bedankt
send | Bedanke dich herzlich bei den Nachbarn | Die Nachbarn bedanken sich herzlich
send | Sag Noor danke für die Blumen | Noor sagt danke für die Blumen
send | Gratulier Ines zum neuen Job | Wer gratulierte Ines zum neuen Job?
send | Entschuldige mich beim Chor für Donnerstag | Der Chor entschuldigt sich für Donnerstag
send | Entschuldige dich bei Herrn Okafor für den Lärm | Herr Okafor entschuldigte sich für den Lärm
send | Bitte Ines um die Unterlagen | Ines bat um die Unterlagen
send | Sprich Paul mein Beileid aus | Paul sprach mir sein Beileid aus
send | Kannst du Ines zum neuen Job gratulieren? | Kann Ines zum neuen Job gratulieren?
send | Könntest du dich bei Kim bedanken? | Könnte sich Kim bedankt haben?
send | Souhaite un joyeux anniversaire à Kim | Kim m'a souhaité un joyeux anniversaire
send | Remercie Noor pour les fleurs | Noor me remercie pour les fleurs
send | Dis merci à Noor pour les fleurs | Noor dit merci pour les fleurs
send | Félicite Inès pour son nouveau poste | Qui a félicité Inès pour son nouveau poste ?
send | Présente mes excuses à M. Okafor pour le bruit | M. Okafor a présenté ses excuses pour le bruit
send | Excuse-moi auprès de la chorale pour jeudi | La chorale s'excuse pour jeudi
send | Peux-tu remercier les voisins par mail ? | Est-ce que les voisins m'ont remercié ?
send | Adresse mes condoléances à Paul | Paul m'a adressé ses condoléances
send | Deséale un feliz cumpleaños a Kim | Kim me deseó un feliz cumpleaños
send | Felicita a Inés por su nuevo trabajo | ¿Quién felicitó a Inés por su nuevo trabajo?
send | Dale las gracias a Noor por las flores | Noor me dio las gracias por las flores
send | Agradécele a Noor las flores | Noor agradece las flores
send | Pídele disculpas al señor Okafor por el ruido | El señor Okafor pidió disculpas por el ruido
send | Discúlpate con el coro por lo del jueves | El coro se disculpa por lo del jueves
send | ¿Puedes dar las gracias a los vecinos por correo? | ¿Los vecinos dieron las gracias?
send | Dale el pésame a Paul | ¿Quién le dio el pésame a Paul?
send | Thank everyone who donated more than 40 | Who thanked everyone who donated more than 40?
send | Felicita por correo a los socios que cumplen años hoy | ¿Quién felicitó por correo a los socios?
send | Entschuldige Dario bei der Schule für heute | Wer entschuldigte Dario bei der Schule?
"""

POLITE_QUESTIONS = """\
send | Could you ask Kim by mail whether she can come? | Anna asked whether I could ask Kim by mail
send | Can you let Noor know that I'll be late? | Can you see whether Noor let me know?
send | Would you mind telling Paul that the hall is booked? | Would Paul mind that the hall is booked?
send | Could you maybe ask the caterer for a quote? | Could the caterer ask for a quote?
send | Do you think you could write to Ruth that it is off? | Do you think Ruth could write that it is off?
send | I'd be grateful if you could tell Kim that it is open | I'd be grateful if Kim could tell me that it is open
send | Would it be possible to let Ruth know that we come? | Would it be possible that Ruth knows that we come?
write | Could I get a reminder tomorrow at nine to water the plants? | Could I get the reminder of yesterday read out?
write | Can I have a reminder on Friday to call the bank? | Can I have a look at the reminder on Friday?
write | May I have a reminder at six to feed the cat? | May I know when the reminder at six came?
write | Could we get a reminder for the concert on Saturday? | Could we see the reminder for the concert on Saturday?
write | Could we put the concert in the calendar? | Could the concert be in the calendar?
write | Can we move the dentist to Friday? | Can the dentist move to Friday?
send | Könntest du Kim per Mail fragen, ob sie kommen kann? | Anna fragte, ob ich Kim per Mail fragen könnte
send | Kannst du Noor Bescheid geben, dass ich später komme? | Kann Noor Bescheid geben, dass sie später kommt?
send | Würdest du bitte Paul fragen, ob er Zeit hat? | Würde Paul fragen, ob er Zeit hat?
send | Magst du Ruth schreiben, dass wir kommen? | Mag Ruth schreiben, dass sie kommt?
send | Kannst du Kim sagen, dass der Saal gebucht ist? | Kannst du mir sagen, ob der Saal gebucht ist?
write | Könnte ich morgen um neun eine Erinnerung bekommen? | Könnte ich die Erinnerung von gestern sehen?
write | Kann ich Freitag eine Erinnerung haben, die Bank anzurufen? | Kann ich sehen, welche Erinnerung Freitag war?
write | Können wir den Zahnarzt auf Freitag verschieben? | Kann der Zahnarzt den Termin verschieben?
send | Pourrais-tu demander à Kim par mail si elle peut venir ? | Anna demandait si je pourrais demander à Kim par mail
send | Peux-tu faire savoir à Noor que je serai en retard ? | Est-ce que Noor peut faire savoir qu'elle sera en retard ?
send | Ça te dérangerait d'écrire à Paul que la salle est réservée ? | Ça dérange Paul que la salle soit réservée ?
send | Tu pourrais dire à Ruth qu'on vient ? | Ruth pourrait dire qu'elle vient ?
write | Je pourrais avoir un rappel demain à neuf heures ? | Je pourrais voir le rappel de demain ?
write | Est-ce que je peux avoir un rappel vendredi pour la banque ? | Est-ce qu'il y a un rappel vendredi ?
write | On peut décaler le dentiste à vendredi ? | Le dentiste peut décaler à vendredi ?
send | ¿Podrías preguntarle a Kim por correo si puede venir? | Anna preguntó si yo podría preguntarle a Kim por correo
send | ¿Puedes avisar a Noor de que llego tarde? | ¿Puede ser que Noor avisara de que llega tarde?
send | ¿Te importaría decirle a Paul que la sala está reservada? | ¿Le importaría a Paul que la sala esté reservada?
send | ¿Podrías decirle a Ruth que venimos? | ¿Ruth podría decirme si viene?
write | ¿Me podrías poner un recordatorio mañana a las nueve? | ¿Me podrías leer el recordatorio de mañana?
write | ¿Puedo tener un recordatorio el viernes para llamar al banco? | ¿Puedo ver el recordatorio del viernes?
write | ¿Podemos pasar el dentista al viernes? | ¿Puede el dentista el viernes?
send | Cancel the lunch with Viktor and let them know why | Who let them know why?
send | Let the sports hall know that we need it longer | Does the sports hall know that we need it longer?
send | Would you mind letting Paul know that the hall is booked? | Did Paul mind letting the hall?
send | Don't forget to let Noor know that I am late | Did Kim forget to let Noor know?
send | N'oublie pas de prévenir Noor | Est-ce que Kim a oublié de prévenir Noor ?
send | No olvides avisar a Noor | ¿Kim se olvidó de Noor?
send | Vergiss nicht, Noor zu schreiben | Hat Kim vergessen, Noor zu schreiben?
"""

ANSWERS = """\
send | Write Kim back that Friday works | Did I write Kim back that Friday works?
send | Write back to Noor that I agree | Did Noor write back that she agrees?
send | Answer Kim that Friday works | What is the answer that Kim gave?
send | Reply to Noor that I agree | Noor replied that she agrees
send | Respond to the landlord that the key is here | How did the landlord respond?
send | Get back to Paul with the figures | When does Paul get back with the figures?
send | Mail her back that it is fine | Did she mail back that it is fine?
send | Answer the mail from the school: we are coming | Who answered the mail from the school?
send | Tell him no in reply to his last mail | Who told him no in the last mail?
send | Schreib ihm zurück, dass Freitag passt | Hat er zurückgeschrieben, dass Freitag passt?
send | Schreib Kim zurück, dass Freitag passt | Wann schrieb Kim zurück?
send | Antworte Noor, dass ich einverstanden bin | Was antwortete Noor?
send | Antwort an Noor: bin einverstanden | Ist die Antwort an Noor angekommen?
send | Kannst du der Schule zurückschreiben, dass wir kommen? | Kann die Schule zurückschreiben?
send | Gib dem Vermieter eine Rückmeldung, dass der Schlüssel da ist | Gibt es eine Rückmeldung vom Vermieter?
send | Ruth zurückschreiben, dass es passt | Ruth wollte zurückschreiben, dass es passt
send | Réponds-lui que vendredi me va | Il m'a répondu que vendredi lui va
send | Réponds à Noor que je suis d'accord | Noor répond qu'elle est d'accord
send | Écris-lui en retour que c'est bon | Il écrit que c'est bon
send | Fais une réponse à Kim : vendredi convient | Est-ce que la réponse à Kim est partie ?
send | Réponse à Kim : vendredi convient | Quelle est la réponse de Kim ?
send | Contesta a Kim que el viernes va bien | Kim contestó que el viernes va bien
send | Contéstale que sí | ¿Qué contestó?
send | Respóndele a Noor que estoy de acuerdo | Noor respondió que está de acuerdo
send | Dale una respuesta a Paul: llegamos a las ocho | ¿Hay una respuesta de Paul?
send | Respuesta a Kim: el viernes va bien | ¿Cuál fue la respuesta de Kim?
send | Answer the question in Kim's mail: yes | Answer the question: how many rows are in a.csv?
send | Answer Kim's question by mail | Answer to the question: what is the code of the garage?
send | Beantworte die Frage in Kims Mail | Beantworte mir bitte eine Frage: wann fährt die Fähre?
send | Antworte auf die Frage von Kim: ja | Antwort auf die Frage: wie viele Zeilen hat a.csv?
send | Réponds à la question de Paul : oui | Réponds à ma question sur la facture
send | Responde a la pregunta de Paula: sí | Responde a la pregunta: ¿cuántas líneas tiene a.csv?
send | Sag Kim Bescheid, wenn die Sitzung vorbei ist | Sag Bescheid, wenn die Sitzung vorbei ist
send | Gib meiner Schwester Bescheid | Gib bitte kurz Bescheid, ob noch was offen ist
send | Bitte Kim Bescheid geben | Bitte Bescheid geben, wenn was fehlt
send | Kannst du Ruth Bescheid sagen? | Kannst du Bescheid sagen, ob die Rechnung da ist?
send | Préviens Paul si une facture manque | Préviens si une facture manque
send | Avertis les voisins par mail | Préviens-moi si une facture manque
send | Avisa a Paula si falta una factura | Avisa si falta una factura
send | Informa a Paula de la factura | Avísame si falta una factura
send | In one mail to Kim: the total and the sum | In a mail to Kim, I wrote the code
send | Dann Mail an den Kassier mit dem Stand | In einer Mail an Kim stand, wann die Fähre fährt
send | Un mail à Kim : le total | Dans un mail à Kim, j'ai écrit le code
send | Un correo a Kim: el total | En un correo a Kim puse el código. ¿Cuál es?
"""

MAILS_WITH_PARTS = """\
send | Write Anna, subject "Les clés", body "Elles sont sous le pot" | Did Anna write with the subject "Les clés"?
send | Write Anna with the subject "Keys" and the text "Under the pot" | Which mail has the subject "Keys"?
send | Schreib an Anna, Betreff "Keys", Text "They are in the house" | Was hat den Betreff "Keys of the house"?
send | Schreibe Anna, Betreff „Keys for us“, Text „The keys are in the pot“ | Welche Mail hat den Betreff „Keys for us“?
send | Écris à Anna, objet « Keys », texte « They are in the house » | Quel mail a pour objet « Keys of the house » ?
send | Escribe a Anna, asunto "Keys", texto "They are in the house" | ¿Qué correo tiene el asunto "Keys of the house"?
"""

CALENDAR = """\
irreversible | Scrap the dentist in my calendar | Did I scrap the dentist in my calendar?
irreversible | Cross the yoga class off my calendar | Who crossed the yoga class off my calendar?
irreversible | Kick the Tuesday call out of the calendar | The Tuesday call got kicked out of the calendar
irreversible | Call off the meeting with Noor | Noor called off the meeting
irreversible | Strike the book club from my diary | Is the book club struck from my diary?
write | Reserve 30 minutes on Monday for the tax return | Who reserved 30 minutes on Monday?
write | Set aside an hour on Friday for reading | Is an hour set aside on Friday for reading?
write | Dentist Tuesday 9:00 into cal | What comes into my cal on Tuesday?
write | Lunch with Noor Thursday 12:30 - add to cal | When was lunch with Noor added to cal?
write | Push the team call back by an hour | Who pushed the team call back by an hour?
write | Bring the dentist forward to Monday | Did they bring the dentist forward to Monday?
write | Postpone the yoga class to Thursday | The yoga class was postponed to Thursday
write | Reschedule the interview for Friday at ten | Is the interview rescheduled?
write | Rename the event Lunch to Lunch with Kim | Who renamed the event?
write | Change it to 15:00 in my calendar | Does it change to 15:00?
write | Make the meeting on Monday an hour longer | What makes the meeting on Monday longer?
write | Extend the workshop by 30 minutes | Who extends the workshop by 30 minutes?
irreversible | Streich den Zahnarzt aus dem Kalender | Wer strich den Zahnarzt aus dem Kalender?
irreversible | Schmeiß den Yogakurs aus dem Kalender | Wer hat den Yogakurs aus dem Kalender geschmissen?
irreversible | Nimm das Treffen am Dienstag raus | Das Treffen am Dienstag ist raus
irreversible | Hau den Termin am Dienstag raus | Wer haut am Dienstag raus?
irreversible | Termin mit Noor absagen | Noor will den Termin absagen
write | Reservier am Montag 30 Minuten für die Steuer | Wer hat am Montag 30 Minuten reserviert?
write | Halt mir am Freitag eine Stunde zum Lesen frei | Hält Kim am Freitag eine Stunde frei?
write | Zahnarzt im Kalender auf 15 Uhr ändern | Der Zahnarzt hat die Zeit im Kalender geändert
write | Kurs am Dienstag im Kalender ändern: jetzt 18 Uhr | Was hat sich im Kalender geändert?
write | Zieh den Zahnarzt auf Montag vor | Wer zog den Zahnarzt auf Montag vor?
write | Den Yogakurs auf Donnerstag verlegen | Der Yogakurs wurde auf Donnerstag verlegt
write | Änder ihn auf 15 Uhr | Ändert er sich auf 15 Uhr?
write | Verlänger den Workshop um 30 Minuten | Wer verlängert den Workshop um 30 Minuten?
write | Mach aus dem Mittagessen im Kalender ein Abendessen | Wer macht das Mittagessen?
write | Treffen mit Noor am Donnerstag in Kalender | Ist das Treffen mit Noor im Kalender?
irreversible | Vire le dentiste de l'agenda | Qui a viré le dentiste de l'agenda ?
irreversible | Vire-le de mon agenda | Le dentiste est viré de mon agenda
irreversible | Raye le yoga de l'agenda | Le yoga est rayé de l'agenda
irreversible | Sors la réunion de mardi du calendrier | Quand sort la réunion de mardi ?
irreversible | Il faut annuler le dentiste de mardi | Est-ce qu'il faut annuler le dentiste de mardi ?
write | Il faut décaler le dentiste à vendredi | Est-ce qu'il faut décaler le dentiste à vendredi ?
write | Le cours de yoga est à 18h maintenant, change-le dans l'agenda | Le cours de yoga change souvent dans l'agenda
write | Réserve 30 minutes lundi pour les impôts | Qui a réservé 30 minutes lundi ?
write | Avance le dentiste à lundi | Le dentiste avance à lundi ?
write | Reporte la réunion à jeudi | La réunion est reportée à jeudi
write | Prolonge l'atelier de 30 minutes | L'atelier se prolonge de 30 minutes
write | Déjeuner avec Noor jeudi à 12h30, à mettre dans l'agenda | Le déjeuner avec Noor est dans l'agenda
write | Garde-moi une heure vendredi pour lire | Est-ce que je garde une heure vendredi pour lire ?
irreversible | Saca el dentista de mi agenda | ¿Quién sacó el dentista de mi agenda?
irreversible | Tacha el yoga del calendario | El yoga está tachado del calendario
irreversible | Hay que cancelar el dentista del martes | ¿Hay que cancelar el dentista del martes?
irreversible | Quítalo de la agenda | ¿Quién lo quitó de la agenda?
write | Reserva 30 minutos el lunes para los impuestos | ¿Quién reservó 30 minutos el lunes?
write | Apártame una hora el viernes para leer | ¿Quién apartó una hora el viernes?
write | Hay que mover el dentista al viernes | ¿Hay que mover el dentista al viernes?
write | Cámbialo a las 15:00 en la agenda | ¿Cuándo cambió en la agenda?
write | Adelanta el dentista al lunes | ¿Se adelanta el dentista al lunes?
write | Pospón la reunión al jueves | La reunión se pospuso al jueves
write | Prolonga el taller 30 minutos | El taller se prolonga 30 minutos
write | Comida con Noor el jueves a las 14:00, al calendario | ¿La comida con Noor está en el calendario?
write | Die Besprechung muss auf einen anderen Tag | Muss die Besprechung auf einen anderen Tag?
write | Le cours est à 18h maintenant, change-le | Le cours change souvent
write | Prolonge la réunion de 30 minutes | La réunion est prolongée de 30 minutes
"""

REMINDERS = """\
write | Reminder Saturday 10:00: water the plants | Was there a reminder Saturday 10:00?
write | Tomorrow at 20:00, a reminder to call mum | Tomorrow at 20:00 the reminder comes
write | On Monday at nine: reminder for the bins | Who gets the reminder on Monday at nine?
write | Nudge me on Friday about the rent | Who nudged me on Friday about the rent?
write | Monday 9 am reminder: dentist | Which reminder came on Monday 9 am?
write | Ping me tomorrow at eight about the parcel | Who pinged me at eight about the parcel?
write | Don't let me forget the rent on Friday | Did I forget the rent on Friday?
write | Montag 9 Uhr: Erinnerung an die Mülltonnen | Wann kam die Erinnerung an die Mülltonnen?
write | Am Montag an den Zahnarzt erinnern | Wer wollte mich am Montag an den Zahnarzt erinnern?
write | Morgen um 20 Uhr eine Erinnerung, Mama anzurufen | Morgen kommt eine Erinnerung von Mama
write | Bitte Samstag ans Gießen erinnern | Kim wollte mich ans Gießen erinnern
write | Erinnerung Samstag 10 Uhr: Pflanzen gießen | Gab es eine Erinnerung Samstag 10 Uhr?
write | Lass mich am Freitag nicht die Miete vergessen | Habe ich am Freitag die Miete vergessen?
write | rappel samedi 10h : arroser les plantes | Y a-t-il un rappel samedi à 10h ?
write | Demain à 20h, un rappel pour appeler maman | Demain à 20h le rappel arrive
write | Lundi 9h : rappel poubelles | Qui a reçu le rappel de lundi 9h ?
write | Me rappeler vendredi de payer le loyer | Il voulait me rappeler vendredi de payer le loyer
write | Pense à me rappeler le dentiste lundi | Est-ce que tu penses au dentiste lundi ?
write | Mañana a las 20:00, un recordatorio para llamar a mamá | Mañana a las 20:00 llega el recordatorio de mamá
write | Lunes 9:00: recordatorio de la basura | ¿Quién recibió el recordatorio del lunes?
write | recordatorio el sábado a las 10 regar las plantas | ¿Hay un recordatorio el sábado a las 10?
write | Recordarme el viernes pagar el alquiler | Ana quería recordarme el viernes pagar el alquiler
write | El lunes a las 9, recuérdame el dentista | ¿Quién me recuerda el dentista?
"""

ELLIPTIC_MESSAGES = """\
send | In one mail to Kim: the date and the place | In one mail to Kim was the date and the place
send | Tell Noor when the train leaves | Noor told me when the train leaves
send | Tell Paul which room is ours | Did I tell Paul which room is ours?
send | Tell my sister what the bill comes to | Tell me what the bill comes to
send | Quick mail to Ruth: running late | Where is the quick mail to Ruth?
send | To Kim by mail: the hall is booked | What went to Kim by mail?
send | By mail to Noor, the two dates | The dates came by mail from Noor
send | Mail Kim: hall is booked | The mail from Kim: hall is booked
send | A note to the neighbours: the water is off | A note from the neighbours: the water is off
send | In einer Mail an Kim: Datum und Ort | In einer Mail an Kim ist das Datum falsch
send | Sag Noor, wann der Zug fährt | Noor sagte, wann der Zug fährt
send | Sag Paul wann der Zug fährt | Sag mir wann der Zug fährt
send | Sag meiner Schwester, wie hoch die Rechnung ist | Weiß meine Schwester, wie hoch die Rechnung ist?
send | Kurze Mail an Ruth: komme später | Wo ist die Mail an Ruth?
send | Per Mail an Kim: Saal ist gebucht | Was ging per Mail an Kim?
send | Frag Noor wann der Zug fährt | Noor fragte, wann der Zug fährt
send | Nachricht an die Nachbarn, dass das Wasser abgestellt ist | Die Nachricht an die Nachbarn ist schon raus
send | Dans un mail à Kim : la date et le lieu | Qu'y a-t-il dans le mail à Kim ?
send | Dis à Noor quand part le train | Noor a dit quand part le train
send | Dis-lui quand part le train | Dis-moi quand part le train
send | Mail à Ruth : j'arrive plus tard | Le mail à Ruth est parti
send | Par mail à Kim : la salle est réservée | Qu'est-ce qui est parti par mail à Kim ?
send | Mail à Paul que la salle est réservée | Est-ce que le mail à Paul dit que la salle est réservée ?
send | En un correo a Kim: la fecha y el lugar | ¿Qué ponía en el correo a Kim?
send | Dile a Noor cuándo sale el tren | Noor dijo cuándo sale el tren
send | Mail a Ruth que llego tarde | ¿El mail a Ruth dice que llego tarde?
send | Por correo a Kim: la sala está reservada | ¿Qué llegó por correo a Kim?
send | Un mensaje a los vecinos: mañana no hay agua | ¿Hay un mensaje de los vecinos?
"""

ADDITIONS = """\
write | shopping list += butter | Is butter on the shopping list?
write | packing list + sun cream | Does the packing list have sun cream?
write | Note in the log that the pump was cleaned | The note in the log says that the pump was cleaned
write | Put it in the garden book: first tomatoes on 3 July | Who put it in the garden book?
write | Add them to it | Who added them to it?
write | Keep a record of the reading 3321 | Does Kim keep a record of the reading?
write | Keep track of the mileage: 81,000 | Who keeps track of the mileage?
write | Write in the garden book that the figs are ripe | Who wrote in the garden book that the figs are ripe?
write | Enter in the log: pump cleaned | What was entered in the log?
write | Einkaufsliste += Butter | Ist Butter auf der Einkaufsliste?
write | Schreib ins Gartenbuch, dass die Feigen reif sind | Wer schrieb ins Gartenbuch, dass die Feigen reif sind?
write | Wir brauchen Eier, schreib sie drauf | Wer schrieb sie drauf?
write | Notier im Logbuch, dass die Pumpe sauber ist | Wer notierte im Logbuch, dass die Pumpe sauber ist?
write | Trag ins Logbuch ein: Pumpe gereinigt | Was steht im Logbuch?
write | Ins Gartenbuch: erste Tomaten am 3. Juli | Was kam ins Gartenbuch?
write | Butter noch auf die Liste | Steht Butter noch auf der Liste?
write | Setz Butter mit drauf | Ist Butter mit drauf?
write | Führ Buch über den Kilometerstand: 81000 | Wer führt Buch über den Kilometerstand?
write | liste de courses += beurre | Y a-t-il du beurre sur la liste de courses ?
write | Garde une trace de ce chiffre : 3321 | Est-ce que Kim garde une trace de ce chiffre ?
write | Écris dans le carnet du jardin que tout est planté | Qui a écrit dans le carnet que tout est planté ?
write | Conserve une trace du kilométrage : 81000 | Qui conserve une trace du kilométrage ?
write | Il faut des œufs, mets-les dessus | Qui les a mis dessus ?
write | Note dans le journal que la pompe est nettoyée | La note dans le journal dit que la pompe est nettoyée
write | lista de la compra += mantequilla | ¿Hay mantequilla en la lista de la compra?
write | Escribe en el cuaderno del jardín que hay tomates | ¿Quién escribió en el cuaderno que hay tomates?
write | Deja constancia del kilometraje: 81000 | ¿Quién dejó constancia del kilometraje?
write | Faltan huevos, apúntalos ahí | ¿Quién los apuntó ahí?
write | Lleva la cuenta del kilometraje: 81000 | ¿Quién lleva la cuenta del kilometraje?
write | Guarda un registro de la lectura 3321 | ¿Hay un registro de la lectura 3321?
write | einkaufsliste + butter | besucherliste gesamt + anzahl
write | notes.txt += 3321 | What does x += 3321 do?
"""

REMOVALS = """\
write | Delete "call bank" from the to-do list | Who deleted "call bank" from the to-do list?
write | Take butter off the shopping list | Who took butter off the shopping list?
write | Cross milk off my list | Is milk crossed off my list?
write | Strike "pay rent" from todo.txt | Did I strike "pay rent" from todo.txt?
write | Remove the eggs from the shopping list | Were the eggs removed from the shopping list?
write | Lösch "Bank anrufen" aus der To-do-Liste | Wer löschte "Bank anrufen" aus der To-do-Liste?
write | Streich Butter von der Einkaufsliste | Wer hat Butter von der Einkaufsliste gestrichen?
write | Nimm die Milch von der Liste | Wer nahm die Milch von der Liste?
write | Milch von der Liste streichen | Milch wurde von der Liste gestrichen
write | Supprime « appeler la banque » de la liste | Qui a supprimé « appeler la banque » de la liste ?
write | Raye le beurre de la liste de courses | Le beurre est rayé de la liste de courses
write | Enlève les œufs de ma liste | Les œufs sont enlevés de ma liste
write | Borra "llamar al banco" de la lista | ¿Quién borró "llamar al banco" de la lista?
write | Tacha la mantequilla de la lista de la compra | La mantequilla está tachada de la lista
write | Quita los huevos de mi lista | ¿Quién quitó los huevos de mi lista?
"""

OTHER_WORDS = """\
send | Please wish the whole team a merry Christmas | The team wished us a merry Christmas
send | Wish Tom good luck for Monday | Tom needs good luck for Monday
send | Thank the caterer by mail for Saturday | What did the caterer thank us for?
send | Could you thank everyone who helped on Saturday? | Could everyone who helped be listed?
send | Can you please ask Dr Huber for a new date by mail? | Can Dr Huber ask for a new date?
send | Would you ask my brother if he still has the drill? | Would my brother ask for the drill?
send | Tell the plumber how many radiators we have | How many radiators did the plumber tell us about?
send | Tell everyone where we meet | Where does everyone meet?
send | Apologize to the Wagners for the late reply | Did the Wagners apologize for the late reply?
send | Write the insurance back that the form is attached | Did the insurance write back?
send | Email her back with the address | Has she emailed back?
send | And can you also let the babysitter know? | And can the babysitter know?
send | Just a short mail to Eva: see you at six | Just show the short mail to Eva
irreversible | Scrap tomorrow's yoga in the calendar | What is in tomorrow's yoga in the calendar?
irreversible | Strike the dentist off the calendar please | Was the dentist struck off the calendar?
irreversible | Ditch the Monday meeting | Who ditched the Monday meeting?
write | Reserve two hours tomorrow afternoon for the tax papers | Are two hours reserved tomorrow afternoon?
write | Keep Thursday evening free | Is Thursday evening free?
write | parents' evening 14 May 19:00 into calendar | What is in the calendar on 14 May?
write | Can we push the review to next week? | Can the review be seen?
write | reminder tomorrow 7am bins | reminder of tomorrow: who set it?
write | In the evening, a reminder to take the pills | In the evening, who takes the pills?
write | Can I get a quick reminder before the meeting on Friday? | Can I get a quick look at Friday?
write | Add eggs to it | What does it add to?
write | todo.txt += buy stamps | Does todo.txt have stamps?
write | Tick "buy stamps" off the to-do list | Is "buy stamps" ticked off the to-do list?
write | Remove Tom from the guest list | Who removed Tom from the guest list?
write | Take "old sofa" off sales.txt | Is "old sofa" off sales.txt?
write | Note in the car log that the tyres were changed | Did the car log note that the tyres were changed?
write | Log in the diary that it rained | Did the diary log that it rained?
send | Wünsch bitte dem ganzen Team frohe Weihnachten | Das Team wünschte uns frohe Weihnachten
send | Wünsch Tom viel Glück für Montag | Wer wünscht Tom viel Glück?
send | Dank Frau Huber für die schnelle Antwort | Frau Huber dankte für die schnelle Antwort
send | Kannst du Frau Huber für die Hilfe danken? | Kann Frau Huber danken?
send | Sag dem Installateur, wie viele Heizkörper wir haben | Wie viele Heizkörper hat der Installateur?
send | Sag allen, wo wir uns treffen | Wo treffen sich alle?
send | Schreib der Versicherung zurück, dass das Formular dabei ist | Schrieb die Versicherung zurück?
send | Schreib ihr zurück | Wer schreibt ihr zurück?
send | Könntest du bitte Tom fragen, ob er die Bohrmaschine hat? | Könnte Tom die Bohrmaschine haben?
send | Frag bitte meinen Bruder, ob er kommt | Fragte mein Bruder, ob er kommt?
send | Kurze Nachricht an Eva: bis sechs | Gibt es eine kurze Nachricht an Eva?
send | Glückwünsche an Eva zum Abschluss schicken | Eva hat Glückwünsche bekommen
send | Kannst du meine Schwester fragen, wann sie kommt? | Kann meine Schwester sagen, wann sie kommt?
irreversible | Schmeiß das Yoga morgen aus meinem Kalender | Ist das Yoga morgen aus meinem Kalender?
irreversible | Wirf den Zahnarzt aus dem Kalender | Wer warf den Zahnarzt aus dem Kalender?
write | Reserviere morgen Nachmittag zwei Stunden für die Steuer | Sind morgen zwei Stunden reserviert?
write | Halte den Donnerstagabend frei | Ist der Donnerstagabend frei?
write | Elternabend im Kalender auf 19:30 ändern | Wer hat den Elternabend im Kalender geändert?
write | Elternabend 14. Mai 19 Uhr in Kalender | Ist der Elternabend im Kalender?
write | Dienstag 7 Uhr Erinnerung Müll | Wann war die Erinnerung für den Müll?
write | am Donnerstag ans Rezept erinnern | Wer soll ans Rezept erinnern?
write | Mittwoch früh bitte an die Tabletten erinnern | Kim wollte an die Tabletten erinnern
write | Milch fehlt, setz sie drauf | Fehlt Milch?
write | Schreib ins Fahrtenbuch: 120 km | Was steht im Fahrtenbuch: 120 km?
write | Schreib in mein Tagebuch, dass es geregnet hat | Wer schrieb in mein Tagebuch?
write | Hak "Briefmarken kaufen" auf der To-do-Liste ab | Ist "Briefmarken kaufen" abgehakt?
write | Streich Tom von der Gästeliste | Wer hat Tom von der Gästeliste gestrichen?
write | todo.txt += Briefmarken | Hat todo.txt Briefmarken?
send | Souhaite bonne chance à Tom pour lundi | Tom a souhaité bonne chance
send | Souhaite-lui un bon rétablissement | Il m'a souhaité un bon rétablissement
send | Tu peux remercier Mme Huber pour son aide ? | Mme Huber peut remercier ?
send | Félicite toute l'équipe de ma part | L'équipe m'a félicité
send | Réponds à l'assurance que le formulaire est joint | L'assurance répond que le formulaire est joint
send | Répondez-leur que c'est d'accord | Ils ont répondu que c'est d'accord
send | Tu pourrais demander au plombier quand il vient ? | Le plombier demande quand il vient ?
send | Dis au plombier combien de radiateurs on a | Le plombier a dit combien de radiateurs ?
send | Petit mot à Eva : à six heures | Où est le petit mot à Eva ?
send | Est-ce que tu peux prévenir la nounou ? | Est-ce que la nounou peut prévenir ?
send | Demande-lui s'il vient | Il demande s'il vient
irreversible | Vire le yoga de demain de mon agenda | Le yoga de demain est dans mon agenda ?
irreversible | Enlève-le du calendrier | Qui l'a enlevé du calendrier ?
write | Il faudrait décaler la réunion de mardi | Faudrait-il décaler la réunion de mardi ?
write | Réserve deux heures demain pour les impôts | Deux heures sont réservées demain
write | La réunion est jeudi, change-la | La réunion change
write | rappel mardi 7h poubelles | Le rappel de mardi 7h était pour les poubelles
write | Ce soir, un rappel pour les médicaments | Ce soir le rappel pour les médicaments sonne
write | Mets un rappel jeudi pour l'ordonnance | Qui met un rappel jeudi ?
write | Garde une trace de la pression des pneus : 2,4 | Garde-t-il une trace de la pression ?
write | Il manque du lait, ajoute-le | Il manque du lait ?
write | Raye Tom de la liste des invités | Tom est rayé de la liste des invités
write | Barre « timbres » de ma liste | Les timbres sont barrés de ma liste
write | todo.txt += timbres | Est-ce que todo.txt a des timbres ?
send | Deséale mucha suerte a Tom para el lunes | Tom deseó mucha suerte
send | Dale las gracias a la señora Huber por su ayuda | La señora Huber dio las gracias
send | ¿Puedes agradecerle a la señora Huber su ayuda? | ¿Puede la señora Huber venir?
send | Contesta al seguro que el formulario va adjunto | El seguro contestó que el formulario va adjunto
send | Contéstales que estamos de acuerdo | ¿Contestaron que están de acuerdo?
send | ¿Podrías preguntar al fontanero cuándo viene? | ¿Cuándo viene el fontanero?
send | Dile al fontanero cuántos radiadores tenemos | ¿Cuántos radiadores dijo el fontanero?
send | Mensaje a Eva: a las seis | ¿Dónde está el mensaje a Eva?
send | Pídele a Eva la dirección | Eva pide la dirección
irreversible | Saca el yoga de mañana de la agenda | ¿Quién sacó el yoga de la agenda?
irreversible | Bórralo del calendario | ¿Quién lo borró del calendario?
write | Habría que mover la reunión al martes | ¿Habría que mover la reunión al martes?
write | Reserva dos horas mañana para los impuestos | ¿Hay dos horas reservadas mañana?
write | Martes 7:00 recordatorio basura | ¿De quién es el recordatorio del martes?
write | Esta tarde, un recordatorio para las pastillas | Esta tarde suena el recordatorio de las pastillas
write | Deja constancia de la presión: 2,4 | ¿Quién deja constancia de la presión?
write | Falta leche, añádela | ¿Falta leche?
write | Tacha a Tom de la lista de invitados | Tom está tachado de la lista de invitados
write | Quita "sellos" de mi lista | ¿Quién quitó "sellos" de mi lista?
write | todo.txt += sellos | ¿Tiene todo.txt sellos?
"""

_CATEGORIES = (
    WISHES,
    POLITE_QUESTIONS,
    ANSWERS,
    MAILS_WITH_PARTS,
    CALENDAR,
    REMINDERS,
    ELLIPTIC_MESSAGES,
    ADDITIONS,
    REMOVALS,
    OTHER_WORDS,
)


def pairs() -> Iterator[tuple[str, str, str]]:
    """Every pair: the effect, the order and its twin."""
    for category in _CATEGORIES:
        for line in category.splitlines():
            effect, order, twin = line.split(" | ")
            yield effect, order, twin
