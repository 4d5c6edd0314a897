import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { Store } from '../app/store.js';
import { html, h } from '../parts/html.js';
import { ChartsView } from './charts-view.js';
import { JobsView } from './jobs-view.js';
import { ModelsView } from './models-view.js';
import { ServerFacts } from './server-facts.js';
import { TimelineView } from './timeline-view.js';

/** Shows a person on call the calls, which need the whole width, then models, charts and jobs. */
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
    ${h(TimelineView, { history, hidden, filter, setFilter })}
    ${h(ModelsView, { history, viewer, chosen: model?.key ?? null, choose })}
    ${model !== undefined && h(ChartsView, { history, model })} ${h(JobsView, { history, hidden })}
    ${h(ServerFacts, { server: history.server, at: history.at })}
  </div>`;
}
