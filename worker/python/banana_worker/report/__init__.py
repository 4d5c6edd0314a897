"""Reports of the app to the front: log lines, metrics, and the call that a print belongs to."""
