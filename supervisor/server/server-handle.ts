/** The type of a running server, as `serve()` returns it to programs. */
import type { CloseOptions } from './host/drain.js';
import type { ModelsHandle } from './models/models-handle.js';
import type { ServerEnd, ServerStatus } from '../status/server-status.js';

export interface ServerHandle {
  /** Address of the server, such as `http://localhost:8000`; `unix:/path` for a socket. */
  readonly url: string;
  /** Address of the management API; null if there is none. */
  readonly managementUrl: string | null;
  /** Address of the metrics if they have their own listener, else null. */
  readonly metricsUrl: string | null;
  /**
   * Resolves once a worker is ready; with several models, once each of the first models has a ready worker or has given up.
   * Rejects (SERVE_APP_INVALID, SERVE_INIT_FAILED, SERVE_CRASH_LOOP) if no model can start. With `watch` a model may start
   * after any change, so it then rejects only when the server ends.
   */
  readonly ready: Promise<void>;
  /** Resolves when the server has ended, for whatever reason. */
  readonly ended: Promise<ServerEnd>;
  /** The value of `--drain-lag`. */
  readonly drainLagMs: number;
  /** Adds, scales and removes models while the server runs. */
  readonly models: ModelsHandle;
  /** The answer to `GET /status`. */
  status(): ServerStatus;
  /** Lets models whose workers cannot start try again at once, as SIGHUP does: once what they need is back. */
  startAgain(): void;
  /** Drains and stops. Only the first call's options count. */
  close(options?: CloseOptions): Promise<ServerEnd>;
  /** Stops at once: kills workers and cuts connections. */
  kill(): void;
}
