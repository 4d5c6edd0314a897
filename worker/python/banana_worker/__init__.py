"""The worker of Python apps: it speaks docs/wire.md on fds 3, 4 and 5.

The same frames and the same promises as the TypeScript worker, in a shape of its own.
"""
