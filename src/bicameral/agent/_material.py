"""Material of a request: a text that comes with it, such as what is piped into `bicameral run`.

Anybody may have written it. So the planner is told no more than that there is a file of a fixed name, `input.txt`, and
plans as it does for any other file. In the finished plan each step that reads this file becomes a variable that the run
starts with: the text, its lines or its rows, with the label of untrusted text. No file of that name is ever opened.

A plan that a person wrote reads the text that is piped into its run by the names of these variables: `input_text`,
`input_lines`, `input_rows` and `input_value`.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bicameral.boundary import HandleContent
from bicameral.errors import PlanError
from bicameral.labels import USER, Label, Labelled, LabelTree, Source, open_labelled
from bicameral.planning import Intent
from bicameral.plans import (
    INPUT_LINES,
    INPUT_TEXT,
    Call,
    Compute,
    Const,
    Plan,
    Ref,
    Reference,
    assigned_names,
    children,
    free_names,
    rewrite_steps,
    walk,
)
from bicameral.runs import StartState
from bicameral.tools import Surroundings, Tool
from bicameral.types import ANY, STR, DictType, ListType, Type

MAX_MATERIAL = 20_000_000
"""The most characters of a material."""
MATERIAL_SUFFIXES = (".txt", ".md", ".csv", ".tsv", ".json")
"""The endings that the name of a material may have: only these can be told to the planner."""
_STEM = "input"
_UNTRUSTED = Label((Source("third_party", _STEM),), {USER})


@dataclass(frozen=True, slots=True)
class Material:
    """A text that a request is about, and the name by which plans call it.

    Args:
        text: The text.
        suffix: What the name ends with; a table is `.csv`, and only the user may say that it is one.
        labels: Where the text came from; by default from anybody, and only the user may see it.

    Example:
        >>> await agent.run("How many lines mention invoices?", material=Material(text))
    """

    text: str = field(repr=False)
    suffix: str = ".txt"
    labels: LabelTree = _UNTRUSTED

    def __post_init__(self) -> None:
        if self.suffix not in MATERIAL_SUFFIXES:
            raise PlanError(
                "plan.bad-material",
                f"{self.suffix!r} is no ending of a material",
                expected=", ".join(MATERIAL_SUFFIXES),
            )
        if len(self.text) > MAX_MATERIAL:
            raise PlanError(
                "plan.material-too-long",
                f"the text has {len(self.text):,} characters",
                expected=f"at most {MAX_MATERIAL:,}",
                fix="Save it to a file and name the file in the request.",
            )

    @classmethod
    def of(cls, given: Material | Labelled[str] | str) -> Material:
        """The material; a text without labels counts as anybody's, and one with labels keeps them."""
        if isinstance(given, Material):
            return given
        if isinstance(given, Labelled):
            return cls(open_labelled(given), labels=given.label_tree)
        return cls(given)

    def name_for(self, request: str) -> str:
        """Its name for the planner: one that the request does not use for something else."""
        names = (f"{_STEM}{number}{self.suffix}" for number in ("", *range(2, 1000)))
        return next(name for name in names if name not in request)


_REFERS_BACK = re.compile(r"\b(?:it|this|that|these|das|dies|es|ihn|sie|ça|cela|ceci|lo|esto|eso)$", re.IGNORECASE)
_SHORT_ORDER = 2


def with_material(request: str, name: str) -> str:
    """The request with the name of the material in it, as somebody would write who had the text in a file.

    Example:
        >>> with_material("summarise", "input.txt"), with_material("How many lines mention rope?", "input.txt")
        ('summarise input.txt', 'How many lines mention rope in input.txt?')
    """
    words = request.strip()
    body = words.rstrip("?!. ")
    mark = words[len(body) :].strip()
    if referring := _REFERS_BACK.search(body):
        return f"{body[: referring.start()]}{name}{mark}"
    if "?" in mark:
        return f"{body} in {name}{mark}"
    if len(body.split()) <= _SHORT_ORDER:
        return f"{body} {name}{mark}"
    return f"In {name}: {words}"


def as_requested(intent: Intent, told: str, words: str) -> Intent:
    """The intent with the words of the person again, for the plan in which no file of the material is left.

    Args:
        intent: The intent of the request as it was planned; answers of the person may stand after it.
        told: The request as it was planned.
        words: What the person said.
    """
    request = words + intent.request.removeprefix(told) if intent.request.startswith(told) else words
    places = [(each, request.find(each.words)) for each in intent.mentions]
    mentions = tuple(
        each.model_copy(update={"start": at, "end": at + len(each.words)}) for each, at in places if at >= 0
    )
    return intent.model_copy(update={"request": request, "mentions": mentions})


async def read_material(
    plan: Plan, material: Material, name: str, settings: Mapping[str, Mapping[str, Any]]
) -> tuple[Plan, StartState]:
    """The plan with variables where it reads the material, and the state in which its run starts.

    Args:
        plan: The plan, before its words are bound.
        material: The text.
        name: What the planner was told it is called.
        settings: Those of the toolboxes, by their names: a table is read as any other.
    """
    wanted = {step.tool for _, step in walk(plan.steps) if isinstance(step, Call) and _reads(step, name)}
    readers = {tool: variable for tool in sorted(wanted) if (variable := _VARIABLES.get(tool)) is not None}
    taken = {getattr(step, "name", None) for _, step in walk(plan.steps)}
    names = {tool: _free_name(variable, taken) for tool, variable in readers.items()}
    values = await _read_values(material, name, names, settings)

    def change(step: Any) -> Any:
        if isinstance(step, Call) and step.tool in names and _reads(step, name):
            return Compute(name=step.name or "_", value=Ref(name=names[step.tool]))
        return step

    read = plan.model_copy(update={"steps": rewrite_steps(plan.steps, change, lambda expr: expr)})
    if _names_material(read, name):
        raise PlanError(
            "plan.material-not-a-file",
            "the plan uses the text that came with the request as if it were a file in a folder",
            fix="Save the text to a file, and name the file in the request.",
        )
    return read, StartState(variables=values)


_VARIABLES = {
    "read_text": INPUT_TEXT,
    "read_lines": INPUT_LINES,
    "read_csv": "input_rows",
    "read_json": "input_value",
}
"""The tools that read a whole file, and what the variable is called that stands for it."""
_FORMS = {"read_csv": (".csv", ".tsv"), "read_json": (".json",)}
"""The endings of files that a tool takes; the first is assumed of a text that has another."""


def input_variables(plan: Plan) -> frozenset[str]:
    """The variables of a plan that stand for the text that is piped into its run.

    Example:
        >>> input_variables(parse("answer(len(input_lines))").plan)
        frozenset({'input_lines'})
    """
    read = {name for step in plan.steps for name in free_names(step)}
    return frozenset(_VARIABLES.values()) & read - assigned_names(plan.steps)


_TYPES: Mapping[str, Type] = {
    INPUT_TEXT: STR,
    INPUT_LINES: ListType(STR),
    "input_rows": ListType(DictType(ANY)),
    "input_value": ANY,
}


def assumed_start(plan: Plan) -> StartState:
    """What the run of a plan starts with, for a check without the text itself: it may be anybody's."""
    wanted = input_variables(plan)
    return StartState({name: HandleContent(None, _TYPES[name], _UNTRUSTED) for name in sorted(wanted)})


async def piped_start(plan: Plan, material: Material, settings: Mapping[str, Mapping[str, Any]]) -> StartState:
    """The state in which the run of a plan starts that reads what is piped into it.

    Args:
        plan: The plan, which reads at least one of the variables for it.
        material: The text.
        settings: Those of the toolboxes, by their names.
    """
    wanted = input_variables(plan)
    if not wanted:
        raise PlanError(
            "plan.input-unused",
            "a text was given to a plan that reads none",
            expected=f"a plan that reads one of {', '.join(_VARIABLES.values())}, or a task that reads its input",
            fix="Leave the text out, or let the plan read it.",
        )
    values: dict[str, HandleContent] = {}
    for tool, variable in _VARIABLES.items():
        if variable in wanted:
            suffixes = _FORMS.get(tool, MATERIAL_SUFFIXES)
            suffix = material.suffix if material.suffix in suffixes else suffixes[0]
            values |= await _read_values(material, f"{_STEM}{suffix}", {tool: variable}, settings)
    return StartState(variables=values)


def _free_name(name: str, taken: set[Any]) -> str:
    return next(each for each in (name, *(f"{name}_{n}" for n in range(2, 1000))) if each not in taken)


async def _read_values(
    material: Material, name: str, names: Mapping[str, str], settings: Mapping[str, Mapping[str, Any]]
) -> dict[str, HandleContent]:
    """The text in each form in which the plan reads it, as the tools read a file."""
    if not names:
        return {}
    found: dict[str, HandleContent] = {}
    with tempfile.TemporaryDirectory(prefix="bicameral-") as folder:
        (Path(folder) / name).write_text(material.text, encoding="utf-8", newline="")
        for tool in _readers(Path(folder), settings):
            if tool.name in names:
                value = await tool.call({"path": name})
                type_ = tool.refined_result({}, {"path": name})
                found[names[tool.name]] = HandleContent(value, type_, material.labels)
    return found


def _readers(folder: Path, settings: Mapping[str, Mapping[str, Any]]) -> list[Tool]:
    from bicameral.toolboxes.files import toolbox as files
    from bicameral.toolboxes.tables import toolbox as tables

    surroundings = Surroundings.here(folder)
    return [tool for box in (files, tables) for tool in box.open(surroundings, settings.get(box.name))]


def _reads(call: Call, name: str) -> bool:
    return _is_name(call.args.get("path"), name)


def _is_name(expr: object, name: str) -> bool:
    """Whether an expression is the name of the material, as a literal or in the words of a reference."""
    match expr:
        case Const(value=str() as text) | Reference(words=text):
            plain = re.sub(r"[^\w.]", "", text.casefold())
            return plain.removeprefix("./") in (name, name.partition(".")[0])
        case _:
            return False


def _names_material(plan: Plan, name: str) -> bool:
    """Whether any argument of a call still is, or has in it, the name of the material."""
    calls = (step for _, step in walk(plan.steps) if isinstance(step, Call))
    return any(_has_name(value, name) for call in calls for value in call.args.values())


def _has_name(expr: Any, name: str) -> bool:
    if isinstance(expr, Const):
        # A literal that merely contains the word is content, such as the text of a mail.
        return expr.value == name
    return _is_name(expr, name) or any(_has_name(child, name) for child in children(expr))
