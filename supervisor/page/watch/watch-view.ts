import { useState } from 'preact/hooks';
import type { LiveServer } from '../../status/live-types.js';
import type { Store } from '../app/store.js';
import { age, bytes, clock, duration, plural } from '../parts/format.js';
import { html, h, type VNode, factList, panel, type Fact } from '../parts/html.js';
import { ChartsView } from './charts-view.js';
import { JobsView } from './jobs-view.js';
import { ModelsView } from './models-view.js';
import { TimelineView } from './timeline.js';

/** Shows a person on call the calls, which need the whole width, then models, charts and jobs. */
export function WatchView({ store: { history, viewer } }: { readonly store: Store }): VNode {
  const [chosen, choose] = useState<number | null>(null);
  if (history === null || history.server === null)
    return html`<p class="panel muted">There is nothing to show yet.</p>`;
  const { models } = history;
  const model =
    models.find(({ key }) => key === chosen) ?? models.find(({ isDefault }) => isDefault) ?? models[0];
  return html`<div class="watch">
    ${h(TimelineView, { history })}
    ${h(ModelsView, { history, viewer, chosen: model?.key ?? null, choose })}
    ${model !== undefined && h(ChartsView, { history, model })} ${h(JobsView, { history })}
    ${panel('server', 'Server', 'server', null, factList('facts', factsOf(history.server)))}
  </div>`;
}

/** Facts of the server's own process and of the machine's cards. */
function factsOf({ version, pid, startedAt, uptimeMs, front, unsent, gpus, viewers }: LiveServer): Fact[] {
  const { p50, p99, max } = front.eventLoopDelayMs;
  const { clients, bytes: unread, maxBytes } = unsent;
  return [
    ['Version', version],
    ['Pid', pid],
    ['Started', `${clock(Date.parse(startedAt))}, ${age(uptimeMs)} ago`],
    ['Memory', bytes(front.rssBytes)],
    ['Event loop delay', `p50 ${duration(p50)}, p99 ${duration(p99)}, max ${duration(max)}`],
    ['Unread answers', `${bytes(unread)} for ${plural(clients, 'client')}, at most ${bytes(maxBytes)}`],
    ['Viewers of this page', viewers],
    ...gpus.map((gpu) => [`GPU ${gpu.index}`, gpuText(gpu)] as const),
  ];
}

function gpuText({ name, usedBytes, totalBytes, utilization }: LiveServer['gpus'][number]): string {
  const memory =
    usedBytes === null || totalBytes === null ? '' : `, ${bytes(usedBytes)} of ${bytes(totalBytes)}`;
  return `${name}${memory}${utilization === null ? '' : `, ${Math.round(100 * utilization)}% busy`}`;
}
