"""The entry of a Python worker: `python worker/python/banana_worker/__main__.py`, with fds 3, 4 and 5 open."""

import os
import sys

if not getattr(sys.flags, "safe_path", False):
    del sys.path[0]  # this folder, whose files must not be found under names of their own
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

if __name__ == "__main__":
    from banana_worker.main import main

    main()
