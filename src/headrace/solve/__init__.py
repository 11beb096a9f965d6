"""Kernels on bare arrays, in rooms by question.

    least_traffic/  a plan with little traffic between nodes: constructions, annealing, clusters
    rate/           a plan that sustains a high rate, or a short batch
    proof/          the least traffic and the fewest nodes, proven; how far a plan can be from it
    counts/         how many tasks, on which machines: for a rate, for a budget
    cut/            a graph split into parts of hard capacity
    simulation/     what a plan does over time, tuple by tuple or as a fluid
    transfers.py    who sends to whom, step by step

What the rooms share lies beside them: `instance` (what is to be placed), `classes` and `symmetry`
(tasks and nodes nobody can tell apart), `packing` (bins), `matching` (rows to columns), `racks`
(lots of tasks change places), `slots` (whether tasks fit a node's slots), `highs` (linear and
integer programs), `pattern_rows` (how many nodes get which pattern), `silence` (nothing of theirs
on standard output), `compiled` (machine code) and `chance` (random numbers).
"""
