import type { LiveModel, LiveWorker } from '../../status/live-types.js';
import type { History } from '../live/history.js';
import { age, plural } from '../parts/format.js';
import { html, type VNode } from '../parts/html.js';
import { modelName } from './models.js';

/** Says what is loading, and for how long, while a model has no worker yet. */
export function loadingView({ models, at }: History): VNode | null {
  const loading = loadingOf(models, at);
  if (loading.length === 0) return null;
  return html`<section class="loading" aria-label="Loading">
    ${loading.map(({ model, worker, others, step, stepMs, totalMs }) => {
      const also =
        others === 0
          ? ''
          : ` ${plural(others, 'other worker')} of it ${others === 1 ? 'is' : 'are'} starting too.`;
      const limit = ` ${age(totalMs)} of at most ${age(model.initTimeoutMs)}.${also} Calls wait meanwhile.`;
      return html`<div class="load" key=${model.key}>
        <p>
          <span class="sign" aria-hidden="true">◐</span>
          <strong>${modelName(model, models)}</strong>
          ${` is loading: worker ${worker.index} ${step}, for ${age(stepMs)}.`}
          <span class="muted">${limit}</span>
        </p>
        <progress
          max=${model.initTimeoutMs}
          value=${totalMs}
          aria-label=${`Start of worker ${worker.index} of ${model.name}`}
        ></progress>
      </div>`;
    })}
  </section>`;
}

/** Steps of a start, as `docs/lifecycle.md` names them, in words. */
const STEPS: Readonly<Record<string, string>> = {
  waiting: 'waits for its turn to start',
  spawning: 'starts its process',
  loading: 'imports the app',
  initializing: 'runs init and the example',
  warming: 'runs its warm-up',
};

/**
 * The starts of models that have no ready worker yet: of each the worker that has been starting for the longest time, the
 * number of others that are starting, its step, such as `imports the app`, the time in it, and since its process started.
 */
export function loadingOf(models: readonly LiveModel[], at: number) {
  return models
    .filter(({ state, isLatched }) => state === 'starting' && !isLatched)
    .flatMap((model) => {
      const begun = ({ startedAt, since }: LiveWorker): number => startedAt ?? since;
      const starting = model.workers.filter(({ state }) => STEPS[state] !== undefined);
      const [worker] = starting.toSorted((a, b) => begun(a) - begun(b));
      if (worker === undefined) return [];
      const { state, waitsFor, since } = worker;
      const step = waitsFor === null ? (STEPS[state] ?? state) : `waits for ${waitsFor}`;
      const [stepMs, totalMs] = [at - since, at - begun(worker)];
      return [{ model, worker, others: starting.length - 1, step, stepMs, totalMs }];
    });
}
