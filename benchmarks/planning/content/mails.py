"""The mail in the world's inbox, oldest first."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Letter:
    """One mail as it lies in the inbox."""

    sender: str
    name: str
    date: datetime
    subject: str
    body: str
    unread: bool = False
    attachments: tuple[tuple[str, str], ...] = ()


def _at(month: int, day: int, hour: int, minute: int) -> datetime:
    return datetime(2026, month, day, hour, minute)


HOLIDAYS = "date,holiday\n2026-04-03,Good Friday\n2026-05-01,Labour Day\n2026-12-25,Christmas Day\n"

LETTERS: tuple[Letter, ...] = (
    Letter(
        "billing@litware.example.com",
        "Litware Cleaning",
        _at(2, 24, 9, 15),
        "Invoice for February",
        "Good morning,\n\nthis is our invoice for cleaning your offices in February. The amount is 230.00 EUR. "
        "Please transfer it by 10 March 2026.\n\nLitware Cleaning",
    ),
    Letter(
        "maria.santos@example.org",
        "Maria Santos",
        _at(2, 27, 19, 40),
        "Photos from the trip",
        "Hi,\n\nI put the photos from the coast into the shared album. My favourite is the one with the lighthouse.\n\n"
        "Maria",
    ),
    Letter(
        "noreply@bank.example.com",
        "Meadow Bank",
        _at(3, 1, 6, 0),
        "Your statement is ready",
        "Dear customer,\n\nyour statement for February is ready. The balance on 28 February 2026 was 7,412.33 EUR.\n\n"
        "Meadow Bank",
    ),
    Letter(
        "billing@northwind.example.com",
        "Northwind Supplies",
        _at(3, 2, 8, 30),
        "Invoice 4471",
        "Hello,\n\nthank you for your order of six office chairs. Invoice 4471 comes to a total of 1,284.50 EUR "
        "including tax. Payment is due on 27 March 2026.\n\nNorthwind Supplies",
    ),
    Letter(
        "hr@example.com",
        "Human Resources",
        _at(3, 2, 10, 0),
        "Holiday calendar 2026",
        "Hello everybody,\n\nthe public holidays of 2026 are in the attached table.\n\nHuman Resources",
        attachments=(("holidays.csv", HOLIDAYS),),
    ),
    Letter(
        "news@techdigest.example.com",
        "Tech Digest",
        _at(3, 3, 7, 0),
        "Tech Digest 87",
        "This week: batteries that last twice as long, and why small computers are back.",
    ),
    Letter(
        "tracking@parcels.example.com",
        "Parcel Service",
        _at(3, 4, 15, 20),
        "Your parcel was delivered",
        "Parcel PX-54088 was delivered today at 15:05. We left it with your neighbour at number 14.",
    ),
    Letter(
        "accounts@contoso.example.com",
        "Contoso Hosting",
        _at(3, 5, 6, 45),
        "Your hosting invoice for March",
        "Dear customer,\n\nthe invoice for your web hosting in March is 89.90 EUR. The amount is due on 19 "
        "March 2026.\n\nContoso Hosting",
        unread=True,
    ),
    Letter(
        "dana.cole@example.com",
        "Dana Cole",
        _at(3, 5, 17, 30),
        "Quarterly report",
        "Hi,\n\nplease have the quarterly report ready by 20 March 2026. Finance needs it for the board.\n\nDana",
    ),
    Letter(
        "helen.ward@example.org",
        "Helen Ward",
        _at(3, 6, 12, 10),
        "Complaint: broken lamp",
        "Hello,\n\nthe desk lamp from my order 1007 arrived with a cracked base. I would like to have my 34.90 "
        "EUR back.\n\nHelen Ward",
    ),
    Letter(
        "news@gardenweekly.example.org",
        "Garden Weekly",
        _at(3, 8, 8, 0),
        "Garden Weekly: time to sow",
        "Tomatoes and peppers can be sown indoors now. Our shop has 20 percent off all seeds until 15 March 2026.",
    ),
    Letter(
        "invoices@fabrikam.example.org",
        "Fabrikam Print",
        _at(3, 9, 9, 50),
        "Invoice FP-208",
        "Hello,\n\nwe have printed your two thousand brochures. For invoice FP-208 we charge 412.50 EUR, payable until "
        "2 April 2026.\n\nFabrikam Print",
        unread=True,
    ),
    Letter(
        "lee.park@example.com",
        "Lee Park",
        _at(3, 9, 11, 5),
        "Interview",
        "Hi,\n\ncan you join the interview with the new designer on 12 March 2026 at 15:30? It takes 45 "
        "minutes.\n\nLee",
    ),
    Letter(
        "omar.haddad@example.org",
        "Omar Haddad",
        _at(3, 9, 14, 0),
        "Complaint: still nothing delivered",
        "Good afternoon,\n\nI have been waiting for order 1012 for weeks. Please tell me when it comes or "
        "cancel it.\n\nOmar Haddad",
    ),
    Letter(
        "tracking@parcels.example.com",
        "Parcel Service",
        _at(3, 9, 16, 30),
        "Your parcel is on its way",
        "Parcel PX-55120 is on its way to you. It will arrive on 12 March 2026 between 9:00 and 12:00.",
    ),
    Letter(
        "news@techdigest.example.com",
        "Tech Digest",
        _at(3, 10, 7, 0),
        "Tech Digest 88",
        "This week: a phone that can be repaired, and five questions about smart meters.",
    ),
    Letter(
        "ivy.chen@example.org",
        "Ivy Chen",
        _at(3, 10, 9, 25),
        "Complaint: wrong product",
        "Hello,\n\nI ordered a whiteboard, but a coat rack was in the box. My order number is 1015. Please "
        "exchange it.\n\nIvy Chen",
    ),
    Letter(
        "library@city.example.org",
        "City Library",
        _at(3, 10, 10, 0),
        "Your loan ends soon",
        'The book "The River Atlas" is due back on 18 March 2026. You can renew it once.',
    ),
    Letter(
        "dana.cole@example.com",
        "Dana Cole",
        _at(3, 10, 16, 20),
        "Budget review",
        "Hi,\n\ncould we meet for the budget review on Friday, 13 March 2026 at 14:00? One hour in Room Maple "
        "should do.\n\nDana",
        unread=True,
    ),
    Letter(
        "travel@wingtip.example.com",
        "Wingtip Rail",
        _at(3, 10, 18, 45),
        "Booking confirmation WT-7731",
        "Thank you for your booking. Your train to Lyon leaves on 24 March 2026 at 07:52 and arrives at 11:40. "
        "You have seat 46 in coach 8. The price is 118.00 EUR.",
    ),
    Letter(
        "alerts@monitor.example.com",
        "Monitor",
        _at(3, 10, 22, 40),
        "Backup finished on db-1",
        "The backup of db-1 finished after 38 minutes. Size: 212 GB.",
    ),
    Letter(
        "alerts@monitor.example.com",
        "Monitor",
        _at(3, 11, 6, 5),
        "Disk almost full on db-2",
        "Warning: the disk of db-2 is 94 percent full. Please free some space.",
        unread=True,
    ),
    Letter(
        "tracking@parcels.example.com",
        "Parcel Service",
        _at(3, 11, 7, 30),
        "Your parcel is delayed",
        "Parcel PX-55093 is delayed. The new delivery date is 16 March 2026. We are sorry.",
        unread=True,
    ),
    Letter(
        "maria.santos@example.org",
        "Maria Santos",
        _at(3, 11, 8, 50),
        "Lunch next week",
        "Hi,\n\nare you free for lunch on 17 March 2026 at 12:30? I would book a table at the Green Fork.\n\nMaria",
        unread=True,
    ),
    Letter(
        "lee.park@example.com",
        "Lee Park",
        _at(3, 11, 9, 10),
        "Server costs",
        "Hi,\n\nthe server costs in February were 3,150 EUR, up from 2,800 EUR in January. We should talk about "
        "it.\n\nLee",
        unread=True,
    ),
)
