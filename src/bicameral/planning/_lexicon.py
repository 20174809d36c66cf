"""Words of requests in English, German, French and Spanish, and the split of a request into tokens and clauses.

The rules for mentions, effects and questions share these tables. A language is added by adding its words. The tables
have words of requests only: no word of a file, a mail or a calendar is looked up here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bicameral.text import lazy_pattern

# An elided article (`l'offre`, `d'Anna`) is a word of its own. Everything else that is not blank is one character.
_TOKEN = lazy_pattern(r"(?:[ldjmtnscLDJMTNSC]|[qQ]u)['’](?=\w)|[^\W_]+(?:[-'’_][^\W_]+)*|\S")
_SENTENCE_ENDS = frozenset(".!?:;…\n(")
NEGATIONS = (
    r"no|not|nothing|none|never|nobody|without|cannot|nicht|nichts|kein\w*|nie|niemand|ohne|ne|aucun\w*|rien|jamais|sans|"
    r"nada|ningun\w*|ningún|nunca|sin|nadie"
)
"""Words that deny, for a pattern. `pas` is not among them: without its `ne` it may deny something else."""


@dataclass(frozen=True, slots=True)
class Token:
    """A word, a number or a sign of a request.

    Args:
        lower: The token in lower case, with a plain apostrophe.
        sentence_start: Whether it is the first word of a sentence, so that its capital letter means nothing.
        clause_start: Whether a verb here would be an order: at the start, after a sign, after `and` or `please`.
    """

    text: str
    lower: str
    start: int
    end: int
    sentence_start: bool
    clause_start: bool

    @property
    def is_word(self) -> bool:
        return self.text[0].isalpha()

    @property
    def is_capitalised(self) -> bool:
        return self.text[0].isupper()


def split_tokens(text: str) -> list[Token]:
    """The tokens of a text, in order; the work grows with the length of the text."""
    found: list[Token] = []
    sentence = clause = True
    before = 0
    for match in _TOKEN.finditer(text):
        word, start = match.group(), match.start()
        lower = word.lower().replace("’", "'")
        if "\n" in text[before:start]:
            sentence = clause = True
        found.append(Token(word, lower, start, match.end(), sentence, clause))
        before = match.end()
        if word == "." and len(found) > 1 and found[-2].lower in HONORIFICS:
            continue
        # The sign in `a.csv`, `14:30` and `3.50` ends no sentence.
        if word in _SENTENCE_ENDS and (match.end() == len(text) or text[match.end()].isspace() or word == "("):
            sentence = clause = True
        elif lower in CONJUNCTIONS or lower in POLITE or word == ",":
            # Politeness before an order does not end its clause: `please send`, `can you send`, `hi, send`.
            clause, sentence = (True, sentence) if lower in POLITE else (True, False)
        elif word[0].isalnum():
            sentence = clause = False
    return found


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


CONJUNCTIONS = _words("and then also or und dann oder et puis ensuite ou y luego después despues o n &")
POLITE = _words(
    "please pls plz kindly hey hi hello ok okay so now can could would will you u just quickly "
    "bitte kannst könntest koenntest du mal hallo jetzt schnell s' il te vous plaît plait peux-tu pouvez-vous "
    "pourrais-tu bonjour salut por favor puedes podrías podrias hola thx thanks danke merci gracias"
)

DETERMINERS = _words(
    "the a an my our your his her their its this that these those some any all each every both "
    "der die das den dem des ein eine einen einem einer eines mein meine meinen meinem meiner meines unser unsere "
    "unseren unserem alle allen jede jeden jedem diese diesen dieser dieses "
    "le la les l' un une des du mon ma mes notre nos votre vos ce cet cette ces tous toutes tout toute "
    "el los las una unos unas mi mis tu tus nuestro nuestra nuestros este esta estos estas todos todas al del"
)
PRONOUNS = _words(
    "i me you he she it we us they him them her myself everyone everybody someone somebody anyone nobody "
    "mir mich dir dich ihm ihn ihr ihnen uns euch jemand jemandem jeder niemand alle "
    "moi toi lui nous vous leur leurs eux elle elles chacun personne quelqu'un "
    "mí mi ti él ella ellos ellas nosotros nosotras ustedes alguien nadie"
)
GROUP_NOUNS = _words(
    "team boss group family staff colleagues customers clients members board office class "
    "chef chefin gruppe familie kollegen kunden mitglieder büro equipe équipe patron groupe famille collègues clients "
    "equipo jefe jefa grupo familia colegas clientes"
)
# People of whom data tell: their addresses are looked up.
PEOPLE_NOUNS = _words(
    "people person persons customer customers client clients guest guests member members tenant tenants parent parents "
    "teacher teachers student students pupil pupils child children kids player players volunteer volunteers supplier "
    "suppliers borrower borrowers owner owners neighbours neighbors friends trainers coaches singers soloists whoever "
    "recipient recipients subscribers participants attendees everyone everybody "
    "leute person personen kunde kunden kundin gast gäste gaeste mitglied mitglieder mieter mieterin eltern lehrer "
    "lehrerin schüler schueler kinder spieler helfer lieferanten lieferant eigentümer nachbarn freunde trainer sänger "
    "teilnehmer teilnehmerinnen empfänger "
    "gens personne personnes client cliente clients clientes invités invites membres locataire locataires parents "
    "enseignants élèves eleves enfants joueurs bénévoles fournisseur fournisseurs propriétaires voisins amis "
    "participants destinataires adhérents adherents "
    "gente persona personas cliente clientes invitado invitados miembros socios inquilino inquilinos padres profesores "
    "alumnos niños jugadores voluntarios proveedor proveedores dueños vecinos amigos participantes destinatarios",
)
# What is sent and gets no mail itself.
SENT_THINGS = _words(
    "list lists table report reports summary total totals sum result results minutes note notes offer offers quote "
    "invoice invoices bill bills receipt receipts contract contracts agreement document documents file files pdf "
    "photo photos picture pictures image images video videos attachment attachments letter letters form forms link "
    "links address number numbers date dates reason plan plans schedule draft text texts details info information "
    "data figures answer invitation invitations reminder paper papers presentation slides recipe menu confirmation "
    "copy count average price prices update news stuff thing things overview breakdown spreadsheet sheet statement "
    "statements proposal estimate budget timetable itinerary ticket tickets booking certificate cv resume application "
    "essay article homework transcript recording map catalogue brochure flyer poster newsletter survey feedback "
    "question questions answers names balance amount amounts cost costs hours readings stats statistics chart graph "
    "rows lines entries items record records screenshot screenshots scan scans message messages mail mails greeting "
    "wishes apology card recipes ideas tips instructions directions code password times difference percentage output "
    "log logs folder calendar events appointments sales expenses spending donations attendance thread conversation "
    "drawing drawings blueprint blueprints script manual guide policy pack package deck drafts translation version "
    "inventory findings analysis evaluation paperwork warranty prescription diagnosis reference quotation tender "
    "agenda outline memo liste listen tabelle bericht berichte zusammenfassung summe ergebnis ergebnisse protokoll "
    "notiz notizen angebot angebote rechnung rechnungen vertrag verträge dokument dokumente unterlagen datei dateien "
    "foto fotos bild bilder anhang anhänge brief formular adresse nummer datum grund entwurf daten zahlen antwort "
    "einladung einladungen erinnerung rezept bestätigung kopie preis preise infos übersicht aufstellung auswertung "
    "kalender termine beleg belege kontoauszug gutachten zeugnis lebenslauf bewerbung fragebogen präsentation folien "
    "karte plakat skizze zeichnung anleitung passwort namen beträge kosten stunden werte frage fragen hinweise "
    "tagesordnung kostenvoranschlag mahnung quittung abrechnung broschüre artikel aufsatz entwürfe"
)

PREPOSITIONS = _words(
    "of in on at to from for by with about into onto as since before after until till under over between within "
    "inside without than per via "
    "von vom aus in im ins an am auf zu zum zur für fuer mit über ueber nach vor seit bei beim bis ohne unter zwischen "
    "pro als durch de d' du des à au aux dans sur pour par avec avant après depuis chez sous sans entre comme vers "
    "en a al del con para por desde sobre hasta sin hacia según segun"
)
FROM_WORDS = _words("from by of von vom de d' du del par por")
TO_WORDS = _words("to for with an für fuer mit bei zu zum zur à a al au aux pour avec chez para con hacia vers")
ADDRESSING_VERBS = _words(
    "tell ask remind invite email mail message call text notify inform answer send forward show thank congratulate "
    "meet pay owe owes cc bcc give "
    "sag sage frag frage erinnere informiere ruf rufe schick schicke sende schreib schreibe antworte gib lade "
    "dis demande rappelle invite appelle envoie écris ecris réponds reponds préviens previens informe transfère "
    "dile di pregunta pregúntale recuerda recuérdale invita llama envía envia escribe escríbele avisa responde"
)
ASKING_VERBS = _words("tell ask remind sag sage frag frage erinnere dis demande rappelle dile pregunta recuerda avisa")
CLAUSE_OPENERS = _words("that to if whether about when dass ob wegen zu que si de à qu' sobre")
HONORIFICS = _words(
    "mr mrs ms miss dr prof sir frau herr herrn mme madame m mlle monsieur sr sra srta señor señora don doña"
)
NAME_PARTICLES = _words("van von der den de du la le di da del della bin al el")
RELATIONS = _words(
    "mum mom mother dad father sister brother wife husband partner boss landlord landlady neighbour neighbor dentist "
    "doctor accountant lawyer teacher daughter son aunt uncle grandma grandpa roommate flatmate "
    "mama papa mutter vater schwester bruder frau mann chef chefin vermieter vermieterin nachbar nachbarin zahnarzt "
    "zahnärztin arzt ärztin oma opa tochter sohn tante onkel "
    "maman mère père soeur sœur frère femme mari patron patronne propriétaire voisin voisine dentiste médecin "
    "mamá papá madre padre hermana hermano esposa marido jefe jefa casero casera vecino vecina dentista médico"
)
# Capitalised and no person: names of products and places of data, and German nouns of requests.
NO_PERSON = _words(
    "i gmail outlook excel word powerpoint google github slack teams zoom whatsapp signal dropbox windows linux mac "
    "iphone android amazon paypal netflix spotify youtube wikipedia python csv pdf json xml html eur usd gbp chf "
    "english german french spanish europe germany france spain internet wifi wlan ceo cto hr it vat tax "
    "rechnung rechnungen datei dateien ordner tabelle spalte zeile zeilen mail mails e-mail e-mails nachricht "
    "nachrichten termin termine kalender kunde kunden liste listen bericht berichte angebot angebote vertrag verträge "
    "konto notiz notizen text texte wort wörter foto fotos bild bilder dokument dokumente beleg belege summe betrag "
    "beträge gehalt miete strom auto haus garage keller schule arbeit büro firma bank anfang ende morgen abend mittag "
    "heute gestern jahr jahre jahren monat monate monaten woche wochen tag tage tagen uhr stunde stunden minuten "
    "team chef chefin alle euro prozent adresse nummer namen name preis preise ausgaben einnahmen zahlen werte "
    "ergebnis antwort frage kollegen familie freunde mutter vater mama papa hause bescheid betreff anhang"
)
NOUN_ENDINGS = (
    "ung",
    "ungen",
    "heit",
    "heiten",
    "keit",
    "keiten",
    "schaft",
    "schaften",
    "tion",
    "tionen",
    "ität",
    "nisse",
)

MAIL_NOUNS = _words(
    "mail mails email emails e-mail e-mails message messages newsletter newsletters nachricht nachrichten "
    "courriel courriels mél message correo correos mensaje mensajes"
)
EVENT_NOUNS = _words(
    "meeting meetings appointment appointments event events retro standup stand-up call party birthday wedding lunch "
    "dinner breakfast interview workshop webinar conference concert flight trip visit reminder review sync "
    "termin termine besprechung besprechungen treffen feier geburtstag hochzeit sitzung konzert flug reise "
    "rendez-vous réunion réunions fête anniversaire mariage concert vol voyage événement "
    "cita citas reunión reuniones fiesta cumpleaños boda concierto vuelo viaje evento eventos"
)
FOLDER_NOUNS = _words(
    "folder folders directory directories ordner verzeichnis dossier dossiers répertoire carpeta carpetas"
)
TABLE_NOUNS = _words("table spreadsheet sheet worksheet tabelle blatt tableau feuille tabla hoja")
COLUMN_NOUNS = _words("column columns field spalte spalten feld colonne colonnes champ columna columnas campo")
FILE_NOUNS = _words(
    "file files document documents datei dateien dokument fichier fichiers archivo archivos fichero documento"
)
NAMING_WORDS = _words("called named namens genannt appelé appelée nommé nommée llamado llamada")

GROUPING = _words(
    "total totals sum sums average averages mean count counts group sort sorted order ordered ranked sum up add "
    "summe summen summiere durchschnitt zähle gruppiere sortiere sortiert somme moyenne compte groupe trie trié "
    "suma total promedio media cuenta agrupa ordena"
)
BY_WORDS = _words("by per pro nach je par por")

DELETE_VERBS = _words(
    "delete remove erase wipe purge drop discard trash clear lösche lösch loesche loesch entferne entfern "
    "supprime efface enlève retire jette borra elimina quita suprime"
)
MAIL_VERBS = _words("mail email e-mail maile")
"""Verbs whose object gets the mail: `mail the school`."""
SEND_VERBS = MAIL_VERBS | _words(
    "forward send schick schicke sende transfère transfere envoie envoyez reenvía reenvia envía envia manda"
)
TIDY_VERBS = _words(
    "clean tidy organise organize declutter räum räume raeum aufräumen putze nettoie range limpia ordena organiza"
)
CONTAINERS = _words(
    "inbox mailbox mail mails emails folder folders files desktop downloads calendar disk drive computer laptop notes "
    "documents photos postfach posteingang ordner dateien schreibtisch kalender festplatte rechner notizen dokumente "
    "fotos boîte boite dossier dossiers fichiers bureau téléchargements calendrier disque ordinateur documents "
    "bandeja buzón carpeta carpetas archivos escritorio descargas calendario disco ordenador documentos correo"
)
EACH_WORDS = _words("each every both jede jeden jedem jeder chaque chacun chacune cada")
AGE_WORDS = _words(
    "old older ancient outdated stale unused unneeded obsolete recent alt alte alten alter veraltete veralteten "
    "unbenutzte "
    "vieux vieille vieilles ancien anciens ancienne anciennes périmés récents viejo viejos vieja viejas antiguo "
    "antiguos "
    "antigua antiguas recientes"
)
EVERYTHING = _words("everything all alles alle tout tous toutes todo todos todas anything")

# Parts of a text: removing them changes a text and deletes nothing.
TEXT_PARTS = _words(
    "line lines duplicate duplicates double doubles row rows column columns cell cells word words space spaces blank "
    "blanks whitespace character characters letter letters digit digits punctuation comma commas heading headings "
    "header headers footer prefix suffix paragraph paragraphs sentence sentences "
    "zeile zeilen duplikat duplikate dubletten doppelte doppelten leerzeile leerzeilen leerzeichen spalte spalten wort "
    "wörter zeichen absatz absätze satz sätze "
    "ligne lignes doublon doublons colonne colonnes mot mots espace espaces caractère caractères phrase phrases "
    "línea líneas linea lineas duplicado duplicados fila filas columna columnas palabra palabras espacio espacios "
    "frase "
    "frases carácter caracteres"
)
DELETABLE = (
    MAIL_NOUNS | EVENT_NOUNS | FOLDER_NOUNS | FILE_NOUNS | CONTAINERS | _words("photo photos contact contacts foto")
)
TEXT_VERBS = DELETE_VERBS | _words(
    "find count sort filter keep show list print search look grep dedupe deduplicate get reverse number extract "
    "mention "
    "mentions match read finde such suche zähle zaehle sortiere filtere behalte zeige zeig liste lies trouve cherche "
    "compte trie filtre garde montre affiche liste lis busca encuentra cuenta ordena filtra muestra lee rid unique how "
    "many wie viele wieviele combien cuántas cuántos"
)
TEXT_ADJECTIVES = _words(
    "duplicate duplicated double empty blank unique first last repeated identical same leere leeren doppelte erste "
    "letzte vides vide premières dernières vacías primeras últimas repetidas alphabetically times hay gibt y-a-t-il"
)
PATTERN_OPENERS = _words(
    "mentioning mention mentions containing contain contains with matching starting ending beginning without saying "
    "die enthalten enthält mit erwähnen contenant mentionnant avec que mencionan contienen con contengan qui "
    "contiennent"
)
STOP_TOKENS = (
    DETERMINERS
    | PRONOUNS
    | PREPOSITIONS
    | CONJUNCTIONS
    | POLITE
    | _words(
        "is are was were be do does did have has there here which what not no und nicht sind ist est sont es son me "
        "que qui"
    )
)


_MAX_PHRASE = 8


def noun_phrase(tokens: Sequence[Token], at: int) -> Sequence[Token]:
    """The words from `at` on up to a preposition, a relative clause, a sign or the next clause.

    At most eight words are looked at, so that the work for all verbs of a text stays linear.
    """
    end = at
    while end < len(tokens) and end - at < _MAX_PHRASE:
        token = tokens[end]
        is_joint = token.lower in PREPOSITIONS and token.lower not in DETERMINERS
        if not token.text[0].isalnum() or token.lower in CONJUNCTIONS or is_joint:
            break
        # `die` opens a German relative clause, but at the start of a phrase it is an article.
        if token.lower in PATTERN_OPENERS and end > at:
            break
        end += 1
    return tokens[at:end]
