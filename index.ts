/**
 * The public face of banana-serve: types for model authors, `serve()` for programs.
 * The supervisor is loaded on first use, so that an app importing from here brings no HTTP server into its worker.
 */
import type { ServeOptions, ServerHandle } from './supervisor/serve.js';

export type {
  AppConfig,
  AppLog,
  BananaApp,
  InferenceContext,
  InitContext,
  UploadedFile,
  WorkerInfo,
} from './worker/api/types.js';
export type { ServeOptions, ServerEnd, ServerHandle } from './supervisor/serve.js';
export type { ErrorCode } from './protocol/errors.js';
export type { LocalConfig, MemoryConfig, StoreOptions } from './worker/api/store/config.js';
export { RedisConfig, S3Config } from './worker/api/store/config.js';
export { Store } from './worker/api/store/store.js';

/**
 * Serves an app from this process and resolves once the port is open; calls are held until a worker is ready.
 * Rejects with `code: 'SERVE_CONFIG'` if an option is wrong, with nothing started, and with the system's error if
 * the port cannot be opened. Signals are the caller's business: call `close()`.
 */
export async function serve(options: ServeOptions = {}): Promise<ServerHandle> {
  const supervisor = await import('./supervisor/serve.js');
  return supervisor.serve(options);
}
