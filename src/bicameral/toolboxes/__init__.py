"""The standard toolboxes, one module each; every module has a `toolbox`.

files, lines and tables work on files, lists of text and rows; mail, calendar, web and clock give access to mail, an
ICS file, web pages and the time. A toolbox takes its settings from `bicameral.toml` and the machine's `Surroundings`,
and returns tools. They are found by entry points (`bicameral.toolboxes`), like the toolboxes of other packages.
"""
