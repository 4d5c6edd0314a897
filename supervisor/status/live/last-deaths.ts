/** The last deaths of workers that the server had not asked for, with the last lines of their stderr, for the page. */
import type { Model } from '../../models/model.js';
import type { WorkerDeath } from '../../processes/worker-death.js';
import type { Slot } from '../../slots/slot.js';
import type { LiveDeath } from '../live-types.js';
import type { ModelKeys } from './model-keys.js';
import { RecentList } from './recent-list.js';

export const DEATHS_KEPT = 100;
export const STDERR_LINES_KEPT = 20;
export const MAX_LINE_CHARS = 200;
/** Longest reason that a worker gave itself. */
export const MAX_WHY_CHARS = 2000;

export class LastDeaths {
  readonly list = new RecentList<LiveDeath>(DEATHS_KEPT);
  readonly #keys: ModelKeys;
  readonly #ids = new WeakMap<WorkerDeath, number>();

  constructor(keys: ModelKeys) {
    this.#keys = keys;
  }

  /** Number of the last death of a worker of this slot; null if none died since it last started anew, or none was noted. */
  idOf({ lastDeath }: Pick<Slot, 'lastDeath'>): number | null {
    return lastDeath === null ? null : (this.#ids.get(lastDeath) ?? null);
  }

  died(model: Model, { index }: Pick<Slot, 'index'>, death: WorkerDeath): void {
    if (death.wanted) return;
    const id = this.list.lastId + 1;
    this.#ids.set(death, id);
    const { name, version } = model.spec;
    this.list.add({
      id,
      at: death.at.getTime(),
      key: this.#keys.of(model),
      model: name,
      version,
      worker: index,
      pid: death.pid,
      how: death.how,
      cause: death.cause,
      during: death.during,
      requestId: death.call?.facts.requestId ?? '',
      uptimeMs: Math.round(death.uptimeMs),
      calls: death.finishedCalls,
      hint: death.hint,
      why: copied(death.fatal?.message ?? '', MAX_WHY_CHARS),
      stderr: death.stderrTail.slice(-STDERR_LINES_KEPT).map((line) => copied(line, MAX_LINE_CHARS)),
    });
  }
}

/** Returns the death as viewers see it who may not read the app's words. */
export function withoutWords(death: LiveDeath): LiveDeath {
  return { ...death, why: '', stderr: [] };
}

/** The lines of a tail are parts of one text, which a part would keep in memory. */
function copied(text: string, maxChars: number): string {
  return Buffer.from(text.length > maxChars ? `${text.slice(0, maxChars - 1)}…` : text).toString();
}
