"""What would my Spark job do elsewhere? From an event log to a replay, findings and settings.

sources.py     a log, a history server or a running driver, as a trace
work.py        the trace without its clock: tasks, dependencies, driver time, slots
overheads.py   what Spark itself takes, fitted; cold_start.py: what cold slots add, fitted
replay.py      the slots, simulated
tasks.py       the tasks of a stage, split, merged, evened or made faster; what_if.py: all of it
curve.py       time against cost, and the point to take
memory.py      what executors need; settings.py: what to set, and why; submit.py: for spark-submit
findings.py    what is slow, by seconds; streams.py: do queries keep up?
report.py      all of it as one answer
live.py        the same of an application that runs: followed, or attached to
"""
