import type { VNode } from 'preact';
import { typed } from '../parts/controls.js';
import { html, h } from '../parts/html.js';
import { withValue, type DraftProps } from './draft.js';
import { textOfForm, type Field } from './form.js';

interface FormInputProps extends DraftProps {
  readonly fields: readonly Field[];
}

/** The input as a form, one field per property. */
export function FormInput({ draft, setDraft, fields }: FormInputProps): VNode {
  const { problems } = textOfForm(fields, draft.values);
  return html`<div class="form-input">
    ${fields.map((field, i) =>
      h(FieldInput, {
        key: field.name,
        id: `field-${i}`,
        field,
        value: draft.values[field.name] ?? '',
        problem: problems?.[field.name] ?? '',
        change: (value: string) => setDraft(withValue(draft, fields, field.name, value)),
      }),
    )}
  </div>`;
}

interface FieldProps {
  readonly id: string;
  readonly field: Field;
  readonly value: string;
  /** Empty if there is none. */
  readonly problem: string;
  readonly change: (value: string) => void;
}

const LONG = 60;

function FieldInput({ id, field: { name, kind, hint }, value, problem, change }: FieldProps): VNode {
  const described = {
    id,
    'aria-invalid': problem !== '',
    'aria-describedby': `${id}-problem`,
    onInput: typed(change),
  };
  const isLong = kind === 'json' || value.length > LONG || value.includes('\n');
  return html`<div class="field">
    <label for=${id}>${name} <span class="muted">${hint === '' ? kind : hint}</span></label>
    ${
      kind === 'boolean'
        ? html`<select ...${described} onInput=${undefined} onChange=${described.onInput}>
            ${['true', 'false', ''].map(
              (one) =>
                html`<option key=${one} value=${one} selected=${one === value}>
                  ${one === '' ? 'left out' : one}
                </option>`,
            )}
          </select>`
        : isLong
          ? html`<textarea
              ...${described}
              spellcheck="false"
              rows=${rowsOf(value)}
              class=${kind}
              value=${value}
            ></textarea>`
          : html`<input
              ...${described}
              inputmode=${kind === 'number' ? 'decimal' : 'text'}
              autocomplete="off"
              value=${value}
            />`
    }
    <p class="problem" id=${`${id}-problem`}>${problem}</p>
  </div>`;
}

function rowsOf(value: string): number {
  return Math.min(12, Math.max(2, value.split('\n').length));
}
