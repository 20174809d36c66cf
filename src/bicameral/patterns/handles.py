"""Handles for a model that is not ours: names and views of results, calls with names in them, and typed extraction.

`TypedConversation` lets our privileged model work with results that it does not read. A surface does the same for a
model that somebody else runs, with these parts. `fill_call` puts the values of names into a call, with their labels;
`parse_extraction` reads what `extract_value` asks for.
"""

from bicameral.patterns._conversation import (
    FINAL_CODES as FINAL_CODES,
    ParsedCall as ParsedCall,
    join_written_labels as join_written_labels,
)
from bicameral.patterns._reasoner_types import describe_failure as describe_failure
from bicameral.patterns._reasoner_view import ResultView as ResultView, view_result as view_result
from bicameral.patterns._result_names import FilledValue as FilledValue, ResultNames as ResultNames
from bicameral.patterns._tool_messages import (
    MAX_RESULT as MAX_RESULT,
    parse_arguments as parse_arguments,
    render_result as render_result,
)
from bicameral.patterns._typed_conversation import (
    EXTRACT_DOC as EXTRACT_DOC,
    EXTRACT_TOOL as EXTRACT_TOOL,
    Extraction as Extraction,
    extract_schema as extract_schema,
    fill_call as fill_call,
    parse_extraction as parse_extraction,
)
