"""The form of a result that a request asks for in words: a sum or a count, one message for each thing or one for all.

Plans that pass every check may still compute a count where a sum is asked for, or send one message where one for each
bill is asked for. `unserved_forms` says so, by the request and the plan alone. It ranks plans among each other, and
refuses none: a request can speak of a total that stands in a cell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from bicameral.planning._intent_document import Intent
from bicameral.planning._lexicon import MAIL_NOUNS, SEND_VERBS
from bicameral.plans import Apply, Call, Each, Plan, Update, children, print_plan, walk
from bicameral.text import lazy_pattern
from bicameral.tools import Registry

_CALCULATIONS: dict[str, tuple[frozenset[str], re.Pattern[str]]] = {
    "a sum": (
        frozenset({"sum"}),
        lazy_pattern(
            r"\b(?:sum|total|totals|add(?:ed|s)? up|altogether|summe|gesamtsumme|gesamtbetrag|summiere?|insgesamt|"
            r"zusammengerechnet|somme|totaux|additionne[rz]?|suma|sumar|importe total)\b"
        ),
    ),
    "a count": (
        frozenset({"len", "count"}),
        lazy_pattern(
            r"\b(?:how many|number of|count(?: of)?|wie viele|wieviele|anzahl|combien d(?:e|['’])|nombre d(?:e|['’])|"
            r"cu[aá]nt[oa]s|n[uú]mero de|cantidad de)\b"
        ),
    ),
    "an average": (
        frozenset({"mean", "average", "median"}),
        lazy_pattern(r"\b(?:average|mean|on average|durchschnitt\w*|mittelwert|moyenne|promedio|media)\b"),
    ),
}
"""Of each calculation the functions that do it, and the words that ask for it."""

_MAIL = "(?:" + "|".join(sorted(map(re.escape, MAIL_NOUNS), key=len, reverse=True)) + ")"
_ONE = r"(?:one|a|an|ein|eine|einen|un|une|una|uno)"
_OWN = r"(?:(?:separate|own|single|eigene[nr]?|einzelne[nr]?|propre|propio|propia)\s+)?"
_FOR_EACH = (
    r"(?:per|pro|je|par|por|for each|for every|to each|to every|each|für jede\w*|fuer jede\w*|an jede\w*|"
    r"pour chaque|à chaque|a chaque|para cada|a cada)"
)
_ONE_FOR_EACH = lazy_pattern(
    rf"\b{_ONE}\s+{_OWN}{_MAIL}\s+{_FOR_EACH}\b|\b{_FOR_EACH}\s+\w+\s+{_ONE}\s+{_OWN}{_MAIL}\b"
    rf"|\b(?:separate|einzelne|individual|individuelle|individuales|séparés)\s+{_MAIL}\b"
)
_EACH_FIRST = lazy_pattern(r"^\W*(?:for (?:each|every)|für jede\w*|fuer jede\w*|pour chaque|para cada|por cada)\b")
_ONE_FOR_ALL = lazy_pattern(
    rf"\b(?:(?:in|as|with) one|(?:a |one )?single|(?:einer |eine )?einzigen?|einer gemeinsamen|un seul|une seule|"
    rf"un solo|una sola|un único)\s+{_MAIL}\b(?!\s+{_FOR_EACH}\b)"
)
_QUOTED = lazy_pattern(r"[\"“„«][^\"”“»\n]*[\"”“»]")


def unserved_forms(plan: Plan, intent: Intent, registry: Registry) -> tuple[str, ...]:
    """What a plan does not do in the form that its request asks for, a sentence each.

    Args:
        plan: The plan.
        intent: What it is for.
        registry: The tools.
    """
    # What is quoted is content: a mail may say "how many".
    asked = _QUOTED.sub(" ", intent.request).casefold()
    return (*_unserved_calculations(plan, asked, registry), *_unserved_distribution(plan, asked, registry))


def _unserved_calculations(plan: Plan, asked: str, registry: Registry) -> Iterator[str]:
    done = frozenset(_functions(plan.steps))
    code = print_plan(plan.model_copy(update={"goal": ""}), registry).casefold()
    for name, (functions, words) in _CALCULATIONS.items():
        found = words.search(asked)
        if found is None or done & functions:
            continue
        # A plan that names the word reads what is there: a column `total`, an extraction of "the total".
        if not re.search(rf"[\"'][^\"'\n]*\b{re.escape(found.group())}\b", code):
            yield f"the request asks for {name} ({found.group()}), and the plan does not compute one"


def _functions(nodes: Iterable[Any]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, Apply):
            yield node.function
        elif isinstance(node, Update) and node.op == "add":
            # `total += amount` adds up, and `count += 1` counts.
            yield from ("sum", "count")
        yield from _functions(children(node))


def _unserved_distribution(plan: Plan, asked: str, registry: Registry) -> Iterator[str]:
    sends = [path for path, step in walk(plan.steps) if isinstance(step, Call) and _is_sending(step, registry)]
    loops = [path for path, step in walk(plan.steps) if isinstance(step, Each)]
    inside = [path for path in sends if any(path.startswith(f"{loop}/") for loop in loops)]
    if not sends:
        return
    for_each = _ONE_FOR_EACH.search(asked) or (
        _EACH_FIRST.search(asked) and SEND_VERBS & frozenset(re.findall(r"[\w-]+", asked))
    )
    if for_each and len(inside) < len(sends):
        yield "the request asks for one message for each, and the plan sends one for all"
    if not for_each and _ONE_FOR_ALL.search(asked) and inside:
        yield "the request asks for one message, and the plan sends one for each"


def _is_sending(step: Call, registry: Registry) -> bool:
    tool = registry.get(step.tool)
    return tool is not None and tool.effect == "send"
