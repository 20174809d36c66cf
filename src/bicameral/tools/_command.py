"""Tools from manifests: build the argv, give the command exactly its files, run it confined, read what it prints."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from bicameral.display import visible
from bicameral.errors import ToolError, nearest
from bicameral.types import OptionalType

from ._argv import Element, Group, Template, Value, fill
from ._code import code_of_program
from ._command_files import CommandFiles
from ._command_results import parse_result
from ._executed import Target
from ._folders import Folders
from ._key import KEY_VARIABLE, call_key
from ._manifest import ArgumentSpec, Manifest, ToolSpec
from ._manifest_rules import argument_type, attached_by, origins_of, result_type, template
from ._sandbox import MIB, PATH, Completed, Confinement, Probe, confinement_problem, require_confinement, run_confined
from ._tool import REQUIRED, UNSAID, Argument, Tool

_COMPLAINT_LINES = 8
_COMPLAINT_CHARACTERS = 1200


class CommandFailed(ToolError):
    """A command ended with an exit code that its manifest does not take for success; a signal is a negative one."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__("tools.command-failed", message)
        self.exit_code = exit_code


def command_tools(manifest: Manifest, folders: Folders, *, probe: Probe = confinement_problem) -> list[Tool]:
    """The tools of a manifest; what they read and write stays inside `folders`."""
    return [command_tool(spec, folders, program=None, probe=probe) for spec in manifest.tools]


def command_tool(
    spec: ToolSpec,
    folders: Folders,
    *,
    program: Sequence[str] | None,
    believed: bool = True,
    probe: Probe = confinement_problem,
) -> Tool:
    """One tool. `program` is the beginning of the argv, where the template itself does not name the program.

    `believed`: whether its security facts count. Those that a stranger's program says of itself do not, and it is then
    taken for a tool that says nothing. That it is confined, however, is not its own word.
    """
    parsed = template(spec)
    start = [program_path(_name_of(parsed[0]))] if program is None else list(program)
    command = Command(spec, parsed[1:] if program is None else parsed, tuple(start), folders, probe)
    declared = any(each.purpose for each in spec.arguments.values()) or spec.outbound is not None
    reaches_out = bool(spec.network) or spec.effect == "send" or (believed and bool(spec.outbound))
    return Tool(
        name=spec.name,
        doc=spec.doc,
        arguments=tuple(
            Argument(
                name,
                OptionalType(argument_type(each)) if each.optional else argument_type(each),
                each.doc,
                None if each.optional else REQUIRED if each.default is None else each.default,
                (each.purpose if believed else None) or UNSAID,
            )
            for name, each in spec.arguments.items()
        ),
        result=result_type(spec),
        effect=spec.effect,
        run=command.run,
        timeout=spec.timeout,
        idempotent=spec.effect in ("pure", "read") if spec.idempotent is None else spec.idempotent,
        keyed=believed and spec.keyed,
        version=spec.version,
        words=tuple(spec.words),
        origins=origins_of(spec) if believed else {},
        outbound=reaches_out,
        receivers=UNSAID if spec.receivers is None or not believed else tuple(spec.receivers),
        attaches=UNSAID if (attached := attached_by(spec)) is None or not believed else attached,
        hosts=_hosts(spec),
        target=command.target if spec.effect == "write" and command.written else None,
        code=code_of_program(start),
        declared=believed and (declared or bool(spec.origins) or spec.effect == "pure"),
        self_described=not believed,
    )


def command_of(tool: Tool) -> Command | None:
    """The command that a tool runs, or None if it is no command."""
    behind = getattr(tool.run, "__self__", None)
    return behind if type(behind) is Command and tool.run == behind.run else None


def _hosts(spec: ToolSpec) -> tuple[str, ...]:
    """The only places a command can reach: its sandbox lets it nowhere else."""
    listed = spec.network if isinstance(spec.network, list) else []
    return () if any(endpoint.startswith("*") for endpoint in listed) else tuple(listed)


def program_path(name: str) -> str:
    """Where a program is: an absolute path as it is, a bare name in the system's folders."""
    if "/" in name and not name.startswith("/"):
        raise ToolError(
            "tools.command-not-found",
            f"{name!r} is relative, so it depends on the folder one happens to be in",
            expected="a bare name such as 'wc', or an absolute path",
        )
    found = shutil.which(name, path=PATH)
    if found is None:
        elsewhere = shutil.which(name)
        raise ToolError(
            "tools.command-not-found",
            f"there is no program {name!r}" + ("" if name.startswith("/") else f" in {PATH.replace(':', ', ')}"),
            nearest=None if name.startswith("/") else nearest(name, _programs()),
            fix=f"It is at {elsewhere}: write that path in the manifest, and what else it needs under `needs`."
            if elsewhere and not name.startswith("/")
            else "Install it, or leave the tool out.",
        )
    return found


def own_files(start: Sequence[str]) -> list[Path]:
    """The program and, for an interpreter, its script: what must be readable for it to start at all."""
    return [Path(element) for element in start if os.path.isabs(element) and os.path.isfile(element)]


def _programs() -> Iterable[str]:
    for folder in PATH.split(":"):
        if os.path.isdir(folder):
            yield from os.listdir(folder)


def _name_of(element: Element | Group) -> str:
    if isinstance(element, Group):
        raise ToolError("tools.bad-manifest", "no argument can choose the program")
    return "".join(part for part in element if isinstance(part, str))


@dataclass(frozen=True, slots=True)
class Command:
    """A command ready to be called: what its tool's `run` is bound to, and nothing else's is."""

    spec: ToolSpec
    template: Template
    start: tuple[str, ...]
    folders: Folders
    probe: Probe

    async def run(self, arguments: Mapping[str, Any]) -> object:
        require_confinement(self.probe)
        with ExitStack() as stack:
            files = CommandFiles(self.spec, self.folders, stack)
            values: dict[str, Value] = await asyncio.to_thread(files.resolve, arguments)
            argv = [*self.start, *fill(self.template, values, fixed=self._fixed())]
            try:
                confinement, stdin = self._confinement(files), self._stdin(arguments)
                done = await run_confined(argv, confinement, stdin=stdin, probe=self.probe)
            finally:
                # However it ended: a command that was killed may have made something before.
                files.refuse_protected()
            self._check(done)
            # In a thread: megabytes of output take their time, and the others of this run have theirs.
            result = await asyncio.to_thread(parse_result, self.spec, done.stdout)
            await asyncio.to_thread(files.keep)
        return result

    @property
    def written(self) -> tuple[str, ...]:
        """The arguments that name files which the command writes."""
        return tuple(name for name, each in self.spec.arguments.items() if _is_path(each) and each.access != "read")

    def target(self, given: Mapping[str, Any]) -> Target:
        """What is known of the files that it writes. What it writes there it may have read anywhere it can reach."""
        spec = self.spec
        copied = bool(spec.network) or any(
            _is_path(each) and each.access != "write" for each in spec.arguments.values()
        )
        found = [self.folders.target(each, copied=copied) for name in self.written for each in _listed(given, name)]
        protected = next((each.protected for each in found if each.protected), None)
        if any(each.executed for each in found):
            return Target(True, copied, protected)
        return Target(None if any(each.executed is None for each in found) else False, copied, protected)

    def _fixed(self) -> set[str]:
        return {name for name, argument in self.spec.arguments.items() if argument.type == "literal"}

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
            read=(*own_files(self.start), *map(Path, spec.needs), *files.read),
            write=tuple(files.write),
            denied=tuple(files.denied),
            network=tuple(network),
            timeout=spec.timeout,
            memory=limits.memory_mb * MIB,
            output=limits.output_kb * 1024,
            processes=limits.processes,
            environment=spec.env | files.environment | _key(),
            folder=self.folders.base,
        )

    def _check(self, done: Completed) -> None:
        name, limits = self.spec.name, self.spec.limits
        match done.ended:
            case "exited" if done.exit_code in self.spec.ok_exit_codes:
                return
            case "exited":
                code = done.exit_code
                how = f"ended with signal {-code}" if code < 0 else f"failed with exit code {code}"
                raise CommandFailed(f"{name!r} {how}{_complaint(done.stderr)}", code)
            case "not-started":
                raise ToolError("tools.cannot-start", f"{name!r} could not be started{_complaint(done.stderr)}")
            case "timeout":
                raise ToolError(
                    "tools.command-timeout",
                    f"{name!r} was killed after {self.spec.timeout:g} seconds{_complaint(done.stderr)}",
                    fix="Give it less to do, or raise `timeout` in its manifest.",
                )
            case "output":
                raise ToolError(
                    "tools.output-too-large",
                    f"{name!r} was killed because it printed more than {limits.output_kb:,} kB",
                    fix="Ask for less, or raise `limits.output_kb` in its manifest.",
                )
            case "killed" | "stopped":
                raise ToolError(
                    "tools.command-killed",
                    f"{name!r} was killed, most likely because it went over its {limits.memory_mb:,} MB of memory",
                    fix="Give it less to do, or raise `limits.memory_mb` in its manifest.",
                )


def _is_path(argument: ArgumentSpec) -> bool:
    return argument.type in ("path", "list[path]")


def _listed(given: Mapping[str, Any], name: str) -> Sequence[Any]:
    """The paths that an argument gives; None for one that is not known yet."""
    value = given.get(name)
    return cast("Sequence[Any]", value) if isinstance(value, list | tuple) else (value,)


def _key() -> dict[str, str]:
    """The key of the call, for a command that can tell a repetition by it."""
    key = call_key()
    return {} if key is None else {KEY_VARIABLE: key}


def _complaint(stderr: bytes) -> str:
    text = "\n".join(stderr.decode(errors="replace").strip().splitlines()[-_COMPLAINT_LINES:])
    printable = visible(text[-_COMPLAINT_CHARACTERS:])
    return f": {printable}" if printable else ""
