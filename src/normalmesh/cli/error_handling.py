"""Errors of commands: one line each, with a traceback if ``--debug`` is given."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from os import PathLike
from typing import Any

import click

from normalmesh import NormalMeshError
from normalmesh.cli.printing import print_text
from normalmesh.errors import escaped, path_text
from normalmesh.files.clashes import inputs_protected
from normalmesh.runtime.memory import check_address_limit

#: Key in the metadata of the click context: whether tracebacks are printed.
DEBUG = "normalmesh.debug"


def debug_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option ``--debug`` to a command."""

    def remember(context: click.Context, option: click.Parameter, value: bool) -> None:
        context.meta[DEBUG] = value or context.meta.get(DEBUG, False)

    text = "Show the Python traceback of errors."
    return click.option("--debug", is_flag=True, expose_value=False, callback=remember, help=text)(command)


def error_text(error: Exception, about: str | PathLike[str] | None = None) -> str:
    """Return one line for an error, prefixed with the file ``about`` unless the message already names it."""
    name = None if about is None else path_text(about)
    where = "" if name is None or name in str(error) else f"{name}: "
    return escaped(_text(error, where))


def _text(error: Exception, where: str) -> str:
    if isinstance(error, NormalMeshError):
        return f"error: {where}{error}"
    if isinstance(error, MemoryError):
        return f"error: {where}out of memory; see --dry-run, use a smaller mask, or ask for fewer vertices"
    if isinstance(error, OSError) and error.strerror:
        named = "" if error.filename is None else f"{path_text(str(error.filename))}: "
        return f"error: {where}{named}{error.strerror}"
    reason = str(error).strip().splitlines()
    kind = type(error).__name__
    return f"internal error: {where}{kind}{': ' + reason[0] if reason else ''}; --debug shows where"


def print_traceback(error: Exception) -> None:
    """Print the traceback of an error if ``--debug`` is given."""
    if click.get_current_context().meta.get(DEBUG):
        click.echo(escaped("".join(traceback.format_exception(error))), err=True, nl=False)


class Commands(click.Group):
    """A group whose commands all accept ``--debug`` and print errors on one line."""

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        super().add_command(debug_option(cmd), name)  # type: ignore[arg-type]

    def invoke(self, ctx: click.Context) -> Any:
        try:
            check_address_limit()
            with inputs_protected():
                return super().invoke(ctx)
        except click.UsageError as error:
            # The shell may have put names of files in the place of options.
            raise click.UsageError(escaped(error.format_message()), error.ctx) from error
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except Exception as error:
            print_traceback(error)
            print_text(f"normalmesh: {error_text(error)}", err=True)
            ctx.exit(1)
