import type { VNode } from 'preact';
import type { Store } from '../app/store.js';
import { failedCall } from '../watch/failure.js';
import { FailureView } from '../watch/failure-view.js';
import { bytes, duration } from '../parts/format.js';
import { quietButton } from '../parts/controls.js';
import { CopyButton } from '../parts/copy-button.js';
import { html, h } from '../parts/html.js';
import { figureList, panel, type Fact } from '../parts/layout.js';
import { saveBlob } from '../parts/media-view.js';
import { State } from '../parts/state.js';
import type { Tone } from '../parts/tone.js';
import { AnswerContent } from './answer-content.js';
import type { AnswerBody } from './answer-body.js';
import { JobResult } from './job-result.js';
import type { Answer, AnswerHead } from './send-call.js';

interface AnswerProps {
  /** Null until the first call. */
  readonly answer: Answer | null;
  readonly store: Store;
}

/** The answer of a call: what became of it, in figures, and what the app sent. */
export function AnswerView({ answer, store }: AnswerProps): VNode {
  const hint = html`<p class="muted">Press Send, or Ctrl+Enter in the input.</p>`;
  if (answer === null) return panel('answer', 'Answer', 'answer', null, hint);
  const { body, phase } = answer;
  const beside = [h(Outcome, { answer }), body !== null && phase !== 'receiving' && h(SaveButton, { body })];
  return panel('answer', 'Answer', 'answer', beside, h(AnswerParts, { answer, store }));
}

function AnswerParts({ answer, store }: { readonly answer: Answer; readonly store: Store }): VNode {
  const { head, body, phase, problem, requestId } = answer;
  // The server tells of it within a second of its end.
  const failed = store.history === null ? null : failedCall(store.history, requestId);
  return html`
    ${h(Figures, { answer })} ${problem !== '' && html`<p class="problem" role="alert">${problem}</p>`}
    ${head !== null && head.retryAfter !== '' && html`<p class="muted">The server asks to wait ${head.retryAfter} s before another try.</p>`}
    ${failed !== null && h(FailureView, { error: failed.error, requestId, isOpen: true })}
    ${body !== null && h(AnswerContent, { body, isOver: phase !== 'receiving' })}
    ${
      head !== null &&
      head.jobId !== '' &&
      html`<h3>Background job</h3>
        ${h(JobResult, { id: head.jobId })}`
    }
    ${head !== null && h(Headers, { head })}
  `;
}

function Outcome({ answer: { phase, head } }: { readonly answer: Answer }): VNode {
  const [tone, text] = outcomeOf(phase, head);
  return html`<span role="status">${h(State, { tone, text })}</span>`;
}

function outcomeOf(phase: Answer['phase'], head: AnswerHead | null): [Tone, string] {
  if (phase === 'sending') return ['busy', 'waiting for the answer'];
  if (phase === 'cancelled') return ['off', 'cancelled'];
  if (head === null) return ['bad', 'no answer'];
  const text = `${head.status} ${head.statusText}`.trim();
  if (phase === 'failed') return ['bad', `${text}, cut off`];
  const suffix = phase === 'receiving' ? ', receiving' : '';
  return [head.status < 400 ? (phase === 'receiving' ? 'busy' : 'good') : 'bad', text + suffix];
}

function Figures({ answer: { head, body, ms, requestId } }: { readonly answer: Answer }): VNode {
  const { queueMs = null, runMs = null } = head?.times ?? {};
  const id = html`<code>${requestId}</code> ${h(CopyButton, { text: requestId, label: 'the request id' })}`;
  const figures: readonly Fact[] = [
    ['queue', queueMs === null ? '' : duration(queueMs)],
    ['run', runMs === null ? '' : duration(runMs)],
    ['in all', duration(ms)],
    ['size', body === null ? '' : bytes(body.byteLength)],
    ['pieces', body === null || body.pieces < 2 ? '' : String(body.pieces)],
    ['request id', id, 'request-id'],
  ];
  return figureList(
    figures.filter(([, value]) => value !== ''),
    'answer-figures',
  );
}

function Headers({ head }: { readonly head: AnswerHead }): VNode {
  return html`<details class="headers">
    <summary>Headers</summary>
    <pre tabindex="0" aria-label="Headers of the answer">
${head.headers.map(([name, value]) => `${name}: ${value}`).join('\n')}</pre>
  </details>`;
}

const EXTENSIONS: Readonly<Record<string, string>> = {
  'application/json': 'json',
  'application/x-ndjson': 'ndjson',
  'image/svg+xml': 'svg',
  'image/jpeg': 'jpg',
  'audio/mpeg': 'mp3',
  'application/pdf': 'pdf',
};

function SaveButton({ body }: { readonly body: AnswerBody }): VNode | null {
  if (body.byteLength === 0) return null;
  const extension =
    EXTENSIONS[body.type] ??
    /^(?:image|audio|video)\/(\w+)$/.exec(body.type)?.[1] ??
    (body.kind === 'bytes' ? 'bin' : 'txt');
  const save = (): void => {
    const blob = body.whole();
    if (blob !== null) saveBlob(blob, `answer.${extension}`);
  };
  return quietButton('Save', save);
}
