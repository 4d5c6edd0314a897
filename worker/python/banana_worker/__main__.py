"""The entry of a Python worker: `python worker/python/banana_worker/__main__.py`, with fds 3, 4 and 5 open."""

import os
import sys

if not getattr(sys.flags, "safe_path", False):
    del sys.path[0]  # this folder, whose files must not be importable under their bare names
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

if __name__ == "__main__":
    # With PYTHONPATH=., a file beside the app may have the name of a standard module.
    users = [os.path.abspath(folder) for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    path = list(sys.path)
    sys.path.sort(key=users.__contains__)
    from banana_worker.main import main
    from banana_worker.standard_modules import keep_apart

    sys.path[:] = path
    for user in users:
        keep_apart(user)
    main()
