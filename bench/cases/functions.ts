/**
 * A model as a function beside other ways to call it from a program: in its own thread, in piscina, over our HTTP. One worker,
 * or one thread of it, each; CPU is that of all processes of a way, the program's included.
 */
import { availableParallelism } from 'node:os';
import type { Bench, BenchCase } from '../case.js';
import { cpuSecondsOf, rssMbOf } from '../proc.js';
import type { Goal, Row } from '../report.js';
import { pidsOf } from '../servers/banana.js';
import { source } from '../servers/child-server.js';
import { FunctionProgram, type InputName, type Way } from '../servers/function-program.js';
import { median } from '../statistics.js';

const APP = 'bench/apps/function.mjs';

const NAMES: Readonly<Record<Exclude<Way, 'busy'>, string>> = {
  function: 'supervise()',
  http: 'our HTTP with undici',
  'http-json': 'our HTTP, arrays as JSON',
  piscina: 'piscina, copies',
  'piscina-moves': 'piscina, moves',
  thread: 'the same thread',
};

/** One call as a way makes it, as it is measured in a round. */
interface Round {
  readonly p50: number;
  readonly p99: number;
  readonly cpuUs: number;
}

interface Side {
  readonly name: string;
  readonly program: FunctionProgram;
  readonly pids: readonly number[];
}

interface Load {
  readonly input: InputName;
  readonly callers: number;
}

const LOADS: readonly Load[] = (['small', '1 MB', '10 MB'] as const).flatMap((input) =>
  [1, 32].map((callers) => ({ input, callers })),
);

/** By the load and the other way. */
const GOALS: Readonly<Record<string, { readonly cpu?: number; readonly p50?: number }>> = {
  [`small, c=1, ${NAMES.http}`]: { p50: 0.6 },
  [`small, c=32, ${NAMES.http}`]: { cpu: 0.45 },
  [`1 MB, c=1, ${NAMES['http-json']}`]: { cpu: 0.35 },
};

const WARM_UP = { seconds: 5, maxCalls: 40_000 };
const COMPUTE_S = 2;

export const functions: BenchCase = {
  name: 'functions',
  async run(bench) {
    const sides = await startSides(bench);
    const rows: Row[] = [];
    for (const load of LOADS) rows.push(...(await compare(bench, sides, load)));
    return rows;
  },
};

/** The program of a function: its memory and its start beside those of other ways, the death of a worker, its own timers. */
export const functionHost: BenchCase = {
  name: 'function-host',
  async run(bench) {
    const sides = await startSides(bench);
    for (const { name, program, pids } of sides) {
      const memory = pids.map((pid) => `${rssMbOf(pid).toFixed(0)} MB`).join(' + ');
      bench.note(
        `${name}: memory ${memory}; first answer ${program.firstAnswerMs.toFixed(0)} ms after the start of the program${name.startsWith('our HTTP') ? ', whose server runs' : ''}.`,
      );
    }
    return [await recovery(bench, sides[0] as Side), await lateness(bench)];
  },
};

/** Ours first. */
async function startSides(bench: Bench): Promise<Side[]> {
  const sides: Side[] = [];
  for (const way of Object.keys(NAMES) as (keyof typeof NAMES)[]) {
    const server = way.startsWith('http') ? await bench.startBanana(source(APP)) : null;
    const program = bench.keep(await FunctionProgram.start(way, server?.url));
    const others = server === null ? program.workers : await pidsOf(server);
    sides.push({ name: NAMES[way], program, pids: [program.pid, ...others] });
  }
  return sides;
}

async function compare(bench: Bench, sides: readonly Side[], load: Load): Promise<Row[]> {
  const { rounds, secondsPerRound: seconds } = bench.duration;
  const results = new Map<string, Round[]>();
  for (const { program } of sides) await program.follow({ do: 'load', ...load, ...WARM_UP });
  for (let i = 0; i < rounds; i += 1)
    for (const side of sides)
      results.set(side.name, [...(results.get(side.name) ?? []), await measure(side, load, seconds)]);
  const title = `${load.input}, c=${load.callers}`;
  const texts = [...results].map(([name, all]) => `${name} ${textOf(all)}`);
  bench.note(`Function, ${title}: p50, p99, CPU per call: ${texts.join('; ')}.`);
  return Object.values(NAMES)
    .slice(1)
    .flatMap((name) => {
      const [ours = [], theirs = []] = [results.get(NAMES.function), results.get(name)];
      const goals = GOALS[`${title}, ${name}`] ?? {};
      const goalOf = (must: number | undefined): Goal | null =>
        must === undefined ? null : { must, better: 'lower', unit: 'x' };
      const row = (what: string, metric: keyof Round, goal: Goal | null): Row => ({
        name: `function, ${title}: ${what}, vs ${name}`,
        ours: inUs(ours, metric),
        baseline: inUs(theirs, metric),
        value: median(ours.map((round, i) => round[metric] / (theirs[i] as Round)[metric])),
        goal,
      });
      return [row('CPU per call', 'cpuUs', goalOf(goals.cpu)), row('p50', 'p50', goalOf(goals.p50))];
    });
}

async function measure({ program, pids }: Side, load: Load, seconds: number): Promise<Round> {
  const cpuSeconds = (): number => pids.reduce((sum, pid) => sum + cpuSecondsOf(pid), 0);
  const before = cpuSeconds();
  const { load: result } = await program.follow({ do: 'load', ...load, seconds, maxCalls: Infinity });
  if (result === undefined || result.calls === 0) throw new Error('no call was answered');
  const cpuUs = ((cpuSeconds() - before) * 1e6) / result.calls;
  return { p50: result.p50 * 1000, p99: result.p99 * 1000, cpuUs };
}

function inUs(rounds: readonly Round[], metric: keyof Round): string {
  const us = median(rounds.map((round) => round[metric]));
  return us < 10_000 ? `${us.toFixed(us < 100 ? 1 : 0)} us` : `${(us / 1000).toFixed(1)} ms`;
}

function textOf(rounds: readonly Round[]): string {
  return (['p50', 'p99', 'cpuUs'] as const).map((metric) => inUs(rounds, metric)).join(', ');
}

/** A kill of piscina's thread is a kill of the program. */
async function recovery(bench: Bench, { program }: Side): Promise<Row> {
  const times: number[] = [];
  for (let i = 0; i < bench.duration.rounds; i += 1)
    times.push((await program.follow({ do: 'kill' })).recoveryMs ?? NaN);
  return {
    name: 'function: kill -9 of its worker to the next answer, no spare',
    ours: `${Math.min(...times).toFixed(0)} to ${Math.max(...times).toFixed(0)} ms`,
    baseline: '',
    value: median(times),
    goal: { must: 300, better: 'lower', unit: 'ms' },
  };
}

async function lateness(bench: Bench): Promise<Row> {
  const program = bench.keep(await FunctionProgram.start('busy'));
  await program.follow({ do: 'compute', seconds: 1 });
  const p99s: number[] = [];
  for (let i = 0; i < bench.duration.rounds; i += 1)
    p99s.push((await program.follow({ do: 'compute', seconds: COMPUTE_S })).lateness?.p99 ?? NaN);
  const threads = Math.max(1, availableParallelism() - 1);
  return {
    name: `function: p99 of the program's timers, ${COMPUTE_S} s of ONNX on ${threads} threads beside it`,
    ours: `${Math.min(...p99s).toFixed(2)} to ${Math.max(...p99s).toFixed(2)} ms late`,
    baseline: '',
    value: median(p99s),
    goal: { must: 5, better: 'lower', unit: 'ms' },
  };
}
