"""Schemas of strangers, and APIs: what values can become in a request, where keys go, and what is pinned."""

from __future__ import annotations

from scripts.mutants.mutant import Mutant

REQUESTS = "openapi/_requests.py"
CALLS = "openapi/_calls.py"
TOOLS = "openapi/_tools.py"
OPERATIONS = "openapi/_operations.py"
ANSWERS = "openapi/_answers.py"
WALK = "foreign/_schema_walk.py"
SCHEMAS = "foreign/_schemas.py"
TYPES = "foreign/_schema_types.py"
IN_REQUESTS = "tests/openapi/test_openapi_requests.py"
IN_CALLS = "tests/openapi/test_openapi_calls.py"
IN_TOOLS = "tests/openapi/test_openapi_tools.py"
IN_OPERATIONS = "tests/openapi/test_openapi_operations.py"
IN_CHECK = "tests/foreign/test_foreign_schema_check.py"
IN_SCHEMAS = "tests/foreign/test_foreign_schemas.py"
IN_CLI = "tests/cli/test_cli_openapi.py"

MUTANTS = (
    Mutant(
        "openapi.slash-in-a-path",
        REQUESTS,
        "_path_value",
        'r"[/\\\\\\x00-\\x1f\\x7f]"',
        'r"[\\\\\\x00-\\x1f\\x7f]"',
        "a value could make another path: a server decodes %2F before it looks for a handler",
        (f"{IN_REQUESTS}::test_a_value_cannot_change_the_path",),
    ),
    Mutant(
        "openapi.step-up-in-a-path",
        REQUESTS,
        "_check_path",
        'in (".", "..")',
        'in (".",)',
        "a value could leave the place of its parameter",
        (f"{IN_REQUESTS}::test_a_value_cannot_change_the_path",),
    ),
    Mutant(
        "openapi.empty-part-of-a-path",
        REQUESTS,
        "_path_value",
        "if not pieces or not all(pieces):",
        "if not pieces:",
        "deleting one thing could become deleting the whole collection",
        (f"{IN_REQUESTS}::test_a_value_cannot_change_the_path",),
    ),
    Mutant(
        "openapi.line-end-in-a-header",
        REQUESTS,
        "_header_value",
        "if not _HEADER_VALUE.fullmatch(text):",
        "if not _HEADER_VALUE.match(text):",
        "a value could begin a header of its own",
        (f"{IN_REQUESTS}::test_a_value_cannot_add_a_header",),
    ),
    Mutant(
        "openapi.names-for-other-parameters",
        REQUESTS,
        "_check_names",
        "in others | operation.key_names",
        "in operation.key_names",
        "an object could set parameters that the plan did not set",
        (f"{IN_REQUESTS}::test_names_of_an_object_cannot_stand_for_other_parameters_or_keys",),
    ),
    Mutant(
        "openapi.redirect-elsewhere",
        CALLS,
        "ApiServer._following",
        "if request.method in _READING and same_origin(target, following):",
        "if request.method in _READING:",
        "a server could send keys and arguments to another one",
        (f"{IN_CALLS}::test_a_redirect_to_another_server_is_not_followed",),
    ),
    Mutant(
        "openapi.argument-before-key",
        CALLS,
        "ApiServer.call",
        "_merged((*request.headers, *more, *keys.headers))",
        "_merged((*keys.headers, *more, *request.headers))",
        "a plan could send another key than the user's",
        (f"{IN_CALLS}::test_an_argument_cannot_replace_a_key",),
    ),
    Mutant(
        "openapi.key-in-a-result",
        CALLS,
        "ApiServer._read",
        "value if masked == text else mask_value(value)",
        "value",
        "a model could read the key that a server sends back",
        (f"{IN_TOOLS}::test_keys_come_from_the_environment_and_never_appear",),
    ),
    Mutant(
        "openapi.unpacked-without-limit",
        ANSWERS,
        "BodyReader.feed",
        "self._inflate.decompress(piece, self._limit - len(self._body) + 1)",
        "self._inflate.decompress(piece, self._limit - len(self._body))",
        "a small answer could fill the memory",
        (f"{IN_CALLS}::test_a_small_answer_that_unpacks_to_a_large_one_is_cut_off",),
    ),
    Mutant(
        "openapi.changed-document",
        TOOLS,
        "openapi_tools",
        "if declared.document != document.digest:",
        "if declared.document == document.digest + name:",
        "a document could change where keys go after it was reviewed",
        (f"{IN_TOOLS}::test_a_change_where_keys_go_stops_the_tools_too",),
    ),
    Mutant(
        "openapi.another-host-in-a-path",
        OPERATIONS,
        "_OperationReader.read",
        "if not _TEMPLATE.fullmatch(entry.path) or",
        "if not _TEMPLATE.match(entry.path) or",
        "a document could hide a query or a line end in a path",
        (f"{IN_OPERATIONS}::test_an_operation_that_cannot_be_called_says_why",),
    ),
    Mutant(
        "openapi.server-of-the-document",
        "cli/_openapi_reviews.py",
        "chosen_server",
        "if not asked and not _is_beside(proposed, source):",
        "if not asked and not proposed:",
        "a document alone could decide where keys are sent",
        (f"{IN_CLI}::test_a_document_does_not_decide_where_keys_go_without_a_person",),
    ),
    Mutant(
        "schemas.work-without-bound",
        WALK,
        "SchemaWalk.take",
        "if self.steps < 0:",
        "if self.steps is None:",
        "a few references could take more time than there is",
        (f"{IN_CHECK}::test_a_large_pattern_over_a_large_text_is_given_up",),
    ),
    Mutant(
        "schemas.another-base",
        SCHEMAS,
        "_faults",
        "elif renamed:",
        "elif renamed is None:",
        "a reference would mean something else here than for its author",
        (f"{IN_SCHEMAS}::test_a_schema_that_cannot_be_used_says_why_and_quotes_nothing",),
    ),
    Mutant(
        "schemas.sentence-as-a-choice",
        TYPES,
        "_SchemaReader._are_plain",
        'return not any(format_problem(each, "code") for each in texts)',
        "return True",
        "a server could write to the privileged model by the choices of a result",
        (f"{IN_SCHEMAS}::test_a_choice_of_a_result_cannot_hold_a_sentence",),
    ),
    Mutant(
        "schemas.chosen-dialect",
        "foreign/_schema_check.py",
        "SchemaValidator.__init__",
        "if not isinstance(schema, bool) and (problem := schema_problem(schema)):",
        "if schema == 0 and (problem := schema_problem({})):",
        "a schema that cannot be used would be used",
        (f"{IN_CHECK}::test_a_schema_that_cannot_be_used_makes_no_validator",),
    ),
)
