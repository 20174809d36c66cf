"""Tools from manifests: build the argv, stage the declared files, run the command confined, parse its output."""

from __future__ import annotations

import asyncio
import csv
import io
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from bicameral.display import make_visible
from bicameral.errors import Place, ToolError, nearest_name
from bicameral.parsing import InvalidJson, read_json
from bicameral.tools._argument import REQUIRED, UNDECLARED, Argument
from bicameral.tools._call_identity import KEY_VARIABLE, call_key, program_code_hash
from bicameral.tools._changes import current_change_log, report_unrecorded
from bicameral.tools._confirmed_effects import ProgramPin
from bicameral.tools._folders import Folders
from bicameral.tools._manifest import ArgumentSpec, Manifest, ToolSpec
from bicameral.tools._manifest_rules import (
    ArgvElement,
    ArgvTemplate,
    ArgvValue,
    OptionalGroup,
    fill_template,
    parse_template,
    spec_argument_type,
    spec_attached,
    spec_origins,
    spec_result_type,
)
from bicameral.tools._media import plain_capabilities, plain_media
from bicameral.tools._path_rules import CONFIGURATION, STATE, WriteTarget
from bicameral.tools._sandbox import (
    MIB,
    PATH,
    CommandResult,
    Confinement,
    ConfinementProbe,
    confinement_problem,
    require_confinement,
    run_confined,
)
from bicameral.tools._tool import Tool
from bicameral.types import OptionalType

_STDERR_LINES = 8
_STDERR_CHARACTERS = 1200


class CommandFailed(ToolError):
    """A command ended with an exit code that its manifest does not list as success; a signal is negative."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__("tools.command-failed", message)
        self.exit_code = exit_code

    def to_json(self) -> dict[str, Any]:
        return {**super().to_json(), "exit_code": self.exit_code}


def command_tools(manifest: Manifest, folders: Folders, *, probe: ConfinementProbe = confinement_problem) -> list[Tool]:
    """The tools of a manifest; they read and write only inside `folders`.

    Example:
        >>> tools = command_tools(read_manifest(Path("wordcount.toml")), Folders.of(Path("."), read=[Path(".")]))
    """
    return [command_tool(spec, folders, program=None, probe=probe) for spec in manifest.tools]


def command_tool(
    spec: ToolSpec,
    folders: Folders,
    *,
    program: Sequence[str] | None,
    believed: bool = True,
    probe: ConfinementProbe = confinement_problem,
    pin: ProgramPin | None = None,
) -> Tool:
    """One tool from its specification.

    Args:
        spec: The specification.
        folders: Where it may read and write.
        program: The beginning of the argv, if the template does not name the program.
        believed: Whether its security facts count. Those that an untrusted program declares of itself do not; it is
            then treated as a tool that declares nothing. Its confinement holds in any case.
        probe: Says why commands cannot be confined here, or None.
        pin: The program whose effect was confirmed; no other is started.
    """
    parsed = parse_template(spec)
    start = [program_path(_program_name(parsed[0]))] if program is None else list(program)
    command = ConfinedCommand(spec, parsed[1:] if program is None else parsed, tuple(start), folders, probe, pin)
    declared = any(each.purpose for each in spec.arguments.values()) or spec.outbound is not None
    outbound = bool(spec.network) or spec.effect == "send" or (believed and bool(spec.outbound))
    return Tool(
        name=spec.name,
        doc=spec.doc,
        arguments=tuple(
            Argument(
                name,
                OptionalType(spec_argument_type(each)) if each.optional else spec_argument_type(each),
                each.doc,
                None if each.optional else REQUIRED if each.default is None else each.default,
                (each.purpose if believed else None) or UNDECLARED,
            )
            for name, each in spec.arguments.items()
        ),
        result=spec_result_type(spec),
        effect=spec.effect,
        run=command.run,
        timeout=spec.timeout,
        idempotent=spec.effect in ("pure", "read") if spec.idempotent is None else spec.idempotent,
        keyed=believed and spec.keyed,
        version=spec.version,
        words=tuple(spec.words),
        accepts=plain_media(spec.accepts),
        gives=plain_media(spec.gives),
        capabilities=plain_capabilities(spec.capabilities),
        origins=spec_origins(spec) if believed else {},
        outbound=outbound,
        receivers=UNDECLARED if spec.receivers is None or not believed else tuple(spec.receivers),
        attaches=UNDECLARED if (attached := spec_attached(spec)) is None or not believed else attached,
        hosts=_reachable_hosts(spec),
        target=command.write_target if spec.effect == "write" and command.written_arguments else None,
        code=program_code_hash(start),
        declared=believed and (declared or bool(spec.origins) or spec.effect == "pure"),
        self_described=not believed,
    )


def find_command(tool: Tool) -> ConfinedCommand | None:
    """The command that a tool runs, or None if it is no command."""
    # The exact class and method: no other object may pass as a confined command.
    command = getattr(tool.run, "__self__", None)
    return command if type(command) is ConfinedCommand and tool.run == command.run else None


def _reachable_hosts(spec: ToolSpec) -> tuple[str, ...]:
    """The only hosts a command can reach: its sandbox blocks all others."""
    endpoints = spec.network if isinstance(spec.network, list) else []
    return () if any(endpoint.startswith("*") for endpoint in endpoints) else tuple(endpoints)


def program_path(name: str) -> str:
    """The path of a program: an absolute path unchanged, a bare name looked up in the system's folders."""
    if "/" in name and not name.startswith("/"):
        raise ToolError(
            "tools.command-not-found",
            f"{name!r} is relative, so it depends on the folder one happens to be in",
            expected="a bare name such as 'wc', or an absolute path",
        )
    path = shutil.which(name, path=PATH)
    if path is None:
        elsewhere = shutil.which(name)
        raise ToolError(
            "tools.command-not-found",
            f"there is no program {name!r}" + ("" if name.startswith("/") else f" in {PATH.replace(':', ', ')}"),
            nearest=None if name.startswith("/") else nearest_name(name, _installed_programs()),
            fix=f"It is at {elsewhere}: write that path in the manifest, and what else it needs under `needs`."
            if elsewhere and not name.startswith("/")
            else "Install it, or leave the tool out.",
        )
    return path


def program_files(start: Sequence[str]) -> list[Path]:
    """The program and, for an interpreter, its script: they must be readable for it to start."""
    return [Path(element) for element in start if os.path.isabs(element) and os.path.isfile(element)]


def _installed_programs() -> Iterable[str]:
    for folder in PATH.split(":"):
        if os.path.isdir(folder):
            yield from os.listdir(folder)


def _program_name(element: ArgvElement | OptionalGroup) -> str:
    if isinstance(element, OptionalGroup):
        raise ToolError("tools.bad-manifest", "no argument can choose the program")
    return "".join(part for part in element if isinstance(part, str))


@dataclass(frozen=True, slots=True)
class ConfinedCommand:
    """A command ready to be called: the only class that a command tool's `run` is bound to."""

    spec: ToolSpec
    template: ArgvTemplate
    start: tuple[str, ...]
    folders: Folders
    probe: ConfinementProbe
    pin: ProgramPin | None = None

    async def run(self, arguments: Mapping[str, Any]) -> object:
        require_confinement(self.probe)
        with ExitStack() as stack:
            files = CommandFiles(self.spec, self.folders, stack)
            values: dict[str, ArgvValue] = await asyncio.to_thread(files.resolve_arguments, arguments)
            literals = {name for name, each in self.spec.arguments.items() if each.type == "literal"}
            argv = [*self.start, *fill_template(self.template, values, fixed=literals)]
            if self.pin is not None:
                await asyncio.to_thread(self.pin.require)
            try:
                confinement, stdin = self._confinement(files), self._stdin(arguments)
                done = await run_confined(argv, confinement, stdin=stdin, probe=self.probe)
            finally:
                # However it ended: a command may have created files before it was killed.
                files.reject_protected_outputs()
            self._check_result(done)
            # In a thread: parsing megabytes must not block the other steps of the run.
            result = await asyncio.to_thread(parse_result, self.spec, done.stdout)
            # Last: outputs take effect only if the command succeeded and its result is valid.
            await asyncio.to_thread(files.commit_outputs)
        return result

    @property
    def written_arguments(self) -> tuple[str, ...]:
        """The arguments that name files which the command writes."""
        return tuple(
            name for name, each in self.spec.arguments.items() if _is_path_argument(each) and each.access != "read"
        )

    @property
    def writes_files_only(self) -> bool:
        """Whether the sandbox lets it change nothing but files that a call names."""
        return bool(self.written_arguments) and not self.spec.network

    def write_target(self, given: Mapping[str, Any]) -> WriteTarget:
        """What is known of the files that it writes. It may copy content from anything that it can read."""
        spec = self.spec
        copied = bool(spec.network) or any(
            _is_path_argument(each) and each.access != "write" for each in spec.arguments.values()
        )
        targets = [
            self.folders.target(each, copied=copied)
            for name in self.written_arguments
            for each in _path_values(given, name)
        ]
        protected = next((each.protected for each in targets if each.protected), None)
        # A file that is edited is meant to change; one that is written anew loses what it held.
        anew = [name for name in self.written_arguments if spec.arguments[name].access == "write"]
        found = [self.folders.replaced_files(each) for name in anew for each in _path_values(given, name)]
        replaced = None if None in found else tuple(path for each in found for path in each or ())
        if any(each.executed for each in targets):
            return WriteTarget(True, copied, protected, replaced)
        executed = None if any(each.executed is None for each in targets) else False
        return WriteTarget(executed, copied, protected, replaced)

    def _stdin(self, arguments: Mapping[str, Any]) -> bytes:
        given = arguments.get(self.spec.stdin) if self.spec.stdin else None
        if given is None:
            return b""
        text = given if isinstance(given, str) else "".join(f"{line}\n" for line in given)
        try:
            return text.encode()
        except UnicodeEncodeError:
            raise ToolError(
                "tools.bad-argument", f"{self.spec.stdin!r} is not Unicode text that can be written as UTF-8"
            ) from None

    def _confinement(self, files: CommandFiles) -> Confinement:
        spec, limits = self.spec, self.spec.limits
        network = spec.network if isinstance(spec.network, list) else ["*:*"] if spec.network else []
        return Confinement(
            read=(*program_files(self.start), *map(Path, spec.needs), *files.read),
            write=tuple(files.write),
            denied=tuple(files.denied),
            network=tuple(network),
            timeout=spec.timeout,
            memory=limits.memory_mb * MIB,
            output=limits.output_kb * 1024,
            processes=limits.processes,
            # With the call key a `keyed` command can recognise a repetition.
            environment=spec.env | files.environment | ({} if (key := call_key()) is None else {KEY_VARIABLE: key}),
            folder=self.folders.base,
        )

    def _check_result(self, result: CommandResult) -> None:
        name, limits = self.spec.name, self.spec.limits
        match result.ended:
            case "exited" if result.exit_code in self.spec.ok_exit_codes:
                return
            case "exited":
                code = result.exit_code
                how = f"ended with signal {-code}" if code < 0 else f"failed with exit code {code}"
                raise CommandFailed(f"{name!r} {how}{_stderr_excerpt(result.stderr)}", code)
            case "not-started":
                raise ToolError("tools.cannot-start", f"{name!r} could not be started{_stderr_excerpt(result.stderr)}")
            case "timeout":
                raise ToolError(
                    "tools.command-timeout",
                    f"{name!r} was killed after {self.spec.timeout:g} seconds{_stderr_excerpt(result.stderr)}",
                    fix="Give it less to do, or raise `timeout` in its manifest.",
                )
            case "output":
                raise ToolError(
                    "tools.output-too-large",
                    f"{name!r} was killed because it printed more than {limits.output_kb:,} kB",
                    fix="Ask for less, or raise `limits.output_kb` in its manifest.",
                )
            case "killed" | "stopped" | "cpu" | "disk":
                raise ToolError(
                    "tools.command-killed",
                    f"{name!r} was killed, most likely because it went over its {limits.memory_mb:,} MB of memory",
                    fix="Give it less to do, or raise `limits.memory_mb` in its manifest.",
                )


def _is_path_argument(argument: ArgumentSpec) -> bool:
    return argument.type in ("path", "list[path]")


def _path_values(given: Mapping[str, Any], name: str) -> Sequence[Any]:
    """The paths that an argument gives; None for one that is not known yet."""
    value = given.get(name)
    return cast("Sequence[Any]", value) if isinstance(value, list | tuple) else (value,)


def _stderr_excerpt(stderr: bytes) -> str:
    text = "\n".join(stderr.decode(errors="replace").strip().splitlines()[-_STDERR_LINES:])
    printable = make_visible(text[-_STDERR_CHARACTERS:])
    return f": {printable}" if printable else ""


@dataclass(frozen=True, slots=True)
class _StagedFile:
    """A file that the command writes in a temporary folder, and its target if the command succeeds."""

    argument: str
    folder: Path
    name: str
    target: str


@dataclass(slots=True)
class CommandFiles:
    """The files that one call reads and writes. Its temporary folders live as long as `stack`."""

    spec: ToolSpec
    folders: Folders
    stack: ExitStack
    read: list[Path] = field(default_factory=list[Path])
    write: list[Path] = field(default_factory=list[Path])
    denied: list[Path] = field(default_factory=list[Path])
    environment: dict[str, str] = field(default_factory=dict[str, str])
    _staged: list[_StagedFile] = field(default_factory=list[_StagedFile])
    _open_folders: list[str] = field(default_factory=list[str])
    """Folders in which the command could create any file."""

    def resolve_arguments(self, arguments: Mapping[str, Any]) -> dict[str, ArgvValue]:
        """The arguments with every path as the command sees it: absolute, and inside the folders."""
        values: dict[str, ArgvValue] = dict(arguments)
        for name, argument in self.spec.arguments.items():
            given = arguments.get(name)
            if argument.type == "path" and given is not None:
                values[name] = self._resolve_path(given, name, argument)
            elif argument.type == "list[path]" and given is not None:
                values[name] = [self._resolve_path(path, name, argument) for path in given]
        if self.spec.scratch:
            scratch = self._new_folder()
            self.write.append(scratch)
            self.environment["TMPDIR"] = str(scratch)
        return values

    def commit_outputs(self) -> None:
        """Move the files that the command wrote to their targets, each atomically."""
        # All are read before any is written: if one is missing, none of the others must be left behind.
        contents = [(staged, self._staged_content(staged)) for staged in self._staged]
        for staged, content in contents:
            self.folders.write_atomic(staged.target, content)

    def reject_protected_outputs(self) -> None:
        """Rename protected files that the command created in a folder, and raise."""
        for folder in self._open_folders:
            if (name := self.folders.rename_protected(folder)) is not None:
                raise ToolError(
                    "tools.protected",
                    f"{self.spec.name!r} made {name!r}, which no tool may make; it was given another name",
                    fix="Look at the file that begins with 'refused-', and delete it.",
                )

    def _resolve_path(self, given: str, name: str, argument: ArgumentSpec) -> Path:
        if argument.access == "read":
            real = self.folders.resolve_readable(given)
            self.read.append(real)
            return real
        real = self.folders.resolve_writable(given)
        if argument.access == "write" and real.is_dir():
            log = current_change_log()
            if log is not None and log.rehearses:
                # What it writes there is not held back.
                raise ToolError("tools.cannot-rehearse", f"{self.spec.name!r} may change anything in {given!r}")
            # The sandbox lets the command write anything in this folder, so it may hold nothing protected.
            self.write.append(self.folders.resolve_writable_folder(given))
            self._open_folders.append(given)
            # Nobody sees what it changes there, so that it cannot be taken back.
            report_unrecorded(real)
            # Denied even if they do not exist: the command must not create them either.
            self.denied += [real / CONFIGURATION, real / STATE]
            return real
        return self._stage_output(given, real, name, argument)

    def _stage_output(self, given: str, real: Path, name: str, argument: ArgumentSpec) -> Path:
        folder = self._new_folder()
        copy = folder / real.name
        # The command gets a copy in a temporary folder, so a failure leaves the user's file as it was.
        if argument.access == "edit":
            copy.write_bytes(self.folders.read_bytes(given))
        self.write.append(folder)
        self._staged.append(_StagedFile(name, folder, real.name, given))
        return copy

    def _staged_content(self, staged: _StagedFile) -> bytes:
        # The command may have created a link that leads anywhere, so the file is read as carefully as a plan's paths.
        folder = Folders.of(staged.folder, read=[staged.folder])
        if not folder.exists(staged.name):
            raise ToolError(
                "tools.no-output",
                f"{self.spec.name!r} ended well but did not make the file {staged.target!r}",
                place=Place(argument=staged.argument),
            )
        return folder.read_bytes(staged.name)

    def _new_folder(self) -> Path:
        return Path(self.stack.enter_context(tempfile.TemporaryDirectory(prefix="bicameral-"))).resolve()


def parse_result(spec: ToolSpec, stdout: bytes) -> object:
    """The value in the output; `tools.bad-output` says why there is none."""
    try:
        text = stdout.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _bad_output_error(spec, f"byte {error.start} is not UTF-8", "UTF-8 text") from None
    match spec.result:
        case "text":
            # As in `$(…)`: the final line end is not part of the result.
            return text.removesuffix("\n")
        case "lines":
            return text.removesuffix("\n").split("\n") if text else []
        case "json":
            return _parse_json_result(spec, text)
        case "table":
            return _parse_table_result(spec, text)


def _parse_json_result(spec: ToolSpec, text: str) -> Any:
    try:
        return read_json(text, what=f"the output of {spec.name!r}")
    except InvalidJson as error:
        where = "" if error.line is None else f" at line {error.line}, column {error.column}"
        raise _bad_output_error(spec, f"{error.why}{where}", "JSON") from None


def _parse_table_result(spec: ToolSpec, text: str) -> list[dict[str, str]]:
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error as error:
        raise _bad_output_error(spec, str(error), "CSV with a header") from None
    if not rows:
        return []
    header, *body = rows
    if len(set(header)) != len(header):
        raise _bad_output_error(spec, "two columns have the same name", "CSV with a header")
    for number, row in enumerate(body, 2):
        if row and len(row) != len(header):
            raise _bad_output_error(spec, f"row {number} has {len(row)} cells, not {len(header)}", "CSV with a header")
    return [dict(zip(header, row, strict=True)) for row in body if row]


def _bad_output_error(spec: ToolSpec, reason: str, expected: str) -> ToolError:
    return ToolError(
        "tools.bad-output", f"{spec.name!r} printed something that cannot be read: {reason}", expected=expected
    )
