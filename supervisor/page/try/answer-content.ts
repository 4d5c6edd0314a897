import type { VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import { bytes, duration } from '../parts/format.js';
import { html, h } from '../parts/html.js';
import { inlineJson, readJson } from '../parts/json-text.js';
import { Picture, Player, VectorPicture } from '../parts/media-view.js';
import type { AnswerBody, StreamItem } from './answer-body.js';
import { JsonTree } from './json-tree.js';

interface ContentProps {
  readonly body: AnswerBody;
  /** Whether nothing follows. */
  readonly isOver: boolean;
}

/** The body in the form that suits its type. Nothing of it is ever read as HTML. */
export function AnswerContent({ body, isOver }: ContentProps): VNode {
  switch (body.kind) {
    case 'events':
    case 'lines':
      return h(Items, { body, isOver });
    case 'text':
      return h(Text, { text: body.text, isCut: body.isCut });
    case 'json':
      return isOver ? h(Json, { body }) : h(Text, { text: body.text, isCut: false });
    default:
      return isOver ? h(Medium, { body }) : html`<p class="muted">${bytes(body.byteLength)} so far …</p>`;
  }
}

function Json({ body }: { readonly body: AnswerBody }): VNode {
  const { text, isCut } = body;
  const read = useMemo(() => (isCut ? null : readJson(text)), [text, isCut]);
  if (read?.node !== undefined && read.node !== null) return h(JsonTree, { node: read.node });
  const problem = isCut
    ? 'It is too large to be shown as a tree; Save has all of it.'
    : text === ''
      ? ''
      : read?.problem;
  return html`${problem !== '' && html`<p class="muted">${problem}</p>`}${h(Text, { text, isCut })}`;
}

const MAX_SHOWN = 200_000;

function Text({ text, isCut }: { readonly text: string; readonly isCut: boolean }): VNode {
  if (text === '') return html`<p class="muted">The body is empty.</p>`;
  const shown = text.length > MAX_SHOWN ? text.slice(0, MAX_SHOWN) : text;
  return html`<pre class="text" tabindex="0" aria-label="Text of the answer">${shown}</pre>
    ${(isCut || shown.length < text.length) && html`<p class="muted">Only the beginning is shown; Save has all of it.</p>`}`;
}

/** Events and lines, the newest at the end. */
function Items({ body, isOver }: ContentProps): VNode {
  const { items, itemCount } = body;
  const left = itemCount - items.length;
  return html`${left > 0 && html`<p class="muted">${left} earlier ones are left out.</p>`}
    <ol class="items" tabindex="0" aria-label="Items of the stream">
      ${items.map((item) => h(Item, { key: item.number, item }))}
    </ol>
    <p class="muted" role="status">${isOver ? `${itemCount} in all.` : `${itemCount} so far …`}</p>`;
}

function Item({ item: { name, text, atMs } }: { readonly item: StreamItem }): VNode {
  const { node } = useMemo(() => readJson(text), [text]);
  const isShort = node === null || inlineJson(node, 100) !== null;
  return html`<li class="item">
    <span class="muted at">${duration(atMs)}</span>
    ${name !== '' && html`<b>${name}</b>`}
    ${isShort || node === null ? html`<code>${text}</code>` : h(JsonTree, { node })}
  </li>`;
}

function Medium({ body }: { readonly body: AnswerBody }): VNode {
  const { kind, byteLength } = body;
  // The body is over, so that its length names its content.
  const blob = useMemo(() => body.whole(), [body, byteLength]);
  if (byteLength === 0) return html`<p class="muted">The body is empty.</p>`;
  if (blob === null) return html`<p class="muted">It was too large to be kept.</p>`;
  if (kind === 'picture') return h(Picture, { blob, alt: 'The picture that the app answered with' });
  if (kind === 'vector') return h(VectorPicture, { blob, alt: 'The picture that the app answered with' });
  if (kind === 'audio' || kind === 'video') return h(Player, { blob, kind });
  return html`<p class="muted">
    ${bytes(byteLength)} of ${body.type === '' ? 'bytes' : body.type}. Save stores them as a file.
  </p>`;
}
