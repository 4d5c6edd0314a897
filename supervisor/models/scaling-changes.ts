/** A change that a model's scaling has made, with the rule and the figures that decided, for `/status` and metrics. */
import type { LeaveWhy } from '../budget/facts.js';
import { leaveText } from '../budget/memory-text.js';
import type { Why } from '../scaling/policy.js';
import { formatMs } from '../options/units.js';

/**
 * A rule of the policy; `change`: the app or its options have changed while there was no worker, so one proves them. With a
 * memory budget: `memory` and `turn`, and `not-needed` for a start that waited for memory until no call needed it.
 */
export type ScalingWhy = Why | LeaveWhy | { readonly rule: 'change' | 'not-needed' };

/**
 * A worker that came or went, and the rule that decided.
 * @example
 * const line = ({ at, worker, change, why }: ScalingChange) => `${at} worker ${worker} ${change}: ${why}`;
 */
export interface ScalingChange {
  /** ISO 8601. */
  readonly at: string;
  readonly worker: number;
  readonly change: 'started' | 'retired';
  readonly rule: ScalingWhy['rule'];
  /** The rule in words, with the figures that decided. */
  readonly why: string;
}

/** Says why the number of workers changes. */
export function whyText(why: ScalingWhy): string {
  switch (why.rule) {
    case 'change':
      return 'the app or its options have changed, and a worker proves them';
    case 'not-needed':
      return 'it waited for memory, and no call waits for it any more';
    case 'memory':
    case 'turn':
      return leaveText(why);
    case 'minimum':
      return `the minimum is ${why.min}`;
    case 'maximum':
      return `the maximum is ${why.max}`;
    case 'first-call':
      return `${counted(why.calls)} without a worker`;
    case 'line':
      return `the last of ${counted(why.calls)} in line would wait ${ms(why.waitMs)}, with one more worker ${ms(why.withOneMoreMs)} (--target-wait ${ms(why.targetWaitMs)})`;
    case 'misses':
      return `${why.missed} of the ${counted(why.calls)} of the last ${ms(why.windowMs)} would wait longer than --target-wait ${ms(why.targetWaitMs)} on ${why.from}`;
    case 'spare':
      return `only ${why.missed} of the ${counted(why.calls)} of the last ${ms(why.windowMs)} would wait longer than --target-wait ${ms(why.targetWaitMs)} on ${why.from - 1}`;
    case 'idle':
      return `no call for ${ms(why.idleMs)}`;
    case 'enough':
      return 'the number is right';
  }
}

function counted(calls: number): string {
  return `${calls} ${calls === 1 ? 'call' : 'calls'}`;
}

function ms(value: number): string {
  return Number.isFinite(value) ? formatMs(Math.round(value)) : 'without end';
}
