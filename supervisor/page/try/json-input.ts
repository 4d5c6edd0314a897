import type { VNode } from 'preact';
import { html } from '../parts/html.js';
import { formatJson, readJson } from '../parts/json-text.js';
import type { Draft } from './draft.js';

interface JsonInputProps {
  readonly draft: Draft;
  readonly setDraft: (draft: Draft) => void;
  readonly first: string;
}

const MIN_ROWS = 6;
const MAX_ROWS = 22;

/** The input as JSON text. A mistake is shown and can be sent: the server's answer to it may be what one wants to see. */
export function JsonInput({ draft, setDraft, first }: JsonInputProps): VNode {
  const { text } = draft;
  const { node, problem } = text.trim() === '' ? { node: null, problem: null } : readJson(text);
  const rows = Math.min(MAX_ROWS, Math.max(MIN_ROWS, text.split('\n').length + 1));
  return html`<div class="json-input">
    <textarea
      aria-label="Input as JSON"
      aria-invalid=${problem !== null}
      aria-describedby="json-problem"
      spellcheck="false"
      autocapitalize="off"
      autocomplete="off"
      rows=${rows}
      value=${text}
      onInput=${(event: Event) => setDraft({ ...draft, text: (event.target as HTMLTextAreaElement).value })}
    ></textarea>
    <div class="row under">
      <p id="json-problem" class="problem">${problem}</p>
      <button
        type="button"
        class="small quiet"
        disabled=${node === null}
        onClick=${() => node !== null && setDraft({ ...draft, text: formatJson(node) })}
      >
        Format
      </button>
      <button
        type="button"
        class="small quiet"
        disabled=${text === first}
        onClick=${() => setDraft({ ...draft, text: first })}
      >
        Reset
      </button>
    </div>
  </div>`;
}
