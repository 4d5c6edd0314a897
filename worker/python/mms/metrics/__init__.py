"""Metrics of custom services."""
