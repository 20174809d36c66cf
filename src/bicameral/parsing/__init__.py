"""Hostile formats are read in another process, which is killed when that takes too long or too much.

In goes the name of a function and the bytes to read; out comes its result as JSON, validated by type, or a typed error:
`tools.parse-limit` names the input and the limit that it went over. The process is started at first use, has no files,
no network and no environment, ends with the process that started it, and is started again after a kill. Functions that
run there are declared with `Parser`, and their modules import nothing heavy.
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
