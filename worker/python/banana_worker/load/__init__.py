"""From an app's file to a loaded app: finds and imports it, and explains what went wrong."""
