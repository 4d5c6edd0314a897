import type { VNode } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { quietButton } from '../parts/controls.js';
import { bytes } from '../parts/format.js';
import { html, h } from '../parts/html.js';
import { inlineJson, textOf, type JsonNode } from '../parts/json-text.js';
import { bytesOfBase64, mediumInText, mediumOf } from '../parts/media.js';
import { Picture, Player } from '../parts/media-view.js';
import { firstStep, nextStep, openAtFirst, rowsOf } from './tree-limits.js';

/** JSON as a tree. However large it is, only what is open is drawn, in steps. */
export function JsonTree({ node }: { readonly node: JsonNode }): VNode {
  return html`<div class="tree">${h(Branch, { name: null, node, depth: 0 })}</div>`;
}

interface BranchProps {
  /** Null for the root. */
  readonly name: string | null;
  readonly node: JsonNode;
  readonly depth: number;
}

const INLINE = 72;

function Branch({ name, node, depth }: BranchProps): VNode {
  const [isOpen, setOpen] = useState(() => openAtFirst(node, depth));
  const label = name === null ? '' : html`<span class="key">${name}</span>: `;
  if (node.kind !== 'array' && node.kind !== 'object')
    return html`<div class="leaf">${label}${h(Leaf, { node })}</div>`;
  const inline = inlineJson(node, INLINE);
  if (inline !== null) return html`<div class="leaf">${label}<span class="flat">${inline}</span></div>`;
  const size = node.kind === 'array' ? node.items.length : node.entries.length;
  const kind = node.kind === 'array' ? `[${size}]` : `{${size}}`;
  return html`<details
    open=${isOpen}
    onToggle=${(event: Event) => setOpen((event.target as HTMLDetailsElement).open)}
  >
    <summary>${label}<span class="muted">${kind}</span></summary>
    ${isOpen && h(Rows, { node, depth })}
  </details>`;
}

function Rows({ node, depth }: { readonly node: JsonNode; readonly depth: number }): VNode {
  const [shown, setShown] = useState(firstStep(node));
  const { rows, total } = rowsOf(node, shown);
  const more = nextStep(shown, total);
  return html`<div class="branch">
    ${rows.map((row) =>
      row.kind === 'numbers'
        ? html`<div class="leaf numbers" key=${row.name}>${row.text}</div>`
        : h(Branch, { key: row.name, name: row.name, node: row.node, depth: depth + 1 }),
    )}
    ${more > 0 && quietButton(`Show ${more} more of ${total - shown}`, () => setShown(shown + more))}
  </div>`;
}

const LONG_TEXT = 400;

function Leaf({ node }: { readonly node: Exclude<JsonNode, { readonly kind: 'array' | 'object' }> }): VNode {
  const [isWhole, setWhole] = useState(false);
  if (node.kind !== 'string') return html`<span class=${node.kind}>${node.raw}</span>`;
  const text = textOf(node.raw);
  const medium = mediumInText(text);
  if (medium !== null) return h(MediumLeaf, medium);
  const shown = isWhole || text.length <= LONG_TEXT ? text : `${text.slice(0, LONG_TEXT)}…`;
  const more = quietButton(`Show all ${text.length} characters`, () => setWhole(true));
  return html`<span class="string">"${shown}"</span> ${shown !== text && more}`;
}

/** Many apps send a picture as base64 in their JSON. */
function MediumLeaf({ type, base64 }: { readonly type: string; readonly base64: string }): VNode {
  const blob = useMemo(() => {
    const content = bytesOfBase64(base64);
    return content === null ? null : new Blob([content], { type });
  }, [base64, type]);
  if (blob === null) return html`<span class="string">"${base64.slice(0, LONG_TEXT)}…"</span>`;
  const note = html`<span class="muted">${type}, ${bytes(blob.size)}, in base64</span>`;
  return html`<span class="medium"
    >${note}${
      mediumOf(type) === 'picture'
        ? h(Picture, { blob, alt: 'A picture in the answer' })
        : h(Player, { blob, kind: 'audio' })
    }</span
  >`;
}
