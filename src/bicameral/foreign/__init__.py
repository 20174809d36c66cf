"""Foreign tools: what other programs offer as tools, as far as a person has reviewed it.

In come the tools that a server or a document lists, all of it untrusted, and a declaration file that the user owns. Out
come ordinary `Tool`s: pinned by a hash of everything that was reviewed, with the effect, origins and purposes that the
user declared, and with the worst case where nothing is declared. JSON Schemas of strangers become types, and values are
checked against them with bounds on the work. Who talks to the server is `bicameral.mcp` or `bicameral.openapi`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bicameral.foreign._credentials import SecretReference as SecretReference, read_secret as read_secret

if TYPE_CHECKING:
    from bicameral.foreign._checks import (
        ToolCheck as ToolCheck,
        ToolState as ToolState,
        compare_listing as compare_listing,
    )
    from bicameral.foreign._declarations import (
        ArgumentDeclaration as ArgumentDeclaration,
        DeclarationFile as DeclarationFile,
        ToolDeclaration as ToolDeclaration,
        declarations_head as declarations_head,
        declarations_schema as declarations_schema,
        parse_declarations as parse_declarations,
        pins_file as pins_file,
        read_declarations as read_declarations,
        read_reviewed_listing as read_reviewed_listing,
        render_declarations as render_declarations,
        write_declarations as write_declarations,
    )
    from bicameral.foreign._listing import (
        MAX_TOOLS as MAX_TOOLS,
        ForeignTool as ForeignTool,
        listing_changes as listing_changes,
        read_listing as read_listing,
    )
    from bicameral.foreign._mentions import (
        MentioningNameWarning as MentioningNameWarning,
        set_aside_mentioning as set_aside_mentioning,
    )
    from bicameral.foreign._proposals import (
        Enforced as Enforced,
        Proposal as Proposal,
        is_plain_title as is_plain_title,
        propose_declaration as propose_declaration,
        with_own_names as with_own_names,
    )
    from bicameral.foreign._schema_check import SchemaValidator as SchemaValidator
    from bicameral.foreign._schema_types import (
        fields_from_schema as fields_from_schema,
        json_arguments as json_arguments,
        select_fields as select_fields,
        type_from_schema as type_from_schema,
    )
    from bicameral.foreign._schemas import (
        is_usable_pattern as is_usable_pattern,
        schema_problem as schema_problem,
        without_unusable_patterns as without_unusable_patterns,
    )
    from bicameral.foreign._tools import (
        ForeignCall as ForeignCall,
        ForeignResult as ForeignResult,
        foreign_tool as foreign_tool,
        plain_name as plain_name,
        tool_name as tool_name,
    )


# Every configuration can name secrets; the rest is loaded where a server or a document is used.
_LATER = {
    "_checks": ("ToolCheck", "ToolState", "compare_listing"),
    "_declarations": (
        "ArgumentDeclaration",
        "DeclarationFile",
        "ToolDeclaration",
        "declarations_schema",
        "parse_declarations",
        "pins_file",
        "read_declarations",
        "read_reviewed_listing",
        "render_declarations",
        "declarations_head",
        "write_declarations",
    ),
    "_listing": (
        "MAX_TOOLS",
        "ForeignTool",
        "listing_changes",
        "read_listing",
    ),
    "_mentions": ("MentioningNameWarning", "set_aside_mentioning"),
    "_proposals": (
        "Enforced",
        "Proposal",
        "is_plain_title",
        "propose_declaration",
        "with_own_names",
    ),
    "_schema_check": ("SchemaValidator",),
    "_schema_types": (
        "fields_from_schema",
        "json_arguments",
        "select_fields",
        "type_from_schema",
    ),
    "_schemas": ("is_usable_pattern", "schema_problem", "without_unusable_patterns"),
    "_tools": (
        "ForeignCall",
        "ForeignResult",
        "foreign_tool",
        "plain_name",
        "tool_name",
    ),
}


def __getattr__(name: str) -> Any:
    for module, names in _LATER.items():
        if name in names:
            return getattr(import_module(f".{module}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
