/** Jobs as a store gets them, for tests. */
import type { IdempotencyKey, NewJob } from '../../../supervisor/jobs/job-record.js';
import { newCall } from '../dispatch/calls.js';

export const HEAD = { status: 200, contentType: 'application/json', headers: '', phrase: '' };

export interface StoredOptions {
  readonly id?: string;
  readonly createdAt?: number;
  readonly model?: string;
  readonly version?: string;
  readonly isPinned?: boolean;
  readonly route?: string;
  readonly body?: string;
  readonly headers?: string;
  readonly delayMs?: number;
  readonly ttlMs?: number;
  readonly priority?: number;
  readonly maxAttempts?: number;
  readonly key?: IdempotencyKey | null;
  readonly webhook?: string;
}

export function newStoredJob(options: StoredOptions): NewJob {
  const { id = 'job', createdAt = 0, model = 'm', version = '1', isPinned = false, route = '/' } = options;
  const {
    body = '{}',
    headers = '',
    delayMs = 0,
    ttlMs = 300_000,
    priority = 0,
    maxAttempts = 1,
    key = null,
    webhook = '',
  } = options;
  const bytes = Buffer.from(body);
  const { id: _id, statusOf: _statusOf, ...call } = newCall('r', { route, headers }).message;
  const names = { id, requestId: 'r', model, version, isPinned, route };
  const wishes = {
    createdAt,
    dueAt: createdAt + delayMs,
    ttlMs,
    priority,
    maxAttempts,
    hasWebhook: webhook !== '',
  };
  const fresh = { state: 'queued', attempts: 0, losses: 0, begunAt: null, isCancelled: false } as const;
  return {
    record: { ...names, ...wishes, ...fresh, progress: null, end: null },
    call: {
      ...call,
      model,
      version,
      bodyBytes: bytes.length,
      dialect: 'banana',
      hasKey: false,
      isBackground: true,
      webhook,
    },
    body: { pieces: [bytes], bytes: bytes.length, release: () => {} },
    key,
  };
}
