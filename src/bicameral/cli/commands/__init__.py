"""One file for each command; `bicameral.cli` imports the one that is called."""
