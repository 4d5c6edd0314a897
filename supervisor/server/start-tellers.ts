/** Two ways to tell that workers are still starting: lines of the log, fewer and fewer, or one line of a terminal that changes. */
import type { Log } from '../observe/log.js';
import type { StartTeller } from '../models/start-news.js';

const FIRST_PAUSE_MS = 5000;
const LONGEST_PAUSE_MS = 60_000;

/** Pauses double up to a minute: an init of ten minutes takes about a dozen lines. */
export function logTeller(log: Log): StartTeller {
  return {
    pauseMs: (told) => Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (told - 1)),
    tell: (text) => log.info(text),
    end: () => {},
  };
}
