"""The contract that every scheduler keeps, so that anybody can hold theirs to it.

    problems.py  random problems that use every part of the format, the same for the same seed
    prefix.py    the same problem with other names
    smallest.py  one task, one node, no traffic, a cycle
    promises.py  what a scheduler promises, each with the problems that would show it broken

`headrace check-scheduler package.module:function` says which promises hold.
"""

from headrace.checks.promises import PROMISES, Subject, Verdict, check_scheduler

__all__ = ["PROMISES", "Subject", "Verdict", "check_scheduler"]
