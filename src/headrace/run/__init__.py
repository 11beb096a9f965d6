"""Make it so: topologies in Python that run on Spark under a plan."""

from headrace.run.sinks import Callback, Console, Parquet
from headrace.run.topology import Keyed, Topology

__all__ = ["Callback", "Console", "Keyed", "Parquet", "Topology"]
