/** The child process of `own-folder.ts`: removes the folder in its argument, or prints why it cannot. */
import { rmSync } from 'node:fs';

// Ignores signals to the whole group or service: the server ends this process itself.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});

try {
  rmSync(process.argv[2] as string, { recursive: true, force: true, maxRetries: 3 });
} catch (thrown) {
  process.exitCode = 1;
  process.stderr.write((thrown as Error).message);
}
