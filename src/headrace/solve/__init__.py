"""Kernels on bare arrays."""
