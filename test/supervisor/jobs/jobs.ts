/** Kept jobs, and a model that pulls them, for tests. */
import type { ServeError } from '../../../protocol/errors.js';
import type { BatchWorker } from '../../../supervisor/dispatch/batcher.js';
import type { Job } from '../../../supervisor/dispatch/job.js';
import { KeptJobs, type EndedJob, type JobRecord } from '../../../supervisor/jobs/kept-jobs.js';
import type { JobStore } from '../../../supervisor/jobs/job-store.js';
import { newJob } from '../dispatch/jobs.js';

export const HEAD = { status: 200, contentType: 'application/json', headers: '', phrase: '' };

export interface CallOptions {
  readonly requestId?: string;
  readonly body?: string;
  readonly route?: string;
  readonly headers?: string;
  readonly waitLimitMs?: number;
}

export class JobsBench {
  readonly jobs: KeptJobs;
  readonly ended: EndedJob[] = [];
  readonly notKept: ServeError[] = [];
  /** Bodies whose memory was returned, by their text. */
  readonly released: string[] = [];
  readonly feed;
  /** Times that the model was told to look for jobs. */
  pumps = 0;
  #ids = 0;

  /** Ids are job-1, job-2, … and, for marks, mark-3, …: one count for all. */
  constructor(store: JobStore, routes: ReadonlyMap<string, number> = new Map([['/', 1]])) {
    this.jobs = new KeptJobs({
      newId: () => `id-${(this.#ids += 1)}`,
      statusOf: () => 500,
      store,
      listener: {
        onEnded: (ended) => this.ended.push(ended),
        onNotKept: (_call, error) => this.notKept.push(error),
      },
    });
    const pump = (): void => void (this.pumps += 1);
    this.feed = this.jobs.openFeed({ name: 'model', version: '1', routes: () => routes, pump });
  }

  accept(options: CallOptions = {}): Promise<JobRecord> {
    const { requestId = 'r', body = '{}', route = '/', headers = '', waitLimitMs = 300_000 } = options;
    const { call } = newJob(requestId, { route, headers });
    const bytes = Buffer.from(body);
    return this.jobs.accept({
      call: { ...call, bodyBytes: bytes.length },
      body: { pieces: [bytes], bytes: bytes.length, release: () => this.released.push(body) },
      dialect: 'banana',
      hasKey: false,
      isBackground: true,
      webhook: '',
      waitLimitMs,
    });
  }

  pull(batch = 1): Promise<readonly Job[]> {
    return this.feed.pull({ maxBatch: () => batch } as unknown as BatchWorker);
  }

  /** Pulls the next job, which must be there. */
  async begin(): Promise<Job> {
    const [job] = await this.pull();
    if (job === undefined) throw new Error('no job was due');
    return job;
  }

  /** Accepts a job, which ends at once with a result of this size. */
  async end(bytes = 1): Promise<JobRecord> {
    const accepted = await this.accept();
    (await this.begin()).reply(HEAD, [Buffer.alloc(bytes, 0x31)], bytes, 1);
    return accepted;
  }

  async state(id: string): Promise<string | undefined> {
    return (await this.jobs.get(id))?.state;
  }
}
