"""Random typed plans in the plan language, by a seeded chance.

Expressions are well typed by construction and seldom fail. Effects are given trusted arguments more often than not:
a plan in which every call is asked about shows nothing.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, get_args

from .chains import Chain
from .statements import Block, Statement
from .world import PAGES, PATHS, PEOPLE, WORDS

Kind = Literal[
    "text", "num", "bool", "texts", "nums", "mail", "mails", "bill", "bills", "doc", "docs", "person", "people"
]
ITEM: dict[Kind, Kind] = {
    "texts": "text",
    "nums": "num",
    "mails": "mail",
    "bills": "bill",
    "docs": "doc",
    "people": "person",
}
FIELDS: dict[Kind, dict[str, Kind]] = {
    "mail": {"id": "text", "sender": "text", "to": "texts", "text": "text", "size": "num"},
    "bill": {"id": "text", "direction": "text", "subject": "text", "party": "text", "amount": "num"},
    "doc": {"id": "text", "text": "text", "readers": "texts"},
    "person": {"name": "text", "email": "text", "level": "num"},
}
KINDS: tuple[Kind, ...] = get_args(Kind)
LISTS: dict[Kind, Kind] = {item: many for many, item in ITEM.items()}


READS: tuple[tuple[Kind, str], ...] = (
    ("mails", 'inbox("{word}")'),
    ("mails", "letters()"),
    ("bills", "bills()"),
    ("docs", "documents()"),
    ("people", 'contacts("")'),
    ("num", 'balance("main")'),
    ("texts", "diary()"),
    ("texts", "notices()"),
    ("text", 'fetch("{page}")'),
    ("texts", 'search("{word}")'),
    ("text", 'read_note("{path}")'),
    ("text", 'read_board("board/d.txt")'),
)


class Writer:
    """Writes one plan: statement after statement, with the names that are there so far."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.names: dict[Kind, list[str]] = {kind: [] for kind in KINDS}
        self._count = 0
        self._depth = 0

    # Whole plans ----------------------------------------------------------------------------------------------------

    def prologue(self) -> Block:
        """Statements that read, and give each plain kind a name."""
        found: list[Statement] = [self._bind("num", str(self.chance.randrange(3)))]
        found.append(self._bind("text", self._literal()))
        found.append(self._bind("bool", self.chance.choice(("True", "False"))))
        found.append(self._bind("nums", "[1, 2]"))
        found.append(self._bind("texts", f'["alpha", {self._literal()}]'))
        chosen = self.chance.sample(READS, k=self.chance.randint(2, 5))
        found += [self._bind(kind, self._filled(call)) for kind, call in chosen]
        return tuple(found)

    def steps(self, count: int) -> Block:
        return tuple(self.statement() for _ in range(count))

    def chain(self) -> tuple[Block, tuple[str, Kind], Block]:
        """A chain from a source to an effect, in two parts, and the name that the second part needs of the first."""
        return Chain(self.chance, self._new).written()

    def _new(self, word: str) -> str:
        self._count += 1
        return f"{word}{self._count}"

    def answer(self) -> Statement:
        return Statement(f"answer({self.expr('text', 1)})")

    def all_names(self) -> list[tuple[str, Kind]]:
        return [(name, kind) for kind, names in self.names.items() for name in names]

    def statement(self) -> Statement:
        roll = self.chance.random()
        if self._depth < 2 and roll < 0.14:
            return self._when()
        if self._depth < 2 and roll < 0.30:
            return self._each()
        if roll < 0.62:
            return self.effect()
        if roll < 0.72:
            return self._update()
        if roll < 0.82:
            return self._quarantined()
        return self._assign()

    # Statements -----------------------------------------------------------------------------------------------------

    def _bind(self, kind: Kind, expression: str) -> Statement:
        """Give a value a new name at the top, or inside a block another value to a name that is there."""
        if self._depth:
            known = [name for name in self.names[kind] if not name.startswith("it")]
            if known:
                return Statement(f"{self.chance.choice(known)} = {expression}")
        self._count += 1
        name = f"{kind}{self._count}"
        if not self._depth:
            self.names[kind].append(name)
        return Statement(f"{name} = {expression}")

    def _assign(self) -> Statement:
        if self.chance.random() < 0.35:
            kind, call = self.chance.choice(READS)
            return self._bind(kind, self._filled(call))
        if self.chance.random() < 0.2 and self.names["mails"]:
            return self._bind("mails", f"newest({self.expr('mails', 1)}, {self.expr('num', 1)})")
        if self.chance.random() < 0.15:
            return self._bind("text", f"stamp({self.expr('text', 1)}, {self.expr('num', 1)})")
        kind = self._some([kind for kind, names in self.names.items() if names])
        return self._bind(kind, self.expr(kind, 2))

    def _quarantined(self) -> Statement:
        roll = self.chance.random()
        if roll < 0.2:
            return self._bind("text", f"ask({self.expr('text', 1)})")
        if roll < 0.3:
            return self._bind("num", f"ask({self.expr('text', 1)}, int)")
        source = self.expr(self._some([kind for kind, names in self.names.items() if names]), 1)
        instruction = self._literal() if self.chance.random() < 0.8 else self.expr("text", 1)
        wanted: Kind = self.chance.choice(("text", "text", "num", "bool"))
        type_ = {"text": "str", "num": "int", "bool": "bool"}[wanted]
        return self._bind(wanted, f"extract({source}, {instruction}, {type_})")

    def _update(self) -> Statement:
        kind: Kind = self.chance.choice(("texts", "nums", "num", "text"))
        name = next((each for each in self.names[kind] if not each.startswith("it")), None)
        if name is None:
            return self._assign()
        if kind in ITEM:
            return Statement(f"{name}.append({self.expr(ITEM[kind], 1)})")
        return Statement(f"{name} += {self.expr(kind, 1)}")

    def _when(self) -> Statement:
        condition = self.expr("bool", 2)
        with self._deeper():
            if self.chance.random() < 0.12:
                return Statement(f"if {condition}:", (Statement(f"answer({self.expr('text', 0)})"),))
            body = self.steps(self.chance.randint(1, 2))
            otherwise = self.steps(1) if self.chance.random() < 0.35 else ()
        return Statement(f"if {condition}:", body, otherwise)

    def _each(self) -> Statement:
        many = self._some_list()
        over = self.expr(many, 1)
        self._count += 1
        name, item = f"it{self._count}", ITEM[many]
        with self._deeper():
            self.names[item].append(name)
            body = self.steps(self.chance.randint(1, 2))
            self.names[item].remove(name)
        return Statement(f"for {name} in {over}:", body)

    @contextmanager
    def _deeper(self) -> Generator[None]:
        self._depth += 1
        yield
        self._depth -= 1

    # Effects --------------------------------------------------------------------------------------------------------

    def effect(self) -> Statement:
        makers: list[Callable[[], str]] = [
            lambda: f"tell({self.address()}, {self.content()})",
            lambda: f"tell({self.address()}, {self.content()})",
            lambda: f"send([{self.address()}], {self.content()})",
            lambda: f"send([{self.address()}, {self.address()}], {self.content()})",
            lambda: f"send([{self.address()}], {self.content()}, files=[{self.path()}])",
            lambda: f"pay({self.address()}, {self.amount()})",
            lambda: f"post({self.content()})",
            lambda: f"write_note({self.path()}, {self.content()})",
            lambda: f"write_note({self.path()}, {self.content()})",
            lambda: f"copy_note({self.path()}, {self.path()})",
            lambda: f"search({self.content()})",
            lambda: f"foreign({self.content()})",
        ]
        if self.names["docs"] or self.names["doc"]:
            makers += [
                lambda: f"share({self.expr('doc', 1)}.id, {self.address()})",
                lambda: f"extend_document({self.expr('doc', 1)}.id, {self.content()})",
            ]
        roll = self.chance.random()
        if roll < 0.08:
            return self._bind("text", f'fetch("{self.chance.choice(PAGES)}")')
        if roll < 0.12:
            return self._bind("text", f"fetch({self.expr('text', 1)})")
        if roll < 0.16 and not self._depth:
            self._count += 1
            name = f"saved{self._count}"
            to = self.address()
            return Statement(
                "if True:",
                (Statement(f"{name} = save_document({self.content()})"), Statement(f"share({name}.id, {to})")),
            )
        return Statement(self.chance.choice(makers)())

    def plain_effect(self) -> Statement:
        """An effect that nobody need be asked about, unless what comes before it decides that it is made."""
        who, word = self.chance.choice(PEOPLE), self.chance.choice(WORDS)
        plain = (
            f'tell("{who}", "{word}")',
            f'write_note("own/a.txt", "{word}")',
            f'pay("{who}", 1)',
            f'post("{word}")',
        )
        return Statement(self.chance.choice(plain))

    def address(self) -> str:
        roll = self.chance.random()
        if roll < 0.35:
            return f'"{self.chance.choice(PEOPLE)}"'
        if roll < 0.65 and (self.names["people"] or self.names["person"]):
            return f"{self.expr('person', 1)}.email"
        if roll < 0.75 and (self.names["mails"] or self.names["mail"]):
            return f"{self.expr('mail', 1)}.sender"
        return self.expr("text", 1)

    def content(self) -> str:
        return self._literal() if self.chance.random() < 0.25 else self.expr("text", 2)

    def amount(self) -> str:
        return str(self.chance.randrange(1, 4)) if self.chance.random() < 0.5 else self.expr("num", 1)

    def path(self) -> str:
        return f'"{self.chance.choice(PATHS)}"' if self.chance.random() < 0.8 else self.expr("text", 1)

    # Expressions ----------------------------------------------------------------------------------------------------

    def expr(self, kind: Kind, depth: int) -> str:
        """An expression of a kind; of a record only where there is one to be had."""
        leaves = list(self.names[kind])
        leaves += [
            f"{name}.{field}"
            for record, fields in FIELDS.items()
            for name in self.names[record]
            for field, found in fields.items()
            if found == kind
        ]
        if kind == "text":
            leaves.append(self._literal())
        elif kind == "num":
            leaves.append(str(self.chance.randrange(3)))
        if leaves and (depth <= 0 or self.chance.random() < 0.35):
            return self.chance.choice(leaves)
        makers = list(self._makers(kind, depth - 1)) if depth > 0 else list(self._plainest(kind))
        return self.chance.choice(makers)() if makers else self.chance.choice(leaves)

    def _plainest(self, kind: Kind) -> Iterator[Callable[[], str]]:
        """The least that can be written of a kind that has no name of its own."""
        if kind in LISTS and self.names[LISTS[kind]]:
            yield lambda: f"{self.chance.choice(self.names[LISTS[kind]])}[0]"
        if kind == "bool":
            yield lambda: "1 < 2"
        if kind in ITEM and ITEM[kind] in ("text", "num"):
            yield lambda: "[]"

    def _makers(self, kind: Kind, depth: int) -> Iterator[Callable[[], str]]:
        def sub(inner: Kind) -> str:
            return self.expr(inner, depth)

        if kind in ITEM:
            yield from self._list_makers(kind, depth)
        if kind in LISTS and self.names[LISTS[kind]]:
            many = LISTS[kind]
            yield lambda: f"({sub(many)})[0]"
            yield lambda: f"({sub(many)})[-1]"
            if kind in FIELDS:
                yield lambda: f"sorted({sub(many)}, key=lambda v: v.{self._field(kind)})[0]"
        if kind in ("text", "num") or self.names[kind]:
            yield lambda: f"({sub(kind)} if {sub('bool')} else {sub(kind)})"
        match kind:
            case "text":
                yield lambda: f"({sub('text')} + {sub('text')})"
                yield lambda: f'", ".join({sub("texts")})'
                yield lambda: f"first({sub('texts')}, {sub('text')})"
                yield lambda: f"max({sub('texts')}, default={sub('text')})"
                yield lambda: f"str({sub('num')})"
                yield lambda: f"({sub('text')}).upper()"
            case "num":
                yield lambda: f"({sub('num')} + {sub('num')})"
                yield lambda: f"len({sub(self._some_list())})"
                yield lambda: f"sum({sub('nums')})"
                yield lambda: f"max({sub('nums')}, default={sub('num')})"
                yield lambda: f"len({sub('text')})"
            case "bool":
                yield lambda: f"({sub('num')} < {sub('num')})"
                yield lambda: f"({sub('text')} == {sub('text')})"
                yield lambda: f"({sub('text')} in {sub('texts')})"
                yield lambda: f"(len({sub(self._some_list())}) > 1)"
                yield lambda: f"(not {sub('bool')})"
                yield lambda: f"({sub('bool')} and {sub('bool')})"
            case _:
                return

    def _list_makers(self, kind: Kind, depth: int) -> Iterator[Callable[[], str]]:
        item = ITEM[kind]

        def sub(inner: Kind) -> str:
            return self.expr(inner, depth)

        def filtered(many: Kind) -> str:
            over = self.expr(many, depth)
            self._count += 1
            name, inner = f"it{self._count}", ITEM[many]
            self.names[inner].append(name)
            element = name if many == kind else self.expr(item, 1)
            condition = f" if {self.expr('bool', 1)}" if self.chance.random() < 0.6 else ""
            self.names[inner].remove(name)
            return f"[{element} for {name} in {over}{condition}]"

        if self.names[kind] or item in ("text", "num"):
            yield lambda: filtered(kind)
            yield lambda: f"({sub(kind)} + {sub(kind)})"
            yield lambda: f"({sub(kind)})[:{self.chance.randint(1, 2)}]"
            yield lambda: f"reversed({sub(kind)})"
        if item in ("text", "num"):
            yield lambda: filtered(self._some_list())
            yield lambda: f"[{sub(item)}, {sub(item)}]"
            yield lambda: f"sorted({sub(kind)})"
            yield lambda: f"unique({sub(kind)})"

    def _some_list(self) -> Kind:
        return self._some([kind for kind in ITEM if self.names[kind]])

    def _some(self, kinds: Sequence[Kind]) -> Kind:
        return self.chance.choice(kinds)

    def _field(self, record: Kind) -> str:
        return self.chance.choice([name for name, kind in FIELDS[record].items() if kind in ("text", "num")])

    def _literal(self) -> str:
        return f'"{self.chance.choice((*PEOPLE, *WORDS, *WORDS))}"'

    def _filled(self, call: str) -> str:
        choices = {"word": self.chance.choice(WORDS), "page": self.chance.choice(PAGES)}
        return call.format(path=self.chance.choice(PATHS), **choices)
