"""Helpers of handlers: classes, labels and errors."""
