/** Runs one server as the whole process: signals call `close` and `kill`; ends and errors become exit reasons. */
import { closeSync } from 'node:fs';
import { isatty } from 'node:tty';
import { ServeError } from '../../protocol/errors.js';
import { asSentence } from '../../protocol/text/sentences.js';
import { watchNpmShell } from './npm-shell.js';
import { addressFlags } from '../options/address.js';
import type { ServerHandle } from '../server/server-handle.js';

/** Exit codes of the command, for scripts and orchestrators. A test compares them with the list in docs/options.md. */
export const EXIT_CODES = {
  drained: { code: 0, meaning: 'Stopped by a signal; every accepted call was answered.' },
  internal: { code: 1, meaning: 'The server itself failed; please report it.' },
  config: {
    code: 2,
    meaning: 'An option, the config file or the path of the app is wrong; nothing was started.',
  },
  app: {
    code: 3,
    meaning:
      'No worker can start: the app cannot be loaded, its init fails, or workers keep dying; the log says why.',
  },
  listen: { code: 4, meaning: 'The port or socket cannot be opened.' },
  cut: { code: 5, meaning: 'Stopped by a signal; the drain timeout passed and some calls were cut off.' },
  interrupted: { code: 130, meaning: 'A second Ctrl-C: stopped at once.' },
  terminated: { code: 143, meaning: 'A second SIGTERM: stopped at once.' },
} as const;

export type ExitReason = keyof typeof EXIT_CODES;

/**
 * Resolves once the server of `start` has ended. If it cannot start, writes the reason to stderr. `stop` aborts when a
 * signal ends the process before `start` has resolved, which may then reject. `endsWithNpm`: the server also ends when npm's
 * shell, which started it, has ended.
 */
export async function runServerProcess(
  start: (stop: AbortSignal) => Promise<ServerHandle>,
  endsWithNpm = false,
): Promise<ExitReason> {
  outliveTerminal();
  const signals = watchSignals(endsWithNpm);
  try {
    return await signals.applyTo(await start(signals.beforeStart));
  } catch (thrown) {
    if (!signals.beforeStart.aborted) return explainFailure(thrown);
    printError('stopped before it had started.');
    return 'drained';
  }
}

/**
 * SIGINT or SIGTERM: the first one drains, the second stops at once. A hang-up of the server's terminal, or the end of
 * npm's shell, drains like SIGTERM but does not count as a second signal, because the kernel, the shell and npm may each
 * send one. Without a terminal, SIGHUP starts workers again that could not start. All are watched from the start of the process, so that a signal during the start is applied afterwards.
 */
function watchSignals(endsWithNpm: boolean) {
  const beforeStart = new AbortController();
  let server: ServerHandle | null = null;
  let first: 'SIGINT' | 'SIGTERM' | null = null;
  let signals = 0;
  let stopped: 'interrupted' | 'terminated' | null = null;
  const drain = (): void => {
    if (first === null) return;
    if (server === null) {
      beforeStart.abort();
      return;
    }
    const name = first === 'SIGINT' ? 'Ctrl-C' : first;
    void server.close({
      // A person at a terminal waits; a load balancer needs a moment to notice.
      lagMs: first === 'SIGINT' ? 0 : server.drainLagMs,
      hint: signals === 0 ? '' : `a second ${name} stops at once`,
    });
  };
  const drainAs = (signal: 'SIGINT' | 'SIGTERM'): void => {
    first ??= signal;
    drain();
  };
  const onSignal = (signal: 'SIGINT' | 'SIGTERM'): void => {
    signals += 1;
    if (signals === 1) {
      drainAs(signal);
      return;
    }
    stopped ??= signal === 'SIGINT' ? 'interrupted' : 'terminated';
    if (server === null) process.exit(EXIT_CODES[stopped].code);
    server.kill();
  };
  process.on('SIGINT', () => onSignal('SIGINT'));
  process.on('SIGTERM', () => onSignal('SIGTERM'));
  const forgetNpm = endsWithNpm ? watchNpmShell(() => drainAs('SIGTERM')) : () => {};
  const ownTerminal = isAtTerminal();
  process.on('SIGHUP', () => {
    if (ownTerminal) {
      drainAs('SIGTERM');
      return;
    }
    forgetNpm(); // npm dies of the same hang-up, which this server is meant to survive
    server?.startAgain();
  });
  return {
    /** Aborts at the first signal that arrives before the server has started. */
    beforeStart: beforeStart.signal,
    /** Applies past and future signals to the server; resolves when the server has ended. */
    applyTo: async (started: ServerHandle): Promise<ExitReason> => {
      server = started;
      drain();
      const { reason } = await started.ended;
      return stopped ?? REASONS[reason];
    },
  };
}

const STANDARD_STREAMS = [0, 1, 2] as const;

/**
 * Whether a terminal's hang-up should end this process. Node resets SIGHUP even if `nohup` has set it to be ignored, but
 * nohup redirects all three streams away from the terminal (on systems other than Linux, only stdout and stderr).
 */
function isAtTerminal(): boolean {
  return isatty(1) || isatty(2) || (process.platform === 'linux' && isatty(0));
}

/**
 * Lets the process end with its own exit code even if its terminal is gone by then. At its end, Node resets the terminal,
 * and aborts if it cannot; it leaves streams alone that are closed.
 */
function outliveTerminal(): void {
  const terminals = STANDARD_STREAMS.filter((fd) => isatty(fd));
  if (terminals.length === 0) return;
  process.on('exit', () => {
    for (const fd of terminals) if (!isatty(fd)) closeSync(fd);
  });
}

const REASONS = { drained: 'drained', cut: 'cut', failed: 'app', killed: 'terminated' } as const;

/** Writes to stderr why a server could not start. */
export function explainFailure(thrown: unknown): ExitReason {
  const { code, message } = thrown as NodeJS.ErrnoException;
  if (thrown instanceof ServeError && thrown.code === 'SERVE_CONFIG') {
    printError(message);
    return 'config';
  }
  const { place } = thrown as ListenError;
  const where = addressOf(thrown as ListenError) + (place === undefined ? '' : ` (${place})`);
  const { host, port } = (thrown as ListenError).flags ?? addressFlags();
  if (code === 'EADDRINUSE') {
    printError(
      `${where} is in use by another program. Choose another with ${port}, or ${port} 0 for a free one.`,
    );
    return 'listen';
  }
  if (code === 'EACCES' || code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND' || code === 'ENOENT') {
    printError(`cannot listen on ${where}: ${asSentence(message)} Check ${host} and ${port}.`);
    return 'listen';
  }
  printError(`internal error: ${thrown instanceof Error ? (thrown.stack ?? message) : String(thrown)}`);
  return 'internal';
}

/**
 * The fields that `listen`, `Listeners` and `serve` add to a system error. A host that cannot be resolved has only
 * `hostname`, a socket only its path in `address`.
 */
interface ListenError {
  readonly hostname?: string;
  readonly address?: string;
  readonly port?: number;
  readonly flags?: ReturnType<typeof addressFlags>;
  /** The setting that contains the address, if it is not a flag. */
  readonly place?: string;
}

function addressOf({ hostname, address = '', port = 0 }: ListenError): string {
  if (hostname !== undefined) return `host ${hostname}`;
  return port > 0 ? `port ${port} of ${address}` : address;
}

export function printError(text: string): void {
  process.stderr.write(`banana-serve: ${text}\n`);
}
