"""Results of searches that may be empty: whoever takes the first of them asks first whether there is one.

    events = search_events("dentist", start=today())
    if events:
        answer(events[0].start)
    else:
        answer("There is no such event in the calendar")

Without the question a plan that finds nothing ends with an error about a list. `python -m training.delta.check` finds
such plans, and `python -m training.delta.guards` writes the one form into the corpus. What is done for each of many
things in a loop is left alone.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from pathlib import Path

from .blocks import CORPUS, language_of, read_blocks

_SEARCH = re.compile(r"\s*(\w+) = (search_mail|search_events|list_events|find_free_time|search_files)\(")
_LOOP = re.compile(r"\s*for\b")
_TEXTS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "search_mail": "There is no such mail",
        "search_events": "There is no such event in the calendar",
        "list_events": "There is nothing in the calendar then",
        "find_free_time": "There is no free time of that length",
        "search_files": "No file says anything about it",
    },
    "de": {
        "search_mail": "Es gibt keine solche Mail",
        "search_events": "Im Kalender steht kein solcher Termin",
        "list_events": "Da steht nichts im Kalender",
        "find_free_time": "So lange ist da nichts frei",
        "search_files": "In keiner Datei steht etwas davon",
    },
    "fr": {
        "search_mail": "Il n'y a pas de tel mail",
        "search_events": "Il n'y a pas de tel rendez-vous dans l'agenda",
        "list_events": "Il n'y a rien dans l'agenda à ce moment-là",
        "find_free_time": "Il n'y a pas de créneau aussi long",
        "search_files": "Aucun fichier n'en parle",
    },
    "es": {
        "search_mail": "No hay ningún correo así",
        "search_events": "No hay ninguna cita así en el calendario",
        "list_events": "No hay nada en el calendario entonces",
        "find_free_time": "No hay ningún hueco tan largo",
        "search_files": "Ningún archivo lo menciona",
    },
}


def unguarded_results(plan: str) -> list[str]:
    """The variables with results of searches whose first or last item is taken without asking whether there is one.

    Example:
        >>> unguarded_results('mails = search_mail(sender="Ana")\\nanswer(mails[0].subject)\\n')
        ['mails']
    """
    use = _first_use(plan.splitlines())
    return [] if use is None else list(use[1])


def guarded_plan(plan: str, language: str) -> str:
    """The plan with such uses in a branch of their own, and what is said if there is nothing in the other.

    Args:
        plan: A plan with or without slots.
        language: The language of what is said.
    """
    lines = plan.splitlines()
    while (use := _first_use(lines)) is not None:
        at, found = use
        indent = _indent(lines[at])
        end = next(
            (number for number in range(at, len(lines)) if len(_indent(lines[number])) < len(indent)), len(lines)
        )
        inner = [f"    {line}" for line in lines[at:end]]
        said = _TEXTS[language][next(iter(found.values()))]
        asked = f"{indent}if {' and '.join(found)}:"
        lines[at:end] = [asked, *inner, f"{indent}else:", f'{indent}    answer("{said}")']
    return "".join(f"{line}\n" for line in lines)


def _first_use(lines: list[str]) -> tuple[int, dict[str, str]] | None:
    """The first line that takes an item without asking, and the variables of that kind in its suite before a search."""
    searched: dict[str, str] = {}
    for number, line in enumerate(lines):
        open_ = {
            name: tool for name, tool in searched.items() if _takes(line, name) and not _asked(lines, number, name)
        }
        if open_ and not _in_loop(lines, number):
            # What is taken from another search of before is asked for in the same line.
            rest = "\n".join(lines[number:])
            also = {
                name: tool for name, tool in searched.items() if _takes(rest, name) and not _asked(lines, number, name)
            }
            return number, {name: tool for name, tool in searched.items() if name in also and _still_open(lines, name)}
        if made := _SEARCH.match(line):
            searched[made[1]] = made[2]
    return None


def _still_open(lines: list[str], name: str) -> bool:
    """Whether some use of a variable is not asked for."""
    return any(_takes(line, name) and not _asked(lines, number, name) for number, line in enumerate(lines))


def _takes(text: str, name: str) -> bool:
    return re.search(rf"\b{name}\[(?:0|-1)\]", text) is not None


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _heads(lines: list[str], number: int) -> list[int]:
    """The lines that open the suites in which a line stands, from the inside to the outside."""
    heads: list[int] = []
    depth = len(_indent(lines[number]))
    for other in range(number - 1, -1, -1):
        if len(_indent(lines[other])) < depth:
            depth = len(_indent(lines[other]))
            heads.append(other)
    return heads


def _asked(lines: list[str], number: int, name: str) -> bool:
    """Whether a condition before a line speaks of a variable: the suite around it, its `else`, or an answer before."""
    asks = re.compile(rf"\s*(?:if|elif)\b.*\b{name}\b(?!\[)")
    for head in _heads(lines, number):
        text = lines[head]
        if asks.match(text):
            return True
        if text.strip() == "else:":
            level = len(_indent(text))
            opener = next(
                other
                for other in range(head - 1, -1, -1)
                if len(_indent(lines[other])) == level and lines[other].lstrip().startswith("if ")
            )
            if asks.match(lines[opener]):
                return True
    # `if not mails: answer(…)` ends the run, and `if len(mails) > 1 and mails[0] …` asks in the line itself.
    return any(re.match(rf"\s*if not {name}:", line) for line in lines[:number]) or (
        re.match(rf"\s*(?:if|elif)\b.*\b(?:{name} and|len\({name}\))", lines[number]) is not None
    )


def _in_loop(lines: list[str], number: int) -> bool:
    return any(_LOOP.match(lines[head]) for head in _heads(lines, number))


def guard_file(path: Path) -> int:
    """Write the one form into a file of the corpus; how many plans were changed."""
    text = path.read_text("utf-8")
    count = 0
    for block in read_blocks(path):
        if block.toolbox is None and unguarded_results(block.plan):
            # Two blocks may have the same plan: each is changed behind its own phrasings.
            start = text.index(block.phrasings[-1])
            at = text.index(block.plan, start)
            text = f"{text[:at]}{guarded_plan(block.plan, language_of(block))}{text[at + len(block.plan) :]}"
            count += 1
    path.write_text(text, "utf-8")
    return count


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    arguments.add_argument("paths", type=Path, nargs="*", help="corpus files (default: all)")
    for path in arguments.parse_args().paths or sorted(CORPUS.glob("*.txt")):
        if count := guard_file(path):
            print(f"{path.name}: {count} plans")


if __name__ == "__main__":
    main()
