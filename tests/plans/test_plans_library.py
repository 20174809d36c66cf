"""The library is what it says: closed, with signatures that its own code and the check agree on."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from bicameral.errors import BicameralError
from bicameral.plans import (
    FUNCTIONS,
    METHODS,
    Apply,
    EvaluationError,
    LibraryFunction,
    Ref,
    Scope,
    evaluate_expr,
    type_of,
)
from bicameral.plans._type_rules import Signature
from bicameral.types import BOOL, FLOAT, INT, STR, DictType, ListType, TupleType, Type, optional_type

SIGNATURES = [(function, signature) for function in FUNCTIONS.values() for signature in function.signatures]


def test_the_library_has_every_function_that_plans_are_promised() -> None:
    promised = """
        lower upper strip lstrip rstrip title capitalize split splitlines join replace startswith endswith find count
        zfill ljust rjust removeprefix removesuffix isdigit len str contains abs round min max sum int float bool mean
        sorted reversed unique list set tuple enumerate zip range flatten first last any all index count_by group_by
        keys values items get dict date datetime time timedelta isoformat strftime weekday day_name combine parse_date
        total_seconds
    """
    assert set(promised.split()) <= set(FUNCTIONS)


def test_the_library_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        FUNCTIONS["open"] = FUNCTIONS["len"]  # type: ignore[index] # pyright: ignore[reportIndexIssue]


@pytest.mark.parametrize("name", ["open", "eval", "exec", "getattr", "__import__", "type", "vars", "input", "print"])
def test_nothing_of_python_that_could_do_harm_is_a_function(name: str) -> None:
    assert name not in FUNCTIONS
    with pytest.raises((EvaluationError, ValueError)):
        evaluate_expr(Apply(function=name, args=(Ref(name="x"),)), {"x": "x"})


@pytest.mark.parametrize(("method", "name"), METHODS.items())
def test_every_method_stands_for_a_function_with_a_receiver(method: str, name: str) -> None:
    assert all(signature.parameters for signature in FUNCTIONS[name].signatures)
    assert FUNCTIONS[name].method == (method == name) or method in {"casefold", "date", "time"}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=lambda function: function.name)
def test_every_function_tells_what_it_does_in_a_sentence(function: LibraryFunction) -> None:
    assert function.doc.endswith(".")
    assert len(function.doc) < 120
    assert function.usage.startswith(f"{function.name}(")


@pytest.mark.parametrize(("function", "signature"), SIGNATURES)
def test_the_code_of_a_function_takes_what_its_signature_says(function: LibraryFunction, signature: Signature) -> None:
    try:
        code = inspect.signature(signature.run)
    except ValueError:  # a few of Python's own types do not tell
        return
    needed = [p for p in signature.parameters if p.required and not p.named_only]
    code.bind(*needed, **{p.name: p for p in signature.parameters if p.named_only})
    every = [p for p in signature.parameters if not p.named_only]
    code.bind(*every)


@pytest.mark.parametrize(
    ("function", "types", "expected"),
    [
        ("lower", [STR], STR),
        ("split", [STR], ListType(STR)),
        ("len", [ListType(INT)], INT),
        ("sorted", [ListType(INT)], ListType(INT)),
        ("first", [ListType(STR)], optional_type(STR)),
        ("enumerate", [ListType(STR)], ListType(TupleType((INT, STR)))),
        ("zip", [ListType(STR), ListType(INT)], ListType(TupleType((STR, INT)))),
        ("items", [DictType(INT)], ListType(TupleType((STR, INT)))),
        ("get", [DictType(INT), STR], optional_type(INT)),
        ("get", [DictType(INT), STR, INT], INT),
        ("sum", [ListType(INT)], INT),
        ("sum", [ListType(FLOAT)], FLOAT),
        ("round", [FLOAT], INT),
        ("round", [FLOAT, INT], FLOAT),
        ("max", [INT, FLOAT], FLOAT),
        ("max", [ListType(STR)], STR),
        ("flatten", [ListType(ListType(INT))], ListType(INT)),
        ("any", [ListType(BOOL)], BOOL),
        ("count_by", [ListType(STR)], DictType(INT)),
        ("dict", [ListType(TupleType((STR, INT)))], DictType(INT)),
        ("list", [STR], ListType(STR)),
    ],
)
def test_the_type_of_a_result_follows_from_the_types_of_the_arguments(
    function: str, types: list[Type], expected: Type
) -> None:
    scope = Scope.from_types({f"a{number}": type_ for number, type_ in enumerate(types)})
    call = Apply(function=function, args=tuple(Ref(name=name) for name in scope))
    findings: list[Any] = []
    assert type_of(call, scope, findings) == expected
    assert findings == []


def test_an_unknown_function_is_told_with_the_nearest_one() -> None:
    findings: list[Any] = []
    type_of(Apply(function="lenn", args=()), Scope(), findings)
    assert [(finding.code, finding.nearest) for finding in findings] == [("plan.unknown-function", "len")]


def test_an_error_of_a_run_is_an_error_like_any_other() -> None:
    assert issubclass(EvaluationError, BicameralError)
