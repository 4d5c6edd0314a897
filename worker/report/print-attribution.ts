/**
 * Tells the front which call a print belongs to, when the log format asks for it: exact for JavaScript (the call
 * is followed through promises and timers), "the call running now" for native code.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { printMark } from '../../protocol/wire/print-mark.js';

export interface PrintAttribution {
  /** Runs a call's code so that whatever it prints, now or later, carries its id. */
  run<T>(requestId: string, code: () => T): T;
}

/** Used when no marks are wanted: it does nothing and costs nothing. */
export const NO_ATTRIBUTION: PrintAttribution = { run: (_requestId, code) => code() };

/** Wraps this process's stdout and stderr. Call once, before the app is loaded. */
export function attributePrints(mark: string): PrintAttribution {
  const calls = new AsyncLocalStorage<string>();
  const announcers = [process.stdout, process.stderr].map((stream) => {
    const write = stream.write.bind(stream) as (...args: unknown[]) => boolean;
    let announced = '';
    const announce = (requestId: string): void => {
      if (requestId === announced) return;
      announced = requestId;
      write(printMark(mark, requestId));
    };
    stream.write = (...args: unknown[]): boolean => {
      announce(calls.getStore() ?? '');
      return write(...args);
    };
    return announce;
  });
  return {
    run: (requestId, code) => {
      // Native code's prints in this call must not be taken for those of the last call that printed something.
      for (const announce of announcers) announce('');
      return calls.run(requestId, code);
    },
  };
}
