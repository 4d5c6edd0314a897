/** Kept jobs, and a model that pulls them, for tests. */
import type { ServeError } from '../../../protocol/errors.js';
import type { BatchWorker } from '../../../supervisor/dispatch/batcher.js';
import type { Call } from '../../../supervisor/dispatch/call.js';
import type { EndedJob } from '../../../supervisor/jobs/begins.js';
import type { JobRecord } from '../../../supervisor/jobs/job-record.js';
import { KeptJobs, type AcceptedCall } from '../../../supervisor/jobs/kept-jobs.js';
import type { JobStore } from '../../../supervisor/jobs/job-store.js';
import { newCall } from '../dispatch/calls.js';

export { HEAD } from './stored-jobs.js';

export interface CallOptions {
  readonly requestId?: string;
  readonly body?: string;
  readonly route?: string;
  readonly headers?: string;
  readonly wishes?: Partial<
    Pick<AcceptedCall, 'delayMs' | 'ttlMs' | 'priority' | 'key' | 'isPinned' | 'maxAttempts' | 'webhook'>
  >;
}

export class JobsBench {
  readonly jobs: KeptJobs;
  /** Ids of the jobs whose begin was told. */
  readonly begun: string[] = [];
  readonly ended: EndedJob[] = [];
  readonly retried: JobRecord[] = [];
  readonly stranded: string[] = [];
  readonly health: string[] = [];
  /** Times that the operator was told that a restart loses jobs. */
  warnings = 0;
  readonly notKept: ServeError[] = [];
  /** Bodies whose memory was returned, by their text. */
  readonly released: string[] = [];
  readonly feed;
  /** Whether the model's version is the default one. */
  isDefault = true;
  /** Times that the model was told to look for jobs. */
  pumps = 0;
  #ids = 0;

  /** Ids of jobs and marks are counted together. */
  constructor(store: JobStore, routes: ReadonlyMap<string, number> = new Map([['/', 1]])) {
    this.jobs = new KeptJobs({
      newId: () => `id-${(this.#ids += 1)}`,
      statusOf: () => 500,
      store,
      maxResultBytes: 1000,
      listener: {
        onLosable: () => (this.warnings += 1),
        onBegun: ({ record }) => this.begun.push(record.id),
        onEnded: (ended) => this.ended.push(ended),
        onRetry: (record) => this.retried.push(record),
        onStranded: (text) => this.stranded.push(text),
        onStoreAway: (why) => this.health.push(`away: ${why}`),
        onStoreWell: () => this.health.push('well'),
        onNotKept: (_call, error) => this.notKept.push(error),
      },
    });
    const pump = (): void => void (this.pumps += 1);
    this.feed = this.jobs.openFeed({
      name: 'model',
      target: () => ({ model: 'model', version: '1', isDefault: this.isDefault, routes }),
      isLoaded: () => true,
      pump,
    });
  }

  accept(options: CallOptions = {}): Promise<JobRecord> {
    const { requestId = 'r', body = '{}', route = '/', headers = '', wishes } = options;
    const { message } = newCall(requestId, { route, headers });
    const bytes = Buffer.from(body);
    return this.jobs.accept({
      call: { ...message, bodyBytes: bytes.length },
      body: { pieces: [bytes], bytes: bytes.length, release: () => this.released.push(body) },
      dialect: 'banana',
      hasKey: false,
      isBackground: true,
      webhook: '',
      delayMs: 0,
      ttlMs: 300_000,
      priority: 0,
      key: null,
      isPinned: false,
      maxAttempts: 1,
      ...wishes,
    });
  }

  pull(batch = 1): Promise<readonly Call[]> {
    return this.feed.pull({ maxBatch: () => batch } as unknown as BatchWorker);
  }

  /** Pulls the next job, which must be there. */
  async begin(): Promise<Call> {
    const [job] = await this.pull();
    if (job === undefined) throw new Error('no job was due');
    return job;
  }

  /** Reads the result of a job; null if it has none. */
  async result(id: string): Promise<Buffer | null> {
    const record = await this.jobs.get(id);
    return record === null ? null : this.jobs.results.hold(id, record.end?.result?.bytes ?? 0).body;
  }

  async state(id: string): Promise<string | undefined> {
    return (await this.jobs.get(id))?.state;
  }
}
