"""Which task runs in which worker on which node? One file per scheduler.

All have one signature: `(problem: Problem, request: Request, *, options) -> Assignment`. A
scheduler that reads nothing of the request leaves it out.
"""

# name -> module; the module holds a function of the same name. One line per scheduler.
SCHEDULERS: dict[str, str] = {
    "headrace": "headrace.place.headrace",
    "optimal": "headrace.place.optimal",
    "storm-even": "headrace.place.storm_even",
    "a3-storm": "headrace.place.a3_storm",
    "top-storm": "headrace.place.top_storm",
    "ban-storm": "headrace.place.ban_storm",
    "gr-storm": "headrace.place.gr_storm",
    "storm-isolation": "headrace.place.storm_isolation",
    "rstorm": "headrace.place.rstorm",
    "storm-ras": "headrace.place.storm_ras",
    "aniello-offline": "headrace.place.aniello_offline",
    "aniello-online": "headrace.place.aniello_online",
    "tstorm": "headrace.place.tstorm",
    "dstorm": "headrace.place.dstorm",
    "mt-scheduler": "headrace.place.mt_scheduler",
    "meng-style": "headrace.place.meng_style",
    "sam": "headrace.place.sam",
    "ro-mod": "headrace.place.ro_mod",
    "p-scheduler": "headrace.place.p_scheduler",
    "t3-scheduler": "headrace.place.t3_scheduler",
    "i-scheduler": "headrace.place.i_scheduler",
    "p-scheduler-hard": "headrace.place.p_scheduler_hard",
    "i-scheduler-hard": "headrace.place.i_scheduler_hard",
}
