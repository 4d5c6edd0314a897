/** Tests of replacing a model's spec while calls run: at once for options of the front, else worker by worker. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { startPhase } from '../../../../supervisor/processes/worker-lifecycle.js';
import { makeCues, type Cues } from '../../../helpers/cues.js';
import { CUES_MODULE, PACKAGE, editedApp, type EditedApp } from '../../../helpers/edited-app.js';
import { isAlive } from '../../../helpers/server.js';
import {
  LIMITS,
  realModel,
  specOf,
  type RealModel,
  type RealModelOptions,
} from '../../../supervisor/models/real-model.js';
import { CARDS, versionApp } from '../../../supervisor/models/version-app.js';
import { exactly } from '../../../../supervisor/models/bounds.js';

const LIMIT = { timeout: 240_000 };

const BROKEN = 'throw new Error("no weights");';

interface Bench {
  readonly app: EditedApp;
  readonly real: RealModel;
  readonly cues: Cues;
}

/** A model with ready workers of version 1. */
async function served(t: TestContext, workers: number, given: RealModelOptions = {}): Promise<Bench> {
  const cues = makeCues(t);
  process.env['CUES'] = cues.folder; // its workers have the environment of this process
  const app = editedApp(t, {
    '1.mjs': versionApp(1),
    '2.mjs': versionApp(2),
    '3.mjs': versionApp(3),
    'broken.mjs': BROKEN,
  });
  const real = await realModel(t, app.path('1.mjs'), given);
  await real.model.scale(exactly(workers), LIMITS);
  return { app, real, cues };
}

async function versionOf(real: RealModel): Promise<number> {
  return ((await real.call({})) as { version: number }).version;
}

test(
  'options of the front apply at once: the workers stay, and options that are left out have their default again',
  LIMIT,
  async (t) => {
    const { app, real, cues } = await served(t, 1);
    const { pids } = real;
    const running = real.call({ until: 'finish' });
    await cues.untilNoted('begun');
    const settled = await real.model.replace(
      await specOf(app.path('1.mjs'), { queueSize: 1, runTimeout: 300 }),
      LIMITS,
    );
    assert.deepEqual(settled, { result: 'done', wanted: 1, ready: 1, error: null });
    assert.deepEqual([real.pids, real.model.options.queueSize], [pids, 1]);
    const waiting = real.call({ until: 'never' });
    assert.throws(() => real.model.dispatcher.admit(0), { code: 'SERVE_QUEUE_FULL' });
    cues.give('finish');
    await running;
    await assert.rejects(waiting, { code: 'SERVE_INFERENCE_TIMEOUT' });
    await real.model.replace(await specOf(app.path('1.mjs')), LIMITS);
    assert.equal(real.model.options.queueSize, 1024);
  },
);

test('a changed warning of the program does not replace the workers', LIMIT, async (t) => {
  const { app, real } = await served(t, 1);
  const { pids } = real;
  const spec = await specOf(app.path('1.mjs'), { queueSize: 1 });
  const program = { ...spec.program, warnings: ['an environment beside the app does not count'] };
  await real.model.replace({ ...spec, program }, LIMITS);
  assert.deepEqual([real.pids, real.model.options.queueSize], [pids, 1]);
});

test(
  'on the CPU the next worker is ready before the present one ends, and no call waits',
  LIMIT,
  async (t) => {
    const { app, real, cues } = await served(t, 1);
    const [before] = real.pids;
    cues.give('hold 2');
    const replaced = real.model.replace(await specOf(app.path('2.mjs')), LIMITS);
    await cues.untilNoted('init 2');
    assert.equal(await versionOf(real), 1, 'answered while the next one starts');
    assert.equal(real.model.crew.all[0]?.state.name, 'renewing');
    const running = real.call({ until: 'finish' });
    await cues.untilNoted('begun');
    cues.give('go on 2');
    await real.until(({ crew }) => crew.all[0]?.state.name === 'live');
    assert.equal(await versionOf(real), 2);
    let isReplaced = false;
    void replaced.then(() => (isReplaced = true));
    await versionOf(real);
    assert.deepEqual([isAlive(before as number), isReplaced], [true, false], 'it ends its call');
    cues.give('finish');
    assert.deepEqual(await running, { version: 1, pid: before });
    assert.deepEqual(await replaced, { result: 'done', wanted: 1, ready: 1, error: null });
    assert.equal(isAlive(before as number), false, 'what is settled has left no process behind');
    assert.deepEqual([real.model.crew.all[0]?.restarts, real.model.crew.all[0]?.lastDeath], [0, null]);
  },
);

test(
  'several workers are replaced one after the other under calls, each of which is answered once',
  LIMIT,
  async (t) => {
    const { app, real } = await served(t, 3);
    let most = 0;
    let isOver = false;
    const versions: number[] = [];
    const caller = async (): Promise<void> => {
      while (!isOver) {
        versions.push(await versionOf(real));
        await new Promise((resolve) => setTimeout(resolve, 1));
        most = Math.max(
          most,
          real.model.crew.all.flatMap(({ workers }) =>
            workers.filter(({ state }) => state === 'ready' || startPhase(state) !== null),
          ).length,
        );
      }
    };
    const callers = Promise.all([1, 2, 3, 4].map(caller));
    await real.model.replace(await specOf(app.path('2.mjs')), LIMITS);
    assert.deepEqual([await versionOf(real), real.model.crew.ready.length], [2, 3]);
    isOver = true;
    await callers;
    assert.ok(versions.includes(1) && versions.includes(2));
    assert.equal(most, 4, 'one more than there are slots');
  },
);

test(
  'on a GPU the present worker ends first: two never share its memory, and calls wait meanwhile',
  LIMIT,
  async (t) => {
    const { app, real, cues } = await served(t, 1, { gpus: CARDS });
    const [before] = real.pids;
    cues.give('hold 2');
    const replaced = real.model.replace(await specOf(app.path('2.mjs')), LIMITS);
    await cues.untilNoted('init 2');
    assert.equal(isAlive(before as number), false);
    const held = versionOf(real);
    cues.give('go on 2');
    assert.equal(await held, 2);
    assert.deepEqual(await replaced, { result: 'done', wanted: 1, ready: 1, error: null });
  },
);

for (const [where, gpus] of [
  ['on the CPU', []],
  ['on a GPU', CARDS],
] as const) {
  test(
    `a spec whose worker cannot start is taken back, ${where}: the one before goes on, and the reason is returned`,
    LIMIT,
    async (t) => {
      const { app, real } = await served(t, 2, { gpus });
      const { spec } = real.model;
      const replaced = real.model.replace(await specOf(app.path('broken.mjs')), LIMITS);
      const held = [versionOf(real), versionOf(real), versionOf(real)];
      const { wanted, ready, error } = await replaced;
      assert.deepEqual([wanted, ready, error?.code], [2, 2, 'SERVE_APP_INVALID']);
      assert.match(error?.detail ?? '', /no weights/);
      assert.match(real.log, /the workers are not replaced; the old ones continue: .*no weights/);
      assert.deepEqual(await Promise.all(held), [1, 1, 1]);
      assert.deepEqual([real.model.spec, real.stops], [spec, []]);
      for (const pid of real.pids) process.kill(pid, 'SIGKILL');
      await real.until(({ crew }) =>
        crew.all.every(({ lastDeath, worker }) => lastDeath !== null && worker?.state === 'ready'),
      );
      assert.equal(await versionOf(real), 1, 'also what starts from now on');
    },
  );
}

test(
  'a spec with which one worker starts and the next one cannot, on a GPU: the replacement ends with the reason',
  LIMIT,
  async (t) => {
    const { app, real } = await served(t, 2, { gpus: CARDS, options: { restartLimit: 0 } });
    app.save(
      'half.mjs',
      `export function init({ worker }) { if (worker.index === 1) throw new Error('no card'); }
      export const inference = () => ({ version: 2 });`,
    );
    const spec = await specOf(app.path('half.mjs'), { restartLimit: 0 });
    const replaced = await real.model.replace(spec, LIMITS);
    assert.deepEqual([replaced.result, replaced.ready], ['partial', 1]);
    assert.match(replaced.error?.detail ?? '', /no card$/);
    assert.deepEqual([await versionOf(real), real.stops], [2, []]);
  },
);

test('a spec that replaces one whose replacement is under way takes effect', LIMIT, async (t) => {
  const { app, real, cues } = await served(t, 2);
  cues.give('hold 2');
  const first = real.model.replace(await specOf(app.path('2.mjs')), LIMITS);
  await cues.untilNoted('init 2');
  const second = real.model.replace(await specOf(app.path('3.mjs')), LIMITS);
  const settled = { result: 'done', wanted: 2, ready: 2, error: null };
  assert.deepEqual(await Promise.all([first, second]), [settled, settled]);
  for (let i = 0; i < 4; i += 1) assert.equal(await versionOf(real), 3);
  await real.until(({ crew }) => crew.all.every(({ workers }) => workers.length === 1));
});

test(
  'if the present worker dies while the next one starts, that one answers the waiting calls',
  LIMIT,
  async (t) => {
    const { app, real, cues } = await served(t, 1);
    const [before] = real.pids;
    cues.give('hold 2');
    const replaced = real.model.replace(await specOf(app.path('2.mjs')), LIMITS);
    await cues.untilNoted('init 2');
    process.kill(before as number, 'SIGKILL');
    await real.until(({ crew }) => crew.all[0]?.state.name === 'live');
    const held = versionOf(real);
    cues.give('go on 2');
    assert.equal(await held, 2);
    assert.deepEqual(await replaced, { result: 'done', wanted: 1, ready: 1, error: null });
    assert.equal(real.model.crew.all[0]?.restarts, 1);
  },
);

test(
  'if the model is scaled while the next workers start, all have the newest spec in the end',
  LIMIT,
  async (t) => {
    const { app, real, cues } = await served(t, 2);
    cues.give('hold 2');
    const replaced = real.model.replace(await specOf(app.path('2.mjs')), LIMITS);
    await cues.untilNoted('init 2');
    const scaled = real.model.scale(exactly(3), LIMITS);
    cues.give('go on 2');
    await Promise.all([replaced, scaled]);
    assert.equal(real.model.crew.ready.length, 3);
    for (let i = 0; i < 6; i += 1) assert.equal(await versionOf(real), 2);
  },
);

test('a model without slots takes a new spec, and starts with it', LIMIT, async (t) => {
  const { app, real } = await served(t, 0);
  await real.model.replace(await specOf(app.path('broken.mjs')), LIMITS);
  assert.equal((await real.model.scale(exactly(1), LIMITS)).error?.code, 'SERVE_APP_INVALID');
  assert.equal(real.stops.length, 1);
  assert.deepEqual(await real.model.replace(await specOf(app.path('2.mjs')), LIMITS), {
    result: 'done',
    wanted: 1,
    ready: 1,
    error: null,
  });
  assert.equal(await versionOf(real), 2);
});

function routesApp(route: string): string {
  return `
    import { Potassium, Response } from ${JSON.stringify(PACKAGE)};
    import { given, isGiven, note } from ${JSON.stringify(CUES_MODULE)};
    const app = new Potassium('routes').init(async () => {
      note('init ${route}');
      if (isGiven('hold ${route.slice(1)}')) await given('go on ${route.slice(1)}');
      return {};
    });
    for (const route of ['/both', '${route}'])
      app.handler(route, async (_context, request) => {
        if (request.json.until) { note('begun'); await given(request.json.until); }
        return new Response({ json: { route: '${route}' } });
      });
    export default app;`;
}

test('with other routes, no call goes to an old worker once the first new one is ready', LIMIT, async (t) => {
  const { app, real, cues } = await served(t, 0);
  app.save('old.mjs', routesApp('/old'));
  app.save('new.mjs', routesApp('/new'));
  await real.model.replace(await specOf(app.path('old.mjs')), LIMITS);
  await real.model.scale(exactly(2), LIMITS);
  cues.give('hold new');
  const replaced = real.model.replace(await specOf(app.path('new.mjs')), LIMITS);
  await cues.untilNoted('init /new');
  const busy = [real.call({ until: 'finish' }, '/both'), real.call({ until: 'finish' }, '/both')];
  await real.until(() => cues.notes().filter((note) => note === 'begun').length === 2);
  const waiting = real.call({}, '/old');
  assert.deepEqual([...(real.model.routes ?? new Map()).keys()], ['/both', '/old']);
  cues.give('go on new');
  await assert.rejects(waiting, { code: 'SERVE_NOT_FOUND' });
  assert.deepEqual([...(real.model.routes ?? new Map()).keys()], ['/both', '/new']);
  assert.deepEqual(await real.call({}, '/both'), { route: '/new' });
  cues.give('finish');
  assert.deepEqual(await Promise.all(busy), [{ route: '/old' }, { route: '/old' }]);
  assert.deepEqual(await replaced, { result: 'done', wanted: 2, ready: 2, error: null });
});

/** Its `init` fails as often as the file beside it has characters. */
const FAILS_FOR_A_WHILE = `
  import { existsSync, readFileSync, writeFileSync } from 'node:fs';
  const left = import.meta.dirname + '/left';
  export function init() {
    const text = existsSync(left) ? readFileSync(left, 'utf8') : '';
    writeFileSync(left, text.slice(1));
    if (text !== '') throw new Error('no weights yet');
  }
  export const inference = () => 1;`;

test(
  'a worker that is restarted while its starts fail is reported as ready once one succeeds',
  LIMIT,
  async (t) => {
    const app = editedApp(t, { 'app.mjs': FAILS_FOR_A_WHILE });
    const real = await realModel(t, app.path('app.mjs'));
    await real.model.scale(exactly(1), LIMITS);
    app.save('left', '...');
    process.kill(real.pids[0] as number, 'SIGKILL');
    await real.until(
      ({ crew }) => crew.all[0]?.state.name === 'backoff' && (crew.all[0].lastDeath?.fatal ?? null) !== null,
    );
    const done = { result: 'done', wanted: 1, ready: 1, error: null };
    assert.deepEqual(await real.model.restartWorker(0, LIMITS), done);
    app.save('left', '.');
    const { result, error } = await real.model.restartWorker(0, LIMITS);
    assert.deepEqual([result, error?.code], ['failed', 'SERVE_INIT_FAILED'], 'the present one stays');
    assert.equal(real.model.crew.ready.length, 1);
  },
);
