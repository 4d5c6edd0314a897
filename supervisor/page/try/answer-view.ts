import type { VNode } from 'preact';
import type { Store } from '../app/store.js';
import { failedCall } from '../watch/failure.js';
import { FailureView } from '../watch/failure-view.js';
import { bytes, duration } from '../parts/format.js';
import { CopyButton } from '../parts/copy-button.js';
import { html, h } from '../parts/html.js';
import { saveBlob } from '../parts/media-view.js';
import { State } from '../parts/state.js';
import type { Tone } from '../parts/tone.js';
import { AnswerContent } from './answer-content.js';
import type { AnswerBody } from './answer-body.js';
import { JobResult } from './job-result.js';
import type { Answer, AnswerHead } from './send-call.js';

/** The answer of a call: what became of it, in figures, and what the app sent. */
export function AnswerView({
  answer,
  store,
}: {
  readonly answer: Answer | null;
  readonly store: Store;
}): VNode {
  return html`<section class="panel answer" aria-labelledby="answer-title">
    <div class="panel-head">
      <h2 id="answer-title">Answer</h2>
      ${answer !== null && h(Outcome, { answer })}
      ${answer !== null && answer.body !== null && answer.phase !== 'receiving' && h(SaveButton, { body: answer.body })}
    </div>
    ${answer === null ? html`<p class="muted">Press Send, or Ctrl+Enter in the input.</p>` : h(AnswerParts, { answer, store })}
  </section>`;
}

function AnswerParts({ answer, store }: { readonly answer: Answer; readonly store: Store }): VNode {
  const { head, body, phase, problem, requestId } = answer;
  const { history, viewer } = store;
  // The server tells of it within a second of its end.
  const failed = history === null ? null : failedCall(history, requestId);
  return html`
    ${h(Figures, { answer })} ${problem !== '' && html`<p class="problem" role="alert">${problem}</p>`}
    ${head !== null && head.retryAfter !== '' && html`<p class="muted">The server asks to wait ${head.retryAfter} s before another try.</p>`}
    ${
      failed !== null &&
      h(FailureView, { error: failed.error, requestId, hidden: viewer?.hidden ?? null, isOpen: true })
    }
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
  const figures: readonly (readonly [string, string])[] = [
    ...(queueMs === null ? [] : [['queue', duration(queueMs)] as const]),
    ...(runMs === null ? [] : [['run', duration(runMs)] as const]),
    ['in all', duration(ms)],
    ...(body === null ? [] : [['size', bytes(body.byteLength)] as const]),
    ...(body !== null && body.pieces > 1 ? [['pieces', String(body.pieces)] as const] : []),
  ];
  return html`<dl class="figures answer-figures">
    ${figures.map(
      ([label, value]) =>
        html`<div key=${label}>
          <dt>${label}</dt>
          <dd>${value}</dd>
        </div>`,
    )}
    <div class="request-id">
      <dt>request id</dt>
      <dd><code>${requestId}</code> ${h(CopyButton, { text: requestId, label: 'the request id' })}</dd>
    </div>
  </dl>`;
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
  return html`<button type="button" class="small quiet" onClick=${save}>Save</button>`;
}
