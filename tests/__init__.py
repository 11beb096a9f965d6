"""The tests; a package of its own, since ciw brings one that is called `tests` too."""
