"""The way from an app's file to a loaded app: finds and imports it, and explains errors."""
