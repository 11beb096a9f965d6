"""Stages become components: loops folded, twins kept apart, names from queries and lines."""

from __future__ import annotations

from typing import Any

from headrace.observe.spark_log.components import Stage, fold


def stage(number: int, *parents: int, rdd: int | None = None, **given: Any) -> Stage:
    return Stage(
        number,
        given.pop("name", "collect at app.py:3"),
        2,
        parents,
        number if rdd is None else rdd,
        given.pop("operators", ()),
        **given,
    )


def test_a_skipped_stage_is_the_one_that_ran_before() -> None:
    stages = [
        stage(0, job=0),
        stage(1, rdd=0, job=1),
        stage(2, 1, job=1),
    ]  # 1 was skipped: its output was there
    (first, second), notes = fold(stages, {0, 2})
    assert (first.stages, second.stages) == ((0,), (2,))
    assert second.inputs == (first.name,)
    assert not notes


def test_twins_in_one_run_stay_two_components() -> None:
    stages = [
        stage(0, job=0),
        stage(1, job=0),
        stage(2, 0, 1, job=0),
        stage(3, job=1),
        stage(4, job=1),
        stage(5, 3, 4, job=1),
    ]
    components, _ = fold(stages, set(range(6)))
    assert [c.stages for c in components] == [(0, 3), (1, 4), (2, 5)]
    assert components[2].inputs == ("collect-app-3-1", "collect-app-3-2")


def test_a_reader_of_a_lost_stage_is_a_source() -> None:
    (only,), notes = fold([stage(4, 3)], {4})
    assert only.inputs == ()
    assert notes == [
        "stage 3: read from, but the log has no finished task of it; its readers count as sources"
    ]


def test_queries_and_lines_give_names() -> None:
    described = "clicks per key\nid = 1\nrunId = 2\nbatch = 0"
    java = "start at NativeMethodAccessorImpl.java:0"
    stages = [
        stage(0, job=0, name=java, query="a", batch="0", description=described),
        stage(
            1, job=1, name=java, query="b", batch="0", description="id = 5\nrunId = 6\nbatch = 0"
        ),
        stage(2, job=2, name=java, query="c", batch="0", description="<br/>id = 7<br/>batch = 0"),
        stage(3, job=3, name="save at NativeMethodAccessorImpl.java:0"),
        stage(
            4,
            job=4,
            name="$anonfun$run$1 at FutureTask.java:264",
            execution="9",
            call_site="count at /opt/jobs/my app.py:40",
        ),
    ]
    components, _ = fold(stages, set(range(5)))
    assert [c.name for c in components] == [
        "clicks-per-key",
        "stream1",
        "stream2",
        "save",
        "count-my-app-40",
    ]
