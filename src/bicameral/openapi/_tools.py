"""The operations of an API as tools of plans, and the review that declares them.

A tool is made from the copy of the document that the person reviewed. If that copy, or what is made of an operation, is
not what the declarations were written for, nothing is called until it is reviewed again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from bicameral.display import make_visible
from bicameral.errors import ConfigError, Place, ToolError, nearest_name
from bicameral.foreign import (
    MAX_TOOLS,
    DeclarationFile,
    ForeignTool,
    Proposal,
    ToolDeclaration,
    foreign_tool,
    propose_declaration,
    read_declarations,
    with_own_names,
    write_declarations,
)
from bicameral.openapi._calls import ApiServer
from bicameral.openapi._document import OpenApiDocument, read_stored_document, require_openapi
from bicameral.openapi._operations import (
    Operation,
    OperationEntry,
    operation_entries,
    read_operation,
)
from bicameral.openapi._parameters import UnusableOperation
from bicameral.openapi._settings import OpenApiSettings
from bicameral.tools import Tool, worst_effect

_MOST_NAMES = 5
_EXTRA_SECONDS = 5.0
_ASKS = "every call asks while it says `reviewed = false`"


def openapi_tools(
    name: str, settings: OpenApiSettings, base: Path, environment: Mapping[str, str] | None = None
) -> list[Tool]:
    """The tools of one API. Nothing is sent for it.

    Args:
        name: Its name in the configuration.
        settings: Its settings.
        base: The folder of the configuration, where its files are found.
        environment: Where keys are looked up; by default the environment of this process.

    Example:
        >>> registry = Registry(openapi_tools("tracker", settings, Path.cwd()))
    """
    require_openapi()
    document = read_stored_document(base / os.path.expanduser(settings.document))
    entries = {entry.name: entry for entry in operation_entries(document)}
    server = ApiServer(name, settings, document.security_schemes, environment)
    if settings.tools is None:
        return list(_undeclared_tools(server, document, entries.values()))
    file = base / os.path.expanduser(settings.tools)
    declared = read_declarations(file)
    if declared.document != document.digest:
        raise _changed_error(name, declared, document, file)
    return [
        _declared_tool(server, document, entries.get(each), each, declaration, file)
        for each, declaration in declared.tools.items()
        if declaration.use and _is_allowed(settings, each)
    ]


def _is_allowed(settings: OpenApiSettings, name: str) -> bool:
    return settings.allow is None or name in settings.allow


def _undeclared_tools(
    server: ApiServer, document: OpenApiDocument, entries: Iterable[OperationEntry]
) -> Iterator[Tool]:
    if server.settings.undeclared == "refuse":
        return
    allowed = [entry for entry in entries if _is_allowed(server.settings, entry.name)]
    if len(allowed) > MAX_TOOLS:
        raise ConfigError(
            "openapi.too-many",
            f"the document of {server.name!r} has {len(allowed):,} operations",
            expected=f"at most {MAX_TOOLS} that are allowed or declared",
            fix=f"List those you need under `allow` in [openapi.{server.name}], or declare them.",
        )
    for entry in allowed:
        try:
            operation = read_operation(document, entry)
        except UnusableOperation:
            # Nobody has asked for just this one; `bicameral openapi check` says why it is not there.
            continue
        yield _tool(server, operation, None, None)


def _declared_tool(
    server: ApiServer,
    document: OpenApiDocument,
    entry: OperationEntry | None,
    name: str,
    declaration: ToolDeclaration,
    file: Path,
) -> Tool:
    operation = _read_or_none(document, entry)
    if operation is None or operation.tool.pin != declaration.pin:
        what = "cannot be called any more" if operation is None else "is not the one that was reviewed"
        raise ToolError(
            "openapi.not-reviewed",
            f"the operation {name!r} of the API {server.name!r} {what}",
            place=Place(str(file)),
            nearest=nearest_name(name, [each.name for each in operation_entries(document)]) if entry is None else None,
            fix=f"Run `bicameral openapi review {server.name}`, or set `use = false` for it.",
        )
    return _tool(server, operation, declaration, file)


def _read_or_none(document: OpenApiDocument, entry: OperationEntry | None) -> Operation | None:
    try:
        return None if entry is None else read_operation(document, entry)
    except UnusableOperation:
        return None


def _tool(server: ApiServer, operation: Operation, declaration: ToolDeclaration | None, file: Path | None) -> Tool:
    seconds = (declaration.timeout if declaration is not None else None) or server.settings.timeout
    declared = {} if declaration is None else declaration.arguments
    call: Any = partial(
        server.call,
        operation,
        seconds=seconds,
        path_arguments=frozenset(name for name, each in declared.items() if each.format == "path"),
        keyed=declaration is not None and declaration.keyed,
    )
    # What ends a call is the limit of the call itself, which can say so.
    limit = seconds + _EXTRA_SECONDS
    return foreign_tool(
        operation.tool,
        declaration if declaration is None else declaration.model_copy(update={"timeout": limit}),
        call,
        server=server.name,
        kind="openapi",
        timeout=limit,
        file=None if file is None else str(file),
    )


def changed_operations(declared: DeclarationFile, document: OpenApiDocument) -> list[str]:
    """The declared operations that a document does not have any more, or has in another form."""
    entries = {entry.name: entry for entry in operation_entries(document)}
    changed: list[str] = []
    for name, declaration in declared.tools.items():
        operation = _read_or_none(document, entries.get(name))
        if declaration.use and (operation is None or operation.tool.pin != declaration.pin):
            changed.append(name)
    return changed


def _changed_error(name: str, declared: DeclarationFile, document: OpenApiDocument, file: Path) -> ToolError:
    changed = [make_visible(each)[:60] for each in changed_operations(declared, document)]
    shown = ", ".join(changed[:_MOST_NAMES]) + (
        f" and {len(changed) - _MOST_NAMES} more" if len(changed) > _MOST_NAMES else ""
    )
    differs = f"changed are {shown}" if changed else "what it says of the declared operations is the same"
    return ToolError(
        "openapi.changed",
        f"the document of the API {name!r} is not the one that was reviewed: {differs}",
        place=Place(document.name),
        fix=f"`bicameral openapi check {name}` shows the difference; `bicameral openapi review {name}` takes it.",
    )


@dataclass(frozen=True, slots=True)
class DocumentReview:
    """What a document offers, and what is proposed for each of its operations.

    Args:
        name: The name of the API in the configuration.
        document: The document.
        operations: Every operation that can be called.
        proposals: A declaration for each.
        refused: The operations that cannot be called, by name, and why.
    """

    name: str
    document: OpenApiDocument
    operations: tuple[Operation, ...]
    proposals: tuple[Proposal, ...]
    refused: Mapping[str, str]

    @property
    def declared(self) -> DeclarationFile:
        """The proposed declarations as a file."""
        return DeclarationFile(
            version=1,
            server=self.name,
            document=self.document.digest,
            tools={each.tool.name: each.declaration for each in self.proposals},
        )

    @property
    def listed(self) -> tuple[ForeignTool, ...]:
        """The operations as they are pinned."""
        return tuple(each.tool for each in self.operations)

    def keeping(self, old: DeclarationFile, reviewed: Mapping[str, ForeignTool] | None = None) -> DocumentReview:
        """The same with what was declared before of its operations.

        Args:
            old: The declarations.
            reviewed: The operations as they were reviewed then. One that has changed in an unknown way asks again.
        """
        names, known = old.tools, reviewed or {}
        kept = (_keep_declared(each, names.get(each.tool.name), known.get(each.tool.name)) for each in self.proposals)
        return replace(self, proposals=with_own_names(kept, self.name))

    def write(self, file: Path, *, head: str = "") -> None:
        """Write the declarations and what was reviewed."""
        write_declarations(file, self.declared, self.listed, head=head)


def _keep_declared(proposal: Proposal, old: ToolDeclaration | None, reviewed: ForeignTool | None) -> Proposal:
    """The proposal with what was declared before; a call that has become another one asks again.

    Args:
        proposal: What is proposed now.
        old: What was declared before.
        reviewed: The operation as it was reviewed then.
    """
    if old is None:
        return proposal
    fresh = proposal.declaration
    if old.arguments.keys() - fresh.arguments.keys():
        # Of the rest of the declaration what forbids or warns is kept: nobody has taken that back.
        effect = worst_effect([old.effect, fresh.effect])
        kept = {"use": old.use, "effect": effect, "reviewed": old.reviewed and fresh.reviewed and effect == "read"}
        reasons = (*proposal.reasons, "its arguments are not those that you declared before")
        return replace(proposal, declaration=fresh.model_copy(update=kept), reasons=reasons)
    declared, reasons = old.model_copy(update={"pin": proposal.tool.pin}), ("as you declared it before",)
    if old.reviewed and (why := _other_call(proposal, old, reviewed)):
        # The decision was about another call: `read` for a GET says nothing of the DELETE that it has become.
        declared = declared.model_copy(update={"reviewed": False})
        reasons += (why, _ASKS)
    return replace(proposal, declaration=declared, reasons=reasons)


def _other_call(proposal: Proposal, old: ToolDeclaration, reviewed: ForeignTool | None) -> str | None:
    """Why what was decided of an operation was decided of another one."""
    new, now = proposal.tool, proposal.declaration.effect
    if old.pin == new.pin:
        return None
    if reviewed is None or reviewed.pin != old.pin:
        return "it has changed, and what you reviewed is not there any more"
    if reviewed.title != new.title:
        return f"it was {reviewed.title} when you reviewed it and is {new.title} now"
    has_other_schemas = replace(reviewed, description=new.description).pin != new.pin
    if has_other_schemas and worst_effect([old.effect, now]) != old.effect:
        return f"it has changed in more than its words, and proposed anew it would be {now!r}"
    return None


def review_document(
    name: str,
    document: OpenApiDocument,
    *,
    only: Iterable[str] = (),
    tags: Iterable[str] = (),
    names: Iterable[str] | None = None,
) -> DocumentReview:
    """Read the operations of a document and propose declarations.

    Args:
        name: The name of the API in the configuration.
        document: The document.
        only: The names of operations, with `*` for any text; all if there are none.
        tags: Their tags, alternatively.
        names: Operations that are read if they are there, such as those that were declared before.

    Example:
        >>> review = review_document("tracker", document, only=["list_*"])
    """
    chosen = list(_chosen_entries(document, tuple(only), tuple(tags), None if names is None else {*names}))
    if len(chosen) > MAX_TOOLS:
        raise ToolError(
            "openapi.too-many",
            f"these are {len(chosen):,} operations",
            expected=f"at most {MAX_TOOLS}: nobody reviews more",
            fix="Choose those you need: `--only 'list_*'` or `--tag NAME`.",
        )
    operations: list[Operation] = []
    proposals: list[Proposal] = []
    refused: dict[str, str] = {}
    for entry in chosen:
        try:
            operation = read_operation(document, entry)
            proposal = propose_declaration(operation.tool, server=name)
        except UnusableOperation as error:
            refused[entry.name] = str(error)
        except ToolError as error:
            refused[entry.name] = error.message
        else:
            operations.append(operation)
            proposals.append(_asking(replace(proposal, reasons=(*proposal.reasons, *operation.notes))))
    return DocumentReview(name, document, tuple(operations), with_own_names(proposals, name), refused)


def _asking(proposal: Proposal) -> Proposal:
    """The proposal, for what changes something with a question before every call.

    A document is agreed to as a whole. That it may be called without a question is a decision about one operation.
    """
    if proposal.declaration.effect == "read":
        return proposal
    declared = proposal.declaration.model_copy(update={"reviewed": False})
    return replace(proposal, declaration=declared, reasons=(*proposal.reasons, _ASKS))


def _chosen_entries(
    document: OpenApiDocument, only: tuple[str, ...], tags: tuple[str, ...], names: set[str] | None
) -> Iterator[OperationEntry]:
    from fnmatch import fnmatchcase

    entries = operation_entries(document)
    for pattern in only:
        if not any(fnmatchcase(entry.name, pattern) for entry in entries):
            raise ToolError(
                "openapi.unknown-operation",
                f"no operation is named {pattern!r}",
                nearest=nearest_name(pattern, [entry.name for entry in entries]),
            )
    every = not only and not tags and names is None
    for entry in entries:
        known = entry.name in (names or ()) or any(fnmatchcase(entry.name, each) for each in only)
        if every or known or {*tags} & {*entry.tags}:
            yield entry
