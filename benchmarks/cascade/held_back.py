"""The requests of the training corpus that were held back from training, each with the plan that serves it.

A plan counts as right if it is the corpus's own, but for the names of variables and the wording of sentences. That is
stricter than the world's judges, and good enough to see whether a model doubts where it is wrong.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bicameral.errors import BicameralError
from bicameral.limits import open_ledger
from bicameral.models import Provider
from bicameral.planning._decode import refusal_reason
from bicameral.plans import parse, print_plan
from training.delta.build import all_blocks, fresh_sample, is_held_back
from training.delta.sample import Sample

from .attempts import Attempt, choices_of, doubts_about, planned, spent


def held_back() -> Iterator[tuple[str, Sample]]:
    """Id and sample, those of one toolbox one after the other, so that a prompt is read once.

    A phrasing that is near to the evaluation in every filling is left out, as in training.
    """
    blocks = filter(is_held_back, all_blocks())
    for block in sorted(blocks, key=lambda block: (block.toolbox or "", block.place)):
        for number, phrasing in enumerate(block.phrasings):
            if (made := fresh_sample(block, phrasing, 0)) is not None:
                yield f"{block.place}/{number}", made


async def plan_held_back(made: Sample, model: Provider) -> Attempt:
    """The plan that a model writes for a request, held against the corpus's; or its refusal, where that is right."""
    refuses = refusal_reason(made.plan) is not None
    wanted = made.plan if refuses else print_plan(parse(made.plan, made.registry).plan, made.registry)
    with open_ledger() as ledger:
        try:
            compiled = await planned(model, made.intent, made.registry)
        except BicameralError as error:
            return Attempt(refuses and error.code == "plan.cannot", str(error), error=error.code)
        code = print_plan(compiled.plan.model_copy(update={"goal": ""}), made.registry)
        doubts = doubts_about(compiled, made.intent, made.registry)
        solved, choices = not refuses and shape(code) == shape(wanted), choices_of(compiled)
        why = "" if solved else f"the corpus has: {wanted}"
        tokens, fresh = spent(ledger)
        return Attempt(solved, why, code, compiled.repairs, tokens=tokens, fresh=fresh, doubts=doubts, choices=choices)


def shape(code: str) -> str:
    """A plan without what is a matter of taste: the names of its variables, and sentences."""
    tree = ast.parse(code)
    if tree.body and ast.get_docstring(tree) is not None:
        del tree.body[0]
    return ast.dump(_Tasteless().visit(tree))


class _Tasteless(ast.NodeTransformer):
    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        # What is assigned is named after it was used: `x = f(x)` is about two variables.
        node.value = self.visit(node.value)
        node.targets = [self.visit(target) for target in node.targets]
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if isinstance(node.ctx, ast.Store):
            self._names[node.id] = f"v{len(self._names)}"
        return ast.Name(self._names.get(node.id, node.id), node.ctx)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        self._names[node.arg] = f"v{len(self._names)}"
        return ast.arg(self._names[node.arg])

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        node.generators = [self.visit(generator) for generator in node.generators]
        node.elt = self.visit(node.elt)
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.Constant("…") if isinstance(node.value, str) and " " in node.value else node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return ast.Constant("…")
