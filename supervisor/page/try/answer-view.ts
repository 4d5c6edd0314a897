/** The answer of a call: what became of it, in figures, and what the app sent. Nothing of it is ever read as HTML. */
import { useMemo } from 'preact/hooks';
import type { History } from '../live/history.js';
import { CopyButton, quietButton } from '../parts/controls.js';
import { bytes, duration } from '../parts/format.js';
import { html, h, type VNode, factList, panel, stateMark, type Tone } from '../parts/html.js';
import { inlineJson, readJson } from '../parts/json-text.js';
import { Picture, Player, saveBlob, VectorPicture } from '../parts/media.js';
import { failedCall, FailureView } from '../watch/words.js';
import type { AnswerBody, StreamItem } from './answer-body.js';
import { JobResult } from './job-result.js';
import { JsonTree } from './json-tree.js';
import type { Answer } from './send-call.js';

/** `answer`: null until the first call. */
export function answerView(answer: Answer | null, history: History | null): VNode {
  const hint = html`<p class="muted">Press Send, or Ctrl+Enter in the input.</p>`;
  if (answer === null) return panel('answer', 'Answer', 'answer', null, hint);
  const { head, body, phase, problem, requestId } = answer;
  const isOver = phase !== 'receiving';
  // The server tells of it within a second of its end.
  const failed = history === null ? undefined : failedCall(history, requestId);
  const content = html`
    ${figures(answer)} ${problem !== '' && html`<p class="problem" role="alert">${problem}</p>`}
    ${head?.retryAfter && html`<p class="muted">The server asks to wait ${head.retryAfter} s before another try.</p>`}
    ${failed !== undefined && h(FailureView, { error: failed.error, requestId, isOpen: true })}
    ${body !== null && bodyView(body, isOver)}
    ${
      head?.jobId &&
      html`<h3>Background job</h3>
        ${h(JobResult, { id: head.jobId })}`
    }
    ${
      head !== null &&
      html`<details class="headers">
        <summary>Headers</summary>
        <pre tabindex="0" aria-label="Headers of the answer">
${head.headers.map((header) => header.join(': ')).join('\n')}</pre>
      </details>`
    }
  `;
  const outcome = html`<span role="status">${stateMark(...outcomeOf(answer))}</span>`;
  return panel('answer', 'Answer', 'answer', [outcome, body !== null && isOver && saveButton(body)], content);
}

function outcomeOf({ phase, head }: Answer): [Tone, string] {
  if (phase === 'sending') return ['busy', 'waiting for the answer'];
  if (phase === 'cancelled') return ['off', 'cancelled'];
  if (head === null) return ['bad', 'no answer'];
  const text = `${head.status} ${head.statusText}`.trim();
  if (phase === 'failed') return ['bad', `${text}, cut off`];
  const isReceiving = phase === 'receiving';
  const well = isReceiving ? 'busy' : 'good';
  return [head.status < 400 ? well : 'bad', isReceiving ? `${text}, receiving` : text];
}

function figures({ head, body, ms, requestId }: Answer): VNode {
  const time = (name: string): string => {
    const value = head?.times[name];
    return value === undefined ? '' : duration(value);
  };
  const id = html`<code>${requestId}</code> ${h(CopyButton, { text: requestId, label: 'the request id' })}`;
  return factList('figures answer-figures', [
    ['queue', time('queue')],
    ['run', time('run')],
    ['in all', duration(ms)],
    ['size', body === null ? '' : bytes(body.byteLength)],
    ['pieces', body === null || body.pieces < 2 ? '' : body.pieces],
    ['request id', id, 'request-id'],
  ]);
}

const EXTENSIONS: Readonly<Record<string, string>> = {
  'application/json': 'json',
  'application/x-ndjson': 'ndjson',
  'image/svg+xml': 'svg',
  'image/jpeg': 'jpg',
  'audio/mpeg': 'mp3',
  'application/pdf': 'pdf',
};

function saveButton(body: AnswerBody): VNode | null {
  if (body.byteLength === 0) return null;
  const extension =
    EXTENSIONS[body.type] ??
    /^(?:image|audio|video)\/(\w+)$/.exec(body.type)?.[1] ??
    (body.kind === 'bytes' ? 'bin' : 'txt');
  return quietButton('Save', () => {
    const blob = body.whole();
    if (blob !== null) saveBlob(blob, `answer.${extension}`);
  });
}

/** The body in the form that suits its type. `isOver`: nothing follows. */
function bodyView(body: AnswerBody, isOver: boolean): VNode {
  switch (body.kind) {
    case 'events':
    case 'lines':
      return itemList(body, isOver);
    case 'text':
      return textView(body.text, body.isCut);
    case 'json':
      return isOver ? h(Json, { body }) : textView(body.text, false);
    default:
      return isOver ? h(Medium, { body }) : html`<p class="muted">${bytes(body.byteLength)} so far …</p>`;
  }
}

const TOO_LARGE = 'It is too large to be shown as a tree; Save has all of it.';

function Json({ body: { text, isCut } }: { readonly body: AnswerBody }): VNode {
  const { node, problem } = useMemo(
    () => (isCut ? { node: null, problem: TOO_LARGE } : readJson(text)),
    [text, isCut],
  );
  if (node !== null) return h(JsonTree, { node });
  return html`${text !== '' && html`<p class="muted">${problem}</p>`}${textView(text, isCut)}`;
}

const MAX_SHOWN = 200_000;

function textView(text: string, isCut: boolean): VNode {
  if (text === '') return html`<p class="muted">The body is empty.</p>`;
  const isLong = isCut || text.length > MAX_SHOWN;
  return html`<pre class="text" tabindex="0" aria-label="Text of the answer">${text.slice(0, MAX_SHOWN)}</pre>
    ${isLong && html`<p class="muted">Only the beginning is shown; Save has all of it.</p>`}`;
}

/** Events and lines, the newest at the end. */
function itemList({ items, itemCount }: AnswerBody, isOver: boolean): VNode {
  const left = itemCount - items.length;
  return html`${left > 0 && html`<p class="muted">${left} earlier ones are left out.</p>`}
    <ol class="items" tabindex="0" aria-label="Items of the stream">
      ${items.map((item) => h(Item, { key: item.number, item }))}
    </ol>
    <p class="muted" role="status">${itemCount} ${isOver ? 'in all.' : 'so far …'}</p>`;
}

const LINE = 100;
const MAX_ITEM_SHOWN = 2_000;

function Item({ item: { name, text, atMs } }: { readonly item: StreamItem }): VNode {
  const { node } = useMemo(() => readJson(text), [text]);
  const isLine = node === null || (text.length <= 2 * LINE && inlineJson(node, LINE) !== null);
  const shown = text.length > MAX_ITEM_SHOWN ? `${text.slice(0, MAX_ITEM_SHOWN)}…` : text;
  return html`<li class="item">
    <span class="muted at">${duration(atMs)}</span>
    ${name !== '' && html`<b>${name}</b>`}
    ${isLine ? html`<code>${shown}</code>` : h(JsonTree, { node })}
  </li>`;
}

function Medium({ body }: { readonly body: AnswerBody }): VNode {
  const { kind, byteLength, type } = body;
  // The body is over, so that its length names its content.
  const blob = useMemo(() => body.whole(), [body, byteLength]);
  const alt = 'The picture that the app answered with';
  if (byteLength === 0) return html`<p class="muted">The body is empty.</p>`;
  if (blob === null) return html`<p class="muted">It was too large to be kept.</p>`;
  if (kind === 'picture') return h(Picture, { blob, alt });
  if (kind === 'vector') return h(VectorPicture, { blob, alt });
  if (kind === 'audio' || kind === 'video') return h(Player, { blob, kind });
  return html`<p class="muted">
    ${bytes(byteLength)} of ${type === '' ? 'bytes' : type}. Save stores them as a file.
  </p>`;
}
