"""What `import headrace as hr` offers; `headrace/__init__.py` loads it name by name, on first use.

case.py        what is planned: from files, from sections, or built in Python
verbs.py       place, size, provision, plan, judge, compare, explain
changes.py     what differs between plans, and how to get from one to the other
advice.py      what a Spark job would do elsewhere: from its event log, or attached to it
comparison.py  the same problem through many schedulers, as a table
"""
