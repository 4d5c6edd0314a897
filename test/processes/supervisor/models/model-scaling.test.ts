/** Models that scale themselves, with real workers and without a server: who may leave, and when. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { Gpu } from '../../../../supervisor/machine/nvidia-smi.js';
import { makeCues, type Cues } from '../../../helpers/cues.js';
import { CUES_MODULE, editedApp } from '../../../helpers/edited-app.js';
import {
  LIMITS,
  realModel,
  specOf,
  type RealModel,
  type RealModelOptions,
} from '../../../supervisor/models/real-model.js';

const LIMIT = { timeout: 240_000 };
const CARDS: Gpu[] = [{ index: 0, uuid: 'GPU-0', name: 'A100', card: 'GPU-0' }];
const OPTIONS = { minWorkers: 0, maxWorkers: 2, idleTimeout: 50, targetWait: 10, restartLimit: 0 };
const BOUNDS = { min: 0, max: 2 };

/** Its init waits if the test has given the cue `hold`, and throws in slot 1 if it has given `broken`. */
const APP = `
  import { given, isGiven, note } from ${JSON.stringify(CUES_MODULE)};
  export async function init({ worker }) {
    if (isGiven('broken') && worker.index === 1) throw new Error('this slot is broken');
    note('init');
    if (isGiven('hold')) await given('go on');
  }
  export async function inference({ until }) {
    note('begun');
    if (until !== undefined) await given(until);
    return process.pid;
  }
  export const shutdown = () => isGiven('slow end') ? given('may end') : undefined;`;

interface Bench {
  readonly real: RealModel;
  readonly cues: Cues;
  readonly app: string;
}

async function scaled(t: TestContext, given: RealModelOptions = {}): Promise<Bench> {
  const cues = makeCues(t);
  process.env['CUES'] = cues.folder; // its workers have the environment of this process
  const app = editedApp(t, { 'app.mjs': APP }).path('app.mjs');
  const real = await realModel(t, app, { ...given, options: { ...OPTIONS, ...given.options } });
  await real.model.scale(BOUNDS, LIMITS);
  return { real, cues, app };
}

const isIdle = ({ real }: Bench): Promise<void> =>
  real.until(({ health, crew }) => health.state === 'idle' && crew.all.length === 0);

test('no worker leaves while a reload is in progress', LIMIT, async (t) => {
  const bench = await scaled(t);
  const control = await scaled(t); // shows that an idle timeout has passed
  const { cues, real, app } = bench;
  process.env['CUES'] = cues.folder;
  const busy = real.call({ until: 'idle' }); // it would leave before the reload begins
  await cues.untilNoted('begun');
  cues.give('hold');
  const renewed = real.model.renew(await specOf(app, OPTIONS), LIMITS);
  const isHeld = (): boolean => cues.notes().filter((note) => note === 'init').length === 2;
  await real.until(isHeld);
  cues.give('idle');
  await busy;
  process.env['CUES'] = control.cues.folder;
  await control.real.call({});
  await isIdle(control);
  assert.deepEqual(
    real.model.crew.all.map(({ state }) => state.name),
    ['renewing'],
  );
  cues.give('go on');
  assert.equal((await renewed).error, null);
  await isIdle(bench);
});

test('a busy worker does not leave, however long its call takes', LIMIT, async (t) => {
  const bench = await scaled(t);
  const control = await scaled(t);
  process.env['CUES'] = bench.cues.folder;
  const running = bench.real.call({ until: 'finish' });
  await bench.cues.untilNoted('begun');
  process.env['CUES'] = control.cues.folder;
  await control.real.call({});
  await isIdle(control);
  assert.equal(bench.real.model.crew.ready.length, 1);
  bench.cues.give('finish');
  await running;
  await isIdle(bench);
});

test('a frozen worker leaves before one that serves, and also if it is the last', LIMIT, async (t) => {
  const { real, cues, app } = await scaled(t, { options: { idleTimeout: 60_000 } });
  const { model } = real;
  const calls = Array.from({ length: 4 }, () => real.call({ until: 'finish' }));
  await real.until(({ crew }) => crew.ready.length === 2);
  cues.give('finish');
  await Promise.all(calls);
  const freeze = async (index: number): Promise<void> => {
    process.kill(model.crew.all[index]?.worker?.pid as number, 'SIGSTOP');
    await real.until(({ crew }) => crew.all[index]?.worker?.isFrozen === true);
  };
  await freeze(0);
  await model.replace(await specOf(app, OPTIONS), LIMITS);
  await real.until(({ sizing }) => sizing.changes.at(-1)?.change === 'retired');
  const retired = model.sizing.changes.filter(({ change }) => change === 'retired');
  assert.equal(retired?.[0]?.worker, 0);
  await real.until(({ health, crew }) => health.state === 'idle' && crew.all.length === 0);

  await model.replace(await specOf(app, { ...OPTIONS, idleTimeout: 60_000 }), LIMITS);
  await real.call({});
  await freeze(0);
  await model.replace(await specOf(app, OPTIONS), LIMITS);
  await real.until(({ health, crew }) => health.state === 'idle' && crew.all.length === 0);
});

for (const standby of [0, 1]) {
  test(
    `a slot that is failing does not outlive the workers that served, ${standby} standing by: the model is idle, and well`,
    LIMIT,
    async (t) => {
      const bench = await scaled(t, { options: { standby } });
      const { real, cues } = bench;
      cues.give('broken');
      const calls = Array.from({ length: 6 }, () => real.call({ until: 'finish' }));
      await real.until(({ crew }) => crew.all.some(({ failure }) => failure !== null));
      cues.give('finish');
      await Promise.all(calls);
      await isIdle(bench);
      assert.deepEqual(real.stops, []);
      assert.equal(typeof (await real.call({})), 'number');
    },
  );
}

test(
  'on a GPU, whose memory may not hold two, a worker starts when the one that left is gone',
  LIMIT,
  async (t) => {
    const bench = await scaled(t, { gpus: CARDS, options: { maxWorkers: 1 } });
    const { real, cues } = bench;
    cues.give('slow end');
    await real.call({});
    await real.until(({ crew }) => crew.all[0]?.state.name === 'closing');
    const next = real.call({});
    await real.until(({ dispatcher }) => dispatcher.queued === 1);
    assert.equal(real.model.crew.all.length, 1);
    cues.give('may end');
    assert.equal(typeof (await next), 'number');
  },
);
