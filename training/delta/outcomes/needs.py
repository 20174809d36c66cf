"""What a plan needs of the world that it runs in: tables with their columns, texts, mails, events, people, answers.

A plan says more of its world than it seems: what a column is compared with tells its kind, and which values make a
difference. Variables are followed, so that a column belongs to the table whose rows it is read from.
"""

from __future__ import annotations

import ast
import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

ColumnKind = Literal["text", "number", "category", "flag", "day", "address", "key"]

_ROWS = frozenset({"filter_rows", "sort_rows", "select_columns", "group_rows", "join_rows"})
_READERS = {"read_csv": "csv", "read_json": "json", "read_lines": "txt", "read_text": "txt"}
_ADDED_UP = frozenset({"sum", "mean", "round", "float", "int"})
_USES = {"date": "date", "datetime": "moment", "int": "number", "float": "number"}
"""How an answer is used from which a value of this type is read."""
_SEARCHES = frozenset({"search_mail", "list_events", "search_events", "find_free_time", "find"})


@dataclass
class Column:
    """A column: what kind of cells it has, and the values that something is compared with."""

    name: str
    kind: ColumnKind | None = None
    compared: set[Any] = field(default_factory=set[Any])


@dataclass
class Table:
    """A table that is read, by the name or the words that the plan has for it."""

    words: str
    ending: Literal["csv", "json"]
    columns: dict[str, Column] = field(default_factory=dict[str, Column])

    def column(self, name: str) -> Column:
        return self.columns.setdefault(name, Column(name))


@dataclass
class Search:
    """A search for mails, events or anything, with the arguments that are plain in the plan."""

    tool: str
    arguments: dict[str, Any]


@dataclass
class Needs:
    """All of it.

    Args:
        tables: By the words that the plan has for them.
        texts: Files that are read as text, with the patterns that are looked for in them.
        searches: Of mails, events and anything.
        read: What is read from prose, with its type: the instruction and `float`, `str` or another annotation.
        people: Words for people.
        events: Words for events.
        mails: Words for mails.
        asked: The variables that questions fill, and how each is used: as a `number`, `file`, `address`, `event` or
            `value`.
        limits: Numbers that something other than a cell is compared with, such as a total.
        days: All days that the plan has.
        folders: Folders whose files are looked at, with the ending of the files.
        numeric: The texts whose lines are numbers.
    """

    tables: dict[str, Table] = field(default_factory=dict[str, Table])
    texts: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    searches: list[Search] = field(default_factory=list[Search])
    read: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    people: list[str] = field(default_factory=list[str])
    events: list[str] = field(default_factory=list[str])
    mails: list[str] = field(default_factory=list[str])
    asked: dict[str, str] = field(default_factory=dict[str, str])
    limits: list[float] = field(default_factory=list[float])
    days: set[dt.date] = field(default_factory=set[dt.date])
    folders: dict[str, str] = field(default_factory=dict[str, str])
    numeric: set[str] = field(default_factory=set[str])
    tools: set[str] = field(default_factory=set[str])


def plan_needs(plan: str) -> Needs:
    """What a plan needs.

    Example:
        >>> needs = plan_needs('rows = read_csv(file("bills"))\\nanswer([row for row in rows if row["due"] > 3])')
        >>> needs.tables["bills"].columns["due"].kind
        'number'
    """
    reader = _Reader()
    for statement in ast.parse(plan).body:
        reader.visit(statement)
    return reader.needs


class _Reader(ast.NodeVisitor):
    """Follows rows from the calls that read them to the columns that are used."""

    def __init__(self) -> None:
        self.needs = Needs()
        self._rows: dict[str, set[str]] = {}
        self._texts: dict[str, set[str]] = {}

    # Statements ---------------------------------------------------------------------------------------------------

    def visit_Assign(self, node: ast.Assign) -> None:
        target = node.targets[0]
        self.visit(node.value)
        if not isinstance(target, ast.Name):
            return
        self._rows[target.id] = self._tables_of(node.value)
        self._texts[target.id] = self._files_of(node.value)
        if isinstance(node.value, ast.Call) and _name(node.value) == "ask":
            self.needs.asked.setdefault(target.id, "value")

    def visit_For(self, node: ast.For) -> None:
        self.visit(node.iter)
        self._bind(node.target, node.iter)
        for each in [*node.body, *node.orelse]:
            self.visit(each)

    # Expressions --------------------------------------------------------------------------------------------------

    def visit_ListComp(self, node: ast.ListComp) -> None:
        self._comprehension(node.generators, [node.elt])

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> None:
        self._comprehension(node.generators, [node.elt])

    def _comprehension(self, generators: Sequence[ast.comprehension], made: Sequence[ast.expr]) -> None:
        for each in generators:
            self.visit(each.iter)
            self._bind(each.target, each.iter)
            for test in each.ifs:
                self.visit(test)
        for each in made:
            self.visit(each)

    def _bind(self, target: ast.expr, source: ast.expr) -> None:
        for name in (each for each in ast.walk(target) if isinstance(each, ast.Name)):
            self._rows[name.id], self._texts[name.id] = self._tables_of(source), self._files_of(source)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        list(self._columns(node))
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        for side in (node.left, node.right):
            other = node.right if side is node.left else node.left
            for column in self._columns(side):
                plain = isinstance(other, ast.Constant)
                if (plain and _is_number(other.value)) or (
                    column.kind is None and not isinstance(other, ast.JoinedStr) and not plain
                ):
                    column.kind = "number"
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        other = node.comparators[0]
        for column in self._columns(node.left):
            self._compared(column, other)
            if isinstance(node.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE):
                # Two columns in an order are of one kind.
                for each in self._columns(other):
                    each.kind = each.kind or column.kind
        match other:
            case ast.Constant(value=int() | float() as limit) if not isinstance(limit, bool):
                if not list(self._columns(node.left)):
                    self.needs.limits.append(float(limit))
            case ast.Constant(value=str() as text) if isinstance(node.left, ast.Name):
                for file in self._texts.get(node.left.id, ()):
                    self.needs.texts[file].add(text)
            case _:
                pass
        if isinstance(node.ops[0], ast.In) and isinstance(node.left, ast.Constant) and isinstance(node.left.value, str):
            for file in self._files_of(other):
                self.needs.texts[file].add(node.left.value)
            for column in self._columns(other):
                column.compared.add(node.left.value)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name, given = _name(node), node.args
        self.needs.tools.add(name)
        match name:
            case "read_csv" | "read_json" | "read_lines" | "read_text" if given:
                self._file(name, given[0])
            case "filter_rows" if len(given) > 3:
                for column in self._named_columns(given[0], given[1]):
                    self._compared(column, given[3])
            case "sort_rows" if len(given) > 1:
                list(self._named_columns(given[0], given[1]))
            case "select_columns" if len(given) > 1 and isinstance(given[1], ast.List):
                for each in given[1].elts:
                    list(self._named_columns(given[0], each))
            case "group_rows" if len(given) > 2:
                self._grouped(node)
            case "join_rows" if len(given) > 2:
                for side in given[:2]:
                    for column in self._named_columns(side, given[2]):
                        column.kind = "key"
            case "grep" if len(given) > 1 and isinstance(given[1], ast.Constant):
                for file in self._files_of(given[0]):
                    self.needs.texts[file].add(str(given[1].value))
            case "extract" if len(given) > 2 and isinstance(given[1], ast.Constant):
                kind = ast.unparse(given[2])
                self._read(str(given[1].value), given[2])
                self._asked_as(given[0], _USES.get(kind, "value"))
            case "file" if given and (words := _words(node)) and words not in self.needs.tables:
                self.needs.texts.setdefault(words, set())
            case "copy_file" | "move_file" | "delete_file" | "file_exists" if given:
                self._asked_as(given[0], "existing")
                if (words := _words(given[0])) and words not in self.needs.tables:
                    self.needs.texts.setdefault(words, set())
            case "list_files" | "search_files":
                self._folder(node)
            case "person" | "event" | "mail" if given and isinstance(given[0], ast.Constant):
                known = {"person": self.needs.people, "event": self.needs.events, "mail": self.needs.mails}[name]
                known.append(str(given[0].value))
            case "date" | "datetime":
                if day := _day(node):
                    self.needs.days.add(day)
            case "send_mail" if given:
                for each in ast.walk(given[0]):
                    self._set_kind(each, "address")
                self._asked_as(given[0], "address")
                for each in node.keywords:
                    if each.arg == "attachments":
                        self._asked_as(each.value, "existing")
            case "combine" if given:
                for column in self._columns(given[0]):
                    column.kind = column.kind or "day"
            case "search_events" if given:
                self._asked_as(given[0], "event")
            case "write_text" | "write_lines" | "append_text" | "write_csv" | "write_json" if given:
                self._asked_as(given[0], "file")
            case _ if name in _ADDED_UP or name in ("max", "min"):
                self._added_up(name, given)
            case _:
                pass
        if name in _SEARCHES:
            self.needs.searches.append(Search(name, _plain_arguments(node)))
        if name in ("max", "min", "sorted") and given:
            for keyword in node.keywords:
                if isinstance(keyword.value, ast.Lambda):
                    for argument in keyword.value.args.args:
                        self._rows[argument.arg] = self._tables_of(given[0])
        self.generic_visit(node)

    # Columns ------------------------------------------------------------------------------------------------------

    def _grouped(self, node: ast.Call) -> None:
        how = next((each.value for each in node.keywords if each.arg == "how"), None)
        counted = isinstance(how, ast.Constant) and how.value == "count"
        for column in self._named_columns(node.args[0], node.args[1]):
            column.kind = column.kind or "category"
        for column in self._named_columns(node.args[0], node.args[2]):
            if not counted:
                column.kind = column.kind or "number"

    def _added_up(self, name: str, given: Sequence[ast.expr]) -> None:
        for each in given:
            elt = each.elt if isinstance(each, ast.ListComp | ast.GeneratorExp) else each
            if isinstance(each, ast.ListComp | ast.GeneratorExp):
                self._comprehension(each.generators, [])
            if name in ("float", "int"):
                self._asked_as(elt, "number")
                self.needs.numeric |= self._files_of(elt)
            for column in self._columns(elt):
                # The largest of something may be the last day: that is no reason to make it a number.
                column.kind = column.kind or (None if name in ("max", "min") else "number")

    def _read(self, instruction: str, wanted: ast.expr) -> None:
        """A blank to fill, or several of a record, which are known by the names of their fields."""
        match wanted:
            case ast.Dict(keys=keys, values=values):
                for key, value in zip(keys, values, strict=True):
                    if isinstance(key, ast.Constant):
                        self.needs.read.append((f"{instruction} {key.value}", ast.unparse(value)))
            case _:
                self.needs.read.append((instruction, ast.unparse(wanted)))

    def _folder(self, node: ast.Call) -> None:
        named = {each.arg: each.value for each in node.keywords}
        place = named.get("folder") or (node.args[0] if node.args and _name(node) == "list_files" else None)
        pattern = named.get("pattern")
        ending = str(pattern.value).rpartition(".")[2] if isinstance(pattern, ast.Constant) else "txt"
        words = ""
        match place:
            case ast.Constant(value=str() as words):
                pass
            case ast.Call(func=ast.Name(id="folder"), args=[ast.Constant(value=str() as words)]):
                pass
            case _:
                pass
        self.needs.folders[words] = ending if ending.isalnum() else "txt"

    def _asked_as(self, node: ast.expr, use: str) -> None:
        for each in ast.walk(node):
            if isinstance(each, ast.Name) and each.id in self.needs.asked:
                self.needs.asked[each.id] = use

    def _set_kind(self, node: ast.AST, kind: ColumnKind) -> None:
        for column in self._columns(node):
            column.kind = kind

    def _compared(self, column: Column, other: ast.expr) -> None:
        match other:
            case ast.Constant(value=bool()):
                column.kind = "flag"
            case ast.Constant(value=int() | float() as number):
                column.kind = "number"
                column.compared.add(float(number))
            case ast.Constant(value=str() as text):
                column.kind = column.kind or "category"
                column.compared.add(text)
            case ast.Call(func=ast.Name(id="value"), args=[ast.Constant(value=str() as text)]):
                column.kind = column.kind or "category"
                column.compared.add(text)
            case ast.Call(func=ast.Name(id="today")) | ast.Call(func=ast.Name(id="now")):
                column.kind = "day"
            case ast.Call() if day := _day(other):
                column.kind = "day"
                column.compared.add(day)
            case ast.Call(func=ast.Name(id="float" | "int")):
                column.kind = "number"
                self._asked_as(other, "number")
            case _:
                # Compared with a mean or a total: a number, unless something else is known of it.
                if not (isinstance(other, ast.Name) and other.id in self.needs.asked):
                    column.kind = column.kind or "number"

    def _columns(self, node: ast.AST) -> Iterator[Column]:
        if isinstance(node, ast.Subscript) and (name := _column_name(node.slice)):
            for table in self._tables_of(node.value):
                yield self.needs.tables[table].column(name)

    def _named_columns(self, rows: ast.expr, named: ast.expr) -> Iterator[Column]:
        if name := _column_name(named):
            for table in self._tables_of(rows):
                yield self.needs.tables[table].column(name)

    def _tables_of(self, node: ast.expr) -> set[str]:
        """The tables that rows come from."""
        match node:
            case ast.Name(id=name):
                return self._rows.get(name, set())
            case ast.Call() if _name(node) in ("read_csv", "read_json") and node.args:
                return {words} & self.needs.tables.keys() if (words := _words(node.args[0])) else set()
            case ast.Call() if _name(node) in _ROWS or _name(node) in ("max", "min", "sorted", "unique"):
                return {table for each in node.args for table in self._tables_of(each)}
            case ast.Subscript() if not _column_name(node.slice):
                return self._tables_of(node.value)
            case ast.ListComp(elt=ast.Name() | ast.Dict(), generators=[ast.comprehension(iter=source), *_]):
                return self._tables_of(source)
            case ast.BinOp(left=left, right=right):
                return self._tables_of(left) | self._tables_of(right)
            case _:
                return set()

    def _files_of(self, node: ast.AST) -> set[str]:
        """The texts that lines come from."""
        found: set[str] = set()
        for each in ast.walk(node):
            if isinstance(each, ast.Name):
                found |= self._texts.get(each.id, set())
            elif isinstance(each, ast.Call) and _name(each) in ("read_lines", "read_text") and each.args:
                found |= {words} & self.needs.texts.keys() if (words := _words(each.args[0])) else set()
        return found

    def _file(self, reader: str, node: ast.expr) -> None:
        words = _words(node)
        if words is None:
            return
        if _READERS[reader] == "txt":
            self.needs.texts.setdefault(words, set())
        else:
            self.needs.tables.setdefault(words, Table(words, "json" if reader == "read_json" else "csv"))


def _name(node: ast.Call) -> str:
    match node.func:
        case ast.Name(id=name):
            return name
        case ast.Attribute(attr=name):
            return f".{name}"
        case _:
            return ""


def _words(node: ast.expr) -> str | None:
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.Call(func=ast.Name(id="file"), args=[ast.Constant(value=str() as text), *_]):
            return text
        case _:
            return None


def _column_name(node: ast.expr) -> str | None:
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.Call(func=ast.Name(id="column"), args=[ast.Constant(value=str() as text)]):
            return text
        case _:
            return None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _day(node: ast.expr) -> dt.date | None:
    match node:
        case ast.Call(func=ast.Name(id="date"), args=[ast.Constant(value=str() as text)]):
            try:
                return dt.date.fromisoformat(text)
            except ValueError:
                return None
        case ast.Call(func=ast.Name(id="date" | "datetime"), args=[year, month, day, *_]):
            try:
                return dt.date(*(int(ast.literal_eval(each)) for each in (year, month, day)))
            except ValueError:
                return None
        case _:
            return None


def _plain_arguments(node: ast.Call) -> dict[str, Any]:
    """The arguments that are literals, days or words for a person, by name; positional ones by their number."""
    named: Mapping[str, ast.expr] = {
        **{str(number): each for number, each in enumerate(node.args)},
        **{each.arg: each.value for each in node.keywords if each.arg},
    }
    found: dict[str, Any] = {}
    for name, each in named.items():
        match each:
            case ast.Constant(value=plain):
                found[name] = plain
            case ast.Call(func=ast.Name(id="person" | "value"), args=[ast.Constant(value=str() as text)]):
                found[name] = text
            case ast.Call() if day := _day(each):
                found[name] = day
            case _:
                pass
    return found
