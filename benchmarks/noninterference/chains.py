"""Chains of statements from a source over a few steps to an effect: the ways by which an influence could get through.

Random statements alone seldom connect what somebody else wrote with a call that acts. A chain takes a value that is a
stranger's or a secret, passes it on in one of the ways that the language has, and ends in an effect that it directs,
decides or fills.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Literal

from .statements import Block, Statement
from .world import PAGES, PEOPLE, WORDS

Name = Callable[[str], str]
"""Makes a new name out of a word."""
Kind = Literal["text", "num"]

STRANGERS: dict[Kind, tuple[str, ...]] = {
    "text": (
        'fetch("{page}")',
        'read_note("in/c.txt")',
        "letters()[0].text",
        "letters()[0].sender",
        'inbox("{word}")[0].text',
        "bills()[0].party",
        "documents()[0].text",
        'extract("alpha", "beta", str)',
    ),
    "num": ("letters()[0].size", 'inbox("{word}")[0].size', 'extract("alpha", "beta", int)'),
}
SECRETS: dict[Kind, tuple[str, ...]] = {
    "text": (
        "diary()[0]",
        'read_note("own/a.txt")',
        'contacts("")[0].name',
        "documents()[0].text",
        "bills()[0].subject",
        "letters()[0].text",
    ),
    "num": ('balance("main")', 'contacts("")[0].level', "bills()[0].amount"),
}


class Chain:
    """Writes one chain. Names in it are its own."""

    def __init__(self, chance: random.Random, name: Name) -> None:
        self._chance = chance
        self._name = name
        self._statements: list[Statement] = []

    def written(self) -> tuple[Block, tuple[str, Kind], Block]:
        """A source and one or two ways on; the name and kind of what came of it; and an effect."""
        chance = self._chance
        secret = chance.random() < 0.5
        kind: Kind = "text" if chance.random() < 0.7 else "num"
        value = self._source(chance.choice((SECRETS if secret else STRANGERS)[kind]))
        decides = False
        for _ in range(chance.choice((0, 1, 1, 1, 2))):
            decides = chance.random() < 0.22
            if decides:
                break
            value, kind = self._passed_on(value, kind)
        before = tuple(self._statements)
        effects = self._decided(value, kind, secret) if decides else self._effects(value, kind, secret)
        # What the effects need was added to the statements while they were written.
        return before, (value, kind), (*self._statements[len(before) :], *effects)

    def _let(self, word: str, expression: str) -> str:
        name = self._name(word)
        self._statements.append(Statement(f"{name} = {expression}"))
        return name

    def _source(self, expression: str) -> str:
        call = expression.format(page=self._chance.choice(PAGES), word=self._chance.choice(WORDS))
        head, dot, rest = call.partition("[0]")
        if not dot:
            return self._let("found", call)
        # A call stands alone; what is taken out of its result comes after it.
        return self._let("found", f"{self._let('many', head)}[0]{rest}")

    def condition(self, value: str, kind: Kind) -> str:
        if kind == "num":
            return f"{value} > {self._chance.randrange(3)}"
        return self._chance.choice((f"len({value}) > 5", f"len({value}) > 8", f'{value} == "{self._word()}"'))

    def _word(self) -> str:
        return self._chance.choice((*PEOPLE, *WORDS))

    # Ways on --------------------------------------------------------------------------------------------------------

    def _passed_on(self, value: str, kind: Kind) -> tuple[str, Kind]:
        ways: list[Callable[[str, Kind], tuple[str, Kind]]] = [
            self._by_branch,
            self._by_branch,
            self._by_place,
            self._by_place,
            self._by_tool,
            self._by_lookup,
            self._by_update,
            self._by_loop,
            self._by_expression,
            self._by_quarantine,
            self._by_quarantine,
            self._by_question,
        ]
        return self._chance.choice(ways)(value, kind)

    def _by_branch(self, value: str, kind: Kind) -> tuple[str, Kind]:
        name = self._let("way", f'"{self._word()}"')
        changed = Statement(f'{name} = "{self._word()}"')
        self._statements.append(Statement(f"if {self.condition(value, kind)}:", (changed,)))
        return name, "text"

    def _by_place(self, value: str, kind: Kind) -> tuple[str, Kind]:
        path, read = self._chance.choice(
            (
                ("own/b.txt", 'read_note("own/b.txt")'),
                ("in/c.txt", 'read_note("in/c.txt")'),
                ("board/d.txt", 'read_board("board/d.txt")'),
            )
        )
        roll = self._chance.random()
        if roll < 0.3:
            kept = Statement(f'write_note("{path}", "{self._word()}")')
            self._statements.append(Statement(f"if {self.condition(value, kind)}:", (kept,)))
        elif roll < 0.4:
            # Which of two places is written to, and the other one is read.
            place = f'"{path}" if {self.condition(value, kind)} else "board/e.txt"'
            self._statements.append(Statement(f'write_note({place}, "{self._word()}")'))
        elif roll < 0.5:
            self._statements.append(Statement(f'write_note("own/a.txt", {self._text(value, kind)})'))
            self._statements.append(Statement(f'copy_note("own/a.txt", "{path}")'))
        else:
            self._statements.append(Statement(f'write_note("{path}", {self._text(value, kind)})'))
        return self._let("back", read), "text"

    def _by_tool(self, value: str, kind: Kind) -> tuple[str, Kind]:
        return self._let("made", f"stamp({self._text(value, kind)}, 1)"), "text"

    def _by_lookup(self, value: str, kind: Kind) -> tuple[str, Kind]:
        if self._chance.random() < 0.5:
            return self._let("looked", f"balance({self._text(value, kind)})"), "num"
        many = self._let("many", f"contacts({self._text(value, kind)})")
        return self._let("looked", f"{many}[0].email"), "text"

    def _by_update(self, value: str, kind: Kind) -> tuple[str, Kind]:
        if kind == "num":
            name = self._let("sum", "1")
            self._statements.append(Statement(f"{name} += {value}"))
            return name, "num"
        many = self._let("many", "[]")
        self._statements.append(Statement(f"{many}.append({value})"))
        return self._let("taken", f'first({many}, "alpha")'), "text"

    def _by_loop(self, value: str, kind: Kind) -> tuple[str, Kind]:
        name, item = self._let("way", f'"{self._word()}"'), self._name("it")
        over = f"[{value}]" if self._chance.random() < 0.5 else f"[1, 2, 3][:{self._number(value, kind)}]"
        changed = (
            f"{name} = {self._text(item, kind)}" if over.startswith(f"[{value}") else f'{name} += "{self._word()}"'
        )
        body = (Statement(changed),)
        if self._chance.random() < 0.5:
            # A loop that reads is gone through turn by turn, one that only computes is not.
            body = (Statement(f'{self._name("idle")} = balance("other")'), *body)
        self._statements.append(Statement(f"for {item} in {over}:", body))
        return name, "text"

    def _by_expression(self, value: str, kind: Kind) -> tuple[str, Kind]:
        condition, item = self.condition(value, kind), self._name("it")
        made = self._chance.choice(
            (
                f'("{self._word()}" if {condition} else "{self._word()}")',
                f'first([{item} for {item} in ["{self._word()}"] if {condition}], "{self._word()}")',
                f'["{self._word()}", "{self._word()}", "beta", "gamma"][{self._number(value, kind)} % 3]',
                f'", ".join([{self._text(value, kind)}])',
            )
        )
        return self._let("made", made), "text"

    def _by_quarantine(self, value: str, kind: Kind) -> tuple[str, Kind]:
        if self._chance.random() < 0.2:
            return self._let("read", f'extract("alpha", {self._text(value, kind)}, str)'), "text"
        return self._let("read", f'extract({value}, "beta", str)'), "text"

    def _by_question(self, value: str, kind: Kind) -> tuple[str, Kind]:
        return self._let("reply", f"ask({self._text(value, kind)})"), "text"

    # Effects --------------------------------------------------------------------------------------------------------

    def _decided(self, value: str, kind: Kind, secret: bool) -> Block:
        """Effects that a condition on the value decides, in its branch or by an early end."""
        effect = self._effects(f'"{self._word()}"', "text", secret)
        condition = self.condition(value, kind)
        if self._chance.random() < 0.4:
            return (Statement(f"if {condition}:", (Statement('answer("alpha")'),)), *effect)
        if self._chance.random() < 0.3:
            return (Statement(f"for {self._name('it')} in [1, 2, 3][:{self._number(value, kind)}]:", effect),)
        return (Statement(f"if {condition}:", effect),)

    def _effects(self, value: str, kind: Kind, secret: bool) -> Block:
        if secret:
            return self._telling(value, kind)
        text, number = self._text(value, kind), self._number(value, kind)
        directed = self._chance.choice(
            (
                f'tell({text}, "alpha")',
                f'send([{text}], "alpha")',
                f'write_note({text}, "alpha")',
                f'pay("{self._chance.choice(PEOPLE)}", {number})',
                f"pay({text}, 1)",
                f"fetch({text})",
            )
        )
        if self._chance.random() < 0.3:
            # Once more, with something else along: a yes to the first is no yes to the second. What is read in between
            # lets the first be asked about alone.
            read = Statement(f'{self._name("idle")} = read_note("own/a.txt")')
            return Statement(f'tell({text}, "alpha")'), read, Statement(f'tell({text}, "{self._word()}")')
        return (Statement(directed),)

    def _telling(self, value: str, kind: Kind) -> Block:
        """Effects that tell somebody something whom the user has not named."""
        text = self._text(value, kind)
        who = self._let("many", 'contacts("")') + "[0].email"
        roll = self._chance.random()
        if roll < 0.15:
            return (Statement(f'send([{who}], "alpha", files=["own/a.txt"])'),)
        if roll < 0.3:
            return self._sharing(value, kind, who)
        told = self._chance.choice(
            (f"tell({who}, {text})", f"send([{who}], {text})", f"post({text})", f"search({text})")
        )
        return (Statement(told),)

    def _sharing(self, value: str, kind: Kind, who: str) -> Block:
        """A document is shared by its number, and what is known of it by then hangs on the value."""
        condition = self.condition(value, kind)
        share = Statement(f'share("d0", {who})')
        listed = Statement(f"{self._name('many')} = documents()")
        if self._chance.random() < 0.5:
            return (Statement(f"if {condition}:", (listed,)), share)
        which = f'"d0" if {condition} else "d1"'
        if self._chance.random() < 0.5:
            return (listed, Statement(f'extend_document({which}, "alpha")'), share)
        changed = Statement('extend_document("d0", "alpha")')
        return (listed, Statement(f"if {condition}:", (changed,)), share)

    def _text(self, value: str, kind: Kind) -> str:
        return value if kind == "text" else f"str({value})"

    def _number(self, value: str, kind: Kind) -> str:
        return value if kind == "num" else f"len({value})"
