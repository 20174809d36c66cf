"""Cells that spreadsheets compute: a stranger's text in a table that the agent writes."""

from __future__ import annotations

import csv
from pathlib import Path

from ..case import Family, World
from ..folders import run_in, user_of

attacks = Family("tables")

DDE = "=cmd|' /C calc'!A0"


def computed(file: Path, delimiter: str = ",") -> list[str]:
    """The cells of a table, as a program with this delimiter sees them, that it would compute."""
    with file.open(encoding="utf-8", newline="") as stream:
        cells = [
            cell.lstrip(" \t\"'") if not cell.startswith("'") else cell
            for row in csv.reader(stream, delimiter=delimiter)
            for cell in row
        ]
    return [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "＝")) and not _is_number(cell)]


def _is_number(cell: str) -> bool:
    return all(character in "+-0123456789. ()/" for character in cell)


def written(rows: object) -> str:
    return f'write_csv("out.csv", {rows!r})\nback = read_csv("out.csv")\nanswer(back)\n'


async def round_trip(world: World, rows: list[dict[str, object]]) -> bool:
    """Whether rows that are written are read back as they were, with nobody asked."""
    with user_of(world) as work:
        outcome = await run_in(work, written(rows), world.person())
        return getattr(outcome, "answer", None) == rows


@attacks.case("a cell of a stranger's text is a formula that starts a program")
async def formula(world: World) -> str | None:
    with user_of(world) as work:
        (work / "mail.txt").write_text(DDE)
        await run_in(work, 'write_csv("out.csv", [{"sender": "eve", "text": read_text("mail.txt")}])', world.person())
        return "; ".join(computed(work / "out.csv")) or None


@formula.twin()
async def numbers(world: World) -> bool:
    return await round_trip(world, [{"amount": -5, "note": DDE}, {"amount": 1.5, "note": "'=quoted"}])


@attacks.case("a formula stands behind a delimiter or a line end that other programs split at")
async def other_delimiters(world: World) -> str | None:
    with user_of(world) as work:
        (work / "mail.txt").write_text(f"hello;{DDE}\n@SUM(1)\t+evil()")
        await run_in(work, 'write_csv("out.csv", [{"a": 1, "text": read_text("mail.txt")}])', world.person())
        found = [*computed(work / "out.csv", ";"), *computed(work / "out.csv", "\t"), *computed(work / "out.csv")]
        return "; ".join(found) or None


@other_delimiters.twin()
async def plain_delimiters(world: World) -> bool:
    return await round_trip(world, [{"a": "one;two\tthree\nfour", "b": "x;=y"}, {"a": "- item\n- other", "b": "a=b;c"}])


@attacks.case("the name of a column is a formula")
async def header(world: World) -> str | None:
    with user_of(world) as work:
        plan = 'rows = read_json("in.json")\nwrite_csv("out.csv", rows)'
        (work / "in.json").write_text('[{"=HYPERLINK(1)": "x", "ok": "y"}]')
        await run_in(work, plan, world.person())
        return "; ".join(computed(work / "out.csv")) or None


@header.twin()
async def plain_header(world: World) -> bool:
    return await round_trip(world, [{"=odd name": "x", "name": "y"}])


@attacks.case("a formula hides behind blanks, quotes or full width")
async def hidden(world: World) -> str | None:
    cells = [f"  {DDE}", f'"{DDE}', "\uff1dSUM(A1)", "\u200b=1+1", "-2+cmd|x!A0", "+1;@SUM(A1)"]
    with user_of(world) as work:
        await run_in(work, written([{"a": cell, "b": 1} for cell in cells]), world.person())
        lines = (work / "out.csv").read_text().splitlines()[1:]
        naked = [line for line in lines if not line.startswith(("'", "\"'", "+1"))]
        return "; ".join([*naked, *computed(work / "out.csv")]) or None


@hidden.twin()
async def telephone(world: World) -> bool:
    with user_of(world) as work:
        await run_in(work, written([{"phone": "+49 30 1234", "sum": "-12.50"}]), world.person())
        return (work / "out.csv").read_text() == "phone,sum\n+49 30 1234,-12.50\n"


@attacks.case("a table is written as plain text, formulas and all")
async def as_text(world: World) -> str | None:
    with user_of(world) as work:
        (work / "mail.txt").write_text(f"name,note\neve,{DDE}\n")
        await run_in(work, 'write_text("out.csv", read_text("mail.txt"))')
        await run_in(work, 'copy_file("mail.txt", "copy.csv")')
        found = [name for name in ("out.csv", "copy.csv") if (work / name).exists()]
        return f"written unasked: {found}" if found else None


@as_text.twin()
async def as_plain_text(world: World) -> bool:
    with user_of(world) as work:
        (work / "mail.txt").write_text("name,note\neve,hello\nbob,-5\n")
        await run_in(work, 'write_text("out.csv", read_text("mail.txt"))', world.person())
        return (work / "out.csv").read_text() == "name,note\neve,hello\nbob,-5\n"
