"""The command line: a surface over `Agent`, `Config`, the model store and the journal. Nothing imports it.

Answers go to standard output, progress, questions and errors to standard error. With `--json` standard output holds
exactly one JSON object. Each command is a module of `commands`, imported when it is called.
"""

from bicameral.cli._main import main as main
