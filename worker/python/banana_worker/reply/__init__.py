"""From what an app returns to the bytes of its answer."""
