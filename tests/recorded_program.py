"""`bicameral`, for a test that starts it as a process: its models reply as `recordings` says."""

from __future__ import annotations

from recordings import install_from_environment

install_from_environment()

if __name__ == "__main__":
    from bicameral.cli import main

    main()
