"""The worker as a process: its descriptors, the channel to the front, threads, signals and waiting."""
