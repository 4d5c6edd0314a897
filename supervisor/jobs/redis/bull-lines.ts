/**
 * BullMQ's queues, which order the ids of due jobs over all fronts. It delivers at least once: an entry says no more than that
 * its job may be due; the record decides. All queues share the connection of this front.
 */
import type { IRedisClient, Job as BullJob, Queue, Worker } from 'bullmq';
import type { Packages } from './load-packages.js';
import type { RedisLink } from './redis-link.js';
import { QUEUE_PREFIX } from './scripts.js';

/** The entry of a job that this front has fetched: it has BullMQ's lock until that expires. */
export interface Entry {
  readonly id: string;
  /** The name of its line. */
  readonly line: string;
  readonly lockToken: string;
  readonly job: BullJob;
}

interface BullLine {
  readonly queue: Queue;
  readonly worker: Worker;
}

/** The most urgent jobs have 9; with BullMQ 1 goes first, and 0 before it is for entries that it has recovered. */
const LEAST_URGENT = 10;

/** The events that BullMQ writes for each step: no one reads them. */
const MAX_EVENTS = 100;

export class BullLines {
  readonly #packages: Packages;
  readonly #link: RedisLink;
  readonly #lockMs: number;
  #client: IRedisClient | null = null;
  readonly #byName = new Map<string, BullLine>();

  constructor(packages: Packages, link: RedisLink, lockMs: number) {
    this.#packages = packages;
    this.#link = link;
    this.#lockMs = lockMs;
  }

  /** Does nothing for a job that has an entry. */
  async add(line: string, id: string, priority: number): Promise<void> {
    const options = {
      jobId: id,
      priority: LEAST_URGENT - priority,
      removeOnComplete: true,
      removeOnFail: true,
    };
    await this.#link.use(() => this.#open(line).queue.add('', {}, options));
  }

  /** Fetches the next entries of a line, at most one for each token. */
  async fetch(line: string, lockTokens: readonly string[]): Promise<Entry[]> {
    const { worker } = this.#open(line);
    const jobs = await this.#link.use(() =>
      Promise.all(lockTokens.map((token) => worker.getNextJob(token, { block: false }))),
    );
    return jobs.flatMap((job, i) =>
      job?.id === undefined ? [] : [{ id: job.id, line, lockToken: lockTokens[i] as string, job }],
    );
  }

  /** Renews the locks of these entries; those that cannot be renewed are no matter here. */
  async renew(entries: readonly Entry[]): Promise<void> {
    const names = [...new Set(entries.map(({ line }) => line))];
    await this.#link.use(() =>
      Promise.all(
        names.map((name) => {
          const all = entries.filter(({ line }) => line === name);
          const [ids, tokens] = [all.map(({ id }) => id), all.map(({ lockToken }) => lockToken)];
          return this.#open(name).worker.extendJobLocks(ids, tokens, this.#lockMs);
        }),
      ),
    );
  }

  /** Puts an entry back, the first of its priority. Returns false if it is not this front's any more. */
  async putBack({ job, lockToken }: Entry): Promise<boolean> {
    try {
      await this.#link.use(() => job.moveToWait(lockToken));
      return true;
    } catch (error) {
      if (this.#link.isReady) return false;
      throw error;
    }
  }

  /** Removes an entry that this front has fetched, unless it is another one's by now. */
  async release({ job, lockToken }: Entry): Promise<void> {
    await job.moveToCompleted('', lockToken, false).catch(() => {}); // who fetches it next finds the record
  }

  /** Removes an entry that waits; one that a front has fetched stays with that. */
  async remove(line: string, id: string): Promise<void> {
    await this.#link.use(() => this.#open(line).queue.remove(id));
  }

  async close(): Promise<void> {
    const lines = [...this.#byName.values()];
    this.#byName.clear();
    await Promise.allSettled(lines.flatMap(({ queue, worker }) => [worker.close(true), queue.close()]));
  }

  /** BullMQ moves entries whose lock has expired back to the front of their line, by one front at a time. */
  #open(name: string): BullLine {
    const known = this.#byName.get(name);
    if (known !== undefined) return known;
    const { Queue, Worker, createRedisBackend } = this.#packages.bullmq;
    const shared = {
      connection: this.#sharedClient() as never,
      prefix: QUEUE_PREFIX,
      skipVersionCheck: true,
      skipWaitingForReady: true,
    };
    // By default a worker opens a connection of its own, to block on it.
    const factory = ((queueName: string, options: object) =>
      createRedisBackend(queueName, { ...options, ...shared })) as unknown as typeof createRedisBackend;
    const queue = new Queue(name, { ...shared, streams: { events: { maxLen: MAX_EVENTS } } }, factory);
    const worker = new Worker(
      name,
      null,
      {
        ...shared,
        autorun: false,
        lockDuration: this.#lockMs,
        stalledInterval: this.#lockMs,
        maxStalledCount: Number.MAX_SAFE_INTEGER, // the record decides
      },
      factory,
    );
    queue.on('error', () => {}); // the command that failed tells of it
    worker.on('error', () => {});
    void worker.startStalledCheckTimer();
    const line = { queue, worker } as unknown as BullLine;
    this.#byName.set(name, line);
    return line;
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
