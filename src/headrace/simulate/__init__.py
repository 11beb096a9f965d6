"""What a plan will do: throughput, latency and queues over time."""

from headrace.simulate.simulating import simulate

__all__ = ["simulate"]
