"""What is wrong with the text of a policy, told with its line, what was expected and the nearest name.

Cedar says what is wrong but not where, and names its own inner words; here both are put right.
"""

from __future__ import annotations

import re

from cedarpy import PolicySet, Schema, policies_to_pst, pst

from bicameral.errors import Place, PolicyError, nearest

from ._cedar import validation_errors
from ._reads import walk
from ._texts import Piece, is_too_deep

_FORM = "permit or forbid (principal, action, resource …) when { … } unless { … }"
_OF_A_CALL = (
    *("acts", "outbound", "declared", "strict", "assembled"),
    *("control", "directs", "addresses", "carries", "writes", "leaves", "all"),
)
_OF_ARGUMENTS = ("trusted", "from_user", "strangers_text", "public", "readers", "sources", "fields")
_OF_THE_CONTEXT = ("receivers", "domains", "lures", "executed")
_OWNERS = {"resource.directs": _OF_ARGUMENTS, "context": _OF_THE_CONTEXT, "resource": _OF_A_CALL}
_ENTITIES = ("Person", "Tool", "Toolbox", "Effect", "Call")
_EFFECTS = ("pure", "read", "write", "send", "irreversible")


def parsed(piece: Piece) -> pst.Template:
    """The policy as a tree."""
    if is_too_deep(piece):
        raise PolicyError(
            "policy.too-large",
            "this policy is nested too deeply, or has too many conditions",
            place=piece.place,
            fix="Make several policies of it.",
        )
    try:
        nodes = policies_to_pst(piece.text)
    except ValueError as error:
        raise _syntax(piece, str(error)) from None
    if nodes.templates:
        raise PolicyError(
            "policy.changes-nothing",
            "this is a template, and nothing ever fills its slots",
            place=piece.place,
            expected="a policy without ?principal and ?resource",
        )
    if len(nodes.static_policies) != 1:
        raise _syntax(piece, "this is not one policy")
    return next(iter(nodes.static_policies.values()))


def validated(piece: Piece, node: pst.Template, schema: Schema) -> None:
    """Refuse a policy that does not fit the schema.

    Names are looked at first. Cedar itself says nothing of those that it can never reach (`resource has trsted && …`),
    and a policy with a slip of the pen in it would protect nothing.
    """
    for clause in node.clauses:
        _check_names(piece, clause.expr)
    if any(uid.type.basename == "Call" for uid in pst.entity_uids(node)):
        raise PolicyError(
            "policy.unknown-name", "a call has no name of its own", place=_place(piece, "Call"), expected='Tool::"…"'
        )
    for error in validation_errors(piece.text, schema):
        raise _unfit(piece, re.sub(r"^for policy `[^`]*`[,:] ", "", error))


def _syntax(piece: Piece, message: str) -> PolicyError:
    return PolicyError(
        "policy.syntax",
        f"this is not a policy: {message}",
        place=Place(file=piece.file, line=_line_of_syntax(piece, message)),
        expected="`;` at the end of the policy" if not piece.text.endswith(";") else _FORM,
    )


def _line_of_syntax(piece: Piece, message: str) -> int:
    """The line of what Cedar stumbled over: the first with which the text is wrong, and not merely unfinished."""
    lines = piece.text.splitlines(keepends=True)
    if len(lines) <= 200:
        for number in range(1, len(lines)):
            if _error("".join(lines[:number])) not in (None, "unexpected end of input"):
                return piece.line + number - 1
    named = re.search(r"[`'](.+?)[`']|: (\w+)$", message)
    return _line_of(piece, named[1] or named[2]) if named else piece.line + len(lines) - 1


def _error(text: str) -> str | None:
    try:
        PolicySet.from_str(text)
    except ValueError as error:
        return str(error)
    return None


def _unfit(piece: Piece, message: str) -> PolicyError:
    """What the validator found, in our words where we know them."""
    if found := re.search(r"unrecognized entity type `(.*)`", message):
        return _unknown(piece, "kind of entity", found[1], _ENTITIES)
    if found := re.search(r"unrecognized action `(.*)`", message):
        return _unknown(piece, "action", found[1], ('Action::"call"',))
    if found := re.search(r'entity `(\w+)::.*but `"(.*)"` is not declared', message):
        return _unknown(piece, found[1].lower(), found[2], _EFFECTS)
    if found := re.search(r"safety of access to tag `\"(.*)\"`", message):
        return PolicyError(
            "policy.wrong-type",
            f"not every call has an argument {found[1]!r}",
            place=_place(piece, found[1]),
            expected=f'`resource.hasTag("{found[1]}") && …` before it',
        )
    if "unable to find an applicable action" in message:
        return PolicyError(
            "policy.wrong-type",
            "no call could ever fit the head of this policy",
            place=piece.place,
            expected='principal == Person::"user", action == Action::"call", and resource in Tool::"…", '
            'Toolbox::"…" or Effect::"…"',
        )
    return PolicyError("policy.wrong-type", message, place=piece.place)


def _check_names(piece: Piece, expr: pst.Expr) -> None:
    for node in walk(expr):
        match node:
            case pst.GetAttr(base=base, attr=name) | pst.HasAttr(base=base, attrs=(name, *_)):
                known = _known(base)
                if known is not None and name not in known:
                    raise _unknown_fact(piece, name, known)
            case _:
                continue


def _known(base: pst.Expr) -> tuple[str, ...] | None:
    """What can be asked of something; None if that is for Cedar to say."""
    match base:
        case pst.Var(name="resource"):
            return _OF_A_CALL
        case pst.Var(name="context"):
            return _OF_THE_CONTEXT
        case pst.Var():
            return ()
        case pst.GetAttr(base=pst.Var(name="resource")) | pst.BinaryOp(op="get_tag"):
            return _OF_ARGUMENTS
        case _:
            return None


def _unknown_fact(piece: Piece, name: str, known: tuple[str, ...]) -> PolicyError:
    error = _unknown(piece, "fact", name, known)
    if error.nearest is None:
        # It may be a fact of something else.
        everywhere = {each: f"{owner}.{each}" for owner, names in _OWNERS.items() for each in names}
        meant = nearest(name, everywhere)
        error.nearest = everywhere[meant] if meant else None
    return error


def _unknown(piece: Piece, what: str, name: str, known: tuple[str, ...]) -> PolicyError:
    return PolicyError(
        "policy.unknown-name",
        f"there is no {what} {name!r}",
        place=_place(piece, name),
        expected=f"one of {', '.join(known)}" if known else None,
        nearest=nearest(name, known),
    )


def _place(piece: Piece, name: str) -> Place:
    return Place(file=piece.file, line=_line_of(piece, name))


def _line_of(piece: Piece, name: str) -> int:
    """The line on which a name first stands in a policy; the policy's own if it does not."""
    at = piece.text.find(name)
    return piece.line + piece.text.count("\n", 0, at) if at >= 0 else piece.line
