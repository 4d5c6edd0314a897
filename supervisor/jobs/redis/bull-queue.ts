/** One queue of BullMQ, by its own scripts. All queues share the connection of this server. */
import { Packr } from 'msgpackr';
import type { IRedisClient, JobJson, RedisQueueBackend } from 'bullmq';
import type { JobRecord } from '../job-record.js';
import type { Packages } from './load-packages.js';
import { PREFIX } from './queue-name.js';
import type { RedisLink } from './redis-link.js';
import type { JobData } from './stored-job.js';

/** A job that was fetched: it has the lock of its token. */
export interface FetchedJob {
  readonly id: string;
  readonly data: JobData;
  /** When it was fetched. */
  readonly atMs: number;
  /** Number of times that it was found without a lock. */
  readonly stalls: number;
}

/** The end of a job in BullMQ. */
export interface BullEnd {
  readonly target: 'completed' | 'failed';
  /** Shown by dashboards: the facts of the answer as JSON, or the reason. */
  readonly text: string;
  readonly state: JobRecord['state'];
  readonly atMs: number;
}

/** The most urgent jobs have 9; with BullMQ 1 goes first, and 0 is for those that it found without a lock. */
const LEAST_URGENT = 10;

/** BullMQ never decides whether a job is tried again: who stores the outcome does. */
const ATTEMPTS = Number.MAX_SAFE_INTEGER;

/** The place of the options among the arguments of `moveToFinished`: after 14 keys and 7 others. */
const OPTIONS_AT = 21;

const packer = new Packr({ useRecords: false });

/** The part of BullMQ's class that makes the arguments of its script: a test holds it to the pinned version. */
interface FinishArgs {
  moveToFinishedArgs(
    job: { id: string; opts: { attempts: number } },
    value: string,
    property: 'returnvalue' | 'failedReason',
    shouldRemove: boolean,
    target: BullEnd['target'],
    token: string,
    timestamp: number,
    fetchNext: boolean,
    fields: Readonly<Record<string, string>>,
  ): unknown[];
}

type Reply = readonly [fields: readonly string[] | 0, id: string | 0] | number;

export class BullQueues {
  readonly #packages: Packages;
  readonly #link: RedisLink;
  readonly #lockMs: number;
  #client: IRedisClient | null = null;
  readonly #byName = new Map<string, BullQueue>();

  constructor(packages: Packages, link: RedisLink, lockMs: number) {
    this.#packages = packages;
    this.#link = link;
    this.#lockMs = lockMs;
  }

  get(name: string): BullQueue {
    const known = this.#byName.get(name);
    if (known !== undefined) return known;
    const client = this.#sharedClient();
    const backend = this.#packages.bullmq.createRedisBackend(name, {
      connection: client as never,
      prefix: PREFIX,
      skipVersionCheck: true,
      skipWaitingForReady: true,
      lockDuration: this.#lockMs,
      stalledInterval: this.#lockMs / 5,
      maxStalledCount: Number.MAX_SAFE_INTEGER, // who finds a job without a lock decides
    } as never);
    backend.on('error', () => {}); // the command that failed tells of it
    const queue = new BullQueue(backend, client, this.#link, this.#lockMs);
    this.#byName.set(name, queue);
    return queue;
  }

  /** BullMQ would connect a client that is not connected. */
  #sharedClient(): IRedisClient {
    if (this.#client !== null) return this.#client;
    if (!this.#link.commands.isOpen) throw new Error('the connection is closed');
    const client = this.#packages.bullmq.createNodeRedisClient(this.#link.commands);
    client.setMaxListeners(0); // every queue listens
    client.on('error', () => {}); // the link tells of it
    return (this.#client = client);
  }
}

export class BullQueue {
  readonly #backend: RedisQueueBackend;
  readonly #client: IRedisClient;
  readonly #link: RedisLink;
  readonly #lockMs: number;

  constructor(backend: RedisQueueBackend, client: IRedisClient, link: RedisLink, lockMs: number) {
    this.#backend = backend;
    this.#client = client;
    this.#link = link;
    this.#lockMs = lockMs;
  }

  /** Does nothing for a job that is there. */
  async add(
    { id, route, createdAt, dueAt, priority }: JobRecord,
    data: JobData,
    nowMs: number,
  ): Promise<void> {
    const delay = Math.max(0, dueAt - nowMs);
    const opts = { jobId: id, priority: LEAST_URGENT - priority, ...(delay > 0 ? { delay } : {}) };
    const timestamp = delay > 0 ? nowMs : createdAt;
    const job = { id, name: route, data: JSON.stringify(data), opts, timestamp } as unknown as JobJson;
    await this.#link.use(() => this.#backend.addJobToTransaction(this.#client as never, job, id));
  }

  /** The next job; null if none waits. Promotes those that have become due. */
  async fetch(token: string, worker: string, nowMs: number): Promise<FetchedJob | null> {
    const { keys } = this.#backend;
    const names = 'wait active prioritized events stalled limiter delayed paused meta pc marker'.split(' ');
    const options = packer.pack({ token, lockDuration: this.#lockMs, name: worker });
    const args = [...names.map((name) => keys[name]), keys[''], nowMs, options];
    return fetchedFrom(await this.#run('moveToActive', args));
  }

  /**
   * Ends a job with this lock. `nextWorker`: fetches the next one for it in the same step, with the same lock. Null if it is not
   * the job's lock any more.
   */
  async finish(
    id: string,
    lock: string,
    { target, text, state, atMs }: BullEnd,
    data: JobData,
    nextWorker: string | null,
  ): Promise<{ next: FetchedJob | null } | null> {
    const property = target === 'completed' ? 'returnvalue' : 'failedReason';
    const args = (this.#backend as unknown as FinishArgs).moveToFinishedArgs(
      { id, opts: { attempts: ATTEMPTS } },
      text,
      property,
      false,
      target,
      lock,
      atMs,
      nextWorker !== null,
      { data: JSON.stringify(data), st: state },
    );
    if (nextWorker !== null) args[OPTIONS_AT] = packer.pack(this.#finishOptions(lock, nextWorker));
    const reply = await this.#run('moveToFinished', args);
    return isDone(reply) ? { next: fetchedFrom(reply) } : null;
  }

  /** BullMQ's own name the worker of a queue, not of a fetch. */
  #finishOptions(token: string, name: string): object {
    const keepJobs = { count: -1 };
    return { token, name, keepJobs, lockDuration: this.#lockMs, attempts: ATTEMPTS, maxMetricsSize: '' };
  }

  /** Lets a job with this token be tried again later. Returns false if it is not its lock any more. */
  async delay(id: string, token: string, dueAt: number, nowMs: number, data: JobData): Promise<boolean> {
    const fieldsToUpdate = { data: JSON.stringify(data) };
    const args = this.#backend.moveToDelayedArgs(id, nowMs, token, dueAt - nowMs, { fieldsToUpdate });
    return isDone(await this.#run('moveToDelayed', args));
  }

  /** Moves active jobs without a lock to where those wait that are to be decided. */
  async findStalled(): Promise<void> {
    await this.#link.use(() => this.#backend.moveStalledJobsToWait());
  }

  async progress(id: string, progress: object): Promise<void> {
    const { keys } = this.#backend;
    await this.#run('updateProgress', [
      keys[''] + id,
      keys['events'],
      keys['meta'],
      id,
      JSON.stringify(progress),
    ]);
  }

  /** Sends the command at once, so that commands are in the order of their calls. */
  #run(command: string, args: unknown[]): Promise<Reply> {
    return this.#link.use(
      () => this.#backend.execCommand(this.#client as never, command, args) as Promise<Reply>,
    );
  }
}

function isDone(reply: Reply): boolean {
  return typeof reply !== 'number' || reply >= 0;
}

function fetchedFrom(reply: Reply): FetchedJob | null {
  if (typeof reply === 'number' || reply[0] === 0 || reply[1] === 0) return null;
  const fields = new Map<string, string>();
  for (let i = 0; i < reply[0].length; i += 2) fields.set(reply[0][i] as string, reply[0][i + 1] as string);
  const data = JSON.parse(fields.get('data') ?? '') as JobData;
  const atMs = Math.floor(Number(fields.get('processedOn')));
  return { id: reply[1], data, atMs, stalls: Number(fields.get('stc') ?? 0) };
}
