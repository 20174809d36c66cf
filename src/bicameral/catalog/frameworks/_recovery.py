"""A stack that was recovered from code or from a trace, with the evidence for every part of it.

A reader collects what it finds in an `ArchitectureDraft`. Each statement has a place (file, line, span), and says
whether it was seen or is inferred. The linter judges the stack like any other; `lint_recovered` adds the evidence to
its findings. Names come from untrusted text: they are shortened and made visible before they get into a stack.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from bicameral.catalog.facts import IDS
from bicameral.catalog.facts._records import json_fields
from bicameral.catalog.frameworks._tool_effects import ToolEffects
from bicameral.catalog.lint import LintFinding, LintReport, LintSeverity, lint, rules
from bicameral.catalog.lint._rules import severity_rank
from bicameral.catalog.stacks import Stack, StackPath, dotted_path
from bicameral.catalog.stacks._reader import read_description
from bicameral.display import make_visible
from bicameral.errors import CatalogError, Place

SourceKind: TypeAlias = Literal["code", "trace"]
MAX_NAME = 60
MAX_AGENTS = 200
MAX_NOTES = 100
MAX_EVIDENCE = 5
"""Lines of evidence that a finding shows."""


def safe_name(text: str, otherwise: str = "unnamed") -> str:
    """A name from untrusted text: one line, visible characters only, at most 60 of them."""
    shown = make_visible(" ".join(text[:500].split()), strict=True)
    shown = shown if len(shown) <= MAX_NAME else f"{shown[: MAX_NAME - 1]}…"
    return shown or otherwise


def key_name(text: str) -> str:
    """A name from untrusted text as a key of a stack: without the signs that divide a path."""
    return re.sub(r"[.\[\]]", "_", safe_name(text))


_JUDGE = re.compile(r"judge|critic|critiq|evaluat|grader|reviewer|verifier", re.IGNORECASE)


def is_judge_name(name: str) -> bool:
    """Whether a name is that of somebody who judges."""
    return bool(_JUDGE.search(name[:200]))


@dataclass(frozen=True, slots=True)
class Evidence:
    """Why something is in a recovered stack: what was found, where, and whether that is certain."""

    path: str
    """The path in the stack, as in `agents.triage.patterns[1]`."""
    place: Place
    what: str
    certain: bool = True
    """Seen in the source; else it is inferred, from a name or from the default of a framework."""

    @property
    def basis(self) -> Literal["seen", "inferred"]:
        return "seen" if self.certain else "inferred"

    def to_json(self) -> dict[str, Any]:
        return {**json_fields(self, "certain"), "basis": self.basis}


@dataclass(frozen=True, slots=True)
class Unresolved:
    """Something that a reader could not follow, so that the stack may be incomplete."""

    place: Place
    what: str

    def to_json(self) -> dict[str, Any]:
        return json_fields(self)


@dataclass(frozen=True, slots=True)
class Counts:
    """What a trace adds up to."""

    spans: int = 0
    model_calls: int = 0
    tool_calls: int = 0
    failed_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def to_json(self) -> dict[str, int]:
        return json_fields(self)


@dataclass(frozen=True, slots=True)
class RecoveredStack:
    """The architecture of an agent of another framework, as far as its code or a trace shows it.

    Example:
        >>> report = lint_recovered(read_code("support_bot/"))
        >>> report.of_severity("error")[0].basis
        'seen'
    """

    stack: Stack
    source: SourceKind
    evidence: tuple[Evidence, ...]
    unresolved: tuple[Unresolved, ...] = ()
    counts: Counts | None = None
    visible: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    """For each agent the patterns that would have been seen if they were there."""

    @property
    def cannot_show(self) -> tuple[str, ...]:
        """What a source of this kind never shows."""
        return _CANNOT_SHOW[self.source]

    def is_visible(self, patterns: Iterable[str], path: str) -> bool:
        """Whether the source would show all of these patterns of the agent at this path."""
        agents = [name for name in self.visible if _contains(dotted_path(("agents", name)), path)]
        known = [self.visible[name] for name in agents or self.visible]
        return bool(known) and all({*patterns} <= each for each in known)

    def to_json(self) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "kind": self.source,
            "evidence": [each.to_json() for each in self.evidence],
            "unresolved": [each.to_json() for each in self.unresolved],
            "cannot_show": list(self.cannot_show),
        }
        return shown if self.counts is None else {**shown, "counts": self.counts.to_json()}


def _contains(outer: str, inner: str) -> bool:
    return outer == "" or inner == outer or inner.startswith((f"{outer}.", f"{outer}["))


_CANNOT_SHOW: Mapping[SourceKind, tuple[str, ...]] = {
    "code": (
        "settings that are read when the program runs, such as environment variables and files",
        "tools of MCP servers, and what a library does inside",
        "guards, limits and records outside of this code, such as those of a gateway",
    ),
    "trace": (
        "what did not happen in it: other branches, other tools, other inputs",
        "limits that were not reached, and guards and approvals without a span of their own",
        "what a tool does: its name, description and kind are all there is",
        "whether a result was written by somebody else, beyond the name of the tool that gave it",
    ),
}


def lint_recovered(recovered: RecoveredStack) -> LintReport:
    """The findings of the linter in a recovered stack, each with its basis and its evidence.

    The rules are made for a stack that its author describes as a whole. Code and traces of another framework do not
    name their patterns, so only what endangers somebody is an error there: an action without a gate, untrusted text
    that reaches one, a loop without an end. What the catalogue would add is a note.
    """
    report = lint(recovered.stack)
    found = _EvidenceIndex(recovered.evidence)
    judged = [_judge_finding(recovered, each, found) for each in report.findings if not _is_told_by_action(each)]
    return replace(report, findings=tuple(sorted(judged, key=_recovered_order)))


class _EvidenceIndex:
    """The evidence by what it is for: a trace may have thousands of actions, and a finding about each of them."""

    def __init__(self, evidence: Iterable[Evidence]) -> None:
        self._at: dict[str, list[Evidence]] = {}
        for each in evidence:
            self._at.setdefault(each.path, []).append(each)
            section = each.path.rpartition(".")[0]
            if section.endswith(".legs"):
                # Rules speak of the legs as a whole.
                self._at.setdefault(section, []).append(each)
        self._below: dict[str, list[Evidence]] = {}
        for path, group in self._at.items():
            steps = path.split(".")
            for end in range(1, len(steps) + 1):
                self._below.setdefault(".".join(steps[:end]), []).extend(group)
        self._summaries: dict[str, _EvidenceSummary | None] = {}

    def nearest(self, path: str) -> Sequence[Evidence]:
        """The evidence for a path of the stack, or for the nearest part that contains it."""
        while path and path not in self._at:
            path = path[: max(path.rfind("."), path.rfind("["), 0)]
        return self._at.get(path, ())

    def below(self, path: str) -> _EvidenceSummary | None:
        """The evidence for a path and for everything inside of it; None if there is none."""
        if path not in self._summaries:
            group = self._below.get(path)
            self._summaries[path] = None if group is None else _EvidenceSummary.of(group)
        return self._summaries[path]


@dataclass(frozen=True, slots=True)
class _EvidenceSummary:
    """Some evidence: the lines of it that a finding shows, and whether any of it was seen."""

    lines: tuple[str, ...]
    certain: bool

    @classmethod
    def of(cls, evidence: Sequence[Evidence]) -> _EvidenceSummary:
        lines = dict.fromkeys(f"{each.basis}: {each.what}" for each in evidence)
        return cls(tuple(lines)[:MAX_EVIDENCE], any(each.certain for each in evidence))


def _recovered_order(finding: LintFinding) -> tuple[int, bool, str, int]:
    """The most severe first, and then file by file."""
    return severity_rank(finding.severity), finding.undecided, finding.place.file or "", finding.place.line or 0


_RESTS_ON = {"L6": "legs.untrusted_content", "V5": "legs.untrusted_content", "V1": "actions", "V9": "loops"}
"""What else a rule, or the lack of a pattern, rests on in the same agent."""
_SAFEGUARDS = frozenset({"V1", "V4", "V6", "V8", "V9"})
"""The patterns whose lack endangers somebody."""


def _is_told_by_action(finding: LintFinding) -> bool:
    """Whether a finding says of an agent (V1 is missing) what others say of each of its actions."""
    return finding.wants == ("V1",) and finding.path.endswith("patterns")


def _judge_finding(recovered: RecoveredStack, finding: LintFinding, found: _EvidenceIndex) -> LintFinding:
    if finding.undecided:
        return finding
    near = found.nearest(finding.path)
    missing = {id for want in finding.wants for id in want.split("|") if id in IDS}
    agent = ".".join(finding.path.split(".")[:2])
    sections = sorted({_RESTS_ON[id] for id in (finding.rule, *missing) if id in _RESTS_ON})
    others = [each for section in sections if (each := found.below(f"{agent}.{section}")) is not None]
    shown = [_EvidenceSummary.of(near), *others]
    lines = tuple(dict.fromkeys(line for each in shown for line in each.lines))[:MAX_EVIDENCE]
    finding = replace(finding, severity=_recovered_severity(finding, missing), evidence=lines)
    seen = bool(near) and all(each.certain for each in near)
    # The bounds of a worker, and of a loop that is inferred, are those of V9.
    bounds = any(each.endswith("loops") or (".loops." in each and not seen) for each in finding.wants)
    hidden = missing or ({"V9"} if bounds else set[str]())
    if hidden and not recovered.is_visible(hidden, finding.path):
        message = f"{finding.message} (or the {recovered.source} does not show it)"
        # Of limits that are not seen it is told what could not be followed.
        mildest = "warning" if hidden & (_SAFEGUARDS - {"V6", "V9"}) else "note"
        severity = max(finding.severity, mildest, key=severity_rank)
        return replace(finding, severity=severity, message=message, basis="inferred")
    certain = seen and all(each.certain for each in others)
    guessed = not any(each.certain for each in shown) or not all(each.certain for each in others)
    doubtful = "V9" in finding.patterns or (recovered.source == "code" and guessed)
    if not certain and finding.severity == "error" and doubtful:
        # A limit that the release of a framework decides may be there. That an agent reads untrusted text, or all that
        # a finding rests on, may not be a guess from a name; but of a trace names are all there is.
        return replace(finding, severity="warning", basis="inferred")
    return replace(finding, basis="seen" if certain else "inferred")


def _recovered_severity(finding: LintFinding, missing: set[str]) -> LintSeverity:
    """How severe a finding is in code that was not written after the catalogue."""
    if missing:
        mildest: LintSeverity = "error" if missing & _SAFEGUARDS else "warning"
    elif _is_advice(finding.rule):
        mildest = "note"
    elif "A3" in finding.rules and not any(each.endswith(".steps") for each in finding.wants):
        # Its steps are limited, so that it ends. Frameworks have no cap on money or time that could be set.
        mildest = "note"
    elif "guards" in finding.wants:
        mildest = "warning"
    elif finding.wants and not any(".loops." in each or each.endswith("loops") for each in finding.wants):
        # What it asks for is a declaration, which code does not have.
        mildest = "note"
    else:
        mildest = "error"
    return max(finding.severity, mildest, key=severity_rank)


def _is_advice(rule: str) -> bool:
    """Whether a rule only says that another pattern would do."""
    known = rules().get(rule)
    return known is not None and all(check.kind == "prefer" for check in known.checks)


@dataclass(eq=False, slots=True)
class AgentDraft:
    """An agent of which a reader collects parts."""

    name: str
    place: Place
    what: str
    """How it was found."""
    certain: bool = True
    model: str | None = None
    visible: set[str] = field(default_factory=set[str])
    _uses: dict[str, tuple[dict[str, Any], Place, str, bool]] = field(default_factory=dict[str, Any])
    _sections: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    _evidence: list[tuple[StackPath, Place, str, bool]] = field(default_factory=list[Any])

    def use(self, id: str, place: Place, what: str, *, certain: bool = True, **knobs: Any) -> None:
        """Note that it uses a pattern. What is certain replaces what is inferred."""
        known = self._uses.get(id)
        if known is None or (certain and not known[3]):
            self._uses[id] = (knobs or (known[0] if known else {}), place, what, certain)

    def uses(self, id: str) -> bool:
        """Whether it uses a pattern."""
        return id in self._uses

    def add_leg(self, leg: str, place: Place, what: str, *, certain: bool = False) -> None:
        """Note one of the three legs."""
        legs = self._sections.setdefault("legs", {})
        if leg not in legs or (certain and not legs[leg]):
            legs[leg] = certain
            self._note(("legs", leg), place, what, certain)

    def leg(self, leg: str) -> bool | None:
        """Whether a leg is certain; None if it does not have it."""
        return self._sections.get("legs", {}).get(leg)

    def add_action(self, name: str, place: Place, what: str, *, certain: bool, reversible: bool, gate: str) -> None:
        """Note an action with an effect, and its gate."""
        actions = self._sections.setdefault("actions", {})
        facts: dict[str, Any] = {"gate": gate} if reversible else {"reversible": False, "gate": gate}
        # Two tools may look alike as keys. What is worse about either counts.
        gates = {gate, actions.get(name, facts)["gate"]}
        actions[name] = {**actions.get(name, {}), **facts, "gate": "none" if "none" in gates else gate}
        self._note(("actions", name), place, what, certain)

    def add_loop(self, name: str, place: Place, what: str, *, certain: bool = True, **caps: Any) -> None:
        """Note a loop and its caps."""
        self._sections.setdefault("loops", {})[name] = {key: cap for key, cap in caps.items() if cap is not None}
        self._note(("loops", name), place, what, certain)

    def add_session(self, name: str, place: Place, what: str, *, certain: bool = True, **facts: Any) -> None:
        """Note a session that writes or judges."""
        self._sections.setdefault("sessions", {})[name] = {key: fact for key, fact in facts.items() if fact}
        self._note(("sessions", name), place, what, certain)

    def add_guard(self, point: str, place: Place, what: str, *, certain: bool = True) -> None:
        """Note a guard at a point."""
        self._sections.setdefault("guards", {})[point] = True
        self._note(("guards",), place, what, certain)
        self.use("V5", place, what, certain=certain)

    def add_fact(self, name: str, value: Any, place: Place, what: str, *, certain: bool = True) -> None:
        """Note a fact."""
        self._sections.setdefault("facts", {})[name] = value
        self._note(("facts", name), place, what, certain)

    def count_tools(self, count: int, place: Place, what: str, *, certain: bool = True) -> None:
        """Note how many tools it has."""
        self._sections["tools"] = {"count": count}
        self._note(("tools",), place, what, certain)

    def add_tool_effects(
        self, name: str, effects: ToolEffects, place: Place, *, gate: str, why: str, sandboxed: bool = False
    ) -> None:
        """Note the legs and the action that a tool brings; what it only does in a sandbox is no action."""
        if sandboxed:
            effects = replace(effects, runs_code=False, runs_commands=False)
        shown = key_name(name)
        what = f"tool {shown!r} {effects.describe()}; {why}"
        for leg, has in effects.legs.items():
            if has:
                self.add_leg(leg, place, what, certain=effects.certain)
        if effects.acts:
            self.add_action(shown, place, what, certain=effects.certain, reversible=effects.reversible, gate=gate)

    def _note(self, path: StackPath, place: Place, what: str, certain: bool) -> None:
        self._evidence.append((path, place, what, certain))

    def describe(self) -> dict[str, Any]:
        """It as a part of a description."""
        described: dict[str, Any] = {
            "patterns": [{id: knobs} if knobs else id for id, (knobs, *_) in self._uses.items()]
        }
        for name, section in self._sections.items():
            described[name] = list(section) if name in ("legs", "guards") else section
        return described if self.model is None else {**described, "model": self.model}

    def all_evidence(self) -> Iterable[tuple[StackPath, Place, str, bool]]:
        """The evidence for each of its parts, with the path inside it."""
        yield (), self.place, self.what, self.certain
        for number, (_, place, what, certain) in enumerate(self._uses.values()):
            yield ("patterns", number), place, what, certain
        yield from self._evidence


class ArchitectureDraft:
    """What a reader has found so far."""

    def __init__(self, name: str, file: str, source: SourceKind) -> None:
        self.name = safe_name(name, "agents")
        self.file = file
        self.source: SourceKind = source
        self.agents: dict[str, AgentDraft] = {}
        self.unresolved: dict[tuple[str | None, int | None, str], Unresolved] = {}
        self.counts: Counts | None = None

    def agent(self, name: str, place: Place, what: str, *, certain: bool = True) -> AgentDraft:
        """A new agent; of several with one name each gets a number."""
        if len(self.agents) >= MAX_AGENTS:
            raise CatalogError(
                "stack.too-large", f"there are more than {MAX_AGENTS} agents", fix="Check a smaller part of it."
            )
        first = shown = key_name(name)
        number = 1
        while shown in self.agents:
            number += 1
            shown = f"{first} {number}"
        self.agents[shown] = AgentDraft(shown, place, what, certain)
        return self.agents[shown]

    def miss(self, place: Place, what: str) -> None:
        """Note something that could not be followed."""
        if len(self.unresolved) < MAX_NOTES:
            self.unresolved.setdefault((place.file, place.line, what), Unresolved(place, what))

    def build(self) -> RecoveredStack:
        """The stack of what was found; `stack.no-agent` if that is nothing."""
        if not self.agents:
            raise CatalogError(
                "stack.no-agent",
                f"no agent is found in this {self.source}",
                place=Place(file=self.file),
                expected=_EXPECTED[self.source],
            )
        for agent in self.agents.values():
            if not any(map(agent.uses, IDS)):
                agent.use("S1", agent.place, "a model is called, and nothing more was found", certain=False)
        places: dict[StackPath, Place] = {(): Place(file=self.file)}
        evidence: list[Evidence] = []
        for name, agent in self.agents.items():
            for path, place, what, certain in agent.all_evidence():
                full = ("agents", name, *path)
                places.setdefault(full, place)
                if path[:1] == ("legs",):
                    places.setdefault(full[:-1], place)
                evidence.append(Evidence(dotted_path(full), place, what, certain))
        described = {"name": self.name, "agents": {name: agent.describe() for name, agent in self.agents.items()}}

        def locate(path: StackPath) -> Place:
            return next(places[path[:end]] for end in range(len(path), -1, -1) if path[:end] in places)

        stack = read_description(described, locate, self.file)
        visible = {name: frozenset(agent.visible) for name, agent in self.agents.items()}
        unresolved = tuple(self.unresolved.values())
        return RecoveredStack(stack, self.source, tuple(evidence), unresolved, self.counts, visible)


_EXPECTED: Mapping[SourceKind, str] = {
    "code": "agents of pydantic-ai, LangGraph or the OpenAI Agents SDK",
    "trace": "spans with attributes of OpenTelemetry GenAI, OpenInference or OpenLLMetry",
}
