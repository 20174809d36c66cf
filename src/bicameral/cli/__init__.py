"""The command line: a surface over `Agent`, `Config`, the model store and the journal. Nothing imports it.

Words of a person come in; out go answers (standard output) and everything said on the way there (standard error).
With `--json` standard output holds exactly one JSON object. Each command is a small file in `commands`, imported
when it is used.
"""

from bicameral.cli._main import main

__all__ = ["main"]
