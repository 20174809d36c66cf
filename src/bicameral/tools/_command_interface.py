"""Programs that describe themselves: what `--describe` prints becomes tools.

`PROGRAM --describe` prints the program's name, inputs and outputs:

    {"name": "agx-ocr", "version": "0.1.0", "capabilities": ["document-ocr", "image-to-text"],
     "inputs": ["image/png", "application/pdf"], "outputs": ["text/plain"]}

With only that, a text input goes to standard input and any other is a file named on the command line. Under the key
`bicameral` a program can declare more: a list of tools as in a manifest, whose argv leaves the program out. The
declaration is checked and the program confined, never trusted: only the user can give it the network, files beyond its
arguments, or more than the usual limits, and its declared origins and purposes count only if the user's settings for it
say `believe = true`. Its effect is irreversible, whatever it declares, until the user sets, believes or confirms one.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bicameral.documents import KeyFault, first_key_fault
from bicameral.errors import Place, ToolError
from bicameral.tools._argument import EFFECTS, Effect
from bicameral.tools._command import command_tool, program_files, program_path
from bicameral.tools._confirmed_effects import (
    DescribedEffect,
    LapsedEffectWarning,
    ProgramIdentity,
    ProgramPin,
    hash_description,
    resolve_effect,
)
from bicameral.tools._declaration import Settings
from bicameral.tools._effect_proposals import propose_effect
from bicameral.tools._folders import Folders
from bicameral.tools._manifest import LimitsSpec, ToolSpec
from bicameral.tools._manifest_rules import (
    effect_faults,
    spec_faults,
)
from bicameral.tools._media import normalise_media
from bicameral.tools._sandbox import (
    MIB,
    CommandResult,
    Confinement,
    ConfinementProbe,
    confinement_problem,
    run_confined_sync,
)
from bicameral.tools._tool import Tool

DESCRIBE_SECONDS = 5.0
_MAX_OUTPUT = MIB
_EXAMPLE_HINT = "examples/tools/checksum is an example."


class _DescriptionExtension(BaseModel):
    """What a command says about itself to us: the tools of a manifest, without the program."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)
    manifest: Literal[1]
    tools: list[dict[str, Any]] = Field(min_length=1)


class CommandDescription(BaseModel):
    """What `--describe` prints. Keys that are not known are left alone: others use this format too."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True, defer_build=True)
    name: str = Field(min_length=1, max_length=100)
    version: str = Field(max_length=100)
    capabilities: list[str]
    inputs: list[str]
    outputs: list[str]
    bicameral: _DescriptionExtension | None = None


class CommandSettings(Settings):
    """What a user can set for a command that describes itself."""

    effect: Effect | None = Field(
        default=None, description="What it does to the world, where it does not say so itself."
    )
    timeout: Annotated[float, Field(gt=0, le=86_400)] | None = Field(
        default=None, description="Seconds until it is killed; left out: what it says itself, or 30."
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
    probe: ConfinementProbe = confinement_problem,
) -> list[Tool]:
    """The tools of a command, from its own `--describe`, which runs confined, without files and network.

    Args:
        argv: The command without `--describe`.
        folders: Where the tools may read and write; nowhere by default.
        settings: What the user grants the command.
        timeout: Seconds for `--describe`.
        probe: Says why commands cannot be confined here, or None.
    """
    if not argv:
        raise ToolError("tools.command-not-found", "there is no command to describe", expected="at least one word")
    start = [program_path(argv[0]), *argv[1:]]
    granted = settings or CommandSettings()
    confinement = Confinement(
        read=(*program_files(start), *map(Path, granted.needs)), timeout=timeout, memory=512 * MIB, output=_MAX_OUTPUT
    )
    result = run_confined_sync([*start, "--describe"], confinement, probe=probe)
    command = " ".join([*argv, "--describe"])
    _check_describe_result(result, command, timeout)
    described, content = _parse_description(result.stdout, command)
    allowed = folders or Folders.of(Path("/"), read=())
    network = tuple(granted.network) if isinstance(granted.network, list) else granted.network
    identity = ProgramIdentity(tuple(start), tuple(granted.needs), network, hash_description(content))
    tools: list[Tool] = []
    for spec, declared in _tool_specs(described, command, granted):
        effect = _described_effect(spec, declared, content, identity, granted)
        pin = ProgramPin.of(spec.name, identity) if effect.state == "confirmed" else None
        spec = _with_effect(spec, effect)
        tool = command_tool(spec, allowed, program=start, believed=granted.believe, probe=probe, pin=pin)
        tools.append(replace(tool, described=effect))
    return tools


def _described_effect(
    spec: ToolSpec,
    declared: Effect | None,
    content: Mapping[str, Any],
    identity: ProgramIdentity,
    settings: CommandSettings,
) -> DescribedEffect:
    """What the description proposes for a tool, and what the user has decided."""
    possible = tuple[Effect, ...](
        each for each in EFFECTS if not any(effect_faults(spec.model_copy(update={"effect": each})))
    )
    found = DescribedEffect(spec.name, identity, propose_effect(spec, content, declared), possible)
    if settings.believe and declared is not None:
        return replace(found, state="configured")
    if settings.effect is not None and declared is None:
        return replace(found, state="configured")
    found = resolve_effect(found)
    if found.state == "lapsed":
        warnings.warn(f"the effect of {spec.name!r} is {found}. [tools.lapsed]", LapsedEffectWarning, stacklevel=4)
    return found


def _with_effect(spec: ToolSpec, found: DescribedEffect) -> ToolSpec:
    """The specification with the effect that counts. A description alone gives none: anybody may have written it."""
    match found.state:
        case "configured":
            return spec
        case "confirmed":
            return spec.model_copy(update={"effect": found.confirmed})
        case "unconfirmed" | "lapsed":
            return spec.model_copy(update={"effect": "irreversible", "idempotent": False})


def _check_describe_result(result: CommandResult, command: str, timeout: float) -> None:
    match result.ended:
        case "exited" if result.exit_code == 0:
            return
        case "timeout":
            raise ToolError(
                "tools.describe-timeout",
                f"`{command}` gave no answer within {timeout:g} seconds and was killed",
                fix="It must print its description and exit at once, whatever its standard input; "
                "or write a manifest for it.",
            )
        case "output":
            raise ToolError(
                "tools.describe-too-large",
                f"`{command}` printed more than {_MAX_OUTPUT:,} bytes and was killed",
                expected="one JSON object",
            )
        case _:
            last = result.stderr.decode(errors="replace").strip().splitlines()[-1:]
            reason = f": {last[0][:300]}" if last else ""
            raise ToolError(
                "tools.describe-failed",
                f"`{command}` failed with exit code {result.exit_code}{reason}",
                fix="A command that knows no --describe needs a manifest; files of its own outside the system's "
                "folders are named there under `needs`.",
            )


def _parse_description(stdout: bytes, command: str) -> tuple[CommandDescription, dict[str, Any]]:
    """The description, and all that was printed."""
    try:
        content = json.loads(stdout.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise _description_error(command, f"byte {error.start} is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise _description_error(command, f"{error.msg} at line {error.lineno}, column {error.colno}") from None
    except (ValueError, RecursionError):
        raise _description_error(command, "it is nested too deeply") from None
    try:
        described = CommandDescription.model_validate(content)
    except ValidationError as error:
        fault = first_key_fault(error, CommandDescription)
        raise _description_error(command, f"{fault.key}: {fault.message}" if fault.path else fault.message) from None
    for kind in (*described.inputs, *described.outputs):
        if normalise_media(kind) is None:
            raise _description_error(command, f"{kind[:60]!r} is not a MIME type")
    return described, content


def _description_error(command: str, reason: str) -> ToolError:
    return ToolError(
        "tools.describe-garbage",
        f"what `{command}` printed is no description: {reason}",
        expected="a JSON object with name, version, capabilities, inputs, outputs",
        fix=_EXAMPLE_HINT,
    )


def _tool_specs(
    described: CommandDescription, command: str, settings: CommandSettings
) -> list[tuple[ToolSpec, Effect | None]]:
    """The tools of a description, each with the effect that it declares."""
    facts = {"accepts": described.inputs, "gives": described.outputs, "capabilities": described.capabilities}
    if described.bicameral is None:
        raw = [facts | _plain_tool(described, command)]
    else:
        defaults: dict[str, Any] = {"name": _tool_name(described.name), "version": described.version, "argv": []}
        raw = [facts | defaults | each for each in described.bicameral.tools]
    return [
        (_tool_spec(each, number, command, settings), cast("Effect | None", each.get("effect")))
        for number, each in enumerate(raw)
    ]


def _tool_spec(content: dict[str, Any], number: int, command: str, settings: CommandSettings) -> ToolSpec:
    try:
        spec = ToolSpec.model_validate(({"effect": settings.effect} if settings.effect else {}) | content)
    except ValidationError as error:
        raise _spec_error(first_key_fault(error, ToolSpec), number, command) from None
    # What the program declared here is overwritten: only the user's settings grant network and files.
    granted = spec.model_copy(update={"network": settings.network, "needs": settings.needs})
    if settings.timeout is not None:
        granted = granted.model_copy(update={"timeout": settings.timeout})
    for fault in (*_self_grant_faults(spec), *spec_faults(granted, program=False)):
        raise _spec_error(fault, number, command)
    return granted


def _self_grant_faults(spec: ToolSpec) -> Iterator[KeyFault]:
    """What a command tries to grant itself: only the user's settings can."""
    if spec.network:
        yield KeyFault(
            ("network",), "a command cannot give itself the network", "`network` in the user's settings for it"
        )
    if spec.needs:
        yield KeyFault(("needs",), "a command cannot give itself files", "`needs` in the user's settings for it")
    for name, limit in LimitsSpec().model_dump().items():
        if getattr(spec.limits, name) > limit:
            yield KeyFault(("limits", name), "a command cannot raise its own limits", f"at most {limit}")


def _spec_error(fault: KeyFault, number: int, command: str) -> ToolError:
    fault = replace(fault, path=("bicameral", "tools", number, *fault.path))
    return ToolError(
        "tools.bad-manifest",
        f"{fault.key}: {fault.message}",
        place=Place(f"`{command}`"),
        expected=fault.expected,
        nearest=fault.nearest,
        fix=_EXAMPLE_HINT,
    )


def _plain_tool(described: CommandDescription, command: str) -> dict[str, Any]:
    """The tool of a description without the key `bicameral`."""
    words = dict.fromkeys(word for each in described.capabilities for word in re.findall(r"[^\W_]{3,}", each.lower()))
    doc = f"{described.name}: {', '.join(described.capabilities)}." if described.capabilities else described.name
    content: dict[str, Any] = {
        "name": _tool_name(described.name),
        "version": described.version,
        "doc": doc,
        "words": list(words),
        "result": _result_kind(described.outputs, command),
        "argv": [],
    }
    if described.inputs and all(kind.startswith("text/") for kind in described.inputs):
        content |= {"stdin": "text", "arguments": {"text": {"doc": "The text to work on."}}}
    elif described.inputs:
        kinds = ", ".join(described.inputs)
        content |= {"argv": ["{path}"], "arguments": {"path": {"type": "path", "doc": f"A file: {kinds}."}}}
    return content


def _tool_name(name: str) -> str:
    """The name as a Python identifier: `agx-ocr` becomes `agx_ocr`."""
    return re.sub(r"\W+", "_", name).strip("_").lower()


def _result_kind(outputs: Sequence[str], command: str) -> str:
    """How to read the output: by the first kind, which a command prints by default."""
    first = outputs[0].split(";")[0] if outputs else "text/plain"
    if first == "application/json" or first.endswith("+json"):
        return "json"
    if first == "text/csv":
        return "table"
    if first.startswith("text/"):
        return "text"
    raise _description_error(
        command, f"its first output is {first!r}, and a plan has no such values (text/* and application/json)"
    )
