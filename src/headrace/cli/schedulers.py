"""Commands about schedulers: which there are, and whether one keeps its promises."""

from __future__ import annotations

import click

from headrace.cli.options import JSON
from headrace.cli.shared import echo, main, print_json


@main.command()
@JSON
def schedulers(as_json: bool) -> None:
    """What schedulers there are, where they come from, how mature they are."""
    from headrace.registry import entries

    found = entries()
    if as_json:
        keys = ("name", "folder", "source", "maturity", "guards")
        print_json({"schedulers": [{key: getattr(e, key) for key in keys} for e in found]})
        return
    from headrace import terminal

    terminal.show(terminal.scheduler_list(found))


@main.command(name="check-scheduler")
@click.argument("by", metavar="SCHEDULER")
@JSON
@click.pass_context
def check_scheduler(ctx: click.Context, by: str, as_json: bool) -> None:
    """Which promises of the contract a placement scheduler keeps.

    SCHEDULER is a name, or package.module:function. Exit status 1 if a promise is broken.
    """
    from headrace.checks import check_scheduler as check

    verdicts = check(by)
    if as_json:
        rows = [
            {
                "promise": v.promise,
                "holds": v.holds,
                "checked": v.checked,
                "failures": list(v.failures),
            }
            for v in verdicts
        ]
        print_json({"format": "headrace/1", "scheduler": by, "promises": rows})
    else:
        for v in verdicts:
            state = "holds" if v.holds else "BROKEN" if v.failures else "not shown"
            echo(f"{state:<10} {v.promise} ({v.checked} problems)")
            for failure in v.failures[:3]:
                echo(f"           {failure}")
            if len(v.failures) > 3:
                echo(f"           and {len(v.failures) - 3} more")
    ctx.exit(1 if any(v.failures for v in verdicts) else 0)
