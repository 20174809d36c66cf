"""The server does what its own OpenAPI document says: Schemathesis with every check, and what must stand in it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from openapi_documents import every_operation
from server_world import Served, serving

PROGRAM = str(Path(sys.executable).with_name("schemathesis"))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Watches are short: a run that is not due for days would be watched for as long."""
    with serving(tmp_path_factory.mktemp("contract"), "rate = 1000000\nwatch_seconds = 0.5\n") as found:
        yield found


def test_schemathesis_finds_nothing_with_all_its_checks(served: Served) -> None:
    run = subprocess.run(
        [
            *(PROGRAM, "run", f"{served.address}/openapi.json", "--no-color", "--generation-database", "none"),
            *("-H", f"Authorization: Bearer {served.tokens['ana']}", "--checks", "all"),
            *("--max-examples", "4", "--seed", "7", "--request-timeout", "20", "--continue-on-failure"),
        ],
        capture_output=True,
        text=True,
        timeout=200,
        cwd=served.folder,
    )
    assert run.returncode == 0, run.stdout[-20_000:]
    summary = run.stdout[run.stdout.index("SUMMARY") :]
    tested = re.search(r"Tested: (\d+)", summary)
    assert tested is not None
    assert int(tested[1]) == len(list(every_operation(document(served))))
    for phase in ("Coverage", "Fuzzing", "Stateful"):
        assert f"✅ {phase}" in summary, summary
    assert "Traceback" not in served.log()


def document(served: Served) -> dict[str, Any]:
    return httpx.get(f"{served.address}/openapi.json").json()


def test_every_operation_says_what_it_does_and_every_error_has_the_one_shape(served: Served) -> None:
    found = document(served)
    error = found["components"]["schemas"]["ErrorFacts"]
    assert set(error["properties"]) == {"code", "message", "place", "expected", "nearest", "fix"}
    assert set(error["required"]) == {"code", "message"}
    assert "HTTPValidationError" not in found["components"]["schemas"]
    for path, method, operation in every_operation(found):
        assert operation["description"], path
        assert operation["operationId"], path
        open_to_all = path in ("/healthz", "/readyz")
        assert ("security" in operation) != open_to_all, path
        for status, response in operation["responses"].items():
            assert response["description"], (path, status)
            if int(status) >= 400 and not (path == "/readyz" and status == "503"):
                schema = response["content"]["application/json"]["schema"]
                assert schema == {"$ref": "#/components/schemas/ErrorAnswer"}, (path, status)
        if not open_to_all:
            assert {"401", "429", "500", "503"} <= set(operation["responses"]), path
        if method == "post":
            assert {"400", "408", "413", "415"} <= set(operation["responses"]), path


def test_there_is_no_page_that_loads_code_from_elsewhere(served: Served) -> None:
    with served.client() as client:
        for path in ("/docs", "/redoc", "/docs/oauth2-redirect"):
            assert client.get(path).status_code == 404
        # What a browser gets there is the console; its own tests see to what it loads.
        assert client.get("/").headers["location"] == "/login"
