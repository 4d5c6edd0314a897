/** The server for programs: all that `index.ts` loads of the supervisor. A signal during the load of the server counts. */
import type { ServeInternals, ServeOptions } from './plan/given-options.js';
import type { ServerHandle } from './server/server-handle.js';

export { EXIT_CODES } from './command/exit-codes.js';
export { runServerProcess } from './command/server-process.js';

export async function serve(options: ServeOptions, internals: ServeInternals): Promise<ServerHandle> {
  const server = await import('./serve.js');
  return server.serve(options, internals);
}

export async function startTestServer(options: ServeOptions, appPlace: string): Promise<ServerHandle> {
  const tests = await import('./test-server.js');
  return tests.startTestServer(options, appPlace);
}
