"""Calls, from their arrival to their one ending."""
