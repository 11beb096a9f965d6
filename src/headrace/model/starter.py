"""The file that `headrace init` writes: a small topology, ready to plan, every key explained."""

from __future__ import annotations

STARTER = """\
# A starting point: word count on five machines of two types.
# All numbers are made up; put yours in their place.
#
#   headrace check FILE      is the file right?
#   headrace place FILE      which task on which machine, and how far from the best possible?
#   headrace compare FILE    the same question to every scheduler
#   headrace plan FILE --rent   which machines of the catalog to rent instead of the cluster
#   headrace schema          every key there is
format: headrace/1

topology:                     # several on one cluster: `topologies:` with a list of these
  name: word-count
  workers: 4                  # worker processes over the whole cluster; absent: the planner chooses
  # priority: 10              # among several topologies, the smaller number is placed first
  # worker_max_heap_mb: 4096  # memory one worker may hold
  components:
    sentence:                 # a spout brings tuples in
      spout: true
      tasks: 2                # parallel tasks; `headrace size` finds how many are needed
      rate: 6000              # tuples/s out of all its tasks together
      bytes: 60               # of one tuple it emits; counts against the network
      memory_mb: 256          # of one task, as cpu, memory_mb and state_mb are everywhere
    split:                    # a bolt reads other components
      tasks: 4
      inputs:
        sentence: shuffle     # which task gets a tuple: shuffle, fields, global, all, direct,
                              # or local-or-shuffle
      selectivity: 7          # tuples out per tuple in
      bytes: 12
      memory_mb: 256
    count:
      tasks: 6
      inputs:
        split:                # fields: the same word goes to the same task
          grouping: fields
          fields: [word]
      selectivity: 0.01
      bytes: 20
      memory_mb: 512
      state_mb: 40            # what moves along when a task moves
    report:
      tasks: 1
      inputs:
        count: global         # everything to the first task
      memory_mb: 128
      cpu: 5                  # without a profile: CPU points of one task at these rates;
                              # 100 = one core
      # nodes: [big-1]        # the only machines it may run on
      # apart: true           # no two of its tasks on one machine

cluster:
  headroom: 0.2               # share of every node that plans leave free, for busier times;
                              # or by resource: {cpu: 0.2, memory_mb: 0.1}
  nodes:                      # a-{1..3} stands for a-1, a-2 and a-3
    big-{1..2}:
      type: big               # the key into `profile`
      cpu: 400                # 100 = one core
      memory_mb: 8192
      slots: 4                # worker processes it can hold
      bandwidth_mbps: 1000    # 10^6 bit/s, in and out separately
      rack: north
      # taken: {cpu: 50, memory_mb: 512, slots: [0]}   # what others use already
    small-{1..3}:
      type: small
      cpu: 200
      memory_mb: 4096
      slots: 2
      bandwidth_mbps: 1000
      rack: south

catalog:                      # machine types that can be rented; `headrace provision` and
                              # `headrace plan --rent` choose among them
  big: {price: 0.8, available: 10, cpu: 400, memory_mb: 8192, slots: 4, bandwidth_mbps: 1000}
  small: {price: 0.3, available: 20, cpu: 200, memory_mb: 4096, slots: 2, bandwidth_mbps: 1000}

profile:                      # what a tuple costs on each machine type; "*" is any type
  sentence:
    "*": {cpu_ms: 0.05}       # CPU milliseconds per tuple: 6000 tuples/s x 0.05 ms = 30 points
  split:
    big: {cpu_ms: 0.3}
    small: {cpu_ms: 0.5}
  count:
    big: {cpu_ms: 0.05, cpu_fixed: 1}     # cpu_fixed: points one task takes at no load
    small: {cpu_ms: 0.09, cpu_fixed: 1}

# Measured facts go over what is stated above, in this file or in one of their own:
# streams:
#   - {from: split, to: count, tuples_per_s: 42800, shares: [0.25, 0.15, 0.15, 0.15, 0.15, 0.15]}
# traffic:                    # [from task, to task, tuples/s, bytes/s]
#   - [split.1, count.3, 120.5, 1446]
"""
