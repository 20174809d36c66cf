"""Parsing of untrusted formats in a separate, confined process with limits on time, memory and output.

The caller gives the name of a function and the bytes to parse. It gets the function's result as JSON, validated
against a type, or a typed error; `tools.parse-limit` names the input and the limit that it exceeded. The process is
started at first use and again after it was killed. It has no files, network or environment, and it ends with its
parent. Functions that run there are declared with `Parser`; their modules must import nothing heavy.
"""

from bicameral.parsing._parser import SHORT_TEXT, InvalidJson, ParseLimitError, Parser, check_json_values, read_json
from bicameral.parsing._pool import MIB, ParseLimits, ParserPool, parser_confinement

__all__ = [
    "MIB",
    "SHORT_TEXT",
    "InvalidJson",
    "ParseLimitError",
    "ParseLimits",
    "Parser",
    "ParserPool",
    "check_json_values",
    "parser_confinement",
    "read_json",
]
