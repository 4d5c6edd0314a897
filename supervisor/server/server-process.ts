/** A server as the business of its whole process: signals to `close` and `kill`, ends and errors to exit reasons. */
import { ServeError } from '../../protocol/errors.js';
import { EXIT_CODES, type ExitReason } from './exit-codes.js';
import type { ServerEnd, ServerHandle } from './server-handle.js';

/** Resolves once the server that `start` gives has ended; what kept it from starting is told on stderr. */
export async function runServerProcess(start: () => Promise<ServerHandle>): Promise<ExitReason> {
  const signals = watchSignals();
  try {
    return await signals.obey(await start());
  } catch (thrown) {
    return explain(thrown);
  }
}

/**
 * First signal: drain. Second: stop at once. Watched from the start of the process, so that one which comes while
 * the server opens is obeyed once it has.
 */
function watchSignals(): { obey(server: ServerHandle): Promise<ExitReason> } {
  let server: ServerHandle | null = null;
  let first: 'SIGINT' | 'SIGTERM' | null = null;
  let stopped: 'interrupted' | 'terminated' | null = null;
  const drain = (): void => {
    if (server === null || first === null) return;
    // A person at a terminal waits; a load balancer needs a moment to notice.
    void server.close({ lagMs: first === 'SIGINT' ? 0 : server.drainLagMs });
  };
  const onSignal = (signal: 'SIGINT' | 'SIGTERM'): void => {
    if (first === null) {
      first = signal;
      drain();
      return;
    }
    stopped ??= signal === 'SIGINT' ? 'interrupted' : 'terminated';
    if (server === null) process.exit(EXIT_CODES[stopped].code);
    server.kill();
  };
  process.on('SIGINT', () => onSignal('SIGINT'));
  process.on('SIGTERM', () => onSignal('SIGTERM'));
  return {
    obey: async (started) => {
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

function explain(thrown: unknown): ExitReason {
  const { code, message } = thrown as NodeJS.ErrnoException;
  if (thrown instanceof ServeError && thrown.code === 'SERVE_CONFIG') {
    say(message);
    return 'config';
  }
  const where = placeOf(thrown as ListenError);
  if (code === 'EADDRINUSE') {
    say(`${where} is in use by another program. Choose another with --port, or --port 0 for a free one.`);
    return 'listen';
  }
  if (code === 'EACCES' || code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND' || code === 'ENOENT') {
    say(`cannot listen on ${where}: ${message}. Check --host and --port.`);
    return 'listen';
  }
  say(`internal error: ${thrown instanceof Error ? (thrown.stack ?? message) : String(thrown)}`);
  return 'internal';
}

/** What `listen` adds to a system error: a host that has no address has only its name, a socket only its path. */
interface ListenError {
  readonly hostname?: string;
  readonly address?: string;
  readonly port?: number;
}

function placeOf({ hostname, address = '', port = 0 }: ListenError): string {
  if (hostname !== undefined) return `host ${hostname}`;
  return port > 0 ? `port ${port} of ${address}` : address;
}

export function say(text: string): void {
  process.stderr.write(`banana-serve: ${text}\n`);
}
