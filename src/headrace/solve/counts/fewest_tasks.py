"""The fewest tasks that carry a load, as an integer program: how many of each class, and where.

A level of a class is a number of tasks that share its work evenly. The program chooses one level
for every class, and the nodes of its tasks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from headrace.model.arrays import Bools, Floats, Ints
from headrace.model.problem import CPU
from headrace.solve.proof.integer_program import Budget, IntegerProgram, maximise

MOST_COLUMNS = 1_000  # of the program: more take long
ROUNDING = 1e-9  # of a node's room


@dataclass(frozen=True, slots=True, eq=False)
class SharedWork:
    """Work that tasks share: C classes on N nodes, K resources, CPU first."""

    work: Floats  # [C, N]   points of a whole class
    fixed: Floats  # [C, N]  points of each of its tasks besides
    demand: Floats  # [C, K] of one task; CPU is not read
    room: Floats  # [N, K]
    thread: Floats  # [N]    points that one task can use
    fits: Bools  # [C, N]
    apart: Bools  # [C]      no two tasks on one node
    least: Ints  # [C]       tasks
    most: Ints  # [C]


def find_fewest_tasks(
    shared: SharedWork, enough: int, deadline: Callable[[], bool] | None = None
) -> Ints | None:
    """Counts [C, N] with fewer than `enough` tasks; None if none are found."""
    nodes = len(shared.thread)
    spare = enough - 1 - int(shared.least.sum())
    highest = np.minimum(shared.least + spare, shared.most)
    levels = int((highest - shared.least + 1).sum())
    if spare < 0 or (highest < shared.least).any() or levels * (nodes + 1) > MOST_COLUMNS:
        return None
    owner = np.repeat(np.arange(len(highest)), highest - shared.least + 1)  # [L]
    tasks = np.concatenate(
        [np.arange(a, b + 1) for a, b in zip(shared.least, highest, strict=True)]
    )
    cpu = shared.work[owner] / tasks[:, None] + shared.fixed[owner]  # [L, N]
    fits = shared.fits[owner] & (cpu <= shared.thread * (1 + ROUNDING))
    level, node = np.nonzero(fits)  # of the columns that come after the levels
    program = _program(shared, enough, owner, tasks, cpu, level, node)
    outcome = maximise(program, Budget(1, deadline, MOST_COLUMNS), unit=1.0)
    if outcome.solution is None:
        return None
    x = np.zeros(shared.fits.shape, dtype=np.int64)
    np.add.at(x, (owner[level], node), outcome.solution[levels:])
    return x


def _program(
    shared: SharedWork,
    enough: int,
    owner: Ints,
    tasks: Ints,
    cpu: Floats,
    level: Ints,
    node: Ints,
) -> IntegerProgram:
    """Choose levels with fewest tasks, and so many tasks on nodes that have room."""
    from scipy.sparse import coo_array

    classes, nodes = shared.fits.shape
    chosen, placed = np.arange(len(owner)), len(owner) + np.arange(len(level))  # columns
    number = tasks.astype(np.float64)
    one = np.ones(len(level))
    mine = owner[level]
    # Rows as (which, columns, values, least, most): the tasks of a level are all placed, a class
    # has one level, there are fewer than enough, apart ones are alone, nodes are not too full.
    first_row, alone = np.zeros_like(owner), shared.apart[mine]
    blocks = [
        (chosen, chosen, -number, np.zeros(len(owner)), np.zeros(len(owner))),
        (owner, chosen, np.ones(len(owner)), np.ones(classes), np.ones(classes)),
        (first_row, chosen, number, np.zeros(1), np.array([enough - 1.0])),
        (
            (mine * nodes + node)[alone],
            placed[alone],
            one[alone],
            np.zeros(classes * nodes),
            np.ones(classes * nodes),
        ),
    ]
    for k, room in enumerate(shared.room.T):
        need = cpu[level, node] if k == CPU else shared.demand[mine, k]
        limited = np.isfinite(room)[node]
        most = np.where(np.isfinite(room), room * (1 + ROUNDING), np.inf)
        blocks.append((node[limited], placed[limited], need[limited], np.zeros(nodes), most))
    first = np.cumsum([0, *(len(low) for _, _, _, low, _ in blocks)])
    rows = [
        *(start + which for start, (which, *_) in zip(first, blocks, strict=False)),
        level,  # of the first block too
    ]
    columns = [*(column for _, column, *_ in blocks), placed]
    values = [*(value for _, _, value, *_ in blocks), one]
    shape = (int(first[-1]), len(owner) + len(level))
    entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
    return IntegerProgram(
        gain=np.concatenate([-number, np.zeros(len(level))]),
        matrix=coo_array(entries, shape=shape).tocsr(),
        low=np.concatenate([low for *_, low, _ in blocks]),
        high=np.concatenate([high for *_, high in blocks]),
    )
