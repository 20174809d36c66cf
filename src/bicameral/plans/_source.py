"""From the text of a plan to Python's syntax tree, safely: sizes and nesting are bounded before anything recurses."""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass, field

from bicameral.errors import Place, PlanError

from ._depth import too_deep

MAX_BYTES = 200_000
# Python's parser takes time that grows with the square of the values in an f-string.
MAX_BRACES = 10_000

_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class Source:
    """The text of a plan, with the places of what is written in it."""

    text: str
    file: str | None = None
    lines: list[str] = field(default_factory=list[str])

    @classmethod
    def of(cls, text: str, file: str | None = None) -> Source:
        return cls(text, file, _LINE_END.split(text))

    def place(self, node: ast.AST) -> Place:
        """Where a node begins; columns count characters from 1."""
        line, offset = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        text = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        if not text.isascii():
            offset = len(text.encode("utf-8", "surrogatepass")[:offset].decode("utf-8", "ignore"))
        return Place(file=self.file, line=line, column=offset + 1)

    def error(
        self,
        node: ast.AST,
        code: str,
        message: str,
        *,
        expected: str | None = None,
        nearest: str | None = None,
        fix: str | None = None,
    ) -> PlanError:
        return PlanError(code, message, place=self.place(node), expected=expected, nearest=nearest, fix=fix)


def syntax_tree(source: Source) -> ast.Module:
    """The syntax tree of a plan, or a PlanError with the place of the first error."""
    if len(source.text) > MAX_BYTES or len(source.text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise PlanError("plan.too-long", "the text of the plan is too long", expected=f"at most {MAX_BYTES // 1000} KB")
    if source.text.count("{") > MAX_BRACES:
        raise PlanError("plan.too-long", "the plan has too many braces", expected=f"at most {MAX_BRACES}")
    try:
        with warnings.catch_warnings():
            # Python warns about "\d" in a text; in a plan that is the pattern the writer meant.
            warnings.simplefilter("ignore")
            return ast.parse(source.text)
    except SyntaxError as error:
        raise _syntax_error(source, error) from None
    except (RecursionError, MemoryError):  # how Python's parser says that the text is nested too deep for it
        raise too_deep(Place(file=source.file)) from None
    except ValueError as error:  # null bytes, lone surrogates
        raise PlanError(
            "plan.syntax", f"the text of the plan cannot be read: {error}", place=Place(file=source.file)
        ) from None


def _syntax_error(source: Source, error: SyntaxError) -> PlanError:
    place = Place(file=source.file, line=error.lineno or 1, column=max(error.offset or 1, 1))
    if error.msg.startswith("too many"):
        return too_deep(place)
    return PlanError("plan.syntax", f"the plan is not written as Python: {error.msg}", place=place)
