"""How many tasks of each component? One file per algorithm, one signature: workload -> counts, and where it gives them, places."""

# name -> module; the module holds a function of the same name. One line per algorithm.
SCHEDULERS: dict[str, str] = {
    "headrace": "headrace.size.headrace",
    "nasiri": "headrace.size.nasiri",
    "nasiri-optimal": "headrace.size.nasiri_optimal",
    "lsa": "headrace.size.lsa",
    "mba": "headrace.size.mba",
    "ds2": "headrace.size.ds2",
}
