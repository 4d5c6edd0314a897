/**
 * The webhooks that fronts owe. Each is sent by one front; if that dies, another one takes it, which may send it again: at
 * least once.
 */
import type { KeptWebhook } from '../job-record.js';
import { hasEnded } from '../job-record.js';
import type { Webhook } from '../../webhooks/webhook.js';
import type { JobRecords } from './job-records.js';
import type { RedisLink } from './redis-link.js';
import { KEYS } from './scripts.js';

export class OwedWebhooks {
  readonly #link: RedisLink;
  readonly #records: JobRecords;
  readonly #front: string;

  constructor(link: RedisLink, records: JobRecords, front: string) {
    this.#link = link;
    this.#records = records;
    this.#front = front;
  }

  async owe({ body, ...webhook }: Webhook): Promise<void> {
    await this.#link.run('owe', [this.#front, webhook.id, JSON.stringify(webhook), Buffer.from(body)]);
  }

  async forget(id: string): Promise<void> {
    await this.#link.run('forgetWebhook', [id]);
  }

  async take(limit: number): Promise<KeptWebhook[]> {
    const names = (await this.#link.run('takeWebhooks', [this.#front, String(limit)])) as string[];
    const taken = await Promise.all(
      names.map((name) => (name.startsWith('j') ? this.#ofJob(name.slice(1)) : this.#ofApp(name.slice(1)))),
    );
    return taken.filter((one) => one !== null);
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
