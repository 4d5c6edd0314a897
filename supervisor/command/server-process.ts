/** Runs one server as the whole process: signals call `close` and `kill`; ends and errors become exit reasons. */
import { ServeError } from '../../protocol/errors.js';
import { asSentence } from '../../protocol/text/sentences.js';
import { EXIT_CODES, type ExitReason } from './exit-codes.js';
import { watchNpmShell } from './npm-shell.js';
import { isAtTerminal, outliveTerminal } from './terminal.js';
import { MAIN_FLAGS, type ListenFlags } from '../options/address.js';
import type { ServerHandle } from '../server/server-handle.js';
import type { ServerEnd } from '../status/server-status.js';

export interface ServerProcess {
  /** Whether the server also ends when npm's shell, which started it, has ended. */
  readonly endsWithNpm: boolean;
}

/**
 * Resolves once the server of `start` has ended. If it cannot start, writes the reason to stderr. `stop` aborts when a
 * signal ends the process before `start` has resolved, which may then reject.
 */
export async function runServerProcess(
  start: (stop: AbortSignal) => Promise<ServerHandle>,
  { endsWithNpm }: ServerProcess = { endsWithNpm: false },
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

interface SignalWatch {
  /** Aborts at the first signal that arrives before the server has started. */
  readonly beforeStart: AbortSignal;
  /** Applies past and future signals to the server; resolves when the server has ended. */
  applyTo(server: ServerHandle): Promise<ExitReason>;
}

/**
 * SIGINT or SIGTERM: the first one drains, the second stops at once. A hang-up of the server's terminal, or the end of
 * npm's shell, drains like SIGTERM but does not count as a second signal, because the kernel, the shell and npm may each
 * send one. Without a terminal, SIGHUP starts workers again that could not start. All are watched from the start of the process, so that a signal during the start is applied afterwards.
 */
function watchSignals(endsWithNpm: boolean): SignalWatch {
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
    beforeStart: beforeStart.signal,
    applyTo: async (started) => {
      server = started;
      drain();
      const end = await started.ended;
      return stopped ?? reasonOf(end);
    },
  };
}

function reasonOf({ reason }: ServerEnd): ExitReason {
  switch (reason) {
    case 'drained':
    case 'cut':
      return reason;
    case 'failed':
      return 'app';
    case 'killed':
      return 'terminated';
  }
}

/** Writes to stderr why a server could not start. */
export function explainFailure(thrown: unknown): ExitReason {
  const { code, message } = thrown as NodeJS.ErrnoException;
  if (thrown instanceof ServeError && thrown.code === 'SERVE_CONFIG') {
    printError(message);
    return 'config';
  }
  const { place } = thrown as ListenError;
  const where = addressOf(thrown as ListenError) + (place === undefined ? '' : ` (${place})`);
  const { host, port } = (thrown as ListenError).flags ?? MAIN_FLAGS;
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
  readonly flags?: ListenFlags;
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
