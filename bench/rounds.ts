/**
 * Several servers under the same load in turn, A B C A B C ..., so that a change of the machine's mood meets all
 * of them. Ratios are taken within a round; the median of the rounds counts.
 */
import type { LoadGenerator } from './load/client.js';
import type { ClosedResult, RequestSpec } from './load/plan.js';
import { cpuSecondsOf, cpuSecondsOfProcess } from './proc.js';
import { median } from './statistics.js';

export interface Side {
  readonly name: string;
  readonly url: string;
  /** The processes whose CPU counts as this side's. */
  readonly processes: readonly ServerProcess[];
}

/** Our server is a front and its workers; a baseline is one process, called a front too: it speaks HTTP. */
export interface ServerProcess {
  readonly role: Role;
  readonly pid: number;
  /** Its threads come and go; the CPU time of those that have gone counts too. */
  readonly endsThreads?: boolean;
}

export type Role = 'front' | 'worker';

export interface Load {
  readonly request: Omit<RequestSpec, 'url'>;
  readonly connections: number;
}

export interface Round extends ClosedResult {
  readonly perSecond: number;
  /** CPU time of all processes with that role. */
  readonly cpuMsOf: Readonly<Record<Role, number>>;
  /** The generator's part of all CPU that this round used, on both sides of the socket. */
  readonly generatorShare: number;
}

export interface Duration {
  readonly rounds: number;
  readonly secondsPerRound: number;
}

/** Code is compiled while it runs: CPU per call falls by two fifths over the first 60,000 (docs/benchmarks.md). */
const WARM_UP_CALLS = 80_000;
/** Longest warm-up in seconds; calls that take long need fewer of them. */
const WARM_UP_S = 10;

/** One list of rounds per side, in the order of `sides`. @throws an Error if any request fails */
export async function measureInTurn(
  generator: LoadGenerator,
  sides: readonly Side[],
  load: Load,
  { rounds, secondsPerRound }: Duration,
): Promise<Round[][]> {
  for (const side of sides) await warmUp(generator, side, load);
  const results: Round[][] = sides.map(() => []);
  for (let round = 0; round < rounds; round += 1) {
    for (const [i, side] of sides.entries()) {
      (results[i] as Round[]).push(await measureOnce(generator, side, load, secondsPerRound));
    }
  }
  return results;
}

async function warmUp(generator: LoadGenerator, side: Side, load: Load): Promise<void> {
  await generator.runClosed({
    request: { ...load.request, url: side.url },
    connections: load.connections,
    durationMs: WARM_UP_S * 1000,
    maxRequests: WARM_UP_CALLS,
  });
}

export function medianOf(rounds: readonly Round[], metric: (round: Round) => number): number {
  return median(rounds.map(metric));
}

/** Returns the median over the rounds of `ours / theirs`. */
export function medianRatio(
  ours: readonly Round[],
  theirs: readonly Round[],
  metric: (round: Round) => number,
): number {
  return median(ours.map((round, i) => metric(round) / metric(theirs[i] as Round)));
}

export async function measureOnce(
  generator: LoadGenerator,
  side: Side,
  load: Load,
  seconds: number,
): Promise<Round> {
  const before = cpuByRole(side.processes);
  const result = await generator.runClosed({
    request: { ...load.request, url: side.url },
    connections: load.connections,
    durationMs: seconds * 1000,
    maxRequests: Infinity,
  });
  const after = cpuByRole(side.processes);
  const cpuMsOf = { front: after.front - before.front, worker: after.worker - before.worker };
  if (result.failed > 0)
    throw new Error(`${side.name}: ${result.failed} of ${result.failed + result.ok} requests failed`);
  return {
    ...result,
    perSecond: (result.ok / result.elapsedMs) * 1000,
    cpuMsOf,
    generatorShare: result.cpuMs / (result.cpuMs + cpuMsOf.front + cpuMsOf.worker),
  };
}

function cpuByRole(processes: readonly ServerProcess[]): Record<Role, number> {
  const totalMs = { front: 0, worker: 0 };
  for (const { role, pid, endsThreads = false } of processes)
    totalMs[role] += (endsThreads ? cpuSecondsOfProcess(pid) : cpuSecondsOf(pid)) * 1000;
  return totalMs;
}
