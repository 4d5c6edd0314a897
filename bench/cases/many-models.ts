/**
 * Twenty models in one server, one of which crash-loops: what do the callers of the others notice?
 *
 * Each round measures twice without the crash loop, which is the noise, then once with it, from its first death on:
 * then it starts most often.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Bench, BenchCase } from '../case.js';
import type { OpenResult } from '../load/plan.js';
import { ready, statusOf } from '../servers/banana.js';
import { source } from '../servers/child-server.js';
import { median } from '../statistics.js';
import { smallJsonRequest } from './requests.js';

const OTHERS = 19;
const RATE_PER_SECOND = 200;
const MIN_SECONDS = 8;
const DEADLINE_MS = 5000;
const LOOPS = 'loops';

interface Round {
  readonly quiet: number;
  readonly quietAgain: number;
  readonly beside: number;
}

export const manyModels: BenchCase = {
  name: 'many-models',
  async run(bench) {
    const folder = mkdtempSync(join(tmpdir(), 'banana-bench-'));
    const crashFile = join(folder, 'crash');
    try {
      return [rowOf(bench, await measure(bench, crashFile))];
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
};

async function measure(bench: Bench, crashFile: string): Promise<Round[]> {
  const names = Array.from({ length: OTHERS }, (_, i) => `model-${i}`);
  const small = source('bench/apps/small.mjs');
  const others = Object.fromEntries(names.slice(1).map((name) => [name, small]));
  const { url } = await bench.startBanana(small, {
    models: { ...others, [LOOPS]: source('bench/apps/crash-loops.mjs') },
    flags: ['--name', names[0] as string, '--restart-limit', '1000000'],
    env: { CRASH_FILE: crashFile },
  });
  const paths = names.map((name) => `/models/${name}/`);
  const p99 = async (seed: number): Promise<number> => p99Of(await send(bench, url, paths, seed));
  await p99(0); // warms up
  const rounds: Round[] = [];
  for (let seed = 1; seed <= bench.duration.rounds; seed += 1) {
    const [quiet, quietAgain] = [await p99(seed), await p99(seed)];
    writeFileSync(crashFile, '');
    await killWorkerOf(url, LOOPS);
    const beside = await p99(seed);
    rmSync(crashFile);
    await ready(url);
    rounds.push({ quiet, quietAgain, beside });
  }
  return rounds;
}

function send(bench: Bench, url: string, paths: readonly string[], seed: number): Promise<OpenResult> {
  return bench.generator.runOpen({
    request: { ...smallJsonRequest(), url, paths },
    ratePerSecond: RATE_PER_SECOND,
    durationMs: bench.secondsAtLeast(MIN_SECONDS) * 1000,
    deadlineMs: DEADLINE_MS,
    maxConnections: 256,
    seed,
  });
}

/** @throws an Error if a call of a good model was not answered */
function p99Of({ sent, good, latencyMs }: OpenResult): number {
  if (good < sent) throw new Error(`${sent - good} of ${sent} calls of good models were not answered`);
  return latencyMs.p99;
}

async function killWorkerOf(url: string, name: string): Promise<void> {
  const { models = [] } = await statusOf(url);
  const pid = models.find((model) => model.name === name)?.workers[0]?.pid;
  if (pid === undefined) throw new Error(`the model ${name} has no worker`);
  process.kill(pid, 'SIGKILL');
}

function rowOf(bench: Bench, rounds: readonly Round[]) {
  const ms = (of: (round: Round) => number): string => `${median(rounds.map(of)).toFixed(2)} ms`;
  const noise = Math.max(
    ...rounds.map(({ quiet, quietAgain }) => Math.max(quiet, quietAgain) / Math.min(quiet, quietAgain)),
  );
  const each = rounds.map((round) => [round.quiet, round.quietAgain, round.beside].map((p) => p.toFixed(2)));
  bench.note(
    `${OTHERS} models beside one that crash-loops, p99 in ms of each round (without, without again, with): ` +
      `${each.map((round) => round.join(', ')).join('; ')}. The goal is the largest ratio of the first two of a round.`,
  );
  return {
    name: `${OTHERS} models beside one that crash-loops, ${RATE_PER_SECOND} req/s: their p99`,
    ours: ms(({ beside }) => beside),
    baseline: `${ms(({ quiet }) => quiet)} without it`,
    value: median(rounds.map(({ quiet, quietAgain, beside }) => (2 * beside) / (quiet + quietAgain))),
    goal: { must: noise, better: 'lower', unit: 'x' } as const,
  };
}
