"""How do we get from the running plan to the new one? One file per scheduler of transfers.

All have one signature: `(work: Blocks | Volumes, request: Request, *, options) -> Moves`. Ours
read nothing of the request and leave it out.
"""

# name -> module; the module holds a function of the same name. One line per scheduler.
SCHEDULERS: dict[str, str] = {
    "optimal": "headrace.move.optimal",
    "all-at-once": "headrace.move.all_at_once",
    "one-by-one": "headrace.move.one_by_one",
    "drain-checkpoint": "headrace.move.drain_checkpoint",
    "mod": "headrace.move.mod",
    "ro-mod": "headrace.move.ro_mod",
}
