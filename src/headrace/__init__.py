"""Headrace plans stream-processing topologies, proves how good the plan is, and runs it on Spark."""

__version__ = "0.1.0"
