/** kill -9 at random under load: every call gets one answer or error, and none runs twice. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ask, errorOf } from '../helpers/ask.js';
import { makeCues } from '../helpers/cues.js';
import { withEachRuntime, type Language } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';
import type { Answer, Server } from '../helpers/server.js';
import { CALM, ONE_AT_A_TIME, begins, startLoad, strike, type Storm } from '../helpers/storm.js';

const LIMIT = { timeout: 240_000 };
const LARGE = 'x'.repeat(400_000);

const WORKERS = 3;

/** All at once is a matter of the front alone. */
const STORMS: readonly [string, Storm, readonly Language[]][] = [
  ['one worker at a time', { ...ONE_AT_A_TIME, strikes: 5 }, ['TypeScript', 'Python']],
  ['all workers at once', { strikes: 2, standing: WORKERS, victims: (pids) => pids }, ['TypeScript']],
];

withEachRuntime(({ app, language }) => {
  for (const [what, storm] of STORMS.filter(([, , languages]) => languages.includes(language))) {
    test(
      `kill -9 of ${what} under load: every call gets one answer or error, at most one is lost per kill, none runs twice`,
      LIMIT,
      async (t) => {
        const cues = makeCues(t);
        const server = await startHere(app('works'), {
          t,
          env: cues.env,
          args: ['--workers', String(WORKERS)],
        });
        await server.until(({ model }) => model.workers.every(({ state }) => state === 'idle'));
        const load = startLoad((n) => send(server, n));
        const kills = await strike(server, storm, load);
        const answers = await load.finish();

        const times = begins(cues.notes());
        const outcomes = { answered: 0, lost: 0, notBegun: 0 };
        for (const { id, input, answer } of answers) {
          const code = answer.status === 200 ? '' : errorOf(answer).code;
          if (answer.status === 200) {
            outcomes.answered += 1;
            assert.equal(times(id), 1, `${id} was answered: it ran once`);
            assert.deepEqual(answer.json<{ input: unknown }>().input, input, `${id} got its own answer`);
          } else if (code === 'SERVE_WORKER_LOST') {
            outcomes.lost += 1;
            assert.ok(times(id) <= 1, `${id} was lost: it ran once at most`);
          } else {
            assert.equal(`${answer.status} ${code}`, '503 SERVE_NOT_BEGUN', id);
            outcomes.notBegun += 1;
            assert.equal(times(id), 0, `${id} was told that it did not begin`);
          }
        }
        t.diagnostic(`${kills} kills, ${JSON.stringify(outcomes)}`);
        assert.ok(outcomes.answered >= storm.strikes * CALM, 'there was load');
        assert.ok(outcomes.lost <= kills, `${outcomes.lost} calls lost in ${kills} kills`);
        assert.equal((await ask(server, 'after the storm')).status, 200);
        const { model, replies } = await server.status();
        assert.equal(model.inFlight, 0);
        assert.deepEqual(model.queue, { ...model.queue, waiting: 0, arriving: 0, bytes: 0 });
        assert.equal(replies['ok'], outcomes.answered + 1);
        await server.stop('SIGINT', kills);
      },
    );
  }
});

interface Sent {
  readonly id: string;
  readonly input: unknown;
  readonly answer: Answer;
}

async function send(server: Server, n: number): Promise<Sent> {
  const input = inputFor(n);
  const id = `call-${n}`;
  return { id, input, answer: await ask(server, input, { id }) };
}

/** Mostly short calls, so that some are sent ahead; some that take a while; some in many fragments. */
function inputFor(n: number): object {
  if (n % 10 === 0) return { n, text: LARGE };
  return n % 2 === 0 ? { n, ms: n % 5 } : { n };
}
