"""Where tasks ran against where they were to run, and what crossed between workers and nodes."""

from __future__ import annotations

from headrace.run.cluster import Executor, locate
from headrace.run.crossing import find_tasks, measure_crossing
from headrace.run.placement import Place, Placement, workers_per_node
from headrace.run.seats import TaskReport

HOSTS = {"n1": "h1", "n2": "h2"}
# One task of `a` sends to three of `b`: in its own worker, in the other worker of its node, and on
# another node.
PLACES: dict[tuple[str, int], Place] = {
    ("a", 0): ("n1", 0),
    ("b", 0): ("n1", 0),
    ("b", 1): ("n1", 1),
    ("b", 2): ("n2", 0),
}
PLAN = Placement("p", {"a": 1, "b": 3}, PLACES)


def reports(*processes: tuple[str, int]) -> list[TaskReport]:
    """A report of every task, from a host and a process there."""
    edges = (("b", 0, 1, 10), ("b", 1, 2, 20), ("b", 2, 4, 40))
    return [
        TaskReport(
            "work",
            component,
            number,
            (host,),
            0.0,
            process=process,
            edges=edges if component == "a" else (),
        )
        for (component, number), (host, process) in zip(PLACES, processes, strict=True)
    ]


def test_what_crosses_is_counted_by_process_and_by_node() -> None:
    found = reports(("h1", 7), ("h1", 7), ("h1", 8), ("h2", 7))
    where = find_tasks(found, HOSTS, PLAN)
    crossed = measure_crossing(found, where)
    assert (crossed.tuples, crossed.bytes) == (7, 70)
    assert (crossed.worker_tuples, crossed.worker_bytes) == (6, 60)
    assert (crossed.node_tuples, crossed.node_bytes) == (4, 40)
    assert where.misplaced(PLAN) == ()
    assert where.shared() == ()
    assert [where.worker(task) for task in PLACES] == [0, 0, 1, 0]


def test_workers_in_one_process_share_it_and_nothing_crosses_between_them() -> None:
    found = reports(("h1", 7), ("h1", 7), ("h1", 7), ("h2", 7))
    where = find_tasks(found, HOSTS, PLAN)
    assert where.shared() == ("n1:0", "n1:1")
    assert where.misplaced(PLAN) == ()
    assert measure_crossing(found, where).worker_tuples == 4


def test_a_task_on_another_node_or_outside_its_worker_is_misplaced() -> None:
    places = {**PLACES, ("b", 1): ("n1", 0), ("b", 2): ("n1", 0)}
    plan = Placement("p", PLAN.tasks, places)
    found = reports(("h1", 7), ("h1", 7), ("h1", 8), ("h2", 7))
    where = find_tasks(found, HOSTS, plan)
    assert where.misplaced(plan) == ("b.2", "b.3")
    assert where.worker(("b", 1)) is None


def test_a_spout_that_read_nothing_has_not_run_anywhere() -> None:
    found = reports(("h1", 0), ("h1", 7), ("h1", 8), ("h2", 7))
    where = find_tasks(found, HOSTS, PLAN)
    assert where.misplaced(PLAN) == ()
    assert where.worker(("a", 0)) is None


def test_a_worker_is_the_executor_of_its_number_in_turn() -> None:
    up = {"h1": (Executor("2", "h1", 4), Executor("10", "h1", 4))}
    assert locate(("n1", 0), HOSTS, up) == "executor_h1_2"
    assert locate(("n1", 1), HOSTS, up) == "executor_h1_10"
    assert locate(("n1", 2), HOSTS, up) == "executor_h1_2"
    assert locate(("n2", 0), HOSTS, up) is None  # lost: anywhere
    assert locate(None, HOSTS, up) is None


def test_a_plan_needs_processes_up_to_its_highest_slot() -> None:
    assert workers_per_node(PLAN) == {"n1": 2, "n2": 1}
    assert workers_per_node(Placement("p", {"a": 1}, {("a", 0): ("n1", 3)})) == {"n1": 4}
