import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { Store } from '../app/store.js';
import { html, h } from '../parts/html.js';
import { ChartsView } from './charts-view.js';
import { JobsView } from './jobs-view.js';
import { ModelsView } from './models-view.js';
import { ServerFacts } from './server-facts.js';
import { TimelineView } from './timeline-view.js';

/** Shows a person on call the models, calls and jobs, beside the charts of one model. */
export function WatchView({ store: { history, viewer } }: { readonly store: Store }): VNode {
  const [chosen, choose] = useState<number | null>(null);
  const [filter, setFilter] = useState('');
  if (history === null || history.server === null)
    return html`<p class="panel muted">There is nothing to show yet.</p>`;
  const { models } = history;
  const model =
    models.find(({ key }) => key === chosen) ?? models.find(({ isDefault }) => isDefault) ?? models[0];
  const hidden = viewer?.hidden ?? null;
  return html`<div class="watch">
    <div class="column">
      ${h(ModelsView, { history, hidden, chosen: model?.key ?? null, choose })}
      ${model !== undefined && h(ChartsView, { key: model.key, history, model })}
    </div>
    <div class="column">
      ${h(TimelineView, { history, hidden, filter, setFilter })}
      ${h(JobsView, { jobs: history.jobs, hidden, at: history.at })}
      ${h(ServerFacts, { server: history.server, at: history.at })}
    </div>
  </div>`;
}
