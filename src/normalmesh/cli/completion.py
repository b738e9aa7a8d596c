"""``normalmesh completion``: print the completion script of a shell."""

from __future__ import annotations

import click


@click.command(short_help="Print the completion script of a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script with which SHELL completes commands and options.

    \b
    bash  eval "$(normalmesh completion bash)"   in ~/.bashrc
    zsh   eval "$(normalmesh completion zsh)"    in ~/.zshrc
    fish  normalmesh completion fish | source    in ~/.config/fish/config.fish
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(context.find_root().command, {}, "normalmesh", "_NORMALMESH_COMPLETE").source())
