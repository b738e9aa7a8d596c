"""What a command says when it fails: one line, or the whole trace with ``--debug``."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import click

from normalmesh import NormalMeshError
from normalmesh.runtime.memory import refuse_tight_limit

#: Where a context keeps that traces are wanted.
DEBUG = "normalmesh.debug"


def debugging(command: Callable[..., Any]) -> Callable[..., Any]:
    """The option ``--debug``."""
    return click.option(
        "--debug", is_flag=True, expose_value=False, callback=_remember, help="Show the Python trace of errors."
    )(command)


def _remember(context: click.Context, option: click.Parameter, value: bool) -> None:
    if value:
        context.meta[DEBUG] = True


def failure_text(error: Exception, about: object = None) -> str:
    """One line for an error, with the name of what it is about unless the error names it."""
    where = "" if about is None or str(about) in str(error) else f"{about}: "
    if isinstance(error, NormalMeshError):
        return f"error: {where}{error}"
    if isinstance(error, MemoryError):
        return f"error: {where}memory ran out; see --dry-run, mask what you do not need, or ask for fewer vertices"
    if isinstance(error, OSError) and error.strerror:
        named = "" if error.filename is None else f"{error.filename}: "
        return f"error: {where}{named}{error.strerror}"
    reason = str(error).strip().splitlines()
    kind = type(error).__name__
    return f"internal error: {where}{kind}{': ' + reason[0] if reason else ''}; --debug shows where"


def print_trace(error: Exception) -> None:
    """The trace of an error, if traces are wanted."""
    if click.get_current_context().meta.get(DEBUG):
        click.echo("".join(traceback.format_exception(error)), err=True, nl=False)


class Commands(click.Group):
    """A group whose commands all take ``--debug`` and fail with one line."""

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        super().add_command(debugging(cmd), name)  # type: ignore[arg-type]

    def invoke(self, ctx: click.Context) -> Any:
        try:
            refuse_tight_limit()
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except Exception as error:
            print_trace(error)
            click.echo(f"normalmesh: {failure_text(error)}", err=True)
            ctx.exit(1)
