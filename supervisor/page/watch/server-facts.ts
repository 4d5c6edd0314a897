import type { VNode } from 'preact';
import type { LiveGpu, LiveServer } from '../../status/live-types.js';
import { age, bytes, clock, duration, plural } from '../parts/format.js';
import { html } from '../parts/html.js';

/** Facts of the server's own process and of the machine's cards. */
export function ServerFacts({ server, at }: { readonly server: LiveServer; readonly at: number }): VNode {
  const { version, pid, startedAt, memoryBytes, eventLoopDelayMs: delay, unsent, gpus, viewers } = server;
  const facts: readonly (readonly [string, string])[] = [
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
  return html`<section class="panel server" aria-labelledby="server-title">
    <div class="panel-head"><h2 id="server-title">Server</h2></div>
    <dl class="facts">
      ${facts.map(([name, value]) => [html`<dt key=${name}>${name}</dt>`, html`<dd key=${`${name}=`}>${value}</dd>`])}
      ${gpus.map((gpu) => [
        html`<dt key=${`gpu ${gpu.index}`}>GPU ${gpu.index}</dt>`,
        html`<dd key=${`gpu ${gpu.index}=`}>${gpuText(gpu)}</dd>`,
      ])}
    </dl>
  </section>`;
}

function gpuText({ name, usedBytes, totalBytes, utilization }: LiveGpu): string {
  const memory =
    usedBytes === null || totalBytes === null ? '' : `, ${bytes(usedBytes)} of ${bytes(totalBytes)}`;
  return `${name}${memory}${utilization === null ? '' : `, ${Math.round(100 * utilization)}% busy`}`;
}
