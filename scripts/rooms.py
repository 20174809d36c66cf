"""Write the map of the rooms into CONTRIBUTING.md, from the order of layers and the docstrings of the packages.

python -m scripts.rooms            writes the table
python -m scripts.rooms --check    exits 1 if the table is not what the code says
"""

from __future__ import annotations

import argparse
import ast
import configparser
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "CONTRIBUTING.md"
BEGIN, END = "<!-- rooms -->", "<!-- /rooms -->"


def layers(root: Path = ROOT) -> list[str]:
    """The rooms from the top layer to the bottom one, as the contract of `lint-imports` orders them."""
    contract = configparser.ConfigParser()
    contract.read(root / ".importlinter", encoding="utf-8")
    return [name.removeprefix("bicameral.") for name in contract["importlinter:contract:rooms"]["layers"].split()]


def rooms(root: Path = ROOT) -> set[str]:
    """The packages and modules directly in `src/bicameral`."""
    package = root / "src" / "bicameral"
    modules = {file.stem for file in package.glob("*.py")} - {"__init__", "__main__"}
    return modules | {file.parent.name for file in package.glob("*/__init__.py")}


def purpose(room: str, root: Path = ROOT) -> str:
    """The first line of a room's docstring."""
    package = root / "src" / "bicameral"
    file = package / room / "__init__.py"
    tree = ast.parse((file if file.exists() else package / f"{room}.py").read_text(encoding="utf-8"))
    return (ast.get_docstring(tree) or "").partition("\n")[0]


def table(root: Path = ROOT) -> str:
    """The map: one row a room, in the order of the layers."""
    lines = [f"| `{room}` | {purpose(room, root).replace('|', chr(92) + '|')} |" for room in layers(root)]
    return "\n".join(["| room | what it is for |", "|---|---|", *lines])


def update_page(page: str, root: Path = ROOT) -> str:
    """The page with its table as the code has it."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{table(root)}\n\n{END}{rest.partition(END)[2]}"


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Write the map of the rooms into CONTRIBUTING.md.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if the table differs")
    given = parser.parse_args(words)
    page = PAGE.read_text(encoding="utf-8")
    updated = update_page(page)
    if not given.check:
        PAGE.write_text(updated, encoding="utf-8")
    elif updated != page:
        sys.stderr.write("the map of the rooms is not what the code says; run: python -m scripts.rooms\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
