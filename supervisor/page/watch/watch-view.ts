import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { LiveGpu, LiveServer } from '../../status/live-types.js';
import type { Store } from '../app/store.js';
import { age, bytes, clock, duration, plural } from '../parts/format.js';
import { html, h } from '../parts/html.js';
import { factList, panel, type Fact } from '../parts/layout.js';
import { ChartsView } from './charts-view.js';
import { JobsView } from './jobs-view.js';
import { ModelsView } from './models-view.js';
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
  return html`<div class="watch">
    ${h(TimelineView, { history, filter, setFilter })}
    ${h(ModelsView, { history, viewer, chosen: model?.key ?? null, choose })}
    ${model !== undefined && h(ChartsView, { history, model })} ${h(JobsView, { history })}
    ${h(ServerFacts, { server: history.server, at: history.at })}
  </div>`;
}

/** Facts of the server's own process and of the machine's cards. */
function ServerFacts({ server, at }: { readonly server: LiveServer; readonly at: number }): VNode {
  const { version, pid, startedAt, memoryBytes, eventLoopDelayMs: delay, unsent, gpus, viewers } = server;
  const facts: readonly Fact[] = [
    ['Version', version],
    ['Pid', String(pid)],
    ['Started', `${clock(startedAt)}, ${age(at - startedAt)} ago`],
    ['Memory', bytes(memoryBytes)],
    [
      'Event loop delay',
      `p50 ${duration(delay.p50)}, p99 ${duration(delay.p99)}, max ${duration(delay.max)}`,
    ],
    [
      'Unread answers',
      `${bytes(unsent.bytes)} for ${plural(unsent.clients, 'client')}, at most ${bytes(unsent.maxBytes)}`,
    ],
    ['Viewers of this page', String(viewers)],
  ];
  const cards = gpus.map((gpu) => [`GPU ${gpu.index}`, gpuText(gpu)] as const);
  return panel('server', 'Server', 'server', null, factList([...facts, ...cards]));
}

function gpuText({ name, usedBytes, totalBytes, utilization }: LiveGpu): string {
  const memory =
    usedBytes === null || totalBytes === null ? '' : `, ${bytes(usedBytes)} of ${bytes(totalBytes)}`;
  return `${name}${memory}${utilization === null ? '' : `, ${Math.round(100 * utilization)}% busy`}`;
}
