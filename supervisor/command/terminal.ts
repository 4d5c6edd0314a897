/** The terminal at which the process was started. */
import { closeSync } from 'node:fs';
import { isatty } from 'node:tty';

const STANDARD_STREAMS = [0, 1, 2] as const;

/**
 * Whether a terminal's hang-up should end this process. Node resets SIGHUP even if `nohup` has set it to be ignored, but
 * nohup redirects all three streams away from the terminal (on systems other than Linux, only stdout and stderr).
 */
export function isAtTerminal(): boolean {
  return isatty(1) || isatty(2) || (process.platform === 'linux' && isatty(0));
}

/**
 * Lets the process end with its own exit code even if its terminal is gone by then. At its end, Node resets the terminal,
 * and aborts if it cannot; it leaves streams alone that are closed.
 */
export function outliveTerminal(): void {
  const terminals = STANDARD_STREAMS.filter((fd) => isatty(fd));
  if (terminals.length === 0) return;
  process.on('exit', () => {
    for (const fd of terminals) if (!isatty(fd)) closeSync(fd);
  });
}
