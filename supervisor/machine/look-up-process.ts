/** The child process of `look-up.ts`: resolves names by the system's resolver, as `net.connect` would. */
import { lookup } from 'node:dns';
import type { Answer, Question } from './look-up.js';

process.on('message', ({ id, name, options }: Question) => {
  lookup(name, { ...options, all: true }, (error, addresses) => {
    const answer: Answer = error === null ? { id, addresses } : { id, code: error.code ?? 'EAI_FAIL' };
    process.send?.(answer);
  });
});

// Ignores signals to the whole group or service: the server may still need addresses, and ends this process itself.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});

// The server has ended. An ordinary exit would wait for stalled look-ups.
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
