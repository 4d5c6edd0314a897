import type { VNode } from 'preact';
import type { History } from '../live/history.js';
import { age, plural } from '../parts/format.js';
import { html } from '../parts/html.js';
import { modelName } from './names.js';
import { loadingOf } from './models.js';

/** Says what is loading, and for how long, while a model has no worker yet. */
export function LoadingView({ history }: { readonly history: History }): VNode | null {
  const loading = loadingOf(history.models, history.at);
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
          <strong>${modelName(model, history.models)}</strong>
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
