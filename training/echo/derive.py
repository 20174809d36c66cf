"""From a plan to what is to be understood from its request: steps, constraints, output and questions.

The planner's corpus says what each request means, as a plan. Its calls, filters and aggregates become steps; a
parameter is kept where the words of the request say it. A plan that asks becomes a question of a closed kind. Where the
request has no word for a condition of the plan there is no right account, and the sample is not used.
"""

from __future__ import annotations

import ast
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from bicameral.planning import Intent
from bicameral.planning._decode import refusal_reason
from bicameral.planning._echo_reply import MAX_STEPS, is_grounded, stands_in_any_order, stands_in_order
from bicameral.planning._lexicon import STOP_TOKENS

from .replies import Account, Step, UnfitError, span

_REFERENCES = frozenset("file folder column value person event mail".split())
_ISO = re.compile(r"\d{4}-\d\d-\d\d")
_TIME = re.compile(
    r"\b\d{1,2}(?::\d\d)?\s?(?:am|pm)\b|\b\d{1,2}:\d\d\b|\b\d{1,2}(?:[.:]\d\d)?\s?Uhr\b|\b\d{1,2}\s?h(?:\s?\d\d)?\b",
    re.IGNORECASE,
)
_EFFECT_OUTPUTS = (("mail", ("send",)), ("file", ("write", "append")), ("calendar", ("add-event", "change-event")))
_SHORTEST_PART = 4
_LONGEST_DO = 160


def derive_account(plan: str, intent: Intent) -> Account:
    """The account of a request whose plan is known; an UnfitError says why there is none.

    Args:
        intent: The intent of the request by rules: its words and its days.

    Example:
        >>> derive_account('rows = read_csv(file("bills"))\\nanswer(len(rows))\\n', intent).steps
        ({'action': 'read', 'file': 'bills'}, {'action': 'count'})
    """
    if (reason := refusal_reason(plan)) is not None:
        return _refused(reason, intent)
    deriving = _Deriving(intent)
    deriving.block(ast.parse(plan).body)
    steps = deriving.steps
    if not steps and not deriving.questions:
        raise UnfitError("the plan has no step")
    if len(steps) > MAX_STEPS:
        raise UnfitError("the plan has too many steps")
    steps = steps or [{"action": "do", "what": _order_words(intent.request)}]
    done = {step["action"] for step in steps}
    output = next((kind for kind, actions in _EFFECT_OUTPUTS if done & {*actions}), "answer")
    return Account(tuple(steps), tuple(deriving.constraints), output, tuple(deriving.questions[:2]))


def _refused(reason: str, intent: Intent) -> Account:
    """The account of what no tool can do: the order in its own words."""
    return Account(({"action": "do", "what": _order_words(intent.request)},))


def _order_words(request: str) -> str:
    words = " ".join(request.split()).strip(".!?¿¡ ")
    if len(words) > _LONGEST_DO:
        raise UnfitError("the request is too long to be one step")
    return words


def question_kind(question: str, type_: str = "") -> str:
    """The closed kind of a question of the corpus."""
    if type_ in ("int", "float"):
        return "amount"
    if type_ in ("date", "datetime", "time"):
        return "day"
    lower = question.casefold()
    return next((kind for kind, pattern in _KINDS if pattern.search(lower)), "which")


_KINDS = (
    ("since", re.compile(r"\bsince\b|\bseit\b|\bab wann\b|\bdepuis\b|\bdesde\b")),
    (
        "recipient",
        re.compile(
            r"\bto whom\b|\bwho (?:should|shall|do|is the rec)|\bwhom\b|\brecipient|\be-?mail address\b|\ban wen\b"
            r"|\bwem\b|\bwelche[mn]\b.*\bschreiben\b|\bmail-adresse\b|\bempfänger|\bà qui\b|\bdestinataire"
            r"|\bquelle adresse\b|\ba quién(?:es)?\b|\bdestinatari|\bqué dirección\b"
        ),
    ),
    (
        "file",
        re.compile(r"\bfiles?\b|\bdatei|\bfichier|\barchivo|\bdocument|\bdokument|\bfolder\b|\bordner\b|\bdossier"),
    ),
    (
        "amount",
        re.compile(
            r"\bhow (?:much|many|long|high|old)\b|\bpercent\b|\blimit\b|\bbudget\b|\bamount\b"
            r"|\bwie (?:viel|hoch|lange|alt)|\bprozent|\bgrenze\b|\bbetrag\b|\bcombien\b|\bmontant\b"
            r"|\blimite\b|\bcuánt|\bimporte\b|\bfrom which\b"
        ),
    ),
    (
        "day",
        re.compile(
            r"\bwhen\b|\bwhich day\b|\bwhat (?:day|date|time)\b|\bdate\b|\bwann\b|\bwelche[mnr]? tag\b|\buhr\b"
            r"|\bdatum\b|\bquand\b|\bquel(?:le)? (?:jour|date|heure)\b|\bcuándo\b|\bqué (?:día|fecha|hora)\b"
        ),
    ),
)


class _Deriving:
    """The steps of one plan, in the order in which they happen."""

    def __init__(self, intent: Intent) -> None:
        self.intent = intent
        self.request = intent.request
        self.steps: list[Step] = []
        self.constraints: list[str] = []
        self.questions: list[tuple[str, str]] = []

    # Statements ---------------------------------------------------------------------------------------------------

    def block(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            match statement:
                case ast.Assign(value=value) | ast.AugAssign(value=value) | ast.Expr(value=value):
                    self.value(value, shown=True)
                case ast.For(iter=over, body=inner):
                    self.value(over)
                    self.block(inner)
                case ast.If(test=test, body=inner, orelse=other):
                    self.branch(test)
                    self.block(inner)
                    self.block(other)
                case _:
                    raise UnfitError(f"no account of {type(statement).__name__}")

    def branch(self, test: ast.expr) -> None:
        """A condition on a number of the request is a step; whether something was found is none."""
        self.value(test)
        match test:
            case ast.Compare(ops=[op], comparators=[ast.Constant(value=int() | float() as limit)]) if limit:
                name = (
                    "above" if isinstance(op, ast.Gt | ast.GtE) else "below" if isinstance(op, ast.Lt | ast.LtE) else ""
                )
                if name and is_grounded(name, limit, self.request):
                    self.steps.append({"action": "compare", name: limit})
                else:
                    raise UnfitError("the request does not say the limit of a condition")
            case _:
                return

    def value(self, node: ast.expr, *, shown: bool = False) -> None:
        """The steps within an expression, the inner ones first; `len` counts only where its value is what is wanted."""
        match node:
            case ast.Call(func=ast.Name(id="answer"), args=[answer, *_]):
                self.value(answer, shown=not isinstance(answer, ast.JoinedStr) or not self._has_effect())
            case ast.Call(func=ast.Name(id=name)):
                for each in [*node.args, *(keyword.value for keyword in node.keywords)]:
                    if not (isinstance(each, ast.Lambda) or _words(each) is not None):
                        self.value(each)
                self.call(name, node, shown)
            case ast.ListComp(elt=element, generators=[ast.comprehension(iter=over, ifs=ifs)]):
                self.value(over)
                for test in ifs:
                    self.keep(test)
                self.value(element)
            case ast.Subscript(value=inner, slice=ast.Slice(lower=lower, upper=ast.Constant(value=int() as count))):
                self.value(inner)
                if lower is None:
                    self.add("take", count=count)
            case _:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self.value(child, shown=shown and isinstance(node, ast.JoinedStr | ast.FormattedValue))

    def _has_effect(self) -> bool:
        return any(step["action"] in _EFFECTS for step in self.steps)

    # Calls --------------------------------------------------------------------------------------------------------

    def call(self, name: str, node: ast.Call, shown: bool) -> None:
        given = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
        if name in _TOOLS:
            action, names = _TOOLS[name]
            found = dict(zip(names, node.args, strict=False)) | {names_of(name).get(k, k): v for k, v in given.items()}
            _SPECIAL.get(name, _Deriving.plain)(self, action, found)
        elif name in _AGGREGATES and (name != "len" or shown):
            self.add(_AGGREGATES[name], of=_column(node))
        elif name == "ask":
            self.ask(node)
        elif name in _UNFIT:
            raise UnfitError(f"no account of {name}")

    def plain(self, action: str, found: dict[str, ast.expr]) -> None:
        """A call whose arguments are parameters in the same order."""
        self.add(action, **{name: self._said(name, value) for name, value in found.items() if not name.startswith("_")})

    def send(self, action: str, found: dict[str, ast.expr]) -> None:
        to = found.get("to")
        people = to.elts if isinstance(to, ast.List) else []
        # A plan needs a subject; it is the request's only where the request speaks of one.
        names = ("subject", "text") if _SUBJECT_WORDS.search(self.request) else ("text",)
        text = {name: self._said(name, found[name]) for name in names if name in found}
        files = found.get("file")
        if isinstance(files, ast.List) and files.elts:
            text["file"] = _words(files.elts[0])
        for each in people or [None]:
            said = None if each is None else _words(each) or _subscript_words(each)
            self.add(action, **({"to": said} | text), always=True)

    def filter(self, action: str, found: dict[str, ast.expr]) -> None:
        column, op, value = (found.get(name) for name in ("column", "_op", "is"))
        if column is None or value is None or not isinstance(op, ast.Constant):
            raise UnfitError("a filter that is not said")
        self._condition(_words(column), str(op.value), value)

    def grep(self, action: str, found: dict[str, ast.expr]) -> None:
        inverted = isinstance(flag := found.get("_invert"), ast.Constant) and flag.value is True
        pattern = _words(found["contains"]) if "contains" in found else None
        if pattern is None or not is_grounded("contains", pattern, self.request):
            raise UnfitError("the request does not say what is searched for")
        self.add("remove" if inverted else "keep", contains=pattern)

    def sort(self, action: str, found: dict[str, ast.expr]) -> None:
        flag = found.get("_descending")
        down = isinstance(flag, ast.Constant) and flag.value is True
        by = _words(found["by"]) if "by" in found else None
        self.add("sort", by=by, order="descending" if down else "ascending", always=True)

    def select(self, action: str, found: dict[str, ast.expr]) -> None:
        columns = found.get("what")
        names = [_words(each) for each in columns.elts] if isinstance(columns, ast.List) else []
        known = [each for each in names if each and is_grounded("what", each, self.request)]
        if known:
            self.add("extract", what=" ".join(known))

    def extract(self, action: str, found: dict[str, ast.expr]) -> None:
        what = _words(found["what"]) if "what" in found else None
        if what and (said := self._known_words(what)):
            self.add("extract", what=said)

    def look(self, action: str, found: dict[str, ast.expr]) -> None:
        about = _words(found["about"]) if "about" in found else None
        said = self._known_words(about) if about else ""
        if not said:
            raise UnfitError("the request does not say what is looked for")
        self.add("find", about=said)

    def event(self, action: str, found: dict[str, ast.expr]) -> None:
        known: dict[str, Any] = {}
        for name in ("title", "event", "minutes", "place"):
            if name in found:
                known[name] = self._said(name, found[name])
        if (start := found.get("_start")) is not None:
            known["when"] = self._day_words(start)
            times = _TIME.findall(self.request)
            known["time"] = times[0] if len(times) == 1 else None
        self.add(action, **known, always=True)

    def days(self, action: str, found: dict[str, ast.expr]) -> None:
        known = {name: self._said(name, found[name]) for name in ("about", "minutes") if name in found}
        start, end = found.get("_start"), found.get("_end")
        when = self._day_words(start) if start is not None else None
        name = "when" if end is not None or action == "find-time" or not known.get("about") else "since"
        self.add(action, **known, **({name: when} if when else {}), always=True)

    def ask(self, node: ast.Call) -> None:
        question = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else ""
        type_ = node.args[1].id if len(node.args) > 1 and isinstance(node.args[1], ast.Name) else ""
        kind = question_kind(str(question), type_)
        if kind not in {each for each, _ in self.questions}:
            self.questions.append((kind, self._common_words(str(question))))

    # Conditions ---------------------------------------------------------------------------------------------------

    def keep(self, test: ast.expr) -> None:
        match test:
            case ast.BoolOp(op=ast.And(), values=values):
                for each in values:
                    self.keep(each)
            case ast.BoolOp(op=ast.Or(), values=values):
                words = [said for each in values if (said := _compared_words(each))]
                stretch = span(words, self.request) if len(words) == len(values) else None
                if stretch is None:
                    raise UnfitError("the request does not say a choice in one place")
                self.add("keep", what=stretch)
                self.constraints.append(stretch)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                if isinstance(op, ast.In | ast.NotIn):
                    self._contains(left, isinstance(op, ast.NotIn))
                elif (column := _subscript_words(left)) is not None:
                    self._condition(column, _OPERATORS.get(type(op), ""), right)
                else:
                    raise UnfitError("a condition that is not said")
            case _:
                raise UnfitError("a condition that is not said")

    def _contains(self, left: ast.expr, inverted: bool) -> None:
        words = _words(left)
        if words is None or not is_grounded("contains", words, self.request):
            raise UnfitError("the request does not say what is searched for")
        self.add("remove" if inverted else "keep", contains=words)

    def _condition(self, column: str | None, op: str, value: ast.expr) -> None:
        """One condition as a step and a constraint."""
        action = "remove" if op == "!=" else "keep"
        said = column if column and is_grounded("column", column, self.request) else None
        if (day := self._day_words(value)) is not None:
            self._keep_day(action, said, op, day, value)
            return
        known: Step = {}
        match value:
            case ast.Constant(value=bool() as flag):
                word = said or self._related(column or "")
                if word is None:
                    raise UnfitError("the request has no word for a condition")
                known = {"column": said, "is": flag} if said else {"what": word}
            case ast.Constant(value=int() | float() as number):
                name = {">": "above", ">=": "above", "<": "below", "<=": "below"}.get(op, "is")
                known = {"column": said, name: number}
                if not is_grounded(name, number, self.request):
                    raise UnfitError("the request does not say a number of a condition")
            case _:
                words = _words(value)
                if words is None or not is_grounded("is", words, self.request):
                    raise UnfitError("the request does not say a value of a condition")
                known = {"column": said, "is": words}
        known = {name: each for name, each in known.items() if each is not None}
        self.add(action, **known)
        words = [str(each) for each in known.values() if not isinstance(each, bool)]
        if stretch := span(words, self.request) or next(
            (each for each in reversed(words) if stands_in_order(each, self.request)), None
        ):
            self.constraints.append(stretch)

    def _keep_day(self, action: str, column: str | None, op: str, day: str, value: ast.expr) -> None:
        dates = [each for each in self.intent.dates if each.phrase == day]
        period = dates[0].start != dates[0].end
        name = "when" if period or op == "==" else "since" if op.startswith(">") else "before"
        if self.steps and self.steps[-1].get(name) == day:
            # The second end of the same period.
            return
        known: Step = {name: day} | ({"column": column} if column else {})
        self.add(action, **known)
        self.constraints.append(day)

    # Words --------------------------------------------------------------------------------------------------------

    def add(self, action: str, *, always: bool = False, **parameters: Any) -> None:
        """A step with those parameters that the request says; without any, only where the action says enough alone."""
        known = {
            name: value
            for name, value in parameters.items()
            if value is not None and value != "" and is_grounded(name, value, self.request)
        }
        # What is changed is always a step, even where the request does not name the one that it is done to.
        if known or always or action in _ALONE or action in _EFFECTS:
            step = {"action": action, **known}
            if step not in self.steps[-1:]:
                self.steps.append(step)

    def _said(self, name: str, node: ast.expr) -> Any:
        if (day := self._day_words(node)) is not None:
            return day
        match node:
            case ast.Constant(value=bool() | int() | float() as value):
                return value if name in ("unread", "is", "minutes", "count") else None
            case _:
                words = _words(node)
                return self._known_words(words) if words and name in ("about", "what") else words

    def _day_words(self, node: ast.expr) -> str | None:
        """The phrase of the request for the day in an expression."""
        for text in _days(node):
            for named in self.intent.dates:
                if text in (str(named.start), str(named.end)) and stands_in_order(named.phrase, self.request):
                    return named.phrase
            if stands_in_order(text, self.request):
                raise UnfitError("a day that no phrase is found for")
        return None

    def _known_words(self, text: str) -> str:
        """The words of a text that the request has; without the little ones if some are missing."""
        if stands_in_any_order(text, self.request):
            return text
        words = [each for each in text.split() if stands_in_any_order(each, self.request)]
        return " ".join(each for each in words if each.casefold() not in STOP_TOKENS)

    def _common_words(self, text: str) -> str:
        """The longest stretch of words that a text shares with the request, without little words at its ends."""
        words = text.strip("?¿.! ").split()
        best = ""
        for start in range(len(words)):
            for end in range(start + 1, min(len(words), start + 6) + 1):
                part = words[start:end]
                bare = [each.strip(",.?!").casefold() for each in part]
                if (
                    bare[0] in STOP_TOKENS
                    or bare[-1] in STOP_TOKENS
                    or not stands_in_order(" ".join(part), self.request)
                ):
                    continue
                best = max(best, " ".join(part).strip(",.?!"), key=len)
        return best if len(best) <= 60 else ""

    def _related(self, word: str) -> str | None:
        """A word of the request with the same core: `unpaid` for `paid`, `gewonnenen` for `gewonnen`."""
        core = _plain(word)[: max(_SHORTEST_PART, len(word) - 2)]
        if len(core) < _SHORTEST_PART:
            return None
        for each in re.findall(r"[^\W\d_]+(?:-[^\W\d_]+)*", self.request):
            if core in _plain(each) and is_grounded("what", each, self.request):
                return each
        return None


def _plain(text: str) -> str:
    folded = unicodedata.normalize("NFKD", text.casefold())
    return "".join(char for char in folded if not unicodedata.combining(char))


def _words(node: ast.expr) -> str | None:
    """The words of a text or of a reference."""
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.Call(func=ast.Name(id=name), args=[ast.Constant(value=str() as text)]) if name in _REFERENCES:
            return text
        case _:
            return None


def _subscript_words(node: ast.expr) -> str | None:
    match node:
        case ast.Subscript(slice=inner):
            return _words(inner)
        case _:
            return None


def _compared_words(node: ast.expr) -> str | None:
    match node:
        case ast.Compare(ops=[ast.Eq()], comparators=[right]):
            return _words(right)
        case _:
            return None


def _column(node: ast.Call) -> str | None:
    """The column that an aggregate is over: that of its elements or of its key."""
    for each in ast.walk(node):
        if isinstance(each, ast.Subscript) and (words := _subscript_words(each)) is not None:
            return words
    return None


def _days(node: ast.expr) -> Iterator[str]:
    for each in ast.walk(node):
        match each:
            case ast.Call(func=ast.Name(id="date"), args=[ast.Constant(value=str() as text)]) if _ISO.fullmatch(text):
                yield text
            case ast.Call(func=ast.Name(id="datetime" | "date"), args=[year, month, day, *_]):
                parts = [part.value for part in (year, month, day) if isinstance(part, ast.Constant)]
                if len(parts) == 3 and all(isinstance(part, int) for part in parts):
                    yield "{:04}-{:02}-{:02}".format(*parts)
            case _:
                continue


_OPERATORS: dict[type[ast.cmpop], str] = {
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
_ALONE = frozenset(
    "remove-duplicates sort count sum average minimum maximum search-mail search-calendar find-time".split()
)
_EFFECTS = frozenset(
    "write append copy move rename delete send reply forward draft add-event change-event cancel-event".split()
)
_SUBJECT_WORDS = re.compile(r"\b(?:subject|titled?|betreff|titel|objet|titre|asunto|título)\b", re.IGNORECASE)
_AGGREGATES = {"len": "count", "sum": "sum", "mean": "average", "max": "maximum", "min": "minimum"}
_UNFIT = frozenset("replace_lines cut look sorted".split())

_TOOLS: dict[str, tuple[str, tuple[str, ...]]] = {
    "read_text": ("read", ("file",)),
    "read_lines": ("read", ("file",)),
    "read_csv": ("read", ("file",)),
    "read_json": ("read", ("file",)),
    "file_exists": ("read", ("file",)),
    "read_mail": ("read", ("mail",)),
    "write_text": ("write", ("file", "text")),
    "write_lines": ("write", ("file",)),
    "write_csv": ("write", ("file",)),
    "write_json": ("write", ("file",)),
    "append_text": ("append", ("file", "text")),
    "make_folder": ("write", ("folder",)),
    "list_files": ("list-files", ("folder",)),
    "search_files": ("find", ("about",)),
    "find": ("find", ("about",)),
    "find_person": ("find", ("about",)),
    "copy_file": ("copy", ("file", "to")),
    "move_file": ("move", ("file", "to")),
    "delete_file": ("delete", ("file",)),
    "save_attachment": ("write", ("_id", "file", "folder")),
    "fetch_page": ("fetch", ("link",)),
    "fetch_json": ("fetch", ("link",)),
    "sort_lines": ("sort", ("_lines", "_descending")),
    "sort_rows": ("sort", ("_rows", "by", "_descending")),
    "unique_lines": ("remove-duplicates", ("_lines",)),
    "unique": ("remove-duplicates", ("_lines",)),
    "grep": ("keep", ("_lines", "contains", "_invert")),
    "head": ("take", ("_lines", "count")),
    "tail": ("take", ("_lines", "count")),
    "count_lines": ("count", ("_lines",)),
    "filter_rows": ("keep", ("_rows", "column", "_op", "is")),
    "select_columns": ("extract", ("_rows", "what")),
    "group_rows": ("group", ("_rows", "by", "of", "_how")),
    "join_rows": ("join", ("_left", "_right", "by")),
    "extract": ("extract", ("_text", "what", "_type")),
    "search_mail": ("search-mail", ("about", "from", "about", "since", "before", "unread", "_folder", "count")),
    "send_mail": ("send", ("to", "subject", "text", "_cc", "file")),
    "list_events": ("search-calendar", ("_start", "_end")),
    "search_events": ("search-calendar", ("about", "_start", "_end")),
    "find_free_time": ("find-time", ("_start", "minutes", "_earliest", "_latest")),
    "add_event": ("add-event", ("title", "_start", "minutes", "place", "_description", "_attendees")),
    "change_event": ("change-event", ("event", "title", "_start", "minutes", "place")),
    "delete_event": ("cancel-event", ("event",)),
}
_ARGUMENTS = {
    "sender": "from",
    "text": "about",
    "subject": "about",
    "limit": "count",
    "start": "_start",
    "end": "_end",
    "day": "_start",
    "location": "place",
    "reverse": "_descending",
    "descending": "_descending",
    "invert": "_invert",
    "attachments": "file",
    "on": "by",
    "how": "_how",
    "column": "of",
    "path": "file",
    "query": "about",
    "pattern": "_pattern",
    "recursive": "_recursive",
    "attendees": "_attendees",
    "description": "_description",
    "earliest": "_earliest",
    "latest": "_latest",
    "cc": "_cc",
    "numeric": "_numeric",
    "ignore_case": "_case",
    "regex": "_regex",
}


def names_of(tool: str) -> dict[str, str]:
    """What the arguments of a tool are called in a step, by their names in calls."""
    if tool in ("send_mail", "write_text", "append_text"):
        return _ARGUMENTS | {"text": "text", "subject": "subject", "body": "text"}
    return _ARGUMENTS


_SPECIAL: dict[str, Callable[[_Deriving, str, dict[str, ast.expr]], None]] = {
    "send_mail": _Deriving.send,
    "filter_rows": _Deriving.filter,
    "grep": _Deriving.grep,
    "sort_rows": _Deriving.sort,
    "sort_lines": _Deriving.sort,
    "select_columns": _Deriving.select,
    "extract": _Deriving.extract,
    "find": _Deriving.look,
    "find_person": _Deriving.look,
    "search_files": _Deriving.look,
    "add_event": _Deriving.event,
    "change_event": _Deriving.event,
    "list_events": _Deriving.days,
    "search_events": _Deriving.days,
    "find_free_time": _Deriving.days,
}
