/**
 * Reads what happens to jobs on all servers from the streams of events that BullMQ writes, and from our own stream of new
 * queues and of cancels: on one connection, with one command at a time, however many clients wait.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { RedisLink } from './redis-link.js';
import { PREFIX } from './queues.js';
import { NEWS } from './layout.js';

/** A job of this queue waits, by another server; the record of this job is another one; this job was cancelled while it ran. */
type OnNews = (kind: 'waiting' | 'moved' | 'cancelled', queueOrId: string) => void;

type Fields = readonly string[];
type Reply = readonly (readonly [key: string, entries: readonly (readonly [id: string, fields: Fields])[]])[];

/** Events after which the record of a job is another one. */
const MOVES: ReadonlySet<string> = new Set(['active', 'completed', 'failed', 'delayed', 'progress']);

const BLOCK_MS = 5000;
const MOST = 1000;
const RETRY_MS = 1000;

/** Between two commands that have brought news: each job has three events, and a command for each of them costs more than the job. */
const PAUSE_MS = 20;

/** Events of a queue that this server has just learned of are news if they are no older. */
const NEW_MS = 10_000;

export class NewsReader {
  readonly #link: RedisLink;
  readonly #tell: OnNews;
  /** The last entries that were read, by key. */
  readonly #read = new Map<string, string>();
  #round = 0;

  constructor(link: RedisLink, tell: OnNews) {
    this.#link = link;
    this.#tell = tell;
  }

  /** `nowMs`: of Redis, whose news of the same millisecond are heard too. Goes on where it was after a connection was lost. */
  start(queues: Iterable<string>, nowMs: number): void {
    for (const key of [NEWS, ...Array.from(queues, eventsOf)]) this.#add(key, nowMs);
    this.#round += 1;
    void this.#loop(this.#round);
  }

  /** A queue is there since now. */
  addQueue(queue: string, nowMs: number): void {
    if (this.#read.has(eventsOf(queue))) return;
    this.#add(eventsOf(queue), nowMs - NEW_MS);
    this.#link.unblockReader(); // the command that waits does not know of it
  }

  #add(key: string, nowMs: number): void {
    if (!this.#read.has(key)) this.#read.set(key, `${Math.max(0, Math.floor(nowMs) - 1)}-0`);
  }

  /** Ends with the connection; the next one starts it again. */
  async #loop(round: number): Promise<void> {
    const isOver = (): boolean => round !== this.#round || !this.#link.isReady;
    while (!isOver()) {
      const keys = [...this.#read.keys()];
      const streams = [...keys, ...keys.map((key) => this.#read.get(key) as string)];
      const args = ['XREAD', 'COUNT', String(MOST), 'BLOCK', String(BLOCK_MS), 'STREAMS', ...streams];
      const reply = await this.#link.wait<Reply>(args).catch(() => undefined);
      if (reply === undefined && this.#link.isReady) await delay(RETRY_MS, null, { ref: false }); // it was busy
      if (isOver()) return;
      for (const [key, entries] of reply ?? []) this.#hear(key, entries);
      if (reply !== undefined && reply !== null) await delay(PAUSE_MS, null, { ref: false });
    }
  }

  #hear(key: string, entries: Reply[number][1]): void {
    const queue = key.slice(PREFIX.length + 1, -':events'.length);
    for (const [id, fields] of entries) {
      this.#read.set(key, id);
      if (key === NEWS) this.#onNews(fields, Number(id.split('-')[0]));
      else this.#onEvent(queue, fields);
    }
  }

  #onNews([kind, text = '']: Fields, atMs: number): void {
    if (kind === 'cancel') this.#tell('cancelled', text);
    else if (kind === 'queue') this.addQueue(text, atMs);
  }

  /** An event has its name first, then the id of its job, if it has one. */
  #onEvent(queue: string, [, event = '', , id = '', more, by]: Fields): void {
    // One that comes from elsewhere has no server (`active`), or was seen to be due before (`delayed`).
    if (event === 'waiting' && more !== 'prev' && by !== this.#link.id) this.#tell('waiting', queue);
    if (MOVES.has(event)) this.#tell('moved', id);
  }
}

function eventsOf(queue: string): string {
  return `${PREFIX}:${queue}:events`;
}
