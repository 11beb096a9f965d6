"""How do we get from the running plan to the new one? One file per scheduler of transfers, one signature: work -> moves."""

# name -> module; the module holds a function of the same name. One line per scheduler.
SCHEDULERS: dict[str, str] = {
    "optimal": "headrace.move.optimal",
    "all-at-once": "headrace.move.all_at_once",
    "one-by-one": "headrace.move.one_by_one",
    "mod": "headrace.move.mod",
    "ro-mod": "headrace.move.ro_mod",
}
