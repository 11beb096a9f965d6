"""The same plans on Apache Storm: a real cluster's assignment follows them, and is measured.

jars.py       Storm from Maven Central, once, into a cache with checksums
plugin.py     our Java classes (storm-plugin/), compiled into one jar
home.py       a STORM_HOME, and the storm.yaml of each daemon
local.py      a cluster of processes on this machine: ZooKeeper, Nimbus, a supervisor per node
keeper.py     the process that keeps such a cluster up: `headrace storm up` and `down`
java.py       Java programs of the plug-in: submit a topology, read Nimbus
state.py      what Nimbus says, as Headrace's sections
collect.py    telemetry of Storm's workers, as `observe` reads it
spent.py      CPU as workers measured it; costs.py: what it tells of tuples, messages and workers
world.py      the loop's world: Storm
service.py    the service that answers Nimbus: `headrace storm serve`
install.py    what to copy and set on a cluster of one's own
"""
