/**
 * The webhooks that servers owe. Each is one server's for some seconds, which that renews; when it dies another one takes it,
 * which may send it again: at least once. That of a job is owed from before its outcome is stored, and sent once it has ended.
 */
import type { KeptWebhook } from '../job-record.js';
import type { Webhook } from '../../webhooks/webhooks.js';
import type { RedisLink } from './redis-link.js';
import { PREFIX } from './queues.js';

const OWED = `${PREFIX}:owed`;
const LEASE_MS = 10_000;

export class OwedWebhooks {
  readonly #link: RedisLink;
  /** Names of the webhooks that this server sends. */
  readonly #mine = new Set<string>();

  constructor(link: RedisLink) {
    this.#link = link;
  }

  /** Until when a webhook is this server's, unless that is renewed. */
  static untilMs(): number {
    return Date.now() + LEASE_MS;
  }

  /** This server sends the webhook of a job. */
  note(jobId: string): void {
    this.#mine.add(`j${jobId}`);
  }

  /** If this rejects, it may be stored nevertheless: `forget` removes it. */
  async owe({ body, ...webhook }: Webhook): Promise<void> {
    const name = `w${webhook.id}`;
    this.#mine.add(name);
    const fields = { webhook: JSON.stringify(webhook), body: Buffer.from(body) };
    const { commands } = this.#link;
    await this.#link.use(() =>
      Promise.all([
        commands.hSet(hookKey(webhook.id), fields),
        commands.zAdd(OWED, { score: OwedWebhooks.untilMs(), value: name }),
      ]),
    );
  }

  async forget(id: string): Promise<void> {
    const { commands } = this.#link;
    await this.#link.use(() => Promise.all([commands.zRem(OWED, `w${id}`), commands.del(hookKey(id))]));
    this.#mine.delete(`w${id}`);
  }

  /** The webhook of a job has ended. */
  async end(jobId: string): Promise<void> {
    await this.#link.use(() => this.#link.commands.zRem(OWED, `j${jobId}`));
    this.#mine.delete(`j${jobId}`);
  }

  async renew(untilMs = OwedWebhooks.untilMs()): Promise<void> {
    if (this.#mine.size === 0) return;
    const mine = Array.from(this.#mine, (value) => ({ score: untilMs, value }));
    await this.#link.use(() => this.#link.commands.zAdd(OWED, mine, { condition: 'XX' }));
  }

  /** Others send what is left. */
  leave(): Promise<void> {
    return this.renew(0);
  }

  /** `ofJob`: reads that of a job; null if the job has not ended: who was about to end it has died, and who ends it owes it anew. */
  async take(limit: number, ofJob: (id: string) => Promise<KeptWebhook | null>): Promise<KeptWebhook[]> {
    const args = [Date.now(), OwedWebhooks.untilMs(), limit];
    const names = (await this.#link.run('takeWebhooks', args)) as string[];
    const taken: KeptWebhook[] = [];
    for (const name of names) {
      if (this.#mine.has(name)) continue; // it was away for longer than that is its
      const one = await (name.startsWith('j') ? ofJob(name.slice(1)) : this.#ofApp(name.slice(1)));
      if (one === null) await this.#link.use(() => this.#link.commands.zRem(OWED, name));
      else {
        taken.push(one);
        this.#mine.add(name);
      }
    }
    return taken;
  }

  async #ofApp(id: string): Promise<KeptWebhook | null> {
    const [text, body] = await Promise.all([
      this.#link.use(() => this.#link.commands.hGet(hookKey(id), 'webhook')),
      this.#link.bytes(hookKey(id), 'body'),
    ]);
    if (typeof text !== 'string' || body === null) return null;
    return { of: 'app', webhook: { ...(JSON.parse(text) as Omit<Webhook, 'body'>), body } };
  }
}

function hookKey(id: string): string {
  return `${PREFIX}:hook:${id}`;
}
