"""Answers: whole replies and streams, with their heads, from an app's outputs."""
