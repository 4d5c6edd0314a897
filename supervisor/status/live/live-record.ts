/** Everything that the server remembers for the page, whether somebody looks at it or not. */
import type { CallCounts } from '../../metrics/call-counts.js';
import type { Model } from '../../models/model.js';
import type { LiveModelHistory } from '../live-types.js';
import { LastCalls } from './last-calls.js';
import { LastDeaths } from './last-deaths.js';
import { ModelKeys } from './model-keys.js';
import { SECONDS_KEPT } from './model-history.js';
import { ModelMeter } from './model-meter.js';

export class LiveRecord {
  readonly keys = new ModelKeys();
  readonly calls = new LastCalls();
  readonly deaths = new LastDeaths(this.keys);
  readonly #counts: CallCounts;
  #meters = new Map<Model, ModelMeter>();
  #measuredAtMs: number;

  constructor(counts: CallCounts, nowMs: number) {
    this.#counts = counts;
    this.#measuredAtMs = nowMs;
  }

  /** Ends a second of these models; one that is not among them any more is forgotten. */
  measure(models: readonly Model[], memoryOf: (model: Model) => number | null, nowMs: number): void {
    const missed = Math.round((nowMs - this.#measuredAtMs) / 1000) - 1;
    this.#measuredAtMs = nowMs;
    this.#meters = new Map(models.map((model) => [model, this.meterOf(model)]));
    for (const [model, meter] of this.#meters)
      meter.measure(memoryOf(model), Math.min(Math.max(0, missed), SECONDS_KEPT));
  }

  meterOf(model: Model): ModelMeter {
    return this.#meters.get(model) ?? new ModelMeter(model, this.#counts.of(model));
  }

  /** Number of calls of a model since the start of the server, by `ok` or error code, and of its batches by their size. */
  totalsOf(model: Model): { outcomes: Record<string, number>; batches: [calls: number, batches: number][] } {
    const calls = this.#counts.of(model);
    return { outcomes: calls.countOutcomes(), batches: calls.batches() };
  }

  describeHistory(): LiveModelHistory[] {
    return Array.from(this.#meters, ([model, { history }]) => ({
      key: this.keys.of(model),
      ...history.describe(),
    }));
  }
}
