"""`python -m bicameral.cli` is `bicameral`."""

from ._main import main

main()
