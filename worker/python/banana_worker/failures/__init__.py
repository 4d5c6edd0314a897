"""Exceptions: what one is, where it was raised, and whether the worker can go on after it."""
