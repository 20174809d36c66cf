"""Reading an OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def every_operation(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Path, method and operation, each once."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation
