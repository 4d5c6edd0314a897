import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import type {
  HiddenBecause,
  LiveFailure,
  LiveJob,
  LiveJobState,
  LiveProgress,
} from '../../status/live-types.js';
import { age, clock, duration } from '../parts/format.js';
import { html, h } from '../parts/html.js';
import { State } from '../parts/state.js';
import type { Tone } from '../parts/tone.js';
import type { History } from '../live/history.js';
import { failedCall } from './failure.js';
import { FailureView } from './failure-view.js';
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

interface JobsProps {
  readonly history: History;
  readonly hidden: HiddenBecause | null;
}

/** The newest jobs. Nothing is shown on a server that had none. */
export function JobsView({ history, hidden }: JobsProps): VNode | null {
  const { jobs, at } = history;
  const [open, setOpen] = useState<string | null>(null);
  const [shown, show] = useState<LiveJobState | null>(null);
  const { states, newest } = jobs;
  if (newest.length === 0) return null;
  const counts = Object.entries(states) as [LiveJobState, number][];
  return html`<section class="panel jobs-panel" aria-labelledby="jobs-title">
    <div class="panel-head">
      <h2 id="jobs-title">Background jobs</h2>
      ${counts.map(
        ([state, number]) =>
          html`<button
            key=${state}
            type="button"
            class="small quiet"
            aria-pressed=${shown === state}
            onClick=${() => show(shown === state ? null : state)}
          >
            ${h(State, { tone: TONES[state], text: `${number} ${state}` })}
          </button>`,
      )}
    </div>
    <ul class="jobs">
      ${newest
        .filter(({ state }) => shown === null || state === shown)
        .map((job) =>
          h(JobItem, {
            key: keyOf(job),
            job,
            failure: job.error === null ? null : (failedCall(history, job.requestId)?.error ?? null),
            hidden,
            at,
            isOpen: open === job.id,
            setOpen,
          }),
        )}
    </ul>
  </section>`;
}

/** A viewer that may not read the results gets no ids. */
function keyOf({ id, requestId, createdAt }: LiveJob): string {
  return id === '' ? `${requestId} ${createdAt}` : id;
}

interface ItemProps {
  readonly job: LiveJob;
  /** More of its error, while the page knows its last attempt. */
  readonly failure: LiveFailure | null;
  readonly hidden: HiddenBecause | null;
  readonly at: number;
  readonly isOpen: boolean;
  readonly setOpen: (id: string | null) => void;
}

function JobItem({ job, failure, hidden, at, isOpen, setOpen }: ItemProps): VNode {
  const { id, model, route, state, createdAt, endedAt, runMs, progress, error } = job;
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
        html`<button
          type="button"
          class="small quiet"
          aria-expanded=${isOpen}
          onClick=${() => setOpen(isOpen ? null : id)}
        >
          ${isOpen ? 'Close' : 'Open'}
        </button>`
      }
    </div>
    ${
      error !== null &&
      html`<p class="bad-text">
        ${error.code}${error.message === '' ? (hidden === null ? '' : ' (message hidden)') : `: ${error.message}`}
      </p>`
    }
    ${failure !== null && hidden === null && h(FailureView, { error: failure, requestId: job.requestId, hidden })}
    ${isOpen && h(JobResult, { id })}
  </li>`;
}

/** `40 %`, `40 %, second pass`. */
function progressText({ fraction, text }: LiveProgress): string {
  const percent = `${Math.floor(fraction * 100)} %`;
  return text === '' ? percent : `${percent}, ${text}`;
}
