/** Workers that stand by, with real workers and without a server: in a model that scales itself, at a reload, on GPUs. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { Model } from '../../../../supervisor/models/model.js';
import { exactly } from '../../../../supervisor/models/bounds.js';
import { makeCues, type Cues } from '../../../helpers/cues.js';
import { editedApp, type EditedApp } from '../../../helpers/edited-app.js';
import { isAlive } from '../../../helpers/server.js';
import {
  LIMITS,
  realModel,
  specOf,
  type RealModel,
  type RealModelOptions,
} from '../../../supervisor/models/real-model.js';
import { CARDS, versionApp } from '../../../supervisor/models/version-app.js';

const LIMIT = { timeout: 240_000 };

interface Answer {
  readonly version: number;
  readonly pid: number;
}

interface Bench {
  readonly app: EditedApp;
  readonly real: RealModel;
  readonly cues: Cues;
}

/** A model without workers. */
async function bench(t: TestContext, given: RealModelOptions): Promise<Bench> {
  const cues = makeCues(t);
  process.env['CUES'] = cues.folder; // its workers have the environment of this process
  const app = editedApp(t, { '1.mjs': versionApp(1), '2.mjs': versionApp(2) });
  return { app, cues, real: await realModel(t, app.path('1.mjs'), given) };
}

/** A model with one worker that serves and one that stands by, both of version 1. */
async function standing(t: TestContext): Promise<Bench> {
  const made = await bench(t, { options: { standby: 1 } });
  await made.real.model.scale(exactly(1), LIMITS);
  await made.real.until(({ crew: { standbys } }) => readyOf(standbys) === '1');
  return made;
}

const asked = (real: RealModel, input: object): Promise<Answer> => real.call(input) as Promise<Answer>;

/** The indexes of those slots whose workers are ready. */
function readyOf(slots: Model['crew']['all']): string {
  return slots
    .filter(({ state }) => state.name === 'live' && state.worker.state === 'ready')
    .map(({ index }) => index)
    .join(' ');
}

const count = (cues: Cues, wanted: string): number => cues.notes().filter((note) => note === wanted).length;

test(
  'the next worker of a model that scales itself is the one that stands by, and none stands by at zero',
  LIMIT,
  async (t) => {
    const options = { minWorkers: 0, maxWorkers: 2, idleTimeout: 500, targetWait: 10, standby: 1 };
    const { real, cues } = await bench(t, { options });
    const { model } = real;
    await model.scale({ min: 0, max: 2 }, LIMITS);
    assert.deepEqual([model.crew.all.length, model.health.state], [0, 'idle']);

    const first = asked(real, { until: 'finish' });
    await real.until(({ crew: { standbys } }) => readyOf(standbys) === '1');
    assert.deepEqual([model.crew.wanted, model.crew.ready.length], [1, 1]);
    const standby = model.crew.standbys[0]?.worker?.pid;
    cues.give('hold 1'); // a start would not end
    const second = asked(real, { until: 'finish' });
    await cues.untilNoted(`begun ${standby}`);
    await real.until(({ crew }) => crew.all.length === 3); // the maximum of 2 does not count the new one
    assert.deepEqual([model.crew.wanted, model.crew.ready.length], [2, 2]);
    assert.deepEqual(
      model.crew.standbys.map(({ index }) => index),
      [2],
    );
    assert.match(real.log, /worker 1 stands by no longer: the last of 1 call in line would wait /);
    const started = model.sizing.changes.filter(({ change }) => change === 'started');
    assert.deepEqual(
      started?.map(({ worker }) => worker),
      [0, 1],
    );

    cues.give('go on 1');
    cues.give('finish');
    assert.equal((await second).pid, standby);
    await first;
    await real.until(({ health, crew }) => health.state === 'idle' && crew.all.length === 0);
  },
);

test(
  'a reload replaces the one that stands by too, and ends when no old worker is left',
  LIMIT,
  async (t) => {
    const { real, cues, app } = await standing(t);
    const before = real.pids;
    const running = asked(real, { until: 'finish' });
    await cues.untilNoted(`begun ${before[0]}`);
    let isReplaced = false;
    const replaced = real.model.replace(await specOf(app.path('2.mjs'), { standby: 1 }), LIMITS);
    void replaced.then(() => (isReplaced = true));
    await real.until(({ crew: { standbys } }) => count(cues, 'init 2') === 2 && readyOf(standbys) === '1');
    await real.until(() => !isAlive(before[1] as number));
    assert.equal((await asked(real, {})).version, 2);
    assert.deepEqual([isAlive(before[0] as number), isReplaced], [true, false], 'it ends its call');
    cues.give('finish');
    assert.deepEqual(await running, { version: 1, pid: before[0] });
    assert.deepEqual(await replaced, { result: 'done', wanted: 1, ready: 1, error: null });
    assert.equal(isAlive(before[0] as number), false);
    assert.equal(count(cues, 'init 2'), 2);
  },
);

test('a reload follows a new number of standbys', LIMIT, async (t) => {
  const { real, app } = await standing(t);
  await real.model.replace(await specOf(app.path('2.mjs')), LIMITS);
  await real.until(({ crew }) => crew.all.length === 1);
  await real.model.replace(await specOf(app.path('1.mjs'), { standby: 2 }), LIMITS);
  await real.until(({ crew: { standbys } }) => readyOf(standbys) === '1 2');
});

test('when all workers start anew, none stands by until the first of them is ready', LIMIT, async (t) => {
  const { real, cues, app } = await standing(t);
  cues.give('hold 2');
  real.model.replaceAtOnce(await specOf(app.path('2.mjs'), { standby: 1 }), LIMITS);
  await cues.untilNoted('init 2');
  await real.until(({ crew }) => crew.all.length === 1);
  cues.give('go on 2');
  await real.until(({ crew: { standbys } }) => readyOf(standbys) === '1');
  assert.equal(count(cues, 'init 2'), 2);
});

test('without a device for it none stands by, and the log has one line about that', LIMIT, async (t) => {
  const { real, app } = await bench(t, { gpus: CARDS, options: { standby: 1 } });
  await real.model.scale(exactly(1), LIMITS);
  await real.model.replace(await specOf(app.path('2.mjs'), { standby: 1 }), LIMITS);
  assert.deepEqual([real.model.crew.all.length, real.log.split('stands by').length - 1], [1, 1]);
  assert.match(real.log, /no further worker stands by: each GPU has .* \(--workers-per-gpu 1\)/);

  await real.model.replace(await specOf(app.path('1.mjs'), { standby: 1, gpus: 'none' }), LIMITS);
  await real.until(({ crew: { standbys } }) => readyOf(standbys) === '1');
});

test('new options that do not fit the machine end neither the server nor the worker', LIMIT, async (t) => {
  const { real, app } = await bench(t, { gpus: CARDS });
  await real.model.scale(exactly(1), LIMITS);
  await real.model.replace(await specOf(app.path('2.mjs'), { standby: 1, gpus: '7' }), LIMITS);
  assert.match(real.log, /no further worker stands by: --gpus/);
  assert.equal((await asked(real, {})).version, 2);
});
