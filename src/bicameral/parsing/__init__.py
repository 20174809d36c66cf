"""Parsing of untrusted formats in a separate, confined process with limits on time, memory and output.

The caller gives the name of a function and the bytes to parse. It gets the function's result as JSON, validated
against a type, or a typed error; `tools.parse-limit` names the input and the limit that it exceeded. The process is
started at first use and again after it was killed. It has no files, network or environment, and it ends with its
parent. Native parsers of documents get a process for each input (`ISOLATED_POOL`), or do not run where it cannot be
confined. Functions that run there are declared with `Parser`; their modules must import nothing heavy.
"""

from bicameral.parsing._parser import (
    SHORT_TEXT as SHORT_TEXT,
    InvalidJson as InvalidJson,
    ParseLimitError as ParseLimitError,
    Parser as Parser,
    check_json_values as check_json_values,
    read_json as read_json,
)
from bicameral.parsing._pool import (
    ISOLATED_POOL as ISOLATED_POOL,
    MIB as MIB,
    ParseLimits as ParseLimits,
    ParserPool as ParserPool,
    parser_confinement as parser_confinement,
)
