"""The tables of `docs/language.md`, generated from the library of functions.

`python -m scripts.language_tables docs/language.md` writes them into the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from bicameral.plans._type_rules import LibraryFunction, Parameter, Signature
from bicameral.plans.evaluate._bounds import RUN_CODES
from bicameral.plans.evaluate._library import FUNCTIONS, METHODS


def function_tables() -> str:
    """Every library function in a table for each group, in Markdown."""
    groups: dict[str, list[LibraryFunction]] = {}
    for function in FUNCTIONS.values():
        groups.setdefault(function.group, []).append(function)
    return "\n\n".join(
        f"### {group.capitalize()}\n\n" + _markdown_table(("write", "to get"), map(_function_row, functions))
        for group, functions in groups.items()
    )


def error_table() -> str:
    """What can go wrong while an expression is evaluated, in Markdown."""
    return _markdown_table(("code", "meaning"), ((f"`{code}`", meaning) for code, meaning in RUN_CODES.items()))


def _function_row(function: LibraryFunction) -> tuple[str, str]:
    return "<br>".join(f"`{_call_form_text(function, signature)}`" for signature in function.signatures), function.doc


def _call_form_text(function: LibraryFunction, signature: Signature) -> str:
    shown = list(map(_parameter_text, signature.parameters))
    if function.name in METHODS and function.method:
        receiver = signature.parameters[0]
        return f"{receiver.name}.{function.name}({', '.join(shown[1:])})"
    return f"{function.name}({', '.join(shown)})"


def _parameter_text(parameter: Parameter) -> str:
    name = f"*{parameter.name}" if parameter.variadic else parameter.name
    if parameter.lambda_arity:
        return f"{name}=lambda x: …" if parameter.named_only else "lambda x: …"
    return name if parameter.required else f"{name}=…"


def _markdown_table(head: tuple[str, str], rows: Iterable[tuple[str, str]]) -> str:
    lines = [f"| {head[0]} | {head[1]} |", "|---|---|"]
    lines += [f"| {left} | {right} |" for left, right in rows]
    return "\n".join(lines)


def update_tables(page: str) -> str:
    """The page with its tables as the library has them now."""
    for name, table in (("functions", function_tables()), ("errors", error_table())):
        marked = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        page = marked.sub(lambda found, table=table: f"{found[1]}\n{table}\n\n{found[2]}", page)
    return page


if __name__ == "__main__":
    import sys

    for file in map(Path, sys.argv[1:]):
        file.write_text(update_tables(file.read_text(encoding="utf-8")), encoding="utf-8")
