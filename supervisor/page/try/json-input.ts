import type { VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import { quietButton, typed } from '../parts/controls.js';
import { html } from '../parts/html.js';
import { formatJson, readJson } from '../parts/json-text.js';
import type { DraftProps } from './draft.js';

interface JsonInputProps extends DraftProps {
  readonly first: string;
}

const NOTHING = { node: null, problem: null } as const;
const MIN_ROWS = 6;
const MAX_ROWS = 22;

/** The input as JSON text. A mistake is shown and can be sent: the server's answer to it may be what one wants to see. */
export function JsonInput({ draft, setDraft, first }: JsonInputProps): VNode {
  const { text } = draft;
  const write = (written: string): void => setDraft({ ...draft, text: written });
  // The page is drawn each second, and the text may have megabytes.
  const { node, problem } = useMemo(() => (text.trim() === '' ? NOTHING : readJson(text)), [text]);
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
      onInput=${typed(write)}
    ></textarea>
    <div class="row under">
      <p id="json-problem" class="problem">${problem}</p>
      ${quietButton('Format', () => node !== null && write(formatJson(node)), { disabled: node === null })}
      ${quietButton('Reset', () => write(first), { disabled: text === first })}
    </div>
  </div>`;
}
