"""When is it worth moving? One file per rule: a function `(choice, *, options) -> Decision`."""

RULES = {
    "gain": "headrace.control.rules.gain",
    "muhammad": "headrace.control.rules.muhammad",
    "aniello": "headrace.control.rules.aniello",
    "once": "headrace.control.rules.once",
    "never": "headrace.control.rules.never",
}
SCHEDULERS = RULES  # the name under which the registry looks for a folder's algorithms
