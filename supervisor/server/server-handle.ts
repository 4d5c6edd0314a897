/** The type of what `serve()` gives to a program: a running server. */
import type { ModelsHandle } from './models/models-handle.js';
import type { ServerEnd, ServerStatus } from '../status/server-status.js';

export interface CloseOptions {
  /** How long calls are still accepted first; 0 by default. */
  readonly lagMs?: number;
  /** Ends the line of the log that says what the drain waits for, such as how to hasten it. */
  readonly hint?: string;
}

export interface ServerHandle {
  /** Where it listens, such as `http://localhost:8000`; `unix:/path` for a socket. */
  readonly url: string;
  /** Where the management API listens; null if there is none. */
  readonly managementUrl: string | null;
  /** Where metrics have a listener of their own; null if they have none. */
  readonly metricsUrl: string | null;
  /**
   * Resolves with the first worker; with several models, once each that the server starts with has one or has given up.
   * Rejects (SERVE_APP_INVALID, SERVE_INIT_FAILED, SERVE_CRASH_LOOP) if no model can start. With `watch` that is never
   * sure before the server ends.
   */
  readonly ready: Promise<void>;
  /** Resolves when the server has ended, however that came. */
  readonly ended: Promise<ServerEnd>;
  /** `--drain-lag` in force. */
  readonly drainLagMs: number;
  /** Adds, scales and removes models while it runs. */
  readonly models: ModelsHandle;
  /** The answer to `GET /status`. */
  status(): ServerStatus;
  /** Drains and stops. Only the first call says how. */
  close(options?: CloseOptions): Promise<ServerEnd>;
  /** Stops at once: workers are killed, connections cut. */
  kill(): void;
}
