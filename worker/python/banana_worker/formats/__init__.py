"""One file per format of a body, both directions."""
