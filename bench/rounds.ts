/**
 * Several servers under the same load in turn, A B C A B C ..., so that a change of the machine's mood meets all
 * of them. Ratios are taken within a round; the median of the rounds counts.
 */
import type { LoadGenerator } from './load/client.js';
import type { ClosedResult, RequestSpec } from './load/plan.js';
import { cpuSecondsOf } from './proc.js';
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
}

export type Role = 'front' | 'worker';

export interface Load {
  readonly request: Omit<RequestSpec, 'url'>;
  readonly connections: number;
}

export interface Round extends ClosedResult {
  readonly perSecond: number;
  /** CPU of all processes with that role. */
  readonly cpuMsOf: Readonly<Record<Role, number>>;
  /** Of all CPU that this round used, on both sides of the socket. */
  readonly generatorShare: number;
}

export interface Duration {
  readonly rounds: number;
  readonly secondsPerRound: number;
}

/** Both ends still get faster in the second of these: code is compiled while it runs. */
const WARM_UP_ROUNDS = 2;

/** One list of rounds per side, in the order of `sides`. @throws an Error if any request fails */
export async function measureInTurn(
  generator: LoadGenerator,
  sides: readonly Side[],
  load: Load,
  { rounds, secondsPerRound }: Duration,
): Promise<Round[][]> {
  const results: Round[][] = sides.map(() => []);
  for (let round = -WARM_UP_ROUNDS; round < rounds; round += 1) {
    for (const [i, side] of sides.entries()) {
      const measured = await measureOnce(generator, side, load, secondsPerRound);
      if (round >= 0) (results[i] as Round[]).push(measured);
    }
  }
  return results;
}

export function medianOf(rounds: readonly Round[], metric: (round: Round) => number): number {
  return median(rounds.map(metric));
}

/** Median over the rounds of `ours / theirs`. */
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
  for (const { role, pid } of processes) totalMs[role] += cpuSecondsOf(pid) * 1000;
  return totalMs;
}
