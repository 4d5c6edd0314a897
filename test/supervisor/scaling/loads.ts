/** Six loads for the comparison of autoscalers, made from a seed. */
import { seeded } from '../../helpers/random.js';
import type { ScaledLoad } from './simulator.js';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** Calls per second at a time. */
type Rate = (atMs: number) => number;

interface Kind {
  readonly name: string;
  readonly rate: Rate;
  readonly highestRate: number;
  readonly endMs: number;
  /** Mean time of a call in a run; half of it is exponential. */
  readonly workMs: number;
  readonly perRunMs?: number;
  readonly batchSize?: number;
}

/** Every 20 minutes 5 minutes of 20 calls/s. */
const burst: Rate = (atMs) => (atMs % (20 * MINUTE) < 15 * MINUTE ? 0 : 20);

/** 1 call/s, and 20 in the first 10 s of each minute. */
const spikes: Rate = (atMs) => (atMs % MINUTE < 10 * SECOND ? 20 : 1);

/** Between 0.2 and 10 calls/s. */
const wave: Rate = (atMs) => 0.2 + 4.9 * (1 - Math.cos((2 * Math.PI * atMs) / (24 * HOUR)));

const KINDS: readonly Kind[] = [
  { name: 'steady', rate: () => 10, highestRate: 10, endMs: 4 * HOUR, workMs: 150 },
  { name: 'daily wave', rate: wave, highestRate: 10, endMs: 24 * HOUR, workMs: 150 },
  { name: 'burst from nothing', rate: burst, highestRate: 20, endMs: HOUR, workMs: 150 },
  { name: 'spikes', rate: spikes, highestRate: 20, endMs: HOUR, workMs: 150 },
  { name: 'a call an hour', rate: () => 1 / 3600, highestRate: 1 / 3600, endMs: 48 * HOUR, workMs: 150 },
  {
    name: 'batches',
    rate: () => 60,
    highestRate: 60,
    endMs: HOUR / 2,
    workMs: 30,
    perRunMs: 60,
    batchSize: 8,
  },
];

export const LOADS: readonly string[] = KINDS.map(({ name }) => name);

/** The load of this name, of the same calls for the same seed. */
export function scaledLoad(name: string, seed: number): ScaledLoad {
  const kind = KINDS.find((one) => one.name === name);
  if (kind === undefined) throw new RangeError(`there is no load "${name}"`);
  return make(kind, seeded(seed));
}

function make(kind: Kind, random: () => number): ScaledLoad {
  const { name, rate, highestRate, endMs, workMs: meanMs, perRunMs = 0, batchSize = 1 } = kind;
  const exponential = (mean: number): number => -Math.log(1 - random()) * mean;
  const arrivalsMs: number[] = [];
  const workMs: number[] = [];
  for (
    let atMs = exponential(SECOND / highestRate);
    atMs < endMs;
    atMs += exponential(SECOND / highestRate)
  ) {
    if (random() * highestRate > rate(atMs)) continue;
    arrivalsMs.push(atMs);
    workMs.push(meanMs / 2 + exponential(meanMs / 2));
  }
  return { name, arrivalsMs, workMs, perRunMs, batchSize, endMs };
}
