/** The three ways of giving an input: as JSON, as a form, as a file. */
import { useEffect, useMemo, useState } from 'preact/hooks';
import { choice, quietButton, typed } from '../parts/controls.js';
import { bytes } from '../parts/format.js';
import { html, h, type VNode } from '../parts/html.js';
import { formatJson, readJson } from '../parts/json-text.js';
import { mediumOf, Picture } from '../parts/media.js';
import { textOfForm, typeOf, withValue, type Draft } from './draft.js';
import type { Field } from './schema-fields.js';

interface InputProps {
  readonly draft: Draft;
  readonly setDraft: (draft: Draft) => void;
  /** Null if there is no form. */
  readonly fields: readonly Field[] | null;
  /** The first text, to which one can return. */
  readonly first: string;
  /** Texts about wrong values in this very input, by field, as the server has found them. */
  readonly issues: Readonly<Record<string, string>>;
}

export function Input(props: InputProps): VNode {
  const { draft, setDraft, fields, issues } = props;
  if (draft.mode === 'file') return fileInput(draft, setDraft);
  return draft.mode === 'form' && fields !== null
    ? formInput(draft, setDraft, fields, issues)
    : h(JsonInput, props);
}

const NOTHING = { node: null, problem: null } as const;
const MIN_ROWS = 6;
const MAX_ROWS = 22;

/** The input as JSON text. A mistake is shown and can be sent: the server's answer to it may be what one wants to see. */
function JsonInput({ draft, setDraft, first }: InputProps): VNode {
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

/** The input as a form, one field per property. */
function formInput(
  draft: Draft,
  setDraft: InputProps['setDraft'],
  fields: readonly Field[],
  issues: InputProps['issues'],
): VNode {
  const problems = { ...issues, ...textOfForm(fields, draft.values).problems };
  return html`<div class="form-input">
    ${fields.map(({ name, kind, hint }, i) => {
      const id = `field-${i}`;
      const change = typed((value) => setDraft(withValue(draft, fields, name, value)));
      return html`<div class="field" key=${name}>
        <label for=${id}>${name} <span class="muted">${hint === '' ? kind : hint}</span></label>
        ${fieldInput(id, kind, draft.values[name] ?? '', problems[name] !== undefined, change)}
        <p class="problem" id=${`${id}-problem`}>${problems[name]}</p>
      </div>`;
    })}
  </div>`;
}

const LONG = 60;

function fieldInput(
  id: string,
  kind: Field['kind'],
  value: string,
  isWrong: boolean,
  change: (event: Event) => void,
): VNode {
  const described = { id, 'aria-invalid': isWrong, 'aria-describedby': `${id}-problem` };
  if (kind === 'boolean')
    return html`<select ...${described} onChange=${change}>
      ${['true', 'false', ''].map(
        (one) =>
          html`<option key=${one} value=${one} selected=${one === value}>${one === '' ? 'left out' : one}</option>`,
      )}
    </select>`;
  const written = { ...described, value, onInput: change };
  if (kind !== 'json' && value.length <= LONG && !value.includes('\n'))
    return html`<input ...${written} inputmode=${kind === 'number' ? 'decimal' : 'text'} autocomplete="off" />`;
  const rows = Math.min(12, Math.max(2, value.split('\n').length));
  return html`<textarea ...${written} spellcheck="false" rows=${rows} class=${kind}></textarea>`;
}

const WAYS = [
  ['body', 'the body itself'],
  ['form', 'a field of a form'],
] as const;

/** The input as a file, with a preview of a picture. */
function fileInput(draft: Draft, setDraft: InputProps['setDraft']): VNode {
  const { file, formField } = draft;
  const pick = (event: Event): void => {
    const picked = (event.target as HTMLInputElement).files?.[0];
    if (picked !== undefined) setDraft({ ...draft, file: picked });
  };
  const setField = (name: string): void => setDraft({ ...draft, formField: name });
  const way = formField === '' ? 'body' : 'form';
  return html`<div class="file-input">
    <label class="drop-zone">
      <span><b>Choose a file</b>, drop one here, or paste one</span>
      <input type="file" onChange=${pick} />
    </label>
    ${
      file !== null &&
      html`<div class="picked">
        ${mediumOf(file.type) === 'picture' && h(Picture, { blob: file, alt: `The file ${file.name}` })}
        <p>
          <b>${file.name}</b><br />
          <span class="muted">${typeOf(file)}, ${bytes(file.size)}</span>
        </p>
      </div>`
    }
    <div class="row sent-as">
      ${choice('Sent as', way, WAYS, (chosen) => setField(chosen === 'form' ? 'image' : ''))}
      ${
        formField !== '' &&
        html`<input aria-label="Name of the field" value=${formField} onInput=${typed(setField)} />`
      }
    </div>
  </div>`;
}

/** Takes the first file that is dropped on the panel, or pasted anywhere on the page. `isOver`: one is held over the panel. */
export function useDroppedFiles(
  takesFiles: boolean,
  take: (file: File) => void,
): { readonly isOver: boolean; readonly handlers: object } {
  const [isOver, setOver] = useState(false);
  useEffect(() => {
    if (!takesFiles) return;
    const paste = ({ clipboardData }: ClipboardEvent): void => {
      const file = clipboardData?.files[0];
      if (file !== undefined) take(file);
    };
    document.addEventListener('paste', paste);
    return () => document.removeEventListener('paste', paste);
  });
  const over = (event: DragEvent): void => {
    if (!takesFiles || event.dataTransfer?.types.includes('Files') !== true) return;
    event.preventDefault();
    setOver(true);
  };
  const drop = (event: DragEvent): void => {
    setOver(false);
    const file = event.dataTransfer?.files[0];
    if (!takesFiles || file === undefined) return;
    event.preventDefault();
    take(file);
  };
  return { isOver, handlers: { onDragOver: over, onDragLeave: () => setOver(false), onDrop: drop } };
}
