"""Commands with many options, whose help lists them under headings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click


class SectionedCommand(click.Command):
    """A command whose help has sections of options: headings, and the names of their parameters, in order.

    Options that no section names come last.
    """

    def __init__(self, *arguments: Any, sections: Mapping[str, Sequence[str]], **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.sections = sections

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections; called by click."""
        records = {parameter.name: parameter.get_help_record(context) for parameter in self.get_params(context)}
        named = [(heading, [records.pop(name) for name in names]) for heading, names in self.sections.items()]
        for heading, rows in [*named, ("Other options", list(records.values()))]:
            with formatter.section(heading):
                # Arguments have no record.
                formatter.write_dl([row for row in rows if row is not None])
