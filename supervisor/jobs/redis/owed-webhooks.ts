/**
 * The webhooks that fronts owe. Each is sent by one front; if that dies, another one takes it, which may send it again: at
 * least once.
 */
import { hasEnded, type JobRecord, type KeptWebhook } from '../job-record.js';
import type { Webhook } from '../../webhooks/webhooks.js';
import type { JobRecords } from './job-records.js';
import type { RedisLink } from './redis-link.js';
import { KEYS } from './scripts.js';

export class OwedWebhooks {
  readonly #link: RedisLink;
  readonly #records: JobRecords;
  readonly #front: string;
  /** Whether the outcome of this job is on its way again: its webhook will be known then. */
  readonly #isUnanswered: (jobId: string) => boolean;
  /** Names of the webhooks that this process knows it sends. */
  readonly #known = new Set<string>();
  /** Whether Redis may have an answer that never came, to a step by which this front owes a webhook. */
  #mayHaveMissed = false;

  constructor(link: RedisLink, records: JobRecords, front: string, isUnanswered: (jobId: string) => boolean) {
    this.#link = link;
    this.#records = records;
    this.#front = front;
    this.#isUnanswered = isUnanswered;
  }

  /** The connection is new: answers may have been lost with the one before. */
  onOpen(): void {
    this.#mayHaveMissed = true;
  }

  /** This process sends the webhook of a job. */
  note(record: JobRecord): void {
    if (record.end?.owesWebhook === true) this.#known.add(`j${record.id}`);
  }

  /** If this rejects, it may be stored nevertheless: `forget` removes it. */
  async owe({ body, ...webhook }: Webhook): Promise<void> {
    this.#known.add(`w${webhook.id}`);
    await this.#link.run('owe', [this.#front, webhook.id, JSON.stringify(webhook), Buffer.from(body)]);
  }

  async forget(id: string): Promise<void> {
    await this.#link.run('forgetWebhook', [id]);
    this.#known.delete(`w${id}`);
  }

  /** The webhook of a job has ended. */
  forgetOf(jobId: string): void {
    this.#known.delete(`j${jobId}`);
  }

  async take(limit: number): Promise<KeptWebhook[]> {
    const hasMissed = this.#mayHaveMissed;
    this.#mayHaveMissed = true; // until all of this was answered
    const names = (await this.#link.run('takeWebhooks', [this.#front, String(limit)])) as string[];
    const missed = hasMissed ? await this.#missed() : [];
    const all = [...new Set([...names, ...missed])].slice(0, limit);
    const taken = await Promise.all(
      all.map((name) => (name.startsWith('j') ? this.#ofJob(name.slice(1)) : this.#ofApp(name.slice(1)))),
    );
    this.#mayHaveMissed = names.length + missed.length > limit;
    // Meanwhile an outcome that was under way may have been answered.
    const unknown = all.flatMap((name, i) => (this.#known.has(name) ? [] : [{ name, webhook: taken[i] }]));
    for (const { name, webhook } of unknown) if (webhook) this.#known.add(name);
    return unknown.flatMap(({ webhook }) => webhook ?? []);
  }

  /** Names of the webhooks that this front owes without knowing it. */
  async #missed(): Promise<string[]> {
    const mine = (await this.#link.run('myWebhooks', [this.#front])) as string[];
    return mine.filter((name) => !this.#known.has(name) && !this.#isUnanswered(name.slice(1)));
  }

  async #ofJob(id: string): Promise<KeptWebhook | null> {
    const [stored, call, body] = await Promise.all([
      this.#records.read(id),
      this.#records.readCall(id),
      this.#records.readResult(id),
    ]);
    if (stored === null || call === null || !hasEnded(stored.record)) return null; // it has just been sent
    return { of: 'job', record: stored.record, call, body };
  }

  async #ofApp(id: string): Promise<KeptWebhook | null> {
    const key = `${KEYS}hook:${id}`;
    const [text, body] = await Promise.all([
      this.#link.use(() => this.#link.commands.hGet(key, 'hook')),
      this.#link.bytes(key, 'body'),
    ]);
    if (typeof text !== 'string' || body === null) return null;
    return { of: 'app', webhook: { ...(JSON.parse(text) as Omit<Webhook, 'body'>), body } };
  }
}
