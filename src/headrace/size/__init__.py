"""How many tasks does each component need? One file per algorithm.

All have one signature: `(workload: Workload, request: Request, *, options) -> Sized`. An algorithm
that reads nothing of the request leaves it out. Those that also place the tasks say where.
"""

# name -> module; the module holds a function of the same name. One line per algorithm.
SCHEDULERS: dict[str, str] = {
    "headrace": "headrace.size.headrace",
    "nasiri": "headrace.size.nasiri",
    "nasiri-optimal": "headrace.size.nasiri_optimal",
    "lsa": "headrace.size.lsa",
    "mba": "headrace.size.mba",
    "ds2": "headrace.size.ds2",
}
