"""The base class of handlers on torch."""
