"""`python -m bicameral.cli` is `bicameral`."""

from bicameral.cli._main import main

main()
