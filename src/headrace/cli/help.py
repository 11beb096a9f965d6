"""The end of every command's help: two examples, and the options of the algorithms it asks."""

from __future__ import annotations

import click

EXAMPLES: dict[str, tuple[str, ...]] = {
    "place": (
        "headrace place app.yaml",
        "headrace place app.yaml --by a3-storm --option alpha=0.7 --out plan.json",
        "headrace place app.yaml --without big-1 --rate-factor 2",
    ),
    "judge": (
        "headrace judge plan.json",
        "headrace judge plan.json --objective rate --strict",
    ),
    "explain": (
        "headrace explain app.yaml",
        "headrace explain plan.json --task count.3",
    ),
    "compare": (
        "headrace compare app.yaml --out comparison.html",
        "headrace compare app.yaml --by headrace --by storm-ras --objective rate",
    ),
    "size": (
        "headrace size app.yaml",
        "headrace size app.yaml --rate 8000 --out plan.json",
    ),
    "provision": (
        "headrace provision app.yaml --rate 5000",
        "headrace provision app.yaml --budget 2.5 --by optimal",
    ),
    "plan": (
        "headrace plan app.yaml --rate 5000",
        "headrace plan app.yaml --rent --budget 2.5 --out plan.html",
    ),
    "simulate": (
        "headrace simulate app.yaml",
        "headrace simulate app.yaml --by headrace --by storm-even --rate-factor 1.2",
    ),
    "diff": (
        "headrace diff old.json new.json",
        "headrace diff old.json new.json --json",
    ),
    "move": (
        "headrace move old.json new.json --safe",
        "headrace move --blocks 16x7:16x11 --by ro-mod",
    ),
    "check": (
        "headrace check app.yaml measured.yaml",
        "headrace check app.yaml --by storm-ras",
    ),
    "init": (
        "headrace init app.yaml",
        "headrace init app.yaml && headrace place app.yaml",
    ),
    "schema": (
        "headrace schema > headrace.schema.json",
        "headrace schema | python -m json.tool",
    ),
    "completion": (
        'eval "$(headrace completion bash)"',
        "headrace completion fish > ~/.config/fish/completions/headrace.fish",
    ),
    "schedulers": (
        "headrace schedulers",
        "headrace schedulers --json",
    ),
    "check-scheduler": (
        "headrace check-scheduler storm-even",
        "headrace check-scheduler my_module:my_function",
    ),
    "observe": (
        "headrace observe telemetry/ --out measured.yaml",
        "headrace observe telemetry/ --store store/ --follow",
    ),
    "run": (
        "headrace run word-count --fleet cluster.yaml --adaptive",
        "headrace run app.py --master spark://host:7077 --plan plan.json --batches 10",
    ),
    "serve": (
        "headrace serve",
        "headrace serve headrace-runs/word-count --port 0",
    ),
    "history": (
        "headrace history headrace-runs/word-count",
        "headrace history headrace-runs/word-count --json",
    ),
    "advise": (
        "headrace advise eventlogs/app-1 --deadline 10m",
        "headrace advise http://host:4040 --follow",
    ),
    "demo": (
        "headrace demo",
        "headrace demo --plan-only --out demo.html",
    ),
    "import flux": (
        "headrace import flux topology.yaml --out app.yaml",
        "headrace import flux topology.yaml --property spouts=4",
    ),
    "import production": (
        "headrace import production cluster.json --out app.yaml",
        "headrace import production cluster.json | headrace place -",
    ),
    "import spark-log": (
        "headrace import spark-log eventlogs/ --app app-1 --out app.yaml",
        "headrace import spark-log eventlogs/app-1 --json",
    ),
    "import storm": (
        "headrace import storm http://nimbus:8080 --out app.yaml",
        "headrace import storm answers.json --topology word-count",
    ),
    "export spark": (
        "headrace export spark plan.json",
        "headrace export spark eventlogs/app-1 --out settings.yaml",
    ),
    "export kubernetes": (
        "headrace export kubernetes plan.json --out pods.yaml",
        "headrace export kubernetes plan.json --form operator --image spark:4.0.0",
    ),
    "fleet up": (
        "headrace fleet up cluster.yaml",
        "headrace fleet up cluster.yaml --limit bandwidth --port 7077",
    ),
    "fleet status": (
        "headrace fleet status",
        "headrace fleet status --folder .headrace-fleet --json",
    ),
    "fleet add": (
        "headrace fleet add more-nodes.yaml",
        "headrace fleet add more-nodes.yaml --json",
    ),
    "fleet remove": (
        "headrace fleet remove small-2",
        "headrace fleet remove small-2 small-3 --json",
    ),
    "agent": (
        "headrace agent telemetry/",
        "headrace agent telemetry/ --node big-1 --type i7 --once",
    ),
    "profile": (
        "headrace profile word-count --out profile.yaml",
        "headrace profile app.py --component split --fleet cluster.yaml --on i7",
    ),
    "drain": (
        "headrace drain small-2 --run headrace-runs/word-count",
        "headrace drain small-2 --run headrace-runs/word-count --undo",
    ),
    "fleet down": (
        "headrace fleet down",
        "headrace fleet down --folder .headrace-fleet",
    ),
    "storm up": (
        "headrace storm up cluster.yaml",
        "headrace storm up cluster.yaml --limit bandwidth --plans plans/",
    ),
    "storm down": (
        "headrace storm down",
        "headrace storm down --folder .headrace-storm",
    ),
    "storm submit": (
        "headrace storm submit word-count --set rate=400 --set topology.workers=3",
        "headrace storm submit my-topology.jar --main com.example.Main argument",
    ),
    "storm serve": (
        "headrace storm serve cluster.yaml",
        "headrace storm serve cluster.yaml --by a3-storm --every 5m --advise",
    ),
    "storm status": (
        "headrace storm status",
        "headrace storm status --json",
    ),
    "storm plan": (
        "headrace storm plan",
        "headrace storm plan word-count --json",
    ),
    "storm history": (
        "headrace storm history",
        "headrace storm history --json",
    ),
    "storm install": (
        "headrace storm install --to /opt/storm",
        "headrace storm install --to /opt/storm --copy --address http://planner:7274",
    ),
    "lab list": (
        "headrace lab list",
        "headrace lab list --json",
    ),
    "lab run": (
        "headrace lab run random --by headrace --by storm-ras",
        "headrace lab run --objective rate --seconds 1 --store build/lab",
    ),
    "lab report": (
        "headrace lab report --store build/lab",
        "headrace lab report --best headrace --out scoreboard.md",
    ),
    "lab calibrate": (
        "headrace lab calibrate --seconds 10",
        "headrace lab calibrate --out table.json",
    ),
    "lab storm-referee": (
        "headrace lab storm-referee",
        "headrace lab storm-referee app.yaml --rule 2.3",
    ),
}  # by the command's name, without `headrace`


class HelpfulCommand(click.Command):
    """A command whose help ends with examples, and with the options of its algorithms."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        name = _name(ctx)
        folder = next(
            (found for p in self.params if (found := getattr(p.type, "folder", None))), None
        )
        if folder is not None and any(p.name == "options" for p in self.params):
            from headrace.registry import options_of

            known = {by: words for by, words in options_of(folder).items() if words}
            with formatter.section("Options of algorithms, with --option KEY=VALUE"):
                formatter.write_dl([(by, ", ".join(words)) for by, words in known.items()])
        with formatter.section("Examples"):
            for example in EXAMPLES[name]:
                formatter.write(f"{'':>{formatter.current_indent}}{example}\n")


def _name(ctx: click.Context) -> str:
    """The command's name with its groups, whatever the program is called."""
    names: list[str] = []
    while ctx.parent is not None:
        names.insert(0, ctx.info_name or "")
        ctx = ctx.parent
    return " ".join(names)
