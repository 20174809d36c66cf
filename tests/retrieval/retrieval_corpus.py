"""A handbook of a small workshop, and questions whose answers stand in it.

Some questions share hardly a word with their answer, some are nothing but a code; each names the page and a few words
that the chunk must hold.
"""

from __future__ import annotations

from typing import NamedTuple

PAGES = {
    "leave.md": """# Time off
## Holidays
Everybody has 28 days a year. They are entered in the calendar two weeks ahead, and a person who shares your
work must agree. Days that are left on 31 March of the next year lapse.
## When you are ill
Tell the front desk before nine. From the fourth day on we need a note from a doctor; send a photo of it, the
paper stays with you. Wages go on in full for six weeks.
## Parents
The parent who does not give birth gets ten working days around the date. They do not count as holidays.
""",
    "travel.md": """# Travel
## Trains and flights
Book second class by yourself and up to 400 euros without asking. Anything dearer needs the treasurer's yes. We
fly only where a train takes longer than eight hours.
## Hotels
Up to 130 euros a night; in Zurich, Geneva and Oslo up to 190. Breakfast is paid, the minibar is not.
## Meals
There is a flat sum of 28 euros a day and no need for receipts. When the host feeds you, nothing is paid.
## Claims
Form T-12 goes to the treasurer within thirty days of coming home. Later ones are paid at the end of the
quarter.
""",
    "money.md": """# Money
## Small purchases
Up to 60 euros anybody buys what the workshop needs and puts the receipt into the blue box.
## Large purchases
From 1,000 euros on three offers are compared, and two people sign. Form P-31 records why one was chosen.
## Bills we get
They are paid on Tuesdays. A bill without an order number goes back to whoever sent it.
## Bills we send
Customers have 21 days. After that a friendly reminder goes out, after 35 days a second one with a fee of 8
euros.
""",
    "doors.md": """# Doors and keys
## Access cards
Cards open the main door from six in the morning to ten at night. A lost card is blocked under extension 204, at
any hour.
## The tool room
Its key hangs in the safe; the combination changes on the first Monday of a month and is told in person, never
in writing.
## Guests
Somebody meets them at the front desk and stays with them. Guests get a yellow badge, and no card.
""",
    "computers.md": """# Computers
## Passwords
Use the manager that is installed on every machine. A password is never sent by mail, not even to a colleague.
Nobody from support will ever ask for it.
## Copies of our work
The file server copies itself every night at two, and once a week to a disk that lies in another building. Files
that were deleted can be had back for 90 days.
## Programs
Whatever is on the white list can be installed without asking. The rest is looked at on Thursdays.
## Wireless
The network for guests is called Anchor; it has no way to the machines. Its password hangs beside the coffee
machine.
""",
    "printer.md": """# The large printer
## Messages
- C-2557: the waste toner box is full. Replace it; a spare stands in the cupboard below.
- C-2558: the waste toner box is missing. Push it in until it clicks.
- J-0132: paper is caught behind flap B. Open it from the left.
- J-0123: paper is caught behind flap D, in the duplex unit.
- SC-899: the firmware stopped. Switch off, wait a minute, switch on.
## Paper
Only 80 to 160 grams. Card goes through the side tray, one sheet at a time.
""",
    "lathe.md": """# The lathe
## Messages
- ERR-7741: the spindle is too hot. Let it stand for twenty minutes with the fan on.
- ERR-7714: the guard is open. Close it and press reset.
- ERR-7471: no pressure in the chuck. Look at the compressor first, then at the hose.
- ERR-7174: the drive lost its position. Send it home with G28.
## Speeds
Aluminium 900, brass 700, steel 350 turns a minute for a piece of 60 millimetres. Half of that for a parting
cut.
## Who may use it
Whoever has done the course of two afternoons. Long sleeves, rings and gloves are forbidden at the lathe.
""",
    "laser.md": """# The laser cutter
## Materials
Plywood, acrylic, paper and leather are fine. PVC is never cut: its smoke is poisonous and eats the optics.
## Messages
- L-301: the water is warmer than 28 degrees. The chiller needs filling.
- L-310: the lid is not shut.
- L-130: the lens is dirty. Clean it with alcohol and a soft cloth, from the middle outwards.
## Attention
Nobody leaves the room while it runs. A fire blanket hangs on the right.
""",
    "compressor.md": """# The compressor
It runs from eight to six only, since the neighbours hear it. Drain the water from the tank every Friday. The
safety valve is tested twice a year by the firm that sold it to us; the sticker KV-88 on its side says when it
was last here.
""",
    "paint.md": """# Paint and solvents
## Store
Everything that burns stands in the red steel cupboard, and no more than five litres of it outside.
## Mixing
Open windows on both sides. Masks with brown filters (A2P3) are in the drawer; a filter is good for 30 hours or
half a year.
## Rags
Rags with linseed oil heat up by themselves. They go into the tin with water, never into the bin.
""",
    "waste.md": """# Rubbish
Paper on Mondays, glass and tins on the first Wednesday. Wood and metal go into the containers in the yard.
Batteries, lamps and old paint are brought to the depot in Mill Lane; it is open on Saturdays until one. Chips
of magnesium are kept dry and fetched by a special firm.
""",
    "safety.md": """# When something happens
## Fire
Pull the alarm, leave by the nearest door, meet at the chestnut tree. Nobody goes back for a bag. The drill is
in May and in October.
## Injuries
Plasters are in every room; the big case is at the front desk. Six of us have the course for first aid, their
pictures hang beside it. Every cut, also a small one, goes into the green book: without it the insurance does
not pay.
## Eyes
The bottle beside the sink is pressed against the eye for ten minutes, then a doctor looks at it.
""",
    "orders.md": """# Orders of customers
## Taking one
We answer within two working days. An offer holds for 30 days. We ask for a third ahead if it is more than 2,000
euros.
## Changes
A customer may change his mind free of charge until the material is cut.
## Delivery
Parcels leave on Tuesdays and Fridays with the carrier; what is larger than 120 centimetres goes by Brandt's
van, which costs 45 euros within the city.
## Complaints
We mend for nothing for two years. Who complains hears from a person within a day, not from a machine.
""",
    "parcels.md": """# Parcels that arrive
Whoever signs looks for dents first and writes them on the slip. What is in the parcel is compared with the
delivery note the same day. Goods that are not ours wait for a week on shelf 4 and then go back.
""",
    "stock.md": """# The store
## Where things are
Shelf 1 screws, shelf 2 fittings, shelf 3 sheet metal, shelf 4 what belongs to nobody, cellar wood.
## Counting
On the last working day of June and of December. Differences of more than five in a hundred are explained in
writing.
## Numbers
Part 55-1080 is the hinge for left doors, 55-1081 that for right doors. Part 55-1180 is the long screw for both.
""",
    "wood.md": """# Wood
Oak dries for two years a thumb's width, ash for one. The meter must show less than nine in a hundred before a
board comes into the warm rooms. Boards lie on sticks that are exactly above one another, or they warp.
""",
    "apprentices.md": """# Learners
They come for three years. School is on Wednesdays and Thursdays. A learner under eighteen works no more than
eight hours a day and never alone at a machine. The report book is signed every Friday by the person who taught
them.
""",
    "newcomers.md": """# The first week
On the first day somebody shows you round and you get your card, your locker and shoes with steel caps. On the
second you sign the rules for machines. Until the end of the month a mentor eats lunch with you; afterwards you
say in a short talk what you found odd.
""",
    "hours.md": """# Working hours
## Ordinary weeks
Thirty-seven hours, between seven in the morning and seven at night. Everybody is here from ten to two.
## From home
Drawing and writing can be done at home, up to two days a week, never on the day of the meeting.
## Too many hours
What is more than 20 hours on your account at the end of a month is taken as free time within three months, not
paid.
""",
    "meeting.md": """# The meeting
Mondays at ten, forty-five minutes, standing. Whoever comes late makes the coffee. What was decided is written
into the brown book, with the name of the person who does it and a date.
""",
    "decisions.md": """# Who decides
Everybody decides about their own work. What costs more than 3,000 euros or binds us for longer than a year is
decided by all, with two thirds of those present. A no must come with another proposal.
""",
    "privacy.md": """# Data about people
## Customers
We keep names and addresses as long as the law wants, ten years after the last bill, and nothing beyond that.
Whoever asks what we know about him gets it within a month.
## Colleagues
Files about a person are in the grey cabinet; the person and the treasurer may read them, nobody else.
## Pictures
Nobody is shown on our page without having said yes in writing. A yes can be taken back at any time.
""",
    "press.md": """# Newspapers and visitors with cameras
Only Ines and Tomas speak for the workshop. Anybody else says so politely and gives their number, 070 551 20.
Drawings of customers are covered before somebody films.
""",
    "kitchen.md": """# The kitchen
Shelves in the fridge have names; what has none is thrown away on Friday. The dishwasher runs at night. The
coffee machine is cleaned by whoever sees its red light, with the white tablets, program 3.
""",
    "bikes.md": """# Bicycles and cars
Bicycles stand under the roof in the yard, not in the corridor. There are four places for cars; one of them is
for customers, one for people who walk badly. The pump and the patches are in the box beside the gate.
""",
    "van.md": """# The van
Enter your name in the book before you take it. It needs diesel, and the card for it is behind the sun visor;
its number is asked at the front desk. Scratches are said at once. The warning triangle is under the passenger's
seat.
""",
    "heating.md": """# Warmth
The boiler shows F28 when there is no gas and F75 when the pump fails; in both cases call the caretaker, 070 551
09. Radiators stand at 3 in the halls and at 2 in the store. From November on the big gate is opened for
deliveries only.
""",
    "water.md": """# Water
The main tap is behind the grey door in the cellar, a quarter turn to the right. Taps that nobody used for a
month run for five minutes first. The roof drain is cleared of leaves in November.
""",
    "electricity.md": """# Electricity
The fuses of the halls are in cabinet E1, those of the offices in E2. A fuse that jumps twice stays off until
Pavel has looked. Cables over the floor are taped down. Each machine has a red switch that a hand reaches
without looking.
""",
    "noise.md": """# Noise
Above 85 decibels ears are covered; the saw has 96, the planer 101. Plugs are in the glass beside the door.
Between one and two nothing runs that is louder than talking.
""",
    "teaching.md": """# Courses for the public
Evening courses have at most eight people and cost 65 euros, half for people without work. Whoever calls it off
a week ahead gets the money back. Children from ten years on come with a grown-up.
""",
    "tools.md": """# Tools to borrow
Members take hand tools home for a week, machines for a weekend. What breaks is said and not hidden; wear is
ours, carelessness is yours. A deposit of 50 euros is asked for the floor sander only.
""",
    "sharpening.md": """# Sharp edges
Chisels at 25 degrees, plane irons at 30. First the grey stone, then the white one, then leather. Saw blades go
to the grinder in Kiln Street, every second month, in the box marked SH-6.
""",
    "glue.md": """# Glue
White glue holds after thirty minutes and is not for outdoors. Polyurethane foams and wants damp wood. Epoxy is
mixed 2 to 1 by weight; more hardener does not make it faster, only brittle. Clamps stay until the next day.
""",
    "archive.md": """# Drawings and papers
Drawings are named by year, customer and number, such as 26-HAL-014. Paper older than ten years is shredded in
January, except contracts for the building. The map chest is sorted by size, not by date.
""",
}


class Question(NamedTuple):
    text: str
    page: str
    words: str


CHOOSING = [
    Question("How much vacation do I get?", "leave.md", "28 days"),
    Question("Do I need a medical certificate if I stay in bed for a week?", "leave.md", "fourth day"),
    Question("What may a room for the night cost in Norway's capital?", "travel.md", "Oslo"),
    Question("How long do clients have to settle what they owe us?", "money.md", "21 days"),
    Question("My badge was stolen, whom do I call?", "doors.md", "204"),
    Question("I erased a file by accident last month", "computers.md", "90 days"),
    Question("J-0123", "printer.md", "flap D"),
    Question("C-2557 on the display", "printer.md", "waste toner box is full"),
    Question("ERR-7471", "lathe.md", "no pressure"),
    Question("lathe shows 7174", "lathe.md", "lost its position"),
    Question("L-130 cutter", "laser.md", "lens is dirty"),
    Question("Which plastic must never be burnt with the beam?", "laser.md", "PVC"),
    Question("Where do oily cloths go so that they do not catch fire?", "paint.md", "linseed"),
    Question("part 55-1081", "stock.md", "right doors"),
    Question("F75", "heating.md", "pump fails"),
    Question("Where do dead AA cells go?", "waste.md", "Mill Lane"),
    Question("What ratio for two-component resin?", "glue.md", "2 to 1"),
    Question("May I do my job from my flat?", "hours.md", "two days a week"),
    Question("A journalist is on the phone", "press.md", "Ines and Tomas"),
    Question("SH-6", "sharpening.md", "Kiln Street"),
]

HELD_OUT = [
    Question("My wife is having a baby, how long may I stay away?", "leave.md", "ten working days"),
    Question("How soon must I hand in what the trip cost me?", "travel.md", "T-12"),
    Question("form P-31", "money.md", "three offers"),
    Question("Can I get reimbursed for lunch on the road without the slip?", "travel.md", "28 euros"),
    Question("When are suppliers paid?", "money.md", "Tuesdays"),
    Question("Who looks after visitors?", "doors.md", "yellow badge"),
    Question("Someone from the helpdesk wants my login", "computers.md", "never sent by mail"),
    Question("SC-899", "printer.md", "firmware"),
    Question("C-2558", "printer.md", "missing"),
    Question("error J-0132 where is the sheet stuck", "printer.md", "flap B"),
    Question("ERR-7714", "lathe.md", "guard is open"),
    Question("7741 spindle", "lathe.md", "too hot"),
    Question("How fast should a rod of iron turn?", "lathe.md", "steel 350"),
    Question("L-301", "laser.md", "chiller"),
    Question("What does the sticker KV-88 say?", "compressor.md", "safety valve"),
    Question("A2P3", "paint.md", "brown filters"),
    Question("Where do we gather when the building burns?", "safety.md", "chestnut tree"),
    Question("I got something in my eye", "safety.md", "ten minutes"),
    Question("Is a down payment required for expensive jobs?", "orders.md", "a third ahead"),
    Question("How long is our warranty?", "orders.md", "two years"),
    Question("The box the courier brought is damaged", "parcels.md", "dents"),
    Question("55-1180", "stock.md", "long screw"),
    Question("When do we take inventory?", "stock.md", "June"),
    Question("How long must timber season?", "wood.md", "two years"),
    Question("Rules for trainees who are minors", "apprentices.md", "under eighteen"),
    Question("What happens with overtime?", "hours.md", "20 hours"),
    Question("How is a big investment approved?", "decisions.md", "two thirds"),
    Question("How long are clients' addresses stored?", "privacy.md", "ten years"),
    Question("070 551 09", "heating.md", "caretaker"),
    Question("F28", "heating.md", "no gas"),
    Question("How do I shut off the pipes when there is a flood?", "water.md", "quarter turn"),
    Question("At which loudness must I protect my hearing?", "noise.md", "85 decibels"),
    Question("Can I cancel a workshop I signed up for?", "teaching.md", "money back"),
    Question("26-HAL-014", "archive.md", "named by year"),
    Question("What angle for a chisel?", "sharpening.md", "25 degrees"),
    Question("The fuse blew again", "electricity.md", "Pavel"),
    Question("Where may I leave my bicycle?", "bikes.md", "under the roof"),
    Question("How do I refuel the car we share?", "van.md", "diesel"),
    Question("red light on the espresso maker", "kitchen.md", "white tablets"),
    Question("Can I take the drill home?", "tools.md", "a week"),
]
