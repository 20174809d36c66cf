"""The standard tools, over a folder that does not exist: which effects a request orders depends on no file."""

from __future__ import annotations

from pathlib import Path

from bicameral.tools import Folders, Surroundings, load_toolboxes

STANDARD = ("files", "lines", "tables", "mail", "calendar", "web", "clock")
_HERE = Path("/nonexistent")
REGISTRY = load_toolboxes({name: {} for name in STANDARD}, Surroundings(Folders(_HERE, (_HERE,), (_HERE,))))
