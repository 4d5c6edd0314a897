/** The server for programs: all that `index.ts` loads of the supervisor. A signal during the load of the server counts. */
import type { ServeError } from '../protocol/errors.js';
import type { ServeInternals, ServeOptions } from './plan/given-options.js';
import type { ServerHandle } from './server/server-handle.js';

export { supervise } from './embed/supervise.js';
export { EXIT_CODES, runServerProcess } from './command/server-process.js';

export async function serve(options: ServeOptions, internals: ServeInternals): Promise<ServerHandle> {
  const server = await import('./serve.js');
  return server.serve(options, internals);
}

/**
 * Starts a server for a test: a real worker on a free port of 127.0.0.1, without restarts. Resolves once a worker is ready.
 * @throws Error if no worker can start; the server is closed then
 */
export async function startTestServer(options: ServeOptions, appPlace: string): Promise<ServerHandle> {
  const given: ServeOptions = { host: '127.0.0.1', port: 0, logLevel: 'warn', restartLimit: 0, ...options };
  const server = await serve(given, { appPlace, isAlone: true });
  try {
    await server.ready;
  } catch (error) {
    await server.close();
    const { message, detail } = error as ServeError;
    throw new Error(`The app cannot be tested: ${detail || message}`, { cause: error });
  }
  return server;
}
