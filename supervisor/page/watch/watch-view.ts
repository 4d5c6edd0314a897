import { useState } from 'preact/hooks';
import type { LiveServer, LiveJob } from '../../status/live-types.js';
import type { Store } from '../app/store.js';
import { age, bytes, clock, duration, plural } from '../parts/format.js';
import { html, h, type VNode, factList, panel, type Fact, stateMark, type Tone } from '../parts/html.js';
import { ChartsView } from './charts-view.js';
import { ModelsView } from './models-view.js';
import { TimelineView } from './timeline.js';
import { quietButton } from '../parts/controls.js';
import type { History } from '../live/history.js';
import { JobResult } from '../try/job-result.js';
import { failedCall, FailureView, useHidden } from './words.js';

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

const TONES: Readonly<Record<LiveJob['state'], Tone>> = {
  queued: 'busy',
  running: 'busy',
  succeeded: 'good',
  failed: 'bad',
  lost: 'bad',
  expired: 'bad',
  cancelled: 'off',
};

/** The newest jobs. Nothing is shown on a server that had none. */
function JobsView({ history }: { readonly history: History }): VNode | null {
  const isHidden = useHidden() !== null;
  const [open, setOpen] = useState('');
  const [shown, show] = useState<LiveJob['state'] | null>(null);
  const { jobs } = history;
  if (jobs.length === 0) return null;
  const filters = [...new Set(jobs.map(({ state }) => state))].map((state) => {
    const number = jobs.filter((job) => job.state === state).length;
    return quietButton(
      stateMark(TONES[state], `${number} ${state}`),
      () => show(shown === state ? null : state),
      { key: state, 'aria-pressed': shown === state },
    );
  });
  const list = html`<ul class="jobs">
    ${jobs
      .filter(({ state }) => shown === null || state === shown)
      .map((job) => {
        const { id, requestId, createdAt, error } = job;
        const isOpen = id !== '' && id === open;
        // More of its error, while the page knows its last attempt.
        const failure = error === null || isHidden ? null : failedCall(history, requestId)?.error;
        return html`<li key=${id === '' ? `${requestId} ${createdAt}` : id}>
          ${jobLine(job, history.at, isOpen, () => setOpen(isOpen ? '' : id))}
          ${error !== null && html`<p class="bad-text">${errorText(error, isHidden)}</p>`}
          ${failure && h(FailureView, { error: failure, requestId })} ${isOpen && h(JobResult, { id })}
        </li>`;
      })}
  </ul>`;
  return panel('jobs', 'Background jobs', 'jobs-panel', filters, list);
}

/** A viewer that may not read the results gets no ids. */
function jobLine(job: LiveJob, at: number, isOpen: boolean, toggle: () => void): VNode {
  const { id, model, route, state, createdAt, endedAt, runMs, progress } = job;
  const isOver = endedAt !== null;
  const time = isOver ? `ran ${duration(runMs)}` : `${age(at - createdAt)} ago`;
  return html`<div class="row">
    ${stateMark(TONES[state], state)}
    <span>${model} <code>${route}</code></span>
    <span class="muted">${clock(createdAt)}, ${time}</span>
    ${!isOver && progress !== null && html`<span>${progressText(progress)}</span>`}
    ${id !== '' && quietButton(isOpen ? 'Close' : 'Open', toggle, { 'aria-expanded': isOpen })}
  </div>`;
}

function errorText({ code, message }: NonNullable<LiveJob['error']>, isHidden: boolean): string {
  if (message !== '') return `${code}: ${message}`;
  return isHidden ? `${code} (message hidden)` : code;
}

/** `40 %`, `40 %, second pass`. */
function progressText({ fraction, text }: NonNullable<LiveJob['progress']>): string {
  const percent = `${Math.floor(fraction * 100)} %`;
  return text === '' ? percent : `${percent}, ${text}`;
}
