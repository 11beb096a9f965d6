"""The HTML report: complete, harmless, the same every time, and small however large the problem."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from random import Random

import numpy as np
import pytest

from headrace.checks.problems import Content, draw_assignment, draw_document, problem_of
from headrace.errors import Infeasible, InvalidInput, Unsupported
from headrace.figures import change, duration, figure, number, percent, short, shorten, signed
from headrace.judge.bounds import Bound
from headrace.judge.report import judge
from headrace.model.problem import UNPLACED, Assignment, Problem
from headrace.page import comparison_fragment, page, plan_fragment, problem_fragment
from headrace.page.layers import lay_out
from headrace.planner import Plan, Point, Refusal, TradeOff
from headrace.words import distance, headline, plan_of, reasons, state

VOID = {"meta"}
HOSTILE = "<script>alert('x')</script>&\"q\""


class Checked(HTMLParser):
    """Collects what a page holds and insists that its elements are balanced."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self.text: list[str] = []
        self.visible: list[str] = []
        self.hidden_from: int | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, key, value) for key, value in attrs]
        if tag in VOID:
            return
        self.open.append(tag)
        if self.hidden_from is None and (tag in ("script", "style") or ("hidden", None) in attrs):
            self.hidden_from = len(self.open)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        if self.hidden_from is not None and len(self.open) < self.hidden_from:
            self.hidden_from = None

    def handle_data(self, data: str) -> None:
        self.text.append(data)
        if self.hidden_from is None:
            self.visible.append(data)


def checked(html: str) -> Checked:
    """A page that is balanced and needs nothing from outside."""
    parser = Checked()
    parser.feed(html)
    parser.close()
    assert parser.open == []
    assert html.startswith("<!doctype html>")
    assert not re.search(r"https?://|@import|url\(", html)
    assert not [
        a
        for a in parser.attributes
        if a[1] in ("src", "href", "srcset", "action") or a[1].startswith("on")
    ]
    assert [
        tag
        for tag in re.findall(r"<(\w+)", html)
        if tag in ("link", "img", "iframe", "object", "base")
    ] == []
    assert html.count("<script") == 1
    return parser


def planned(
    problem: Problem,
    plan: Sequence[tuple[int, int]] | Assignment,
    scheduler: str = "ours",
    *,
    objective: str = "traffic",
) -> Plan:
    """A judged plan that lists node and slot of every task."""
    if not isinstance(plan, Assignment):
        node, slot = np.array(plan, dtype=np.int64).T
        plan = Assignment(node, slot)
    return Plan(
        scheduler, objective, 0, 0.0123, problem, plan, judge(problem, plan, objective=objective)
    )


def refused(problem: Problem, scheduler: str = "shy") -> Refusal:
    refusal = Unsupported("cannot cut cycles", fix="use a3-storm")
    return Refusal(scheduler, "traffic", 0, 0.0, problem, refusal)


def word_count(**components: Content) -> Content:
    """Two spout tasks, two splitters and one counter on three nodes, the third of them small."""
    shape: Content = {
        "sentence": {"spout": True, "tasks": 2, "rate": 100, "cpu": 10, "memory_mb": 64},
        "split": {
            "tasks": 2,
            "inputs": {"sentence": "shuffle"},
            "selectivity": 7,
            "cpu": 20,
            "memory_mb": 64,
        },
        "count": {
            "tasks": 1,
            "inputs": {"split": {"grouping": "fields", "fields": ["word"]}},
            "cpu": 30,
            "memory_mb": 64,
        },
        **components,
    }
    nodes: Content = {
        f"n{n}": {"cpu": cpu, "memory_mb": 1000, "slots": 2}
        for n, cpu in ((1, 100), (2, 100), (3, 25))
    }
    return {"topology": {"name": "word-count", "components": shape}, "cluster": {"nodes": nodes}}


TOGETHER = [(0, 0)] * 5  # needs 90 of 100 points
SPREAD = [(0, 0), (1, 0), (0, 0), (1, 0), (0, 1)]
OVERLOADED = [(2, 0)] * 5  # the best figure, but needs 90 of 25 points


def test_the_headline_says_what_the_best_plan_means() -> None:
    problem = problem_of(word_count())
    parser = checked(
        page([planned(problem, SPREAD, "wide"), planned(problem, TOGETHER, "tight")], title="Demo")
    )
    words = "".join(parser.visible)
    assert "tight keeps 100 % of the traffic inside nodes and uses 1 of 3 nodes" in words
    assert "sustains 1.11× the given rates; bottleneck node n1: cpu" in words
    assert "No plan can do better in traffic between nodes (exact bound)." in words


def test_the_best_plan_shows_without_script_and_the_others_are_hidden() -> None:
    problem = problem_of(word_count())
    html = page(
        [planned(problem, SPREAD, "wide"), planned(problem, TOGETHER, "tight")], title="Demo"
    )
    parser = checked(html)
    assert [value for _, key, value in parser.attributes if key == "data-plan"] == ["0", "1"]
    assert "tight: 1 node, 1 worker, 0 of 800 tuples/s between nodes" in "".join(parser.visible)
    assert "wide: 2 nodes, 3 workers" not in "".join(parser.visible)
    assert "wide: 2 nodes, 3 workers" in "".join(parser.text)
    assert "And 2 idle nodes." in "".join(parser.visible)
    assert '<label class="chooser" hidden>' in html
    assert 'title="sentence.2"' in html


def test_infeasible_and_refused_results_are_marked_with_their_reason() -> None:
    problem = problem_of(word_count())
    results = [
        refused(problem),
        planned(problem, OVERLOADED, "rash"),
        planned(problem, SPREAD, "wide"),
    ]
    html = page(results, title="Demo")
    words = "".join(checked(html).visible)
    assert "infeasible: node n3: cpu needed 90, free 25" in words
    assert "refused: cannot cut cycles. Fix: use a3-storm." in words
    charts = re.findall(r'<li class="(\w*)"[^>]*><span class="name">(\w+)', html)
    assert charts[:3] == [("best", "wide"), ("infeasible", "rash"), ("infeasible", "shy")]
    assert "Hatched" in words


def test_without_a_feasible_plan_the_page_says_why() -> None:
    problem = problem_of(word_count())
    words = "".join(
        checked(
            page([planned(problem, OVERLOADED, "rash"), refused(problem)], title="Demo")
        ).visible
    )
    assert "No feasible plan." in words
    assert "rash: node n3: cpu needed 90, free 25" in words
    assert "shy: cannot cut cycles" in words
    assert "sustains" not in words
    checked(page([refused(problem)], title="Only a refusal"))


def test_a_page_about_nothing_is_refused() -> None:
    with pytest.raises(InvalidInput, match="at least one"):
        page([], title="Empty")


def test_one_scheduler_needs_no_choice_and_no_bars() -> None:
    html = page([planned(problem_of(word_count()), SPREAD)], title="One")
    checked(html)
    assert "<select" not in html
    assert 'class="charts"' not in html


def test_the_costliest_stream_comes_first_with_its_share() -> None:
    problem = problem_of(word_count())
    html = page([planned(problem, SPREAD)], title="Demo")
    # sentence: half of 100 crosses; split: half of its 700 is emitted on n2 and counted on n1.
    rows = re.findall(
        r'<th scope="row">(\S+ → \S+?)<small>[^<]*</small></th><td>(\S+)</td><td>(\S+)</td>', html
    )
    assert rows == [("split → count", "700", "350"), ("sentence → split", "100", "50")]


def test_names_from_files_stay_text() -> None:
    content = word_count(
        **{
            HOSTILE: {
                "tasks": 1,
                "inputs": {"split": {"grouping": "fields", "fields": ["</svg><b>"]}},
            }
        }
    )
    content["topology"]["name"] = "<img src=x>"
    content["cluster"]["nodes"] = {
        f"<i>{n}'\"": {"cpu": 10, "slots": 2, "type": "</style>", "rack": "<u>"} for n in range(2)
    }
    problem = problem_of(content)
    result = planned(problem, [(t % 2, 0) for t in range(6)], "</script><b>evil")
    refusal = Refusal("<a>", "traffic", 0, 0.0, problem, Infeasible("<em>no", fix="<em>yes"))
    html = page([result, refusal], title="</title><b>", command='headrace <x> && "y"')
    parser = checked(html)
    assert not [
        tag
        for tag in ("<b>evil", "<img", "<em", "<u>", "<i>", "alert('x')<", "</title><b>")
        if tag in html
    ]
    assert HOSTILE in "".join(parser.text)
    assert 'headrace <x> && "y"' in parser.text


def test_the_same_results_give_the_same_bytes() -> None:
    content = draw_document(Random(5))

    def once() -> str:
        problem = problem_of(content)
        return page(
            [planned(problem, draw_assignment(Random(6), problem)), refused(problem)], title="Same"
        )

    assert once() == once()


@pytest.mark.parametrize("seed", range(40))
def test_any_problem_and_any_plan_gives_a_whole_page(seed: int) -> None:
    random = Random(seed)
    problem = problem_of(draw_document(random))
    objectives = ("traffic", "rate", "batch", "nodes", "balance")
    results = [
        planned(
            problem,
            draw_assignment(random, problem),
            f"s{i}",
            objective=objectives[seed % len(objectives)],
        )
        for i in range(3)
    ]
    html = page([*results, refused(problem)], title=f"Problem {seed}")
    checked(html)
    assert not re.search(
        r"\b(nan|inf|None)\b", re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL)
    )


def test_cycles_are_drawn_dashed() -> None:
    assert "Dashed" not in page([planned(problem_of(word_count()), SPREAD)], title="No cycle")
    loop: Content = {
        "split": {
            "tasks": 2,
            "inputs": {"sentence": "shuffle", "count": "all", "split": "shuffle"},
            "selectivity": 0.1,
        },
        "count": {"tasks": 1, "inputs": {"split": "shuffle"}},
    }
    html = page([planned(problem_of(word_count(**loop)), SPREAD)], title="Cycle")
    checked(html)
    assert "Dashed streams close a cycle." in html
    assert html.count('class="back"') == 2


def test_the_largest_topologies_are_drawn_and_the_others_listed() -> None:
    def line(tasks: int) -> Content:
        return {
            "in": {"spout": True, "tasks": tasks, "rate": 10},
            "out": {"tasks": 1, "inputs": {"in": "shuffle"}},
        }

    topologies = [{"name": f"t{size}", "components": line(size)} for size in (2, 9, 1, 5)]
    problem = problem_of(
        {"topologies": topologies, "cluster": {"nodes": {"n{1..2}": {"cpu": 1000, "slots": 4}}}}
    )
    owner = problem.topology[problem.component_of]
    html = page([planned(problem, Assignment(np.zeros_like(owner), owner))], title="Four")
    words = "".join(checked(html).visible)
    assert html.count('class="topology"') == 3
    assert re.findall(r"<title>Topology (\w+)", html) == ["t9", "t5", "t2"]
    assert "Also planned, not drawn: t1 (2 components, 2 tasks)." in words


def test_a_topology_without_room_is_named_as_left_out() -> None:
    topologies = [
        {"name": name, "components": {"in": {"spout": True, "tasks": 2, "rate": 10}}}
        for name in ("small", "huge")
    ]
    problem = problem_of(
        {"topologies": topologies, "cluster": {"nodes": {"n": {"cpu": 1000, "slots": 4}}}}
    )
    refusal = Infeasible("task huge/in.1 fits no node", fix="add a node")
    plan = Assignment(
        np.array([0, 0, UNPLACED, UNPLACED]), np.array([0, 0, 0, 0]), {"huge": refusal}
    )
    words = "".join(
        checked(page([planned(problem, plan, "careful"), refused(problem)], title="Partly")).visible
    )
    assert "incomplete: topology huge is not placed: task huge/in.1 fits no node" in words
    assert "2 tasks are not placed." in words
    assert "fits no node; add a node" in words


def test_a_bare_task_graph_is_drawn_by_its_operators() -> None:
    tasks: Content = {
        "a": {"cpu": 1},
        "b1": {"cpu": 1, "component": "b"},
        "b2": {"cpu": 1, "component": "b"},
    }
    traffic = [["a", "b1", 3.0], ["a", "b2", 4.0]]
    problem = problem_of(
        {
            "tasks": tasks,
            "traffic": traffic,
            "cluster": {"nodes": {"n{1..2}": {"cpu": 3, "slots": 1}}},
        }
    )
    html = page([planned(problem, [(0, 0), (0, 0), (1, 0)])], title="Bare")
    words = "".join(checked(html).visible)
    assert html.count('class="box"') == 2
    assert "b1 … b2" in words
    assert "<title>a → b1 … b2\n7 tuples/s, 57 % between nodes" in html
    assert re.findall(r"<td>(\d+)</td><td>(\d+)</td><td>57 %</td><td>100 %</td>", html) == [
        ("7", "4")
    ]
    assert 'title="b2"' in html


def test_unlimited_nodes_show_use_without_a_bar() -> None:
    problem = problem_of(word_count() | {"cluster": {"nodes": {"n1": {"slots": 2}}}})
    words = "".join(checked(page([planned(problem, TOGETHER)], title="Unlimited")).visible)
    assert "90, no limit" in words
    assert "nothing limits its rate" in words


def test_others_and_overloads_show_in_the_bars() -> None:
    content = word_count()
    content["cluster"]["nodes"]["n1"] |= {"taken": {"cpu": 40}}
    html = page([planned(problem_of(content), TOGETHER)], title="Full")
    checked(html)
    # 40 taken and 90 used of 100: the bar's scale is 130.
    assert (
        '<i class="others" style="width:30.8%"></i><i class="over" style="width:69.2%"></i>'
        '<b style="left:76.9%"></b>' in html
    )
    assert "CPU: 90 used by this plan, 40 taken by others, capacity 100" in html


def test_many_tasks_on_a_node_are_counted() -> None:
    problem = problem_of(word_count(split={"tasks": 60, "inputs": {"sentence": "shuffle"}}))
    words = "".join(checked(page([planned(problem, [(0, 0)] * 63)], title="Many")).visible)
    assert "63 tasks in 1 worker" in words
    assert "split × 60" in words


def test_many_components_are_drawn_by_traffic_and_the_rest_counted() -> None:
    bolts: Content = {f"b{i}": {"inputs": {"in": {"grouping": "shuffle"}}} for i in range(70)}
    components: Content = {"in": {"spout": True, "rate": 10}, **bolts}
    problem = problem_of(
        {"topology": {"components": components}, "cluster": {"nodes": {"n": {"slots": 1}}}}
    )
    html = page([planned(problem, [(0, 0)] * 71)], title="Wide")
    words = "".join(checked(html).visible)
    assert html.count('class="box"') == 60
    assert "Not drawn: 11 components with less traffic and 11 streams." in words


def test_a_large_problem_gives_a_small_page_quickly() -> None:
    components: Content = {
        f"stage-{i}": {"tasks": 2500, "cpu": 2, "memory_mb": 10} for i in range(40)
    }
    for i, spec in enumerate(components.values()):
        spec |= (
            {"spout": True, "rate": 50000}
            if i < 4
            else {"inputs": {f"stage-{i - 4}": "shuffle", f"stage-{i // 2}": "shuffle"}}
        )
    nodes = {"n-{1..1000}": {"cpu": 400, "memory_mb": 4000, "slots": 4, "bandwidth_mbps": 1000}}
    problem = problem_of(
        {"topology": {"name": "large", "components": components}, "cluster": {"nodes": nodes}}
    )
    tasks = np.arange(problem.task_count)
    plans = [
        planned(problem, Assignment(tasks % (1000 - i), tasks // 1000 % 4), f"s{i}")
        for i in range(3)
    ]
    start = time.process_time()
    html = page(plans * 8, title="Large")
    took_s = time.process_time() - start
    checked(html)
    assert len(html.encode()) < 2_000_000
    assert took_s < 10  # takes half a second; the slack is for a busy machine
    assert "All 1,000 nodes, rack by rack" in html


def test_layers_point_right_and_boxes_do_not_meet() -> None:
    random = Random(1)
    for _ in range(30):
        count = random.randint(1, 25)
        edges = [
            (random.randrange(count), random.randrange(count)) for _ in range(random.randint(0, 40))
        ]
        layout = lay_out([50.0] * count, edges, gap=20.0)
        for (a, b), back, bends in zip(edges, layout.back, layout.bends, strict=True):
            assert back or layout.layer[a] < layout.layer[b]
            assert back or len(bends) == layout.layer[b] - layout.layer[a] - 1
        for layer in set(layout.layer):
            y = sorted(layout.y[v] for v in range(count) if layout.layer[v] == layer)
            assert all(below - above >= 70 - 1e-6 for above, below in pairwise(y))


def test_only_cycles_are_drawn_backwards() -> None:
    assert lay_out([1.0] * 4, [(0, 1), (1, 2), (0, 3), (3, 2)], gap=1.0).back == [False] * 4
    assert lay_out([1.0] * 3, [(0, 1), (1, 2), (2, 1), (2, 2)], gap=1.0).back == [
        False,
        False,
        True,
        True,
    ]


def test_a_crossing_that_can_be_avoided_is_avoided() -> None:
    layout = lay_out([1.0] * 4, [(0, 3), (1, 2)], gap=1.0)
    assert (layout.y[0] < layout.y[1]) == (layout.y[3] < layout.y[2])


def test_figures_read_well() -> None:
    assert [number(v) for v in (0.0, 14000.0, 247.0833, 0.5, 1234.56, None, np.inf)] == [
        "0",
        "14,000",
        "247.1",
        "0.5",
        "1,235",
        "–",
        "–",
    ]
    assert [short(v) for v in (5.0, 950.4, 14000.0, 1.25e6, 0.123456)] == [
        "5",
        "950",
        "14 k",
        "1.25 M",
        "0.123",
    ]
    assert [percent(v) for v in (0.0, 1.0, 0.834, 0.998, 0.0004, 0.99999)] == [
        "0 %",
        "100 %",
        "83 %",
        "99.8 %",
        "under 0.1 %",
        "over 99.9 %",
    ]
    assert [duration(v) for v in (0.3, 1.654, 12.34, 123.4, 1e-5)] == [
        "300 ms",
        "1.65 s",
        "12.3 s",
        "123 s",
        "10 µs",
    ]
    assert shorten("parse-and-normalise", 10) == "parse-and…"
    assert shorten("short", 5) == "short"
    assert shorten("日本語テキスト", 7) == "日本語…"


def test_the_trade_off_is_drawn_with_the_chosen_plan_and_what_it_holds_is_escaped() -> None:
    problem = problem_of(word_count())
    points = tuple(
        Point(cost, 10 * cost, {HOSTILE: int(cost)}, (cost, 11 * cost)) for cost in (1.0, 2.0, 4.0)
    )
    curve = TradeOff(points, points[1], tuple(p.limit for p in points if p.limit is not None))
    html = page([planned(problem, SPREAD)], title="t", curve=curve)
    parser = checked(html)
    assert "Rate against cost" in " ".join(parser.visible)
    assert [
        value for tag, key, value in parser.attributes if tag == "circle" and key == "class"
    ] == ["point", "chosen", "point"]
    assert HOSTILE not in html
    without = page([planned(problem, SPREAD)], title="t")
    assert "Rate against cost" not in without


def test_a_chosen_plan_that_another_one_beats_is_still_shown() -> None:
    problem = problem_of(word_count())
    chosen = Point(3.0, 5.0, {"a": 3}, None)
    curve = TradeOff((Point(1.0, 4.0, {"a": 1}, None), Point(2.0, 9.0, {"a": 2}, None)), chosen, ())
    html = page([planned(problem, SPREAD)], title="t", curve=curve)
    assert html.count('class="chosen"') == 1
    assert html.count('class="point"') == 2


def test_changes_read_well() -> None:
    assert [signed(v) for v in (0.0, -1234.5, 0.25)] == ["+0", "-1,234", "+0.25"]
    assert [figure(v) for v in (True, 3, None, "refused")] == ["yes", "3", "–", "refused"]
    assert change(38682.0, 77364.0) == "+38,682 (+100.0 %)"
    assert change(0, 5) == "+5"
    assert change(109.9, 109.9 - 1e-14) == "same"
    assert (change(True, True), change(True, False), change(5.0, "refused")) == (
        "",
        "other",
        "other",
    )


def test_sentences_about_a_plan_say_what_it_means() -> None:
    problem = problem_of(word_count())
    together, spread = planned(problem, TOGETHER, "tight"), planned(problem, SPREAD, "wide")
    assert (found := plan_of(spread)) is not None
    assert headline(found) == (
        "wide: feasible. 400 of 800 tuples/s cross between nodes (50 % stay inside), "
        "750 between workers. 2 of 3 nodes, 3 workers. "
        "Sustains 1.67× the given rates; bottleneck node n1: cpu. "
        "A batch takes 600 ms of work. "
        "The best possible traffic between nodes is 0 (exact bound)."
    )
    assert (best := plan_of(together)) is not None
    assert headline(best).endswith("No plan can do better in traffic between nodes (exact bound).")
    assert plan_of(refused(problem)) is None
    assert reasons(refused(problem), fixes=True) == ["cannot cut cycles; use a3-storm"]
    assert reasons(planned(problem, OVERLOADED))[0] == "node n3: cpu needed 90, free 25"
    assert [state(r) for r in (together, planned(problem, OVERLOADED), refused(problem))] == [
        "feasible",
        "infeasible",
        "refused",
    ]


@pytest.mark.parametrize(
    ("gap", "value", "proven", "word", "sentence"),
    [
        (None, None, False, "unknown", "No bound on the best possible cost is known."),
        (1e-12, 5.0, True, "0 %", "No plan can do better in cost (some bound)."),
        (
            0.0005,
            5.0,
            False,
            "under 0.1 %",
            "Under 0.1 % from the best possible cost (some bound).",
        ),
        (0.012, 5.0, False, "≤ 1.2 %", "At most 1.2 % from the best possible cost (some bound)."),
        (1.0, 0.0, True, "100 %", "The best possible cost is 0 (some bound)."),
        (
            1.0,
            0.0,
            False,
            "unknown",
            "How far the best possible cost is from this is not known (some bound: 0).",
        ),
    ],
)
def test_the_distance_to_the_bound_reads_well(
    gap: float | None, value: float | None, proven: bool, word: str, sentence: str
) -> None:
    problem = problem_of(word_count())
    report = planned(problem, TOGETHER).report
    assert report is not None
    report = replace(report, gap=gap, bound=Bound("cost", value, proven, "some"))
    assert distance(report) == (word, sentence)


def whole_fragment(html: str) -> Checked:
    """A fragment that is balanced, needs nothing, and styles nothing but itself."""
    parser = Checked()
    parser.feed(html)
    parser.close()
    assert parser.open == []
    assert len(html.encode()) < 60_000
    assert not re.search(r"https?://|@import|url\(", html)
    assert {a[1] for a in parser.attributes}.isdisjoint({"id", "src", "href"})
    assert [tag for tag in re.findall(r"<(\w+)", html) if tag in ("script", "link", "img")] == []
    classes = [value or "" for _, key, value in parser.attributes if key == "class"]
    assert classes[0] == "headrace"
    assert all(name.startswith("hr-") for value in classes[1:] for name in value.split())
    (style,) = re.findall(r"<style>(.*?)</style>", html, flags=re.DOTALL)
    selectors = re.findall(r"([^{}]+)\{[^{}]*\}", style)
    assert all(".headrace" in part for selector in selectors for part in selector.split(","))
    known = set(re.findall(r"\.(hr-[\w-]+)", style))
    unstyled = {name for value in classes[1:] for name in value.split()} - known
    assert unstyled <= {"hr-ours"}
    return parser


def test_a_plan_in_a_notebook_shows_its_meaning_its_streams_and_its_nodes() -> None:
    problem = problem_of(word_count())
    html = plan_fragment(planned(problem, SPREAD, "wide"))
    words = "".join(whole_fragment(html).visible)
    assert "wide keeps 50 % of the traffic inside nodes and uses 2 of 3 nodes" in words
    assert html.count('class="hr-topology"') == 1
    assert html.count("<article>") == 2
    assert 'title="sentence.2"' in html
    assert html == plan_fragment(planned(problem, SPREAD, "wide"))


def test_a_notebook_says_why_a_plan_is_not_feasible_or_missing() -> None:
    problem = problem_of(word_count())
    rash = "".join(whole_fragment(plan_fragment(planned(problem, OVERLOADED, "rash"))).visible)
    assert "rash: not feasible.node n3: cpu needed 90, free 25" in rash
    shy = "".join(whole_fragment(plan_fragment(refused(problem))).visible)
    assert shy == "shy: no plan.cannot cut cycles; use a3-storm"


def test_a_comparison_in_a_notebook_is_one_table_with_the_best_first() -> None:
    problem = problem_of(word_count())
    results = [
        refused(problem),
        planned(problem, OVERLOADED, "rash"),
        planned(problem, SPREAD, "wide"),
        planned(problem, TOGETHER, "tight"),
    ]
    html = comparison_fragment(results)
    whole_fragment(html)
    rows = re.findall(r'<th scope="row">(\w+)', html)
    assert rows == ["tight", "wide", "rash", "shy"]
    assert '<tr class="hr-best"><th scope="row">tight' in html
    none = "".join(whole_fragment(comparison_fragment(results[:2])).visible)
    assert "No feasible plan." in none
    with pytest.raises(InvalidInput, match="at least one"):
        comparison_fragment([])


def test_a_problem_in_a_notebook_is_drawn_with_its_nodes_those_alike_together() -> None:
    html = problem_fragment(problem_of(word_count()))
    words = "".join(whole_fragment(html).visible)
    assert "word-count (3 components, 5 tasks) on 3 nodes" in words
    assert "between nodes" not in words  # nothing is placed yet
    rows = re.findall(r'<th scope="row">([^<]+)</th><td>([^<]*)</td><td>[^<]*</td><td>(\d+)', html)
    assert rows == [("n1 … n2", "× 2", "100"), ("n3", "", "25")]


def test_names_in_notebooks_stay_text() -> None:
    content = word_count(**{HOSTILE: {"tasks": 1, "inputs": {"split": "shuffle"}}})
    content["cluster"]["nodes"] = {'<i class="x">': {"cpu": 500, "slots": 2, "type": "</style>"}}
    problem = problem_of(content)
    result = planned(problem, [(0, 0)] * 6, "</script><b>evil")
    for html in (plan_fragment(result), comparison_fragment([result]), problem_fragment(problem)):
        whole_fragment(html)
        assert "<b>evil" not in html
        assert '<i class="x">' not in html
        assert html.count("</style>") == 1


@pytest.mark.parametrize("seed", range(20))
def test_any_problem_and_any_plan_gives_whole_fragments(seed: int) -> None:
    random = Random(seed)
    problem = problem_of(draw_document(random))
    result = planned(problem, draw_assignment(random, problem))
    for html in (
        plan_fragment(result),
        comparison_fragment([result, refused(problem)]),
        problem_fragment(problem),
    ):
        whole_fragment(html)
        text = re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL)
        assert not re.search(r"\b(nan|inf|None)\b", text)
