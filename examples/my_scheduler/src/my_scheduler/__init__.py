"""A scheduler of one's own for Headrace."""

from my_scheduler.most_room import most_room

__all__ = ["most_room"]
