"""The wire of docs/wire.md: frames, their heads, the messages, and the error codes."""
