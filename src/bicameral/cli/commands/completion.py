"""`bicameral completion`: print the completion script of a shell."""

from __future__ import annotations

import click


@click.command(short_help="Print the completion script for a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> int:
    """Print the script that completes commands, options, tools, models and runs in SHELL.

    \b
    bash:  eval "$(bicameral completion bash)"          in ~/.bashrc
    zsh:   eval "$(bicameral completion zsh)"           in ~/.zshrc
    fish:  bicameral completion fish | source           in ~/.config/fish/config.fish
    """
    from click.shell_completion import get_completion_class

    from bicameral.cli._main import main

    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"there is no completion for {shell}")
    click.echo(found(main, {}, "bicameral", "_BICAMERAL_COMPLETE").source())
    return 0
