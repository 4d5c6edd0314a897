/**
 * Marks each print with the call that it belongs to, if the log format needs it: exactly for JavaScript (through
 * promises and timers), by the running call for native code; and each line of `console.warn` and its like with its level.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { printMark } from '../../protocol/wire/print-mark.js';

export interface PrintAttribution {
  /** Runs a call's code so that everything it prints, now or later, carries its id. */
  run<T>(requestId: string, code: () => T): T;
}

/** Does nothing and costs nothing; used when no marks are wanted. */
export const NO_ATTRIBUTION: PrintAttribution = { run: (_requestId, code) => code() };

/** Wraps this process's stdout and stderr. Call once, before the app is loaded. */
export function attributePrints(mark: string): PrintAttribution {
  const calls = new AsyncLocalStorage<string>();
  let level = '';
  for (const name of ['debug', 'info', 'warn', 'error'] as const) {
    const print = console[name].bind(console) as (...args: unknown[]) => void;
    console[name] = (...args: unknown[]): void => {
      const before = level;
      level = before || name; // `console.trace` and the like use the others
      try {
        print(...args);
      } finally {
        level = before;
      }
    };
  }
  const announcers = [process.stdout, process.stderr].map((stream) => {
    const write = stream.write.bind(stream) as (...args: unknown[]) => boolean;
    let announced = '';
    const announce = (requestId: string): void => {
      if (requestId === announced) return;
      announced = requestId;
      write(printMark(mark, requestId));
    };
    stream.write = (...args: unknown[]): boolean => {
      const requestId = calls.getStore() ?? '';
      if (level === '' || typeof args[0] !== 'string') {
        announce(requestId);
        return write(...args);
      }
      announced = requestId;
      const record = `${printMark(mark, requestId, level)}${args[0]}${printMark(mark, requestId)}`;
      return write(record, ...args.slice(1));
    };
    return announce;
  });
  return {
    run: (requestId, code) => {
      // Prints of native code in this call must not be attributed to the last call that printed.
      for (const announce of announcers) announce('');
      return calls.run(requestId, code);
    },
  };
}
