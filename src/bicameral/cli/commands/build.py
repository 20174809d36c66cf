"""`bicameral build`: typed Python for a stack of patterns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bicameral.cli._options import CommonOptions, common_options
from bicameral.cli._output import FAILED, OK
from bicameral.cli.commands.lint import open_stack, report_lines
from bicameral.errors import CatalogError, Place


@click.command(short_help="Write typed Python for a stack of patterns.")
@click.argument("what", metavar="PATH|MODULE:OBJECT")
@click.option(
    "-o", "--output", "target", type=click.Path(dir_okay=False, path_type=Path), help="Write it to this new file."
)
@common_options
def command(chosen: CommonOptions, what: str, target: Path | None) -> int | dict[str, Any]:
    """Write a Python module for a stack, whose `build()` makes the pattern that the stack describes.

    What the stack cannot say (texts of roles, forms, tools, indexes) is a typed parameter of `build()`. The stack is
    linted first, as it would run here, and refused with the findings if there is an error.
    """
    from bicameral.patterns.stack_code import lint_for_build, stack_to_python

    out = chosen.out
    stack = open_stack(what, chosen.folder or Path())
    report = lint_for_build(stack)
    if not report.ok:
        out.print_lines(report_lines(what, report, quiet=True))
        out.write_json({"ok": False, "stacks": [{"source": what, **report.to_json()}]})
        return FAILED
    source = stack_to_python(stack)
    if target is None:
        out.show(source.rstrip("\n"))
    else:
        _write_source(target, source)
        out.say(f"written to {target}; `build()` in it makes the pattern")
    out.write_json({"ok": True, "source": source, "file": None if target is None else str(target)})
    return OK


def _write_source(target: Path, source: str) -> None:
    """Write a new file. One that is there may have been edited since, and is not overwritten."""
    place = Place(file=str(target))
    try:
        with target.open("x", encoding="utf-8") as file:
            file.write(source)
    except FileExistsError:
        raise CatalogError(
            "catalog.cannot-write", "the file is there already", place=place, fix="Remove it, or name another."
        ) from None
    except OSError as error:
        said = error.strerror or type(error).__name__
        raise CatalogError("catalog.cannot-write", f"the file cannot be written: {said}", place=place) from None
