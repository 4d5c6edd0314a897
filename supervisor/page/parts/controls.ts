/** Buttons and fields that several views have. */
import { useEffect, useId, useState } from 'preact/hooks';
import { html, h, type VNode } from './html.js';

type Options<Value extends string> = readonly (readonly [value: Value, text: string])[];

/** A labelled list to choose from. */
export function choice<Value extends string>(
  label: string,
  value: Value,
  options: Options<Value>,
  choose: (value: Value) => void,
): VNode {
  return h(Choice, { label, value, options, choose: (one) => choose(one as Value) });
}

interface ChoiceProps {
  readonly label: string;
  readonly value: string;
  readonly options: Options<string>;
  readonly choose: (value: string) => void;
}

function Choice({ label, value, options, choose }: ChoiceProps): VNode {
  const id = useId();
  return html`<span class="choice">
    <label for=${id}>${label}</label>
    <select id=${id} value=${value} onChange=${typed(choose)}>
      ${options.map(([one, text]) => html`<option key=${one} value=${one} selected=${one === value}>${text}</option>`)}
    </select>
  </span>`;
}

/** The same as buttons side by side. */
export function segments<Value extends string>(
  label: string,
  value: Value,
  options: Options<Value>,
  choose: (value: Value) => void,
): VNode {
  return html`<div class="segments" role="group" aria-label=${label}>
    ${options.map(
      ([one, text]) =>
        html`<button key=${one} type="button" aria-pressed=${one === value} onClick=${() => choose(one)}>
          ${text}
        </button>`,
    )}
  </div>`;
}

/** A small button beside what it is about. `attributes`: others, such as `aria-pressed`. */
export function quietButton(text: unknown, onClick: () => unknown, attributes: object = {}): VNode {
  return html`<button type="button" class="small quiet" ...${attributes} onClick=${onClick}>${text}</button>`;
}

/** Stops a list that grows, so that it can be read. */
export function holdButton(isHeld: boolean, onClick: () => void): VNode {
  return quietButton(isHeld ? 'Go on' : 'Hold', onClick, { 'aria-pressed': isHeld });
}

export function checkbox(text: string, isChecked: boolean, toggle: () => void): VNode {
  return html`<label class="check"
    ><input type="checkbox" checked=${isChecked} onChange=${toggle} />${text}</label
  >`;
}

/** A field for the words of a filter. `hint` is shown while it is empty. */
export function searchField(label: string, hint: string, value: string, set: (text: string) => void): VNode {
  return html`<input
    type="search"
    placeholder=${hint}
    aria-label=${label}
    value=${value}
    onInput=${typed(set)}
  />`;
}

/** For the words of a filter: returns whether a text has every word of `words`, in any case; a word that begins with `!` must not be there. */
export function wordFilter(words: string): (text: string) => boolean {
  const wanted = words.toLowerCase().match(/\S+/g) ?? [];
  return (text) => {
    const lower = text.toLowerCase();
    return wanted.every((word) => (/^!./.test(word) ? !lower.includes(word.slice(1)) : lower.includes(word)));
  };
}

/** A field for a key, with its label. `attributes`: others of the field. */
export function keyField(
  id: string,
  label: string,
  value: string,
  isWrong: boolean,
  set: (text: string) => void,
  attributes: object = {},
): VNode {
  return html`<label for=${id}>${label}</label>
    <input
      id=${id}
      type="password"
      autocomplete="off"
      value=${value}
      aria-invalid=${isWrong}
      ...${attributes}
      onInput=${typed(set)}
    />`;
}

/** Gets the value of a field that has changed. */
export function typed(set: (value: string) => void): (event: Event) => void {
  return (event) => set((event.target as HTMLInputElement).value);
}

const SHOWN_MS = 2_000;

/** A button that copies `text` and says whether it did. `label`: names the text, for people who do not see it. */
export function CopyButton({ text, label }: { readonly text: string; readonly label: string }): VNode {
  const [outcome, setOutcome] = useState<'' | 'Copied' | 'Not copied'>('');
  useEffect(() => {
    if (outcome === '') return;
    const timer = setTimeout(() => setOutcome(''), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [outcome]);
  const copy = (): void => {
    void copyText(text).then((isCopied) => setOutcome(isCopied ? 'Copied' : 'Not copied'));
  };
  return html`<button type="button" class="small copy" onClick=${copy} aria-label=${`Copy ${label}`}>
    <span aria-live="polite">${outcome === '' ? 'Copy' : outcome}</span>
  </button>`;
}

/**
 * Whether the text is in the clipboard. Copies also where the page came by plain http from another machine: there browsers
 * have no `navigator.clipboard`.
 */
async function copyText(text: string): Promise<boolean> {
  if (window.isSecureContext) {
    const copied = await navigator.clipboard.writeText(text).then(
      () => true,
      () => false,
    );
    if (copied) return true;
  }
  return copyBySelection(text);
}

/** The old way, which needs a selected field in the document. */
function copyBySelection(text: string): boolean {
  const focused = document.activeElement;
  const field = document.createElement('textarea');
  field.value = text;
  field.readOnly = true;
  field.className = 'offscreen';
  document.body.append(field);
  field.select();
  const isCopied = document.execCommand('copy');
  field.remove();
  if (focused instanceof HTMLElement) focused.focus();
  return isCopied;
}
