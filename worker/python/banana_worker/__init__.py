"""The worker of Python apps: it speaks docs/wire.md on fds 3, 4 and 5, and mirrors the TypeScript worker file by file."""
