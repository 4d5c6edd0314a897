/** A server as the business of its whole process: signals to `close` and `kill`, ends and errors to exit reasons. */
import { isatty } from 'node:tty';
import { ServeError } from '../../protocol/errors.js';
import { asSentence } from '../../protocol/text/sentences.js';
import { EXIT_CODES, type ExitReason } from './exit-codes.js';
import { watchNpmShell } from './npm-shell.js';
import { MAIN_FLAGS, type ListenFlags } from '../options/address.js';
import type { ServerHandle } from '../server/server-handle.js';
import type { ServerEnd } from '../status/server-status.js';

export interface ServerProcess {
  /** Whether the end of npm's shell ends this server too, if that shell started it. */
  readonly endsWithNpm: boolean;
}

/**
 * Resolves once the server that `start` gives has ended; what kept it from starting is told on stderr. `stop` aborts when
 * the process is told to end while `start` is still on its way, which may then reject.
 */
export async function runServerProcess(
  start: (stop: AbortSignal) => Promise<ServerHandle>,
  { endsWithNpm }: ServerProcess = { endsWithNpm: false },
): Promise<ExitReason> {
  const ends = watchEnds(endsWithNpm);
  try {
    return await ends.obey(await start(ends.beforeStart));
  } catch (thrown) {
    if (!ends.beforeStart.aborted) return explainFailure(thrown);
    say('stopped before it had started.');
    return 'drained';
  }
}

interface Ends {
  /** Aborts at the first signal that comes before there is a server to obey it. */
  readonly beforeStart: AbortSignal;
  /** Obeys what has come and what comes; resolves when the server has ended. */
  obey(server: ServerHandle): Promise<ExitReason>;
}

/**
 * SIGINT or SIGTERM: the first one drains, the second stops at once. A hang-up of the server's terminal, or the end of
 * npm's shell, drains like SIGTERM and hastens nothing: the kernel, the shell and npm may each send their own. All are
 * watched from the start of the process, so that what comes while the server opens is obeyed once it has.
 */
function watchEnds(endsWithNpm: boolean): Ends {
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
    if (ownTerminal) drainAs('SIGTERM');
    else forgetNpm(); // it died of the hang-up that this server is to survive
  });
  return {
    beforeStart: beforeStart.signal,
    obey: async (started) => {
      server = started;
      drain();
      const end = await started.ended;
      return stopped ?? reasonOf(end);
    },
  };
}

/**
 * Whether a terminal's hang-up is meant for this process. Node forgets that `nohup` had the signal ignored; but nohup
 * takes the terminal out of all three streams (on other systems than Linux, out of the two that are written to).
 */
function isAtTerminal(): boolean {
  return isatty(1) || isatty(2) || (process.platform === 'linux' && isatty(0));
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

/** Tells on stderr what kept a server from starting. */
export function explainFailure(thrown: unknown): ExitReason {
  const { code, message } = thrown as NodeJS.ErrnoException;
  if (thrown instanceof ServeError && thrown.code === 'SERVE_CONFIG') {
    say(message);
    return 'config';
  }
  const { place } = thrown as ListenError;
  const where = addressOf(thrown as ListenError) + (place === undefined ? '' : ` (${place})`);
  const { host, port } = (thrown as ListenError).flags ?? MAIN_FLAGS;
  if (code === 'EADDRINUSE') {
    say(`${where} is in use by another program. Choose another with ${port}, or ${port} 0 for a free one.`);
    return 'listen';
  }
  if (code === 'EACCES' || code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND' || code === 'ENOENT') {
    say(`cannot listen on ${where}: ${asSentence(message)} Check ${host} and ${port}.`);
    return 'listen';
  }
  say(`internal error: ${thrown instanceof Error ? (thrown.stack ?? message) : String(thrown)}`);
  return 'internal';
}

/** The fields that `listen`, `Listeners` and `serve` add to a system error. A host without an address has only its name, a socket only its path. */
interface ListenError {
  readonly hostname?: string;
  readonly address?: string;
  readonly port?: number;
  readonly flags?: ListenFlags;
  /** Where it was written, if not as a flag. */
  readonly place?: string;
}

function addressOf({ hostname, address = '', port = 0 }: ListenError): string {
  if (hostname !== undefined) return `host ${hostname}`;
  return port > 0 ? `port ${port} of ${address}` : address;
}

export function say(text: string): void {
  process.stderr.write(`banana-serve: ${text}\n`);
}
