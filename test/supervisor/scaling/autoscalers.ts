/**
 * The autoscalers that are compared: ours, and the published rules of Knative Serving and Ray Serve, each with a target. Where
 * those need a tick or a round trip of metrics, they get exact values at once: that is kind to them.
 */
import { ScalingHistory } from '../../../supervisor/scaling/history.js';
import type { ScalingRules } from '../../../supervisor/scaling/history.js';
import { decide } from '../../../supervisor/scaling/policy.js';
import type { Autoscaler, Bounds, ScaledLoad, ScaledView } from './simulator.js';

/** An autoscaler that learns nothing from calls; it looks at the view alone. */
const BLIND = { isGentle: false, came: () => {}, ran: () => {}, started: () => {} };

export const IDLE_TIMEOUT_MS = 60_000;

/** The policy of the server; `isFresh`: it has not measured the model's runs and starts before. */
export function ours(
  { min, max, startMs }: Bounds,
  load: ScaledLoad,
  isFresh: boolean,
  rules: Partial<ScalingRules> = {},
): Autoscaler {
  const { batchSize } = load;
  const history = new ScalingHistory(IDLE_TIMEOUT_MS);
  if (!isFresh) teach(history, load, startMs);
  const own = { min, max, idleTimeoutMs: IDLE_TIMEOUT_MS, targetWaitMs: 100, batchSize, ...rules };
  let replayAtMs = 0;
  return {
    name: 'banana-serve',
    isGentle: true,
    came: (atMs) => history.came(atMs),
    ran: (runMs, nowMs, calls) => history.ran(runMs, nowMs, calls),
    started: (startMs, nowMs) => history.started(startMs, nowMs),
    decide({ nowMs, ready, startingSinceMs, queued, lastCameMs }) {
      const line = queued === 0 ? null : { calls: queued, lastSinceMs: lastCameMs, lastUntilMs: Infinity };
      const decision = decide({ nowMs, ready, startingSinceMs, line, history, replayAtMs }, own);
      replayAtMs = decision.replayAtMs;
      return { wanted: decision.wanted, againAtMs: decision.againAtMs ?? Infinity };
    },
  };
}

/** As if some calls had run an hour ago, alone and in full batches. */
function teach(history: ScalingHistory, { workMs, perRunMs, batchSize }: ScaledLoad, startMs: number): void {
  history.started(startMs, -3_600_000);
  for (let i = 0; i < 10; i += 1) {
    const size = i % 2 === 0 ? batchSize : 1;
    const mean = workMs.reduce((sum, ms) => sum + ms, 0) / workMs.length;
    history.ran(perRunMs + size * mean, -3_600_000, size);
  }
}

/** So many workers all the time. */
export function fixed(workers: number): Autoscaler {
  return { ...BLIND, name: `fixed ${workers}`, decide: () => ({ wanted: workers, againAtMs: Infinity }) };
}

/** Remembers the integral of ongoing calls at each tick, for means over the last seconds. */
class Means {
  readonly #tickMs: number;
  readonly #integrals: number[] = [0];

  constructor(tickMs: number) {
    this.#tickMs = tickMs;
  }

  tick(ongoingMs: number): void {
    this.#integrals.push(ongoingMs);
  }

  over(windowMs: number): number {
    const last = this.#integrals.length - 1;
    const ticks = Math.min(last, windowMs / this.#tickMs);
    if (ticks <= 0) return 0;
    return (
      ((this.#integrals[last] as number) - (this.#integrals[last - ticks] as number)) / (ticks * this.#tickMs)
    );
  }
}

const KNATIVE_TICK_MS = 2000;
const STABLE_MS = 60_000;
const PANIC_MS = 6000;
/** Panic begins when the short window wants so many times the ready workers. */
const PANIC_THRESHOLD = 2;
const MAX_SCALE_DOWN = 2;

/**
 * Knative: the mean of ongoing calls over 60 s, divided by the target; over 6 s while that asks for twice what is ready, and
 * then for 60 s no fewer than before. At most half of the workers leave in a tick.
 */
export function knative(target: number): Autoscaler {
  const means = new Means(KNATIVE_TICK_MS);
  let nextAtMs = 0;
  let wanted = 0;
  let panickedAtMs = -Infinity;
  const tick = ({ nowMs, ongoingMs, ready }: ScaledView): void => {
    means.tick(ongoingMs);
    const least = Math.floor(ready.length / MAX_SCALE_DOWN);
    const stable = Math.max(least, Math.ceil(means.over(STABLE_MS) / target));
    const panic = Math.max(least, Math.ceil(means.over(PANIC_MS) / target));
    if (panic >= PANIC_THRESHOLD * Math.max(1, ready.length)) panickedAtMs = nowMs;
    const isInPanic = nowMs - panickedAtMs < STABLE_MS;
    wanted = isInPanic ? Math.max(wanted, panic, stable) : stable;
  };
  return {
    ...BLIND,
    name: `Knative ${target}`,
    decide(view) {
      if (view.nowMs >= nextAtMs) {
        tick(view);
        nextAtMs += KNATIVE_TICK_MS;
      }
      // The activator reports the first call at once.
      if (view.queued > 0) wanted = Math.max(1, wanted);
      return { wanted, againAtMs: nextAtMs };
    },
  };
}

const RAY_TICK_MS = 1000;
const LOOK_BACK_MS = 30_000;
const UP_DELAY_MS = 30_000;
const DOWN_DELAY_MS = 600_000;

/**
 * Ray Serve: the mean of ongoing calls over 30 s, divided by the target, once it has asked for more for 30 s, or for fewer
 * for 600 s; to zero after the idle timeout. At zero the first call starts one at once.
 */
export function ray(target: number): Autoscaler {
  const means = new Means(RAY_TICK_MS);
  let nextAtMs = 0;
  let wanted = 0;
  let moreSinceMs = Infinity;
  let fewerSinceMs = Infinity;
  const tick = ({ nowMs, ongoingMs }: ScaledView): void => {
    means.tick(ongoingMs);
    const desired = Math.ceil(means.over(LOOK_BACK_MS) / target);
    moreSinceMs = desired > wanted ? Math.min(moreSinceMs, nowMs) : Infinity;
    fewerSinceMs = desired < wanted ? Math.min(fewerSinceMs, nowMs) : Infinity;
    const downDelayMs = desired === 0 && wanted === 1 ? IDLE_TIMEOUT_MS - LOOK_BACK_MS : DOWN_DELAY_MS;
    if (nowMs - moreSinceMs >= UP_DELAY_MS) wanted = desired;
    else if (nowMs - fewerSinceMs >= downDelayMs) wanted = Math.max(desired, wanted > 1 ? 1 : 0);
  };
  return {
    ...BLIND,
    name: `Ray Serve ${target}`,
    decide(view) {
      if (view.nowMs >= nextAtMs) {
        tick(view);
        nextAtMs += RAY_TICK_MS;
      }
      if (view.queued > 0) wanted = Math.max(1, wanted);
      return { wanted, againAtMs: nextAtMs };
    },
  };
}
