/**
 * Twenty models of 300 MB under 2 GB, called one after the other as Zipf's law has it: how many calls find a worker, beside the
 * rules that know the past (least recently used) and the future (Belady) with room for as many models. Each model is called
 * once before, since a start whose memory is not known may exceed the budget.
 */
import type { BenchCase } from '../case.js';
import { postOnce } from '../post-once.js';
import { pssMbOf } from '../proc.js';
import { statusOf, type Status } from '../servers/banana.js';
import { source } from '../servers/child-server.js';
import { significant, type Row } from '../report.js';
import { seeded } from '../../test/helpers/random.js';

const MODELS = 20;
const MODEL_MB = 300;
const BUDGET_MB = 2048;
const CALLS = 400;
const SEED = 1;
/** The workers may hold as much more for the moment of a sample as the server needs to notice. */
const NOISE_MB = 32;

export const memoryBudget: BenchCase = {
  name: 'memory-budget',
  async run(bench) {
    const app = source('bench/apps/sized.mjs');
    const options = { app, minWorkers: 0, maxWorkers: 1, idleTimeout: '1h' };
    const models = Object.fromEntries(Array.from({ length: MODELS }, (_, i) => [nameOf(i), options]));
    const { url } = await bench.startBanana(source('bench/apps/small.mjs'), {
      config: { models, workers: 1 },
      workers: null,
      env: { BENCH_FILL_MB: String(MODEL_MB) },
      flags: ['--memory-budget', `${BUDGET_MB}MB`],
    });
    const sequence = [...Array(MODELS).keys(), ...zipf(CALLS, MODELS, SEED)];
    let hits = 0;
    let failed = 0;
    let mostWorkers = 0;
    let mostMb = 0;
    for (const [position, model] of sequence.entries()) {
      const { status, text } = await postOnce(`${url}/models/${nameOf(model)}/`, {});
      if (status !== 200) failed += 1;
      else if ((JSON.parse(text) as { before: number }).before > 0) hits += 1;
      if (position < MODELS) continue;
      const pids = workersOf(await statusOf(url));
      mostWorkers = Math.max(mostWorkers, pids.length);
      mostMb = Math.max(
        mostMb,
        pids.reduce((sum, pid) => sum + pssMbOf(pid), 0),
      );
    }
    const share = (count: number): string => `${((100 * count) / CALLS).toFixed(1)}%`;
    const lru = hitsOf(sequence, mostWorkers, leastRecent);
    const belady = hitsOf(sequence, mostWorkers, farthest);
    bench.note(
      `${MODELS} models of ${MODEL_MB} MB under ${BUDGET_MB} MB, ${CALLS} calls by Zipf's law: at most ${mostWorkers} workers and ${significant(mostMb)} MB at once; calls that found a worker: ${share(hits)}, least recently used ${share(lru)}, Belady ${share(belady)}.`,
    );
    const name = `${MODELS} models of ${MODEL_MB} MB under ${BUDGET_MB} MB`;
    const rows: Row[] = [
      {
        name: `${name}: calls that failed`,
        ours: `${CALLS} calls`,
        baseline: '',
        value: failed,
        goal: { must: 0, better: 'lower', unit: '' },
      },
      {
        name: `${name}: most memory of the workers`,
        ours: `${significant(mostMb)} MB`,
        baseline: '',
        value: mostMb,
        goal: { must: BUDGET_MB + NOISE_MB, better: 'lower', unit: 'MB' },
      },
      {
        name: `${name}: calls that found a worker, of those by least recently used`,
        ours: share(hits),
        baseline: `${share(lru)}, Belady ${share(belady)}`,
        value: hits / lru,
        goal: null,
      },
    ];
    return rows;
  },
};

function nameOf(model: number): string {
  return `model-${model}`;
}

function workersOf({ models = [] }: Status): number[] {
  return models
    .filter(({ name }) => name.startsWith('model-'))
    .flatMap(({ workers }) => workers.map(({ pid }) => pid));
}

/** Models by Zipf's law: the k-th is called 1/k times as often as the first. */
function zipf(calls: number, models: number, seed: number): number[] {
  const random = seeded(seed);
  const weights = Array.from({ length: models }, (_, i) => 1 / (i + 1));
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return Array.from({ length: calls }, () => {
    let left = random() * sum;
    return Math.max(
      0,
      weights.findIndex((weight) => (left -= weight) < 0),
    );
  });
}

/** Chooses which of the kept models leaves before the call at `position`. */
type Rule = (kept: readonly number[], sequence: readonly number[], position: number) => number;

const leastRecent: Rule = (kept, sequence, position) => {
  const last = (model: number): number => sequence.lastIndexOf(model, position - 1);
  return kept.reduce((a, b) => (last(b) < last(a) ? b : a));
};

const farthest: Rule = (kept, sequence, position) => {
  const next = (model: number): number => {
    const at = sequence.indexOf(model, position);
    return at === -1 ? Infinity : at;
  };
  return kept.reduce((a, b) => (next(b) > next(a) ? b : a));
};

function hitsOf(sequence: readonly number[], room: number, leaves: Rule): number {
  let kept: number[] = [];
  let hits = 0;
  sequence.forEach((model, position) => {
    if (kept.includes(model)) {
      hits += 1;
      return;
    }
    if (kept.length >= room) {
      const gone = leaves(kept, sequence, position);
      kept = kept.filter((other) => other !== gone);
    }
    kept.push(model);
  });
  return hits;
}
