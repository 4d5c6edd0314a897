/** An input that kills costs its own caller the answer, and the others no more than the time of a start. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ask, errorOf } from '../helpers/ask.js';
import { makeCues, type Cues } from '../helpers/cues.js';
import { withOneRuntime } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';
import type { Answer, Server } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };

/** Deaths a moment after an answer. */
const LATE_KILLS = 3;

/** Normal calls that wait beside the killers, per worker. */
const CALLERS = 3;

/** Too long for a call to be sent ahead behind it, also while only one of the workers is ready. */
const LONG_MS = 60;

/** Servers, and how often all of their workers are killed while calls wait; they are killed once more at the end. */
const SERVERS = [
  ['a plain app with 1 worker', 'killable', 1, 2],
  ['a plain app with 4 workers', 'killable', 4, 1],
  ['a Potassium app with 2 workers', 'killable-potassium', 2, 1],
] as const;

/** The front alone decides which worker runs which call, and what a death costs. */
withOneRuntime(({ app }) => {
  for (const [what, name, workers, rounds] of SERVERS) {
    test(
      `${what}, all of them killed again and again: calls that wait are answered before a killer that came later`,
      LIMIT,
      async (t) => {
        const cues = makeCues(t);
        const args = ['--workers', String(workers), '--restart-limit', '0'];
        const server = await startHere(app(name), { t, env: cues.env, args });
        const attack = new Attack(server, cues, workers);
        let killers = await attack.sendKillers();
        for (let round = 0; round < rounds; round += 1) {
          const normal = await attack.sendNormalCalls();
          const answers = attack.letKillersKill(killers);
          killers = await attack.sendKillers(answers);
          // The next killers hold every worker until their cue: one that jumped the line would starve these.
          for (const answer of await Promise.all(normal)) assert.equal(answer.status, 200, answer.text);
        }
        for (const answer of await Promise.all(attack.letKillersKill(killers))) assertLost(answer);
        assert.doesNotMatch(server.stderr(), /restarting in/, 'no slot enters backoff');
        await server.stop('SIGINT', attack.kills);
      },
    );
  }

  test(
    'an input that kills a moment after its answer, again and again: its slot never enters backoff',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      const args = ['--restart-limit', '0'];
      const server = await startHere(app('killable'), { t, env: cues.env, args });
      for (let i = 1; i <= LATE_KILLS; i += 1) {
        const answer = await ask(server, { dies: 'exit 7', afterAnswer: true });
        assert.equal(answer.status, 200, answer.text);
        await server.until(({ model }) => model.workers[0]?.restarts === i);
      }
      assert.doesNotMatch(server.stderr(), /restarting in/, 'no slot enters backoff');
      await server.stop('SIGINT', LATE_KILLS);
    },
  );
});

/** Killers that send their next call when the last one is answered, and normal calls that wait behind them. */
class Attack {
  readonly #server: Server;
  readonly #cues: Cues;
  readonly #workers: number;
  kills = 0;

  constructor(server: Server, cues: Cues, workers: number) {
    this.#server = server;
    this.#cues = cues;
    this.#workers = workers;
  }

  /** One killer per worker, each sent once the one before it (`last`) is answered. Resolves once all are sent. */
  async sendKillers(last: readonly Promise<Answer>[] = []): Promise<Killer[]> {
    const killers = Array.from({ length: this.#workers }, async (_, i): Promise<Killer> => {
      const lastAnswer = await last[i];
      if (lastAnswer !== undefined) assertLost(lastAnswer);
      this.kills += 1;
      const cue = `kill ${this.kills}`;
      return { cue, answer: ask(this.#server, { until: cue, dies: 'SIGKILL' }) };
    });
    return Promise.all(killers);
  }

  /** Resolves once killers hold every worker and all of the calls wait behind them. */
  async sendNormalCalls(): Promise<Promise<Answer>[]> {
    const allHeld = (held: readonly number[]): boolean => held.every((count) => count >= 1);
    await this.#server.until(({ model }) => allHeld(model.workers.map(({ held }) => held)));
    const count = CALLERS * this.#workers;
    // Nothing is sent ahead of calls that take long: each killer gets a worker to itself.
    const input = this.#workers === 1 ? {} : { ms: LONG_MS };
    const calls = Array.from({ length: count }, () => ask(this.#server, input));
    await this.#server.until(({ model }) => model.queue.waiting + model.inFlight === count + this.#workers);
    return calls;
  }

  letKillersKill(killers: readonly Killer[]): Promise<Answer>[] {
    for (const { cue } of killers) this.#cues.give(cue);
    return killers.map(({ answer }) => answer);
  }
}

interface Killer {
  /** The cue that it waits for before it kills. */
  readonly cue: string;
  readonly answer: Promise<Answer>;
}

function assertLost(answer: Answer): void {
  assert.equal(answer.status, 500, answer.text);
  assert.equal(errorOf(answer).code, 'SERVE_WORKER_LOST');
}
