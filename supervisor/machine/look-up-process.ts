/** The process behind `look-up.ts`: asks the system for the addresses of a name, as `net.connect` would. */
import { lookup } from 'node:dns';
import type { Answer, Question } from './look-up.js';

process.on('message', ({ id, name, options }: Question) => {
  lookup(name, { ...options, all: true }, (error, addresses) => {
    const answer: Answer = error === null ? { id, addresses } : { id, code: error.code ?? 'EAI_FAIL' };
    process.send?.(answer);
  });
});

// A signal for the whole group or service is the server's business: it may still need addresses, and ends this process.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});

// The server is gone. An ordinary exit would wait for look-ups that stall.
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
