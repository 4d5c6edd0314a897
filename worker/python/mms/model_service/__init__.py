"""Base classes of services in the first form, as in archives of version 0.x."""
