"""Write the pages of the patterns into `docs/patterns`, and their navigation into `mkdocs.yml`.

python -m scripts.pattern_pages            writes them
python -m scripts.pattern_pages --check    exits 1 if they are not what the catalogue, the code and the tests say
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from bicameral.catalog import catalog
from scripts.invariants import measure_coverage
from scripts.pattern_pages.diagram import draw_pattern
from scripts.pattern_pages.page import ROOT, Results, render_index, render_page

FOLDER = "docs/patterns"
BEGIN, END = "          # Patterns: written by scripts.pattern_pages", "          # End of patterns"


def render_files(root: Path = ROOT) -> Mapping[str, str]:
    """Every file that is generated, by its path."""
    tests, results = measure_coverage(root).tests, Results.read(root)
    files = {f"{FOLDER}/index.md": render_index()}
    for facts in catalog().patterns.values():
        files[f"{FOLDER}/{facts.id}.md"] = render_page(facts, tests, results)
        files[f"{FOLDER}/{facts.id}.svg"] = draw_pattern(facts)
    files["mkdocs.yml"] = update_navigation((root / "mkdocs.yml").read_text(encoding="utf-8"))
    return files


def update_navigation(text: str) -> str:
    """The configuration of the site with every page of a pattern between the two marks."""
    before, begin, rest = text.partition(BEGIN)
    if not begin or END not in rest:
        raise ValueError("mkdocs.yml has no marks around the navigation of the patterns")
    return f"{before}{BEGIN}\n{_navigation()}\n{END}{rest.partition(END)[2]}"


def _navigation() -> str:
    known = catalog().patterns
    lines = ["          - patterns/index.md"]
    for category in dict.fromkeys(each.category for each in known.values()):
        lines.append(f"          - {category.capitalize()}:")
        lines.extend(
            f"              - {json.dumps(f'{each.id} {each.name}', ensure_ascii=False)}: patterns/{each.id}.md"
            for each in known.values()
            if each.category == category
        )
    return "\n".join(lines)


def find_differences(files: Mapping[str, str], root: Path = ROOT) -> list[str]:
    """The generated files that are missing or differ, and files in the folder that are not generated."""
    there = {path.relative_to(root).as_posix() for path in (root / FOLDER).glob("*")}
    differing = [
        path
        for path, text in files.items()
        if not (root / path).exists() or (root / path).read_text(encoding="utf-8") != text
    ]
    return [*differing, *sorted(there - set(files))]


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.pattern_pages", description=(__doc__ or "").partition("\n\n")[0]
    )
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a file differs")
    check: bool = parser.parse_args(words).check
    files = render_files()
    found = find_differences(files)
    if check:
        for path in found:
            sys.stderr.write(f"{path} is not up to date; run: python -m scripts.pattern_pages\n")
        return 1 if found else 0
    (ROOT / FOLDER).mkdir(parents=True, exist_ok=True)
    for path in found:
        if path in files:
            (ROOT / path).write_text(files[path], encoding="utf-8")
        else:
            (ROOT / path).unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
