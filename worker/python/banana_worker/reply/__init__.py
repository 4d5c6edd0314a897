"""The way from an app's output to the bytes of its answer."""
