/** kill -9 at random under load: every call gets one answer or error, and none runs twice. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ask, errorOf } from '../helpers/ask.js';
import { makeCues } from '../helpers/cues.js';
import { withEachRuntime } from '../helpers/runtimes.js';
import { eventually, startServer, type Answer, type Server, type Status } from '../helpers/server.js';

const LIMIT = { timeout: 120_000 };
const LANES = 16;
const LARGE = 'x'.repeat(400_000);

const WORKERS = 3;

/** Calls answered between two strikes. */
const CALM = 40;

interface Storm {
  readonly strikes: number;
  /** Workers that must live before a strike. */
  readonly standing: number;
  /** Whom to kill. */
  readonly victims: (pids: readonly number[]) => readonly number[];
}

const STORMS: readonly [string, Storm][] = [
  ['one worker at a time', { strikes: 10, standing: 1, victims: (pids) => [pick(pids)] }],
  ['all workers at once', { strikes: 2, standing: WORKERS, victims: (pids) => pids }],
];

withEachRuntime(({ app }) => {
  for (const [what, storm] of STORMS) {
    test(
      `kill -9 of ${what} under load: every call gets one answer or error, at most one is lost per kill, none runs twice`,
      LIMIT,
      async (t) => {
        const cues = makeCues(t);
        const server = await startServer(app('works'), {
          t,
          env: cues.env,
          args: ['--workers', String(WORKERS)],
        });
        await server.until(({ model }) => model.workers.every(({ state }) => state === 'idle'));
        const load = startLoad(server);
        const kills = await strike(server, storm, load);
        const answers = await load.finish();

        const begun = new Map<string, number>();
        for (const line of cues.notes()) begun.set(line, (begun.get(line) ?? 0) + 1);
        const times = (id: string): number => begun.get(`begun ${id}`) ?? 0;
        const outcomes = { answered: 0, lost: 0, notBegun: 0 };
        for (const [id, { input, answer }] of answers) {
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
  readonly input: unknown;
  readonly answer: Answer;
}

interface Load {
  readonly answered: number;
  /** Resolves with every call and its answer once all have come. */
  finish(): Promise<Map<string, Sent>>;
}

/** Keeps `LANES` calls going until `finish`. */
function startLoad(server: Server): Load {
  const sent = new Map<string, Sent>();
  let over = false;
  let count = 0;
  let answered = 0;
  const lane = async (): Promise<void> => {
    while (!over) {
      count += 1;
      const input = inputFor(count);
      const id = `call-${count}`;
      const answer = await ask(server, input, { id });
      if (answer.status === 200) answered += 1;
      sent.set(id, { input, answer });
    }
  };
  const lanes = Promise.all(Array.from({ length: LANES }, lane));
  return {
    get answered() {
      return answered;
    },
    finish: async () => {
      over = true;
      await lanes;
      return sent;
    },
  };
}

/** Mostly short calls, so that some are sent ahead; some that take a while; some in many fragments. */
function inputFor(n: number): object {
  if (n % 10 === 0) return { n, text: LARGE };
  return n % 2 === 0 ? { n, ms: n % 5 } : { n };
}

/** Returns how many workers were killed. */
async function strike(server: Server, { strikes, standing, victims }: Storm, load: Load): Promise<number> {
  const killed = new Set<number>();
  const live = ({ model }: Status): number[] =>
    model.workers.flatMap(({ state, pid }) =>
      (state === 'idle' || state === 'busy') && pid !== null && !killed.has(pid) ? [pid] : [],
    );
  for (let i = 0; i < strikes; i += 1) {
    // Any moment of a call: a random one of the answers after the calm, while the other lanes are wherever they are.
    const goal = load.answered + CALM + Math.floor(Math.random() * LANES);
    await eventually(
      () => load.answered >= goal,
      30_000,
      () => `${load.answered} calls answered`,
    );
    const status = await server.until((now) => live(now).length >= standing, 30_000);
    for (const pid of victims(live(status))) {
      process.kill(pid, 'SIGKILL');
      killed.add(pid);
    }
  }
  return killed.size;
}

function pick(pids: readonly number[]): number {
  return pids[Math.floor(Math.random() * pids.length)] as number;
}
