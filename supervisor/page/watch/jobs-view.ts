import type { VNode } from 'preact';
import { useContext, useState } from 'preact/hooks';
import type { LiveJob, LiveJobState, LiveProgress } from '../../status/live-types.js';
import { quietButton } from '../parts/controls.js';
import { age, clock, duration } from '../parts/format.js';
import { html, h } from '../parts/html.js';
import { panel } from '../parts/layout.js';
import { State } from '../parts/state.js';
import type { Tone } from '../parts/tone.js';
import type { History } from '../live/history.js';
import { failedCall } from './failure.js';
import { FailureView } from './failure-view.js';
import { Hidden } from './hidden-words.js';
import { JobResult } from '../try/job-result.js';

const TONES: Readonly<Record<LiveJobState, Tone>> = {
  queued: 'busy',
  running: 'busy',
  succeeded: 'good',
  failed: 'bad',
  lost: 'bad',
  expired: 'bad',
  cancelled: 'off',
};

/** The newest jobs. Nothing is shown on a server that had none. */
export function JobsView({ history }: { readonly history: History }): VNode | null {
  const [open, setOpen] = useState<string | null>(null);
  const [shown, show] = useState<LiveJobState | null>(null);
  const { states, newest } = history.jobs;
  if (newest.length === 0) return null;
  const counts = Object.entries(states) as [LiveJobState, number][];
  const filters = counts.map(([state, number]) =>
    quietButton(
      h(State, { tone: TONES[state], text: `${number} ${state}` }),
      () => show(shown === state ? null : state),
      { key: state, 'aria-pressed': shown === state },
    ),
  );
  const items = newest
    .filter(({ state }) => shown === null || state === shown)
    .map((job) => h(JobItem, { key: keyOf(job), job, history, isOpen: open === job.id, setOpen }));
  const list = html`<ul class="jobs">
    ${items}
  </ul>`;
  return panel('jobs', 'Background jobs', 'jobs-panel', filters, list);
}

/** A viewer that may not read the results gets no ids. */
function keyOf({ id, requestId, createdAt }: LiveJob): string {
  return id === '' ? `${requestId} ${createdAt}` : id;
}

interface ItemProps {
  readonly job: LiveJob;
  readonly history: History;
  readonly isOpen: boolean;
  readonly setOpen: (id: string | null) => void;
}

function JobItem({ job, history, isOpen, setOpen }: ItemProps): VNode {
  const isHidden = useContext(Hidden) !== null;
  const { id, model, route, state, createdAt, endedAt, runMs, progress, error } = job;
  // More of its error, while the page knows its last attempt.
  const failure = error === null ? null : (failedCall(history, job.requestId)?.error ?? null);
  const { at } = history;
  const isOver = endedAt !== null;
  return html`<li>
    <div class="row">
      ${h(State, { tone: TONES[state], text: state })}
      <span>${model} <code>${route}</code></span>
      <span class="muted"
        >${clock(createdAt)}, ${isOver ? `ran ${duration(runMs)}` : `${age(at - createdAt)} ago`}</span
      >
      ${!isOver && progress !== null && html`<span>${progressText(progress)}</span>`}
      ${
        id !== '' &&
        quietButton(isOpen ? 'Close' : 'Open', () => setOpen(isOpen ? null : id), { 'aria-expanded': isOpen })
      }
    </div>
    ${
      error !== null &&
      html`<p class="bad-text">
        ${error.code}${error.message === '' ? (isHidden ? ' (message hidden)' : '') : `: ${error.message}`}
      </p>`
    }
    ${failure !== null && !isHidden && h(FailureView, { error: failure, requestId: job.requestId })}
    ${isOpen && h(JobResult, { id })}
  </li>`;
}

/** `40 %`, `40 %, second pass`. */
function progressText({ fraction, text }: LiveProgress): string {
  const percent = `${Math.floor(fraction * 100)} %`;
  return text === '' ? percent : `${percent}, ${text}`;
}
