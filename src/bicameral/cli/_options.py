"""Options that many commands share, handed to each as one `Common`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ._output import Output

if TYPE_CHECKING:
    from bicameral.config import Config, Profile

Function = Callable[..., Any]


@dataclass(frozen=True)
class Common:
    """What every command is told: where to work, by which configuration, and for whom to write."""

    config_file: Path | None
    folder: Path | None
    profile: Profile | Path | None
    out: Output

    def config(self) -> Config:
        """The configuration; a folder's own that the user has not accepted is shown to him first."""
        from bicameral.config import load_config

        from ._accepting import confirm_config

        return load_config(
            self.config_file,
            base=self.folder,
            profile=self.profile,
            confirm=lambda found: confirm_config(self.out, found),
        )


def _profile(context: click.Context, parameter: click.Parameter, value: str | None) -> Profile | Path | None:
    if value is None or value == "default" or value == "small":
        return value
    if Path(value).suffix.lower() in (".yaml", ".yml"):
        return Path(value)
    raise click.BadParameter(f"{value!r} is not 'default', 'small' or a YAML file.", context, parameter)


def common(function: Function) -> Function:
    """`--json`, `--folder`, `--config` and `--profile`; the command gets them as its first argument."""

    @click.option("--json", "as_json", is_flag=True, help="Print one JSON object, for a program to read.")
    @click.option(
        "--folder",
        type=click.Path(file_okay=False, path_type=Path),
        help="Work in this folder instead of the current one.",
    )
    @click.option(
        "--config", "config_file", type=click.Path(dir_okay=False, path_type=Path), help="Use this configuration file."
    )
    @click.option(
        "--profile",
        metavar="default|small|FILE.yaml",
        callback=_profile,
        help="Use this profile: 'small' needs only the small model, a YAML file says which model answers which call.",
    )
    @wraps(function)
    def with_common(
        *args: Any, as_json: bool, folder: Path | None, config_file: Path | None, profile: Any, **rest: Any
    ) -> Any:
        chosen = Common(config_file, folder, profile, Output(as_json=as_json))
        return function(chosen, *args, **rest)

    return with_common


def planning(function: Function) -> Function:
    """`--deterministic` and `--no-cache`: how a plan is come by."""
    deterministic = click.option(
        "--deterministic", is_flag=True, help="Plan from the request as it stands, without Echo."
    )
    fresh = click.option("--no-cache", "fresh", is_flag=True, help="Write the plan anew even if it is known.")
    return deterministic(fresh(function))
