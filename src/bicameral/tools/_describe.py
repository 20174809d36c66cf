"""Tools from commands that describe themselves: `TOOL --describe` prints what it is called, takes and gives.

    {"name": "agx-ocr", "version": "0.1.0", "capabilities": ["document-ocr", "image-to-text"],
     "inputs": ["image/png", "application/pdf"], "outputs": ["text/plain"]}

With only that, a text input goes to standard input and any other is a file named on the command line; the effect is
not known, so it is taken for irreversible. Under the key `bicameral` a command can say more: a list of tools as in a
manifest, whose argv leaves the program out. What it says is checked and confined, never trusted: only the user can
give it the network, files beyond its arguments, or more than the usual limits, and what it says about the origins of
its results and the purposes of its arguments counts only if the user's settings for it say `believe = true`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bicameral.errors import Place, ToolError

from ._command import command_tool, own_files, program_path
from ._faults import Fault, first_fault
from ._folders import Folders
from ._manifest import LimitsSpec, ToolSpec
from ._manifest_rules import faults_of
from ._sandbox import MIB, Completed, Confinement, Probe, confinement_problem, run_confined_sync
from ._tool import Effect, Tool
from ._toolbox import Settings

DESCRIBE_SECONDS = 5.0
_MAX_OUTPUT = MIB
_EXAMPLE = "examples/tools/checksum is an example."

_MIME = re.compile(r"[a-zA-Z0-9][\w.+-]*/([a-zA-Z0-9][\w.+-]*|\*)(;.*)?")


class _Extension(BaseModel):
    """What a command says about itself to us: the tools of a manifest, without the program."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)
    manifest: Literal[1]
    tools: list[dict[str, Any]] = Field(min_length=1)


class Description(BaseModel):
    """What `--describe` prints. Keys that are not known are left alone: others use this format too."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True, defer_build=True)
    name: str = Field(min_length=1, max_length=100)
    version: str = Field(max_length=100)
    capabilities: list[str]
    inputs: list[str]
    outputs: list[str]
    bicameral: _Extension | None = None


class CommandSettings(Settings):
    """What a user can set for a command that describes itself."""

    effect: Effect | None = Field(
        default=None, description="What it does to the world, where it does not say so itself."
    )
    network: bool | list[str] = Field(default=False, description='Nothing, everything, or a list of `"host:port"`.')
    needs: list[str] = Field(default_factory=list, description="Absolute paths of the program's own files.")
    believe: bool = Field(
        default=False,
        description="Whether what it says about origins, purposes and receivers counts; without, the worst is assumed.",
    )


def describe_tool(
    argv: Sequence[str],
    folders: Folders | None = None,
    *,
    settings: CommandSettings | None = None,
    timeout: float = DESCRIBE_SECONDS,
    probe: Probe = confinement_problem,
) -> list[Tool]:
    """The tools of a command, from its own `--describe`, which is run confined, without files and network."""
    if not argv:
        raise ToolError("tools.command-not-found", "there is no command to describe", expected="at least one word")
    start = [program_path(argv[0]), *argv[1:]]
    given = settings or CommandSettings()
    confinement = Confinement(
        read=(*own_files(start), *map(Path, given.needs)), timeout=timeout, memory=512 * MIB, output=_MAX_OUTPUT
    )
    done = run_confined_sync([*start, "--describe"], confinement, probe=probe)
    shown = " ".join([*argv, "--describe"])
    _check(done, shown, timeout)
    described = _parse(done.stdout, shown)
    inside = folders or Folders.of(Path("/"), read=())
    return [
        command_tool(spec, inside, program=start, believed=given.believe, probe=probe)
        for spec in _specs(described, shown, given)
    ]


def _check(done: Completed, shown: str, timeout: float) -> None:
    match done.ended:
        case "exited" if done.exit_code == 0:
            return
        case "timeout":
            raise ToolError(
                "tools.describe-timeout",
                f"`{shown}` gave no answer within {timeout:g} seconds and was killed",
                fix="It must print its description and exit at once, whatever its standard input; "
                "or write a manifest for it.",
            )
        case "output":
            raise ToolError(
                "tools.describe-too-large",
                f"`{shown}` printed more than {_MAX_OUTPUT:,} bytes and was killed",
                expected="one JSON object",
            )
        case _:
            last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
            reason = f": {last[0][:300]}" if last else ""
            raise ToolError(
                "tools.describe-failed",
                f"`{shown}` failed with exit code {done.exit_code}{reason}",
                fix="A command that knows no --describe needs a manifest; files of its own outside the system's "
                "folders are named there under `needs`.",
            )


def _parse(stdout: bytes, shown: str) -> Description:
    try:
        content = json.loads(stdout.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise _garbage(shown, f"byte {error.start} is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise _garbage(shown, f"{error.msg} at line {error.lineno}, column {error.colno}") from None
    except (ValueError, RecursionError):
        raise _garbage(shown, "it is nested too deeply") from None
    try:
        described = Description.model_validate(content)
    except ValidationError as error:
        fault = first_fault(error, Description)
        raise _garbage(shown, f"{fault.key}: {fault.message}" if fault.path else fault.message) from None
    for kind in (*described.inputs, *described.outputs):
        if not _MIME.fullmatch(kind):
            raise _garbage(shown, f"{kind[:60]!r} is not a MIME type")
    return described


def _garbage(shown: str, reason: str) -> ToolError:
    return ToolError(
        "tools.describe-garbage",
        f"what `{shown}` printed is no description: {reason}",
        expected="a JSON object with name, version, capabilities, inputs, outputs",
        fix=_EXAMPLE,
    )


def _specs(described: Description, shown: str, settings: CommandSettings) -> list[ToolSpec]:
    if described.bicameral is None:
        raw = [_plain(described, shown)]
    else:
        usual: dict[str, Any] = {"name": _identifier(described.name), "version": described.version, "argv": []}
        raw = [usual | each for each in described.bicameral.tools]
    return [_spec(each, number, shown, settings) for number, each in enumerate(raw)]


def _spec(content: dict[str, Any], number: int, shown: str, settings: CommandSettings) -> ToolSpec:
    try:
        spec = ToolSpec.model_validate(({"effect": settings.effect} if settings.effect else {}) | content)
    except ValidationError as error:
        raise _wrong(first_fault(error, ToolSpec), number, shown) from None
    granted = spec.model_copy(update={"network": settings.network, "needs": settings.needs})
    for fault in (*_taken(spec), *faults_of(granted, program=False)):
        raise _wrong(fault, number, shown)
    return granted


def _taken(spec: ToolSpec) -> Iterator[Fault]:
    """What a command tries to grant itself."""
    if spec.network:
        yield Fault(("network",), "a command cannot give itself the network", "`network` in the user's settings for it")
    if spec.needs:
        yield Fault(("needs",), "a command cannot give itself files", "`needs` in the user's settings for it")
    for name, limit in LimitsSpec().model_dump().items():
        if getattr(spec.limits, name) > limit:
            yield Fault(("limits", name), "a command cannot raise its own limits", f"at most {limit}")


def _wrong(fault: Fault, number: int, shown: str) -> ToolError:
    at = Fault(("bicameral", "tools", number, *fault.path), fault.message)
    return ToolError(
        "tools.bad-manifest",
        f"{at.key}: {fault.message}",
        place=Place(f"`{shown}`"),
        expected=fault.expected,
        nearest=fault.nearest,
        fix=_EXAMPLE,
    )


def _plain(described: Description, shown: str) -> dict[str, Any]:
    """The tool of a description that says no more than the plain format has."""
    words = dict.fromkeys(word for each in described.capabilities for word in re.findall(r"[^\W_]{3,}", each.lower()))
    content: dict[str, Any] = {
        "name": _identifier(described.name),
        "version": described.version,
        "doc": _doc(described),
        "words": list(words),
        "result": _result(described.outputs, shown),
        "argv": [],
    }
    if described.inputs and all(kind.startswith("text/") for kind in described.inputs):
        content |= {"stdin": "text", "arguments": {"text": {"doc": "The text to work on."}}}
    elif described.inputs:
        kinds = ", ".join(described.inputs)
        content |= {"argv": ["{path}"], "arguments": {"path": {"type": "path", "doc": f"A file: {kinds}."}}}
    return content


def _doc(described: Description) -> str:
    return f"{described.name}: {', '.join(described.capabilities)}." if described.capabilities else described.name


def _identifier(name: str) -> str:
    """The name as plans can write it: `agx-ocr` becomes `agx_ocr`."""
    return re.sub(r"\W+", "_", name).strip("_").lower()


def _result(outputs: Sequence[str], shown: str) -> str:
    """How to read the output: the first kind is what a command prints unless it is asked for another."""
    first = outputs[0].split(";")[0] if outputs else "text/plain"
    if first == "application/json" or first.endswith("+json"):
        return "json"
    if first == "text/csv":
        return "table"
    if first.startswith("text/"):
        return "text"
    raise _garbage(shown, f"its first output is {first!r}, and a plan has no such values (text/* and application/json)")
