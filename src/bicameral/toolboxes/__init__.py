"""The standard toolboxes: what a plan can do on a fresh machine, one module each, every one offering `toolbox`.

files, lines and tables work on files, lists of text and rows; mail, calendar and web reach further; clock tells
the time. In come the settings from `bicameral.toml` and the machine's `Surroundings`; out come tools. They are
found by their entry points (`bicameral.toolboxes`), exactly as a toolbox from any other package is.
"""
