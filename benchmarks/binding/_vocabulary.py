"""The words of the generated worlds, in two halves that share none.

Thresholds, rules and synonyms were chosen on the development half alone. The held half has other things, people,
columns and ways to say them. A thing is a tuple of its names in English, German, French and Spanish, with the plurals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Thing = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class Half:
    """Everything that a half draws from."""

    name: Literal["development", "held"]
    things: tuple[Thing, ...]
    plurals: tuple[Thing, ...]
    qualifiers: tuple[str, ...]
    folders: tuple[str, ...]
    first_names: tuple[str, ...]
    surnames: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[str, ...]
    topics: tuple[str, ...]
    near_misses: tuple[tuple[str, str], ...]
    """Words that are asked for, and a name that only looks or sounds so."""
    saying: tuple[tuple[str, str, str, str], ...]
    """Ways to mention a thing, in each language."""


DEVELOPMENT = Half(
    "development",
    (
        ("bill", "Rechnung", "facture", "factura"),
        ("expense", "Ausgabe", "dépense", "gasto"),
        ("recipe", "Rezept", "recette", "receta"),
        ("contract", "Vertrag", "contrat", "contrato"),
        ("insurance", "Versicherung", "assurance", "seguro"),
        ("trip", "Reise", "voyage", "viaje"),
        ("report", "Bericht", "rapport", "informe"),
        ("customer", "Kunde", "client", "cliente"),
        ("order", "Bestellung", "commande", "pedido"),
        ("guest", "Gast", "invité", "invitado"),
        ("photo", "Foto", "photo", "foto"),
        ("budget", "Budget", "budget", "presupuesto"),
        ("member", "Mitglied", "membre", "miembro"),
        ("garden", "Garten", "jardin", "jardín"),
        ("mushroom", "Pilz", "champignon", "seta"),
        ("ladder", "Leiter", "échelle", "escalera"),
    ),
    (
        ("bills", "Rechnungen", "factures", "facturas"),
        ("expenses", "Ausgaben", "dépenses", "gastos"),
        ("recipes", "Rezepte", "recettes", "recetas"),
        ("contracts", "Verträge", "contrats", "contratos"),
        ("insurances", "Versicherungen", "assurances", "seguros"),
        ("trips", "Reisen", "voyages", "viajes"),
        ("reports", "Berichte", "rapports", "informes"),
        ("customers", "Kunden", "clients", "clientes"),
        ("orders", "Bestellungen", "commandes", "pedidos"),
        ("guests", "Gäste", "invités", "invitados"),
        ("photos", "Fotos", "photos", "fotos"),
        ("budgets", "Budgets", "budgets", "presupuestos"),
        ("members", "Mitglieder", "membres", "miembros"),
        ("gardens", "Gärten", "jardins", "jardines"),
        ("mushrooms", "Pilze", "champignons", "setas"),
        ("ladders", "Leitern", "échelles", "escaleras"),
    ),
    ("north", "summer", "kitchen", "school", "office", "family"),
    ("archive", "private", "club", "studio", "shared"),
    ("Anna", "Jonas", "Claire", "Diego", "Mira", "Oskar"),
    ("Weber", "Lindt", "Moreau", "Ortega", "Sandu", "Falk"),
    ("amount_due", "customerName", "Order Date", "city", "paid", "quantity", "category", "unitPrice"),
    ("Travel", "Office supplies", "Food", "Rent", "Lisbon", "open", "Miller & Sons"),
    ("Sprint retro", "Dentist", "Piano lesson", "Parents evening", "Budget review", "Bike repair"),
    (
        ("plant", "plantation_visit.txt"),
        ("car", "cargo.csv"),
        ("rent", "parent_letter.txt"),
        ("water bill", "water_colours.md"),
        ("gym", "gymnast_photo.txt"),
        ("electricity bill", "phone_bill.pdf"),
    ),
    (
        ("the {}", "die {}", "les {}", "los {}"),
        ("my {} file", "meine {}", "mes {}", "mis {}"),
        ("{}", "{}", "{}", "{}"),
    ),
)

HELD = Half(
    "held",
    (
        ("receipt", "Quittung", "reçu", "recibo"),
        ("salary", "Gehalt", "salaire", "sueldo"),
        ("booking", "Buchung", "réservation", "reserva"),
        ("flight", "Flug", "vol", "vuelo"),
        ("letter", "Brief", "lettre", "carta"),
        ("task", "Aufgabe", "tâche", "tarea"),
        ("supplier", "Lieferant", "fournisseur", "proveedor"),
        ("project", "Projekt", "projet", "proyecto"),
        ("student", "Schüler", "élève", "alumno"),
        ("payment", "Zahlung", "paiement", "pago"),
        ("gift", "Geschenk", "cadeau", "regalo"),
        ("medicine", "Medikament", "médicament", "medicamento"),
        ("tax", "Steuer", "impôt", "impuesto"),
        ("course", "Kurs", "cours", "curso"),
        ("song", "Lied", "chanson", "canción"),
        ("boat", "Boot", "bateau", "barco"),
    ),
    (
        ("receipts", "Quittungen", "reçus", "recibos"),
        ("salaries", "Gehälter", "salaires", "sueldos"),
        ("bookings", "Buchungen", "réservations", "reservas"),
        ("flights", "Flüge", "vols", "vuelos"),
        ("letters", "Briefe", "lettres", "cartas"),
        ("tasks", "Aufgaben", "tâches", "tareas"),
        ("suppliers", "Lieferanten", "fournisseurs", "proveedores"),
        ("projects", "Projekte", "projets", "proyectos"),
        ("students", "Schüler", "élèves", "alumnos"),
        ("payments", "Zahlungen", "paiements", "pagos"),
        ("gifts", "Geschenke", "cadeaux", "regalos"),
        ("medicines", "Medikamente", "médicaments", "medicamentos"),
        ("taxes", "Steuern", "impôts", "impuestos"),
        ("courses", "Kurse", "cours", "cursos"),
        ("songs", "Lieder", "chansons", "canciones"),
        ("boats", "Boote", "bateaux", "barcos"),
    ),
    ("winter", "cellar", "choir", "company", "village", "museum"),
    ("history", "incoming", "house", "band", "workshop"),
    ("Lena", "Tomas", "Sofie", "Mateo", "Ines", "Viktor"),
    ("Brandt", "Keller", "Lefevre", "Romero", "Novak", "Hauge"),
    ("net_total", "supplierCode", "Delivery Day", "country", "shipped", "weight", "colour", "hourlyRate"),
    ("Printing", "Train tickets", "Books", "Heating", "Oslo", "pending", "Hall & Webb"),
    ("Choir rehearsal", "Vet visit", "Team lunch", "Roof inspection", "Car wash", "Tax advisor"),
    (
        ("port", "portrait_hall.txt"),
        ("cat", "catalogue.csv"),
        ("oven", "woven_basket.txt"),
        ("heating contract", "heating_pump.md"),
        ("pen", "pension.txt"),
        ("train ticket", "concert_ticket.pdf"),
    ),
    (
        ("our {}", "unsere {}", "nos {}", "nuestros {}"),
        ("the list of {}", "die Liste der {}", "la liste des {}", "la lista de {}"),
        ("{} please", "{} bitte", "{}", "{} por favor"),
    ),
)
