"""Outputs of apps as plain data and as JSON, or the error that names the place of a value that is not data."""
