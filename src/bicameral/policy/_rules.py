"""Policy rules: files are read and split into single policies, parsed, validated against the schema and checked.

Cedar's errors have no line and use its internal names; errors here have the line, what was expected and the nearest
name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from cedarpy import PolicySet, Schema, policies_to_pst, pst

from bicameral.errors import Place, PolicyError, nearest_name
from bicameral.policy._cedar_request import validation_errors, walk_expression
from bicameral.tools import Registry

_MAX_BYTES = 1_000_000
_HERE = Path(__file__).parent

# Strings and comments, in which a semicolon does not end a policy, and the semicolon that does.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\r\n]*|;', re.DOTALL)
_BRACKET = re.compile(r"[(\[{)\]}]")
_OPERATOR = re.compile(r"[.!+*<>=|&\[-]|\b(?:if|in|has|like|is)\b")
_MAX_DEPTH = 64
_MAX_OPERATORS = 1_000
_BLANK_OR_COMMENT = re.compile(r"(?:\s+|//[^\r\n]*)*")


@dataclass(frozen=True, slots=True)
class PolicyText:
    """The text of one policy, without the comments before it, and where it begins."""

    text: str
    file: str
    line: int

    @property
    def place(self) -> Place:
        return Place(file=self.file, line=self.line)


@cache
def read_packaged(name: str) -> str:
    """A text file of this package."""
    return (_HERE / name).read_text(encoding="utf-8")


def read_policy_file(file: Path) -> str:
    """The text of a user's policy file."""
    place = Place(file=str(file))
    try:
        with file.open("rb") as stream:
            # One byte beyond the limit shows that the file is larger, without reading all of it.
            raw = stream.read(_MAX_BYTES + 1)
    except OSError as error:
        raise PolicyError(
            "policy.unreadable",
            f"the file cannot be read: {error.strerror or error}",
            place=place,
            fix="Check `files` in [policy] of bicameral.toml.",
        ) from None
    if len(raw) > _MAX_BYTES:
        raise PolicyError("policy.too-large", f"the file is larger than {_MAX_BYTES:,} bytes", place=place)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PolicyError(
            "policy.unreadable", f"byte {error.start} is not UTF-8 text", place=place, fix="Save the file as UTF-8."
        ) from None


def split_policies(text: str, file: str) -> Iterator[PolicyText]:
    """Each policy of a text. A rest after the last semicolon counts, too, unless it is only comments."""
    start = 0
    for token in _TOKEN.finditer(text):
        if token[0] == ";":
            yield _make_policy_text(text, start, token.end(), file)
            start = token.end()
    rest = _make_policy_text(text, start, len(text), file)
    if rest.text:
        yield rest


def is_too_deep(piece: PolicyText) -> bool:
    """Whether Cedar's recursive parser might overflow the stack, which would kill the process."""
    bare = _TOKEN.sub(" ", piece.text)
    depth = 0
    for bracket in _BRACKET.finditer(bare):
        depth += 1 if bracket[0] in "([{" else -1
        if depth > _MAX_DEPTH:
            return True
    return sum(1 for _ in _OPERATOR.finditer(bare)) > _MAX_OPERATORS


def _make_policy_text(text: str, start: int, end: int, file: str) -> PolicyText:
    leading = _BLANK_OR_COMMENT.match(text, start, end)
    begin = leading.end() if leading else start
    return PolicyText(text[begin:end].rstrip(), file, text.count("\n", 0, begin) + 1)


_FORM = "permit or forbid (principal, action, resource …) when { … } unless { … }"
_CALL_FACTS = (
    *("acts", "outbound", "declared", "strict", "assembled", "unreviewed", "unaddressed"),
    *("control", "directs", "addresses", "carries", "writes", "leaves", "all"),
)
_ARGUMENT_FACTS = ("trusted", "from_user", "strangers_text", "public", "readers", "sources", "fields")
_CONTEXT_FACTS = ("receivers", "domains", "lures", "executed")
_FACT_OWNERS = {"resource.directs": _ARGUMENT_FACTS, "context": _CONTEXT_FACTS, "resource": _CALL_FACTS}
_ENTITY_KINDS = ("Person", "Tool", "Toolbox", "Effect", "Call")
_EFFECTS = ("pure", "read", "write", "send", "irreversible")


def parse_policy(piece: PolicyText) -> pst.Template:
    """The policy as a syntax tree."""
    # Before Cedar sees the text: a stack overflow in native code cannot be caught.
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
        raise _syntax_error(piece, str(error)) from None
    if nodes.templates:
        raise PolicyError(
            "policy.changes-nothing",
            "this is a template, and nothing ever fills its slots",
            place=piece.place,
            expected="a policy without ?principal and ?resource",
        )
    if len(nodes.static_policies) != 1:
        raise _syntax_error(piece, "this is not one policy")
    return next(iter(nodes.static_policies.values()))


def validate_policy(piece: PolicyText, node: pst.Template, schema: Schema) -> None:
    """Refuse a policy that does not fit the schema.

    Names are checked first. Cedar ignores unknown names that it can never reach (`resource has trsted && …`), and a
    policy with such a typo would protect nothing.
    """
    for clause in node.clauses:
        _check_names(piece, clause.expr)
    if any(uid.type.basename == "Call" for uid in pst.entity_uids(node)):
        raise PolicyError(
            "policy.unknown-name",
            "a call has no name of its own",
            place=_name_place(piece, "Call"),
            expected='Tool::"…"',
        )
    for error in validation_errors(piece.text, schema):
        raise _validation_error(piece, re.sub(r"^for policy `[^`]*`[,:] ", "", error))


def _syntax_error(piece: PolicyText, message: str) -> PolicyError:
    return PolicyError(
        "policy.syntax",
        f"this is not a policy: {message}",
        place=Place(file=piece.file, line=_syntax_error_line(piece, message)),
        expected="`;` at the end of the policy" if not piece.text.endswith(";") else _FORM,
    )


def _syntax_error_line(piece: PolicyText, message: str) -> int:
    """The line of a syntax error: the first at which the text is wrong and not merely unfinished."""
    lines = piece.text.splitlines(keepends=True)
    if len(lines) <= 200:
        for number in range(1, len(lines)):
            if _cedar_error("".join(lines[:number])) not in (None, "unexpected end of input"):
                return piece.line + number - 1
    named = re.search(r"[`'](.+?)[`']|: (\w+)$", message)
    return _name_line(piece, named[1] or named[2]) if named else piece.line + len(lines) - 1


def _cedar_error(text: str) -> str | None:
    try:
        PolicySet.from_str(text)
    except ValueError as error:
        return str(error)
    return None


def _validation_error(piece: PolicyText, message: str) -> PolicyError:
    """An error of the validator, in our words for the kinds that we know."""
    if match := re.search(r"unrecognized entity type `(.*)`", message):
        return _unknown_name_error(piece, "kind of entity", match[1], _ENTITY_KINDS)
    if match := re.search(r"unrecognized action `(.*)`", message):
        return _unknown_name_error(piece, "action", match[1], ('Action::"call"',))
    if match := re.search(r'entity `(\w+)::.*but `"(.*)"` is not declared', message):
        return _unknown_name_error(piece, match[1].lower(), match[2], _EFFECTS)
    if match := re.search(r"safety of access to tag `\"(.*)\"`", message):
        return PolicyError(
            "policy.wrong-type",
            f"not every call has an argument {match[1]!r}",
            place=_name_place(piece, match[1]),
            expected=f'`resource.hasTag("{match[1]}") && …` before it',
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


def _check_names(piece: PolicyText, expr: pst.Expr) -> None:
    for node in walk_expression(expr):
        match node:
            case pst.GetAttr(base=base, attr=name) | pst.HasAttr(base=base, attrs=(name, *_)):
                known = _known_facts(base)
                if known is not None and name not in known:
                    raise _unknown_fact_error(piece, name, known)
            case _:
                continue


def _known_facts(base: pst.Expr) -> tuple[str, ...] | None:
    """The facts of an expression's base; None if Cedar must check them."""
    match base:
        case pst.Var(name="resource"):
            return _CALL_FACTS
        case pst.Var(name="context"):
            return _CONTEXT_FACTS
        case pst.Var():
            return ()
        case pst.GetAttr(base=pst.Var(name="resource")) | pst.BinaryOp(op="get_tag"):
            return _ARGUMENT_FACTS
        case _:
            return None


def _unknown_fact_error(piece: PolicyText, name: str, known: tuple[str, ...]) -> PolicyError:
    error = _unknown_name_error(piece, "fact", name, known)
    if error.nearest is None:
        # It may be a fact of another base.
        everywhere = {each: f"{owner}.{each}" for owner, names in _FACT_OWNERS.items() for each in names}
        meant = nearest_name(name, everywhere)
        error.nearest = everywhere[meant] if meant else None
    return error


def _unknown_name_error(piece: PolicyText, kind: str, name: str, known: tuple[str, ...]) -> PolicyError:
    return PolicyError(
        "policy.unknown-name",
        f"there is no {kind} {name!r}",
        place=_name_place(piece, name),
        expected=f"one of {', '.join(known)}" if known else None,
        nearest=nearest_name(name, known),
    )


def _name_place(piece: PolicyText, name: str) -> Place:
    return Place(file=piece.file, line=_name_line(piece, name))


def _name_line(piece: PolicyText, name: str) -> int:
    """The line at which a name first occurs in a policy; the policy's first line if it does not."""
    at = piece.text.find(name)
    return piece.line + piece.text.count("\n", 0, at) if at >= 0 else piece.line


ANNOTATIONS = ("id", "ask", "reason", "overrides")


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """One policy: its name, its effect, and where it is written.

    `ask` is the question that a `forbid` puts to a person instead of refusing; `reason` says why it stops a call;
    `overrides` are the defaults that a `permit` lifts.
    """

    id: str
    effect: str
    text: str
    file: str
    line: int
    ask: str | None = None
    reason: str | None = None
    overrides: tuple[str, ...] = ()
    default: bool = False
    node: pst.Template = field(kw_only=True, repr=False)

    @property
    def where(self) -> str:
        """File and line, for messages."""
        return f"{Path(self.file).name}, line {self.line}"

    @property
    def does(self) -> str:
        """What it does, in words: `asks a person`, `refuses`, `allows`, or which defaults it lifts."""
        if self.effect == "forbid":
            return "refuses" if self.ask is None else "asks a person"
        return f"lifts {', '.join(self.overrides)}" if self.overrides else "allows"

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "effect": self.effect,
            **({"ask": self.ask} if self.ask is not None else {}),
            **({"reason": self.reason} if self.reason is not None else {}),
            **({"overrides": list(self.overrides)} if self.overrides else {}),
            "default": self.default,
            "file": self.file,
            "line": self.line,
            "text": self.text,
        }


@cache
def policy_schema() -> Schema:
    """The schema of all policies and requests."""
    return Schema.from_str(read_packaged("schema.cedarschema"))


@cache
def default_rules() -> tuple[PolicyRule, ...]:
    """The policies that are always in force."""
    pieces = split_policies(read_packaged("default.cedar"), "default.cedar")
    return tuple(_make_rule(piece, default=True) for piece in pieces)


def user_rules(texts: Iterable[tuple[str, str]], registry: Registry | None) -> tuple[PolicyRule, ...]:
    """The rules of a user's texts, given as pairs of file name and text; the first error is raised."""
    taken = {rule.id: rule for rule in default_rules()}
    rules: list[PolicyRule] = []
    for file, text in texts:
        for piece in split_policies(text, file):
            rule = _make_rule(piece)
            for error in _rule_errors(rule, piece, registry):
                raise error
            if other := taken.get(rule.id):
                raise PolicyError(
                    "policy.duplicate-id",
                    f"there is already a policy {rule.id!r}, in {other.where}",
                    place=piece.place,
                    fix="Give one of them another @id.",
                )
            taken[rule.id] = rule
            rules.append(rule)
    return tuple(rules)


SPECIFICATION_ANNOTATIONS = ("id", "reason", "duties")


def specification_rules(file: str, text: str) -> tuple[PolicyRule, ...]:
    """The rules of a specification, each of which has an @id; the first error is raised."""
    rules: dict[str, PolicyRule] = {}
    for piece in split_policies(text, file):
        rule = _make_rule(piece)
        annotations = rule.node.annotations
        for error in (*_unknown_annotation_errors(rule, piece, SPECIFICATION_ANNOTATIONS), *_case_errors(rule, piece)):
            raise error
        if "id" not in annotations:
            raise PolicyError(
                "policy.no-id",
                "this rule has no name",
                place=piece.place,
                expected='@id("…"): decisions name their rule',
            )
        if "duties" in annotations and rule.effect != "permit":
            raise PolicyError(
                "policy.misplaced-annotation",
                "@duties means nothing on a forbid",
                place=piece.place,
                expected="a permit",
            )
        if rule.id in rules:
            raise PolicyError("policy.duplicate-id", f"there are two rules {rule.id!r}", place=piece.place)
        rules[rule.id] = rule
    return tuple(rules.values())


def require_known_tools(rules: Iterable[PolicyRule], registry: Registry) -> None:
    """Raise if a rule names a tool or a toolbox that there is not."""
    for rule in rules:
        for error in _unknown_tool_errors(rule, PolicyText(rule.text, rule.file, rule.line), registry):
            raise error


def _make_rule(piece: PolicyText, *, default: bool = False) -> PolicyRule:
    node = parse_policy(piece)
    validate_policy(piece, node, policy_schema())
    annotations = node.annotations
    return PolicyRule(
        annotations.get("id") or f"{Path(piece.file).name}:{piece.line}",
        node.effect,
        piece.text,
        piece.file,
        piece.line,
        annotations.get("ask"),
        annotations.get("reason"),
        tuple(name.strip() for name in annotations["overrides"].split(",")) if "overrides" in annotations else (),
        default,
        node=node,
    )


def _rule_errors(rule: PolicyRule, piece: PolicyText, registry: Registry | None) -> Iterator[PolicyError]:
    """The errors of a rule that Cedar itself would accept."""
    yield from _annotation_errors(rule, piece)
    if rule.effect == "permit":
        yield from _override_errors(rule, piece)
    yield from _case_errors(rule, piece)
    if registry is not None:
        yield from _unknown_tool_errors(rule, piece, registry)


def _annotation_errors(rule: PolicyRule, piece: PolicyText) -> Iterator[PolicyError]:
    yield from _unknown_annotation_errors(rule, piece, ANNOTATIONS)
    for name, effect, instead in (("ask", "forbid", "a forbid asks"), ("overrides", "permit", "a permit lifts")):
        if name in rule.node.annotations and rule.effect != effect:
            yield PolicyError(
                "policy.misplaced-annotation",
                f"@{name} means nothing on a {rule.effect}",
                place=piece.place,
                expected=f"it on a {effect}: only {instead}",
            )


def _unknown_annotation_errors(rule: PolicyRule, piece: PolicyText, known: tuple[str, ...]) -> Iterator[PolicyError]:
    for name in rule.node.annotations:
        if name not in known:
            yield PolicyError(
                "policy.unknown-annotation",
                f"there is no annotation @{name}",
                place=piece.place,
                expected=f"one of {', '.join(f'@{each}' for each in known)}",
                nearest=nearest_name(name, known),
            )


def _override_errors(rule: PolicyRule, piece: PolicyText) -> Iterator[PolicyError]:
    liftable = [each.id for each in default_rules() if each.ask is not None]
    if not rule.overrides:
        yield PolicyError(
            "policy.changes-nothing",
            "this permit changes nothing: what no policy forbids is allowed already",
            place=piece.place,
            expected="the default that it lifts, by name",
            fix=f'Write @overrides("{liftable[0]}"), or another of: {", ".join(liftable[1:])}.',
        )
    for name in rule.overrides:
        if name not in liftable:
            yield PolicyError(
                "policy.unknown-default",
                f"there is no default {name!r} that could be lifted",
                place=piece.place,
                expected=f"one of {', '.join(liftable)}",
                nearest=nearest_name(name, liftable),
            )
    if not _names_a_tool(rule.node.resource):
        yield PolicyError(
            "policy.too-wide",
            "this would lift a default for every tool there is",
            place=piece.place,
            expected='`resource in Tool::"…"` or `resource in Toolbox::"…"` in the head of the policy',
        )


def _names_a_tool(scope: pst.PrincipalOrResourceConstraint) -> bool:
    match scope:
        case pst.ScopeIn(pst.EntityUid(type=kind)) | pst.ScopeIsIn(entity=pst.EntityUid(type=kind)):
            return str(kind) in ("Tool", "Toolbox")
        case _:
            return False


def _unknown_tool_errors(rule: PolicyRule, piece: PolicyText, registry: Registry) -> Iterator[PolicyError]:
    """Tools that do not exist: most often a typo, and the policy would protect nothing."""
    known = {"Tool": set(registry.names), "Toolbox": {tool.toolbox for tool in registry}}
    for uid in sorted(pst.entity_uids(rule.node), key=str):
        names = known.get(str(uid.type))
        if names is not None and uid.id not in names:
            yield PolicyError(
                "policy.unknown-tool",
                f"there is no {str(uid.type).lower()} {uid.id!r}",
                place=piece.place,
                nearest=nearest_name(uid.id, names),
                fix="`bicameral tools list` shows what there is.",
            )


_NAME_FACTS = ("receivers", "domains", "readers")


def _case_errors(rule: PolicyRule, piece: PolicyText) -> Iterator[PolicyError]:
    """Names in upper case never match: names are compared in lower case."""
    compared = (
        (node.left, node.right)
        for clause in rule.node.clauses
        for node in walk_expression(clause.expr)
        if isinstance(node, pst.BinaryOp)
    )
    for sides in compared:
        if any(isinstance(side, pst.GetAttr) and side.attr in _NAME_FACTS for side in sides):
            yield from _upper_case_errors(sides, piece)


def _upper_case_errors(sides: tuple[pst.Expr, pst.Expr], piece: PolicyText) -> Iterator[PolicyError]:
    for text in _string_literals(sides):
        if text.isascii() and text != text.lower():
            yield PolicyError(
                "policy.upper-case",
                f"{text!r} would never be found: names are compared in lower case",
                place=piece.place,
                fix=f"Write {text.lower()!r}.",
            )


def _string_literals(sides: Iterable[pst.Expr]) -> Iterator[str]:
    for side in sides:
        for each in side.elements if isinstance(side, pst.Set) else (side,):
            if isinstance(each, pst.StringLit):
                yield each.value
