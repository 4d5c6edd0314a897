import { useMemo, useState } from 'preact/hooks';
import { quietButton } from '../parts/controls.js';
import { bytes } from '../parts/format.js';
import { html, h, type VNode } from '../parts/html.js';
import { countOf, entriesOf, inlineJson, textOf, type JsonNode } from '../parts/json-text.js';
import { bytesOfBase64, mediumInText, mediumOf, Picture, Player } from '../parts/media.js';

/** Children that are drawn at once: a list of a million numbers must not stop the browser. */
const STEP = 100;
/** Numbers take less room: they are drawn one after the other. */
const NUMBERS_STEP = 400;
const OPEN_DEPTH = 2;
const OPEN_CHILDREN = 30;

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
  if ('raw' in node) return html`<div class="leaf">${label}${h(Leaf, { node })}</div>`;
  const inline = inlineJson(node, INLINE);
  if (inline !== null) return html`<div class="leaf">${label}<span class="flat">${inline}</span></div>`;
  const kind = node.kind === 'array' ? `[${countOf(node)}]` : `{${countOf(node)}}`;
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
  const numbers = numbersOf(node, shown);
  const left = countOf(node) - shown;
  const more = nextStep(shown, left);
  return html`<div class="branch">
    ${
      numbers === null
        ? entriesOf(node, shown).map(([name, child]) =>
            h(Branch, { key: name, name, node: child, depth: depth + 1 }),
          )
        : html`<div class="leaf numbers">${numbers}</div>`
    }
    ${more > 0 && quietButton(`Show ${more} more of ${left}`, () => setShown(shown + more))}
  </div>`;
}

/** The root is always open, and what is small and near to it. */
export function openAtFirst(node: JsonNode, depth: number): boolean {
  return depth === 0 || (depth <= OPEN_DEPTH && countOf(node) <= OPEN_CHILDREN);
}

/** Number of children that are drawn first. */
export function firstStep(node: JsonNode): number {
  return numbersOf(node, 1) === null ? STEP : NUMBERS_STEP;
}

/** Number of children that the next step adds, of `left`. */
export function nextStep(shown: number, left: number): number {
  return Math.min(left, Math.max(STEP, shown));
}

/** The first items of a list of numbers and words, one after the other; null for any other node. */
export function numbersOf(node: JsonNode, shown: number): string | null {
  if (node.kind !== 'array' || countOf(node) === 0) return null;
  const texts: string[] = [];
  for (const item of node.children) {
    if (item.kind !== 'number' && item.kind !== 'word') return null;
    if (texts.length < shown) texts.push(item.raw);
  }
  return texts.join(', ');
}

const LONG_TEXT = 400;

function Leaf({ node }: { readonly node: Extract<JsonNode, { readonly raw: string }> }): VNode {
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
