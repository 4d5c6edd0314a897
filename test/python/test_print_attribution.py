"""A print belongs to a call, and has a level and a logger."""

import io
import logging
import sys
import unittest

from banana_worker.failures.stack_frame import traceback_without_own_frames
from banana_worker.report.print_attribution import PrintAttribution


class Prints(unittest.TestCase):
    def setUp(self):
        streams = sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__
        handle = logging.Handler.handle
        self.written = io.BytesIO()
        sys.stdout = io.TextIOWrapper(io.BytesIO())
        sys.stderr = io.TextIOWrapper(self.written)
        self.prints = PrintAttribution("m4rk")

        def restore():
            sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__ = streams
            logging.Handler.handle = handle

        self.addCleanup(restore)

    def test_a_line_of_logging_has_its_level_and_logger_whichever_handler_writes_it(self):
        logger = logging.getLogger("app.db")
        logger.propagate = False
        logger.addHandler(logging.StreamHandler(sys.stderr))
        self.prints.begin("r1")
        logger.warning("slow %s", "disk")
        logger.critical("gone\n")
        sys.stderr.write("a print\n")
        end = "\x1fm4rk r1\x1f"
        self.assertEqual(
            self.written.getvalue().decode(),
            f"\x1fm4rk r1\twarn\tapp.db\x1fslow disk\n{end}\x1fm4rk r1\terror\tapp.db\x1fgone\n\n{end}a print\n",
        )


class LongChains(unittest.TestCase):
    def test_a_long_chain_shows_its_first_and_last_ten(self):
        thrown = None
        for number in range(100):
            error = ValueError(f"number {number}")
            error.__cause__ = thrown
            thrown = error
        text = traceback_without_own_frames(thrown)
        shown = [int(line.rsplit(" ", 1)[1]) for line in text.split("\n") if line.startswith("ValueError: number")]
        self.assertEqual(shown, [*range(10), *range(90, 100)])
        self.assertIn("(80 more exceptions)", text)
