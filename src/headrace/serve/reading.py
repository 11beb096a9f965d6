"""What can be looked at: one function per address."""

from __future__ import annotations

from typing import Any

from headrace.page.advice import advice_sections
from headrace.page.live import MOST_CARDS
from headrace.page.markup import join
from headrace.registry import names
from headrace.serve import views
from headrace.serve.examples import EXAMPLES, example_files
from headrace.serve.jobs import Job
from headrace.serve.moment import moment as moment_of
from headrace.serve.moment import task_detail
from headrace.serve.picture import current_plan
from headrace.serve.requests import MomentQuery, Objective, PictureQuery, SeriesQuery
from headrace.serve.shelf import NotThere, Shelf

Names = dict[str, str]


def runs(shelf: Shelf, path: Names, query: Any) -> Any:
    return {"runs": [views.overview(run) for run in shelf.runs.values()],
            "advice": list(shelf.advice)}  # fmt: skip


def run(shelf: Shelf, path: Names, query: Any) -> Any:
    return views.overview(shelf.run(path["run"]))


def series(shelf: Shelf, path: Names, query: SeriesQuery) -> Any:
    return views.series(shelf.run(path["run"]), query)


def moment(shelf: Shelf, path: Names, query: MomentQuery) -> Any:
    found = shelf.run(path["run"])
    shown = moment_of(found, query.at_s)
    if query.tasks and shown["batch"] is not None:
        shown["detail"] = task_detail(found, shown["batch"])
    return shown


def picture(shelf: Shelf, path: Names, query: PictureQuery) -> Any:
    found = shelf.run(path["run"])
    name = query.plan or current_plan(found)
    if query.rack is not None:
        cards = shelf.pictures.cards(found, name, query.rack, MOST_CARDS)
        return {"plan": name, "rack": query.rack, "cards": cards}
    return shelf.pictures.draw(found, name)


def decisions(shelf: Shelf, path: Names, query: Any) -> Any:
    found = shelf.run(path["run"])
    return {"decisions": views.decisions(found), "takes_plans": found.takes_plans}


def change(shelf: Shelf, path: Names, query: Any) -> Any:
    found = shelf.run(path["run"])
    entry = find_decision(shelf, path)
    new = entry.proposed or (entry.plan if entry.applied else "")
    if not new or not entry.left:
        raise NotThere("this decision changes no plan")
    return shelf.pictures.change(found, entry.left, new)


def find_decision(shelf: Shelf, path: Names) -> Any:
    """A decision by its number in the address."""
    found = shelf.run(path["run"])
    number = path["number"]
    if not (number.isascii() and number.isdecimal() and int(number[:9]) < len(found.decisions)):
        raise NotThere(f"there is no decision `{number[:20]}`; there are {len(found.decisions)}")
    return found.decisions[int(number)]


def jobs(shelf: Shelf, path: Names, query: Any) -> Any:
    return {"jobs": [job.to_json(whole=False) for job in shelf.jobs.jobs.values()]}


def job(shelf: Shelf, path: Names, query: Any) -> Any:
    return find_job(shelf, path["job"]).to_json()


def find_job(shelf: Shelf, name: str) -> Job:
    """A job by its name."""
    if name not in shelf.jobs.jobs:
        raise NotThere(f"there is no job `{name[:40]}`; the oldest are forgotten")
    return shelf.jobs.jobs[name]


def schedulers(shelf: Shelf, path: Names, query: Any) -> Any:
    return {"schedulers": names("place"), "objectives": list(Objective.__args__)}


def examples(shelf: Shelf, path: Names, query: Any) -> Any:
    return {"examples": [{"name": name, "about": about} for name, (about, _) in EXAMPLES.items()]}


def example(shelf: Shelf, path: Names, query: Any) -> Any:
    return {"name": path["name"], "files": example_files(path["name"])}


def all_advice(shelf: Shelf, path: Names, query: Any) -> Any:
    rows = [{"name": name, "application": one.trace.name} for name, one in shelf.advice.items()]
    return {"advice": rows}


def advice(shelf: Shelf, path: Names, query: Any) -> Any:
    found = find_advice(shelf, path["name"])
    html = join(advice_sections(found, found.trace.name))
    return {"name": path["name"], "html": html, "advice": found.to_json()}


def find_advice(shelf: Shelf, name: str) -> Any:
    """Advice by its name."""
    if name not in shelf.advice:
        raise NotThere(f"there is no advice `{name[:40]}`; there are: {', '.join(shelf.advice)}")
    return shelf.advice[name]
