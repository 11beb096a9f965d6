"""Which task in which worker on which node? One file per scheduler, one signature: problem -> assignment."""

# name -> module; the module holds a function of the same name. One line per scheduler.
SCHEDULERS: dict[str, str] = {
    "storm-even": "headrace.place.storm_even",
    "a3-storm": "headrace.place.a3_storm",
}
