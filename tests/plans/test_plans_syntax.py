"""The Python subset: what each construct means, and what each mistake is told."""

from __future__ import annotations

import pytest

from bicameral.errors import Place, PlanError
from bicameral.plans.syntax._parser import parse
from bicameral.plans.syntax._rendering import print_plan
from bicameral.tools import Registry, tool


@tool(effect="read")
def read_lines(path: str) -> list[str]:
    """The lines of a file."""
    return [path]


@tool(effect="pure")
def unique_lines(lines: list[str]) -> list[str]:
    """Lines without repetitions."""
    return lines


@tool(effect="pure")
def grep(lines: list[str], pattern: str, invert: bool = False) -> list[str]:
    """Lines that have a pattern."""
    return lines if pattern and not invert else []


@tool(effect="write")
def write_text(path: str, text: str) -> None:
    """Write a file."""


REGISTRY = Registry([read_lines, unique_lines, grep, write_text])


def means(source: str, printed: str) -> None:
    """The source and the plain form that it stands for give the same plan."""
    assert print_plan(parse(source, REGISTRY).plan, REGISTRY) == printed
    assert parse(printed, REGISTRY).plan == parse(source, REGISTRY).plan


def refusal(source: str, registry: Registry | None = REGISTRY) -> PlanError:
    with pytest.raises(PlanError) as caught:
        parse(source, registry)
    return caught.value


def test_nested_calls_become_steps_in_the_order_they_run() -> None:
    means(
        'found = grep(unique_lines(read_lines("a")), "x")\nanswer(found)\n',
        '_1 = read_lines("a")\n_2 = unique_lines(_1)\nfound = grep(_2, "x")\nanswer(found)\n',
    )


def test_fresh_names_keep_away_from_names_in_use() -> None:
    means('_1 = 5\nanswer(len(read_lines("a")) + _1)', '_1 = 5\n_2 = read_lines("a")\nanswer(len(_2) + _1)\n')


def test_the_docstring_is_the_goal_and_comments_are_ignored() -> None:
    plan = parse('"""Find\ninvoices."""\n# a comment\nanswer(1)  # another\n"a text alone is a comment too"').plan
    assert plan.goal == "Find\ninvoices."
    assert len(plan.steps) == 1


def test_a_list_comprehension_that_calls_a_tool_becomes_a_loop() -> None:
    means(
        'rows = [read_lines(p) for p in ps if p != "x"]',
        'rows = []\nfor p in ps:\n    if p != "x":\n        _1 = read_lines(p)\n        rows.append(_1)\n',
    )


def test_a_call_in_the_condition_or_a_later_list_of_a_comprehension_is_made_for_each_item() -> None:
    means(
        "found = [p for p in ps if read_lines(p)]",
        "found = []\nfor p in ps:\n    _1 = read_lines(p)\n    if _1:\n        found.append(p)\n",
    )
    means(
        "lines = [x for p in ps for x in read_lines(p)]",
        "lines = []\nfor p in ps:\n    _1 = read_lines(p)\n    for x in _1:\n        lines.append(x)\n",
    )


def test_a_dict_comprehension_that_calls_a_tool_becomes_a_loop() -> None:
    means(
        "rows = {p: read_lines(p) for p in ps}",
        "rows = {}\nfor p in ps:\n    _1 = read_lines(p)\n    rows[p] = _1\n",
    )


def test_a_loop_made_from_a_comprehension_does_not_touch_names_outside_of_it() -> None:
    means(
        "p = 1\nrows = [read_lines(p) for p in ps]\nanswer(p)",
        "p = 1\nrows = []\nfor _1 in ps:\n    _2 = read_lines(_1)\n    rows.append(_2)\nanswer(p)\n",
    )
    means(
        "ps = [read_lines(p) for p in ps]",
        "_1 = []\nfor p in ps:\n    _2 = read_lines(p)\n    _1.append(_2)\nps = _1\n",
    )


def test_only_the_first_list_of_a_comprehension_needs_no_loop() -> None:
    means('xs = [x for x in read_lines("a")]', '_1 = read_lines("a")\nxs = [x for x in _1]\n')


def test_a_conditional_expression_that_calls_a_tool_becomes_a_when() -> None:
    means('x = read_lines("a") if c else []', 'if c:\n    x = read_lines("a")\nelse:\n    x = []\n')
    means(
        'x = len(read_lines("a") if c else [])',
        'if c:\n    _1 = read_lines("a")\nelse:\n    _1 = []\nx = len(_1)\n',
    )
    means("x = 1 if c else 2", "x = 1 if c else 2\n")


@pytest.mark.parametrize(
    "source",
    [
        'x = c and read_lines("a")',
        'x = c or len(read_lines("a"))',
        'x = 1 < a < len(read_lines("a"))',
        "x = sorted(xs, key=lambda p: read_lines(p))",
    ],
)
def test_a_call_that_python_might_not_make_is_refused(source: str) -> None:
    assert refusal(source).code == "plan.call-in-condition"


def test_the_first_operand_of_a_condition_may_call() -> None:
    means('if read_lines("a") and c:\n    answer(1)', '_1 = read_lines("a")\nif _1 and c:\n    answer(1)\n')


def test_an_elif_that_calls_a_tool_calls_it_only_when_reached() -> None:
    means(
        'if c:\n    x = 1\nelif read_lines("a"):\n    x = 2',
        'if c:\n    x = 1\nelse:\n    _1 = read_lines("a")\n    if _1:\n        x = 2\n',
    )


@pytest.mark.parametrize(
    ("source", "printed"),
    [
        ("xs.extend(ys)", "xs += ys\n"),
        ("n += 1", "n += 1\n"),
        ("n -= 1", "n = n - 1\n"),
        ("n *= 2", "n = n * 2\n"),
        ("d[k] += 1", "d[k] = d[k] + 1\n"),
        ("d[k].append(v)", "d[k] = d[k] + [v]\n"),
        ("d.setdefault(k, []).append(v)", "d[k] = d.get(k, []) + [v]\n"),
        ("xs.sort(reverse=True)", "xs = sorted(xs, reverse=True)\n"),
        ("xs.reverse()", "xs = reversed(xs)\n"),
        ("a = b = 1", "a = 1\nb = a\n"),
        ("a, b = b, a", "_1 = (b, a)\na = _1[0]\nb = _1[1]\n"),
        ("a, (b, c) = t", "_1 = t\na = _1[0]\nb = _1[1][0]\nc = _1[1][1]\n"),
        ("d[k] = e = 1", "_1 = 1\nd[k] = _1\ne = _1\n"),
        ("x: int = 1", "x = 1\n"),
        ("x: int", ""),
        ("x = a is None", "x = a is None\n"),
        ("x = a is not None", "x = a is not None\n"),
        ("x = {1, 2}", "x = unique([1, 2])\n"),
        ("x = {y for y in xs}", "x = unique([y for y in xs])\n"),
        ("x = sum(y for y in xs)", "x = sum([y for y in xs])\n"),
        ("x = +1", "x = 1\n"),
        ("x = - -1", "x = 1\n"),
        ("x = 'it''s'", 'x = "its"\n'),
        ("x = f'{a!s:>5}'", 'x = f"{a:>5}"\n'),
        ("x = f'plain'", 'x = "plain"\n'),
        ("return 1", "answer(1)\n"),
        ("return", "answer(None)\n"),
        ("print(x)", "answer(x)\n"),
        ("if c:\n  print(1)\nelse:\n  print(2)", "if c:\n    answer(1)\nelse:\n    answer(2)\n"),
        ("if c:\n  pass\nelse:\n  x = 1", "if not c:\n    x = 1\n"),
        ("for x in xs:\n  pass", ""),
        (
            "for i, (a, b) in xs:\n  x = a",
            "for i, _1 in xs:\n    a = _1[0]\n    b = _1[1]\n    x = a\n",
        ),
        ("x = [a for i, (a, b) in xs]", "x = [_1[0] for i, _1 in xs]\n"),
        ("x = 1; y = 2", "x = 1\ny = 2\n"),
        ("x = LOWER.lower()", "x = LOWER.lower()\n"),
        ("x = lower('A')", 'x = "A".lower()\n'),
        ("x = ', '.join(xs)", 'x = ", ".join(xs)\n'),
        ("x = (a + b) * -c - (d - e)", "x = (a + b) * -c - (d - e)\n"),
        ("x = (not a) == b", "x = (not a) == b\n"),
        ("x = (a and b) or (c and d)", "x = a and b or c and d\n"),
        ("x = (1).real", "x = (1).real\n"),
        ("x = f\"{d['k']}\"", "x = f\"{d['k']}\"\n"),
        ("x = f\"{ {'a': 1} }{{}}\"", "x = f\"{ {'a': 1} }{{}}\"\n"),
        ("x = concat('a', format(y, '.2f'), z)", 'x = f"a{y:.2f}{z}"\n'),
        ("x = concat(d['\"'], 'b')", 'x = concat(d["\\""], "b")\n'),
        ("x = format(a, '{')", 'x = format(a, "{")\n'),
        ("extract(a, 'b', int)", '_1 = extract(a, "b", int)\n'),
        ("x = ask(question='why?')", 'x = ask("why?")\n'),
    ],
)
def test_each_form_means_its_plain_form(source: str, printed: str) -> None:
    means(source, printed)


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("str", "str"),
        ("'str'", "str"),
        ("'list[str]'", "list[str]"),
        ("Optional[int]", "int | None"),
        ("None | int", "int | None"),
        ("int | None", "int | None"),
        ("List[date]", "list[date]"),
        ("[str]", "list[str]"),
        ("list", "list[Any]"),
        ("datetime.date", "date"),
        ("tuple[int, ...]", "list[int]"),
        ("tuple[int, str]", "tuple[int, str]"),
        ("tuple[()]", "tuple[()]"),
        ("dict[str, float]", "dict[str, float]"),
        ("Literal['a', 'b']", 'Literal["a", "b"]'),
        ("str['email']", "email"),
        ("str['path']", 'str["path"]'),
        (
            "{'name': str, 'items': list[{'price': float | None}]}",
            '{"name": str, "items": list[{"price": float | None}]}',
        ),
    ],
)
def test_types_are_written_as_python_writes_them(written: str, printed: str) -> None:
    means(f"x = extract(a, 'b', {written})", f'x = extract(a, "b", {printed})\n')
    means(f"x = ask('b', type={written})", f'x = ask("b"{"" if printed == "str" else f", {printed}"})\n')


@pytest.mark.parametrize("written", ["strr", "int | str", "dict[int, str]", "list[int, str]", "5", "schema()", "'a b'"])
def test_what_is_not_a_type_is_refused(written: str) -> None:
    assert refusal(f"x = extract(a, 'b', {written})").code == "plan.bad-type"


@pytest.mark.parametrize(
    ("source", "fix"),
    [
        ("while x:\n  y = 1", "for x in list"),
        ("def f():\n  pass", "steps"),
        ("import datetime", "date functions are built in"),
        ("from datetime import date", "date functions are built in"),
        ("import os", "tools and functions"),
        ("class A: pass", "dict"),
        ("try:\n  x = 1\nexcept E:\n  pass", "leave it out"),
        ("with a: pass", "tools"),
        ("del x", "new list"),
        ("assert x", "if"),
        ("raise x", "answer"),
        ("for x in xs:\n  break", "list with only the items"),
        ("for x in xs:\n  continue", "under an `if`"),
        ("for x in xs:\n  y = 1\nelse:\n  y = 2", "after the loop"),
        ("global x", "known everywhere"),
        ("x = (y := 1)", "step of its own"),
        ("x = [*a]", "+"),
        ("x = {**a}", "keys"),
        ("grep(*a)", "+"),
        ("grep(**a)", "Name the arguments"),
        ("x = a ** 2", "Multiply"),
        ("x = a is 5", "=="),
        ("x = '%s' % a", "f-string"),
        ("x = '{}'.format(a)", "f-string"),
        ("x = f'{a!r}'", "{value}"),
        ("x = f'{a:{b}}'", "literal"),
        ("a.b = 1", "d[key]"),
        ("a[1:2] = 1", "put it back"),
        ("d[a][b] = 1", "put it back"),
        ("print(1)\nx = 1", "at the end"),
        ("x = map(f, xs)", "comprehension"),
        ("x = xs.pop()", "slice"),
        ("x = lambda a=1: a", "lambda x"),
        ("a, *b = xs", "slice"),
        ("x = answer(1)", "statement"),
        ("len(xs)", "answer"),
    ],
)
def test_what_the_language_does_not_have_is_refused_with_what_to_write_instead(source: str, fix: str) -> None:
    error = refusal(source)
    assert error.fix is not None
    assert fix in error.fix


@pytest.mark.parametrize(
    ("source", "code", "nearest"),
    [
        ('x = grp(a, "x")', "plan.unknown-tool", "grep"),
        ("x = a.lowr()", "plan.unknown-function", "lower"),
        ('x = grep(a, "x", True, 5)', "plan.unknown-argument", None),
        ('x = grep(a, "x", lines=b)', "plan.repeated-argument", None),
        ('x = grep(pattern="x", pattern="y")', "plan.repeated-argument", None),
        ("x = extract(a, 'b')", "plan.missing-argument", None),
        ("x = ask('b', typ=int)", "plan.unknown-argument", "type"),
        ("answer()", "plan.missing-argument", None),
        ("x = 1e999", "plan.bad-number", None),
        ("x = 10000000000000000", "plan.bad-number", None),
        ("größe = 1", "plan.bad-name", None),
        ("x = '\\ud800'", "plan.bad-text", None),
        ("x = 1 +", "plan.syntax", None),
        ("if x:\nanswer(1)", "plan.syntax", None),
        ("x = \x00", "plan.syntax", None),
        ("x = '\ud800'", "plan.syntax", None),
    ],
)
def test_mistakes_have_codes_and_the_nearest_name(source: str, code: str, nearest: str | None) -> None:
    error = refusal(source)
    assert (error.code, error.nearest) == (code, nearest)
    assert str(error).endswith(f"[{code}]")


def test_without_a_registry_arguments_of_tools_need_names() -> None:
    assert refusal('x = anything("a")', None).code == "plan.positional"
    assert parse('x = anything(path="a")').plan.steps[0].do == "call"


def test_a_tool_with_the_name_of_a_function_is_not_silently_shadowed() -> None:
    @tool(effect="pure", name="len")
    def length(text: str) -> int:
        """Length."""
        return len(text)

    assert refusal("x = len(a)", Registry([length])).code == "plan.ambiguous-name"


def test_an_error_has_the_file_the_line_and_the_column_in_characters() -> None:
    with pytest.raises(PlanError) as caught:
        parse('x = 1\ny = "äö" + unknown(a)\n', REGISTRY, file="plan.py")
    assert caught.value.place == Place(file="plan.py", line=2, column=12)
    assert refusal("x = (1").place == Place(line=1, column=5)


def test_a_pattern_with_a_backslash_is_what_was_meant() -> None:
    means('x = grep(a, "\\d+")', 'x = grep(a, "\\\\d+")\n')


@pytest.mark.parametrize(
    "source",
    [
        "x = " + "(" * 5000,
        "x = " + "-" * 5000 + "1",
        "x = " + "not " * 5000 + "1",
        "x = " + "a." * 5000 + "b",
        "x = " + "1 + " * 5000 + "1",
        "x = " + "lambda: " * 5000 + "1",
        "x = " + "[" * 60 + "]" * 60,
        "x = " + "len(" * 100 + ")" * 100,
        "x = extract(a, 'b', " + "list[" * 60 + "int" + "]" * 60 + ")",
        "".join("  " * n + "if x:\n" for n in range(60)) + "  " * 60 + "x = 1",
    ],
)
def test_nesting_without_end_is_refused(source: str) -> None:
    assert refusal(source, None).code == "plan.too-deep"


def test_a_text_without_end_is_refused() -> None:
    assert refusal("x = 1\n" * 50_000).code == "plan.too-long"
    assert refusal("x = f'" + "{a}" * 60_000 + "'").code == "plan.too-long"


def test_a_plan_of_fifty_steps_is_read_in_a_few_milliseconds() -> None:
    import time

    source = "".join(
        f'lines_{n} = read_lines("a{n}.txt")\n'
        f'found_{n} = [line.strip() for line in lines_{n} if "x" in line]\n'
        f'text_{n} = f"{{len(found_{n})}} of {{len(lines_{n})}}"\n'
        f"if len(found_{n}) > {n}:\n    write_text('out.txt', text_{n})\n"
        for n in range(10)
    )
    parse(source, REGISTRY)
    seconds: list[float] = []
    for _ in range(10):
        start = time.thread_time()
        parse(source, REGISTRY)
        seconds.append(time.thread_time() - start)
    assert min(seconds) < 0.02  # 4 ms on an idle machine


def test_a_tool_may_have_the_name_of_a_method() -> None:
    """`find(…)` is the tool, `text.find(…)` the method; both survive being written out and read again."""

    @tool(effect="pure", name="find")
    def search(words: str) -> str:
        """Where something is said."""
        return words

    registry = Registry([search])
    text = 'found = find("garage")\nplace = found.find("a")\nanswer(place)\n'
    plan = parse(text, registry).plan
    assert [type(step).__name__ for step in plan.steps] == ["Call", "Compute", "Answer"]
    assert parse(print_plan(plan), registry).plan == plan
