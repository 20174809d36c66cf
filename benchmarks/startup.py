"""How soon it is there: the import, `--help`, and how many packages come along.

Run it with `python -m benchmarks.startup`. Each measurement is a fresh process.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from importlib.metadata import requires
from pathlib import Path
from statistics import median

TIMES = 7

_IMPORT = "import time; started = time.perf_counter(); import bicameral; print(time.perf_counter() - started)"


def _import_seconds() -> float:
    said = subprocess.run([sys.executable, "-c", _IMPORT], check=True, capture_output=True, text=True).stdout
    return float(said)


def _help_seconds() -> float:
    command = Path(sys.executable).with_name("bicameral")
    started = time.perf_counter()
    subprocess.run([str(command), "--help"], check=True, capture_output=True)
    return time.perf_counter() - started


def core_dependencies() -> list[str]:
    """The packages that a plain install brings directly, from the installed metadata."""
    lines = requires("bicameral") or []
    names = (re.match(r"[A-Za-z0-9._-]+", line) for line in lines if "extra ==" not in line)
    return sorted(name.group() for name in names if name)


def main() -> None:
    # The first one fills the caches of the file system and of compiled modules; a user has them after an install.
    _import_seconds()
    _help_seconds()
    found = {
        "import_s": round(median(_import_seconds() for _ in range(TIMES)), 4),
        "help_s": round(median(_help_seconds() for _ in range(TIMES)), 4),
        "core_deps": len(core_dependencies()),
    }
    print(f"import bicameral       {found['import_s']:8.3f} s   < 0.3")
    print(f"bicameral --help       {found['help_s']:8.3f} s   < 0.5")
    print(f"direct dependencies    {found['core_deps']:8}     ≤ 8   {', '.join(core_dependencies())}")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
