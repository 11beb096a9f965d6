"""Results to make a page of, and readers that check pages and fragments."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html.parser import HTMLParser

import numpy as np

from headrace.checks.problems import Content
from headrace.errors import Unsupported
from headrace.judge.report import judge
from headrace.model.problem import Assignment, Problem
from headrace.planner import Plan, Refusal

VOID = {"meta"}
HOSTILE = "<script>alert('x')</script>&\"q\""


class PageReader(HTMLParser):
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


def check_page(html: str) -> PageReader:
    """A page that is balanced and needs nothing from outside."""
    parser = PageReader()
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


def check_fragment(html: str) -> PageReader:
    """A fragment that is balanced, needs nothing, and styles nothing but itself."""
    parser = PageReader()
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


def judge_plan(
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


def refuse_plan(problem: Problem, scheduler: str = "shy") -> Refusal:
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
