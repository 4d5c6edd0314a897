/**
 * Starts the servers of programs and of apps that serve themselves. The supervisor is loaded on first use, so that an app
 * loads no HTTP server into its worker.
 */
import type { ServeOptions } from './supervisor/plan/given-options.js';
import type { ServerHandle } from './supervisor/server/server-handle.js';
import { setStarter } from './worker/api/serving.js';

/** `appPlace` selects one of the file's apps. */
export async function startServer(options: ServeOptions, appPlace = ''): Promise<ServerHandle> {
  const { serve } = await import('#front');
  return serve(options, { appPlace });
}

// The files that authors import must not import the supervisor.
setStarter({
  async serve({ file, place }, options) {
    const { EXIT_CODES, runServerProcess } = await import('#front');
    const reason = await runServerProcess(() => startServer({ ...options, app: file }, place));
    process.exitCode = EXIT_CODES[reason].code;
  },
  async startForTest({ file, place }, options) {
    const { startTestServer } = await import('#front');
    const server = await startTestServer({ ...options, app: file }, place);
    return { url: server.url, close: async () => void (await server.close()) };
  },
});
