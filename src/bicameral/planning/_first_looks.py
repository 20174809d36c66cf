"""Requests that need a first look: when one plan at once cannot be right, and rounds can.

The signs are the planner's own words and the plan itself. Nothing of the world is read to find them: whether there are
rounds must not depend on what somebody wrote into a file.
"""

from __future__ import annotations

import re
from typing import Any

from bicameral.errors import BicameralError
from bicameral.plans import Ask, Const, Extract, Plan, When, children, free_names, walk
from bicameral.text import lazy_pattern
from bicameral.types import ListType, OptionalType, RecordType, StrType, Type

_LOOK_FIRST = lazy_pattern(
    # English
    r"\b(?:look(?:ed|ing)?|see|check(?:ed)?|read|inspect(?:ed)?|open(?:ed)?|search(?:ed)?|find out)\b[^.;]{0,60}"
    r"\b(?:first|beforehand)\b"
    r"|\bfirst\b[^.;]{0,40}\b(?:look(?:ed)?|see|check(?:ed)?|read|inspect(?:ed)?|search(?:ed)?|find out)\b"
    r"|\bdepends? on (?:what|whether|how many|the (?:contents?|result|value|number|text|answer))\b"
    r"|\b(?:only|not) known (?:after|before|until|once)\b"
    # German
    r"|\b(?:erst|zuerst|vorher)\b[^.;]{0,60}\b(?:nach)?(?:sehen|schauen|lesen|prüfen|suchen|gelesen|geprüft|nachgesehen)\b"
    r"|\bhängt (?:davon|vom (?:inhalt|ergebnis|wert)|von der (?:anzahl|antwort))\b[^.;]{0,40}\bab\b"
    r"|\bhängt davon ab\b"
    # French
    r"|\bd['’]abord\b[^.;]{0,40}\b(?:voir|lire|regarder|vérifier|chercher|consulter)\b"
    r"|\b(?:voir|lire|regarder|vérifier|chercher|consulter)\b[^.;]{0,60}\bd['’]abord\b"
    r"|\bdépend (?:du (?:contenu|résultat|nombre)|de (?:la (?:valeur|réponse)|ce que))\b"
    # Spanish
    r"|\b(?:primero|antes)\b[^.;]{0,40}\b(?:ver|leer|mirar|comprobar|buscar|consultar)\b"
    r"|\bdepende (?:del (?:contenido|resultado|número)|de (?:la (?:respuesta|cantidad)|lo que))\b",
    re.IGNORECASE,
)
"""Words that say that something must be looked at before the next step is known. To lack a tool says no such thing."""


def says_look_first(text: str) -> bool:
    """Whether a reason or a question of the planner says that something must be looked at first.

    Example:
        >>> says_look_first("the next step depends on what the file says")
        True
        >>> says_look_first("there is no tool that orders food")
        False
    """
    return _LOOK_FIRST.search(text) is not None


def look_after_refusal(error: BicameralError) -> str | None:
    """Why a request without a plan needs a first look; None if it does not, so that the refusal stands.

    A refusal because there is no tool was verified where it was written, so it is an answer.
    """
    if error.code == "plan.cannot" and says_look_first(error.message):
        return "the planner says that something must be looked at first"
    return None


def look_before_plan(plan: Plan) -> str | None:
    """Why a plan needs a first look instead; None if it may run as it is.

    It asks the person for what a look would show, or compares free text that a model reads with a literal: that text
    is worded differently each time, while a number, a day or a yes crosses to the planner as it is.
    """
    for path, step in walk(plan.steps):
        match step:
            case Ask(question=Const(value=str() as question)) if says_look_first(question):
                return "the plan asks for what a look would show"
            case When(condition=condition) if _compares_free_text(condition, _free_texts(plan, path)):
                return "a branch of the plan depends on the wording of a text"
            case _:
                continue
    return None


def _free_texts(plan: Plan, before: str) -> frozenset[str]:
    """The variables that the quarantined model fills with free text, before this step."""
    found = set[str]()
    for path, step in walk(plan.steps):
        if path == before:
            break
        if isinstance(step, Extract) and _is_free_text(step.result_type):
            found.add(step.name)
    return frozenset(found)


def _is_free_text(type_: Type) -> bool:
    match type_:
        case StrType():
            return True
        case OptionalType(item=item) | ListType(item=item):
            return _is_free_text(item)
        case RecordType():
            return False
        case _:
            return False


def _compares_free_text(expr: Any, texts: frozenset[str]) -> bool:
    """Whether a literal text is compared with one of these variables, anywhere in a condition."""
    if getattr(expr, "kind", "") == "compare" and free_names(expr) & texts and _has_text_literal(expr):
        return True
    return any(_compares_free_text(child, texts) for child in children(expr))


def _has_text_literal(expr: Any) -> bool:
    return any(isinstance(child, Const) and isinstance(child.value, str) and child.value for child in children(expr))
