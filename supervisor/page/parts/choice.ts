import type { VNode } from 'preact';
import { useId } from 'preact/hooks';
import { html } from './html.js';

interface ChoiceProps<Value extends string> {
  readonly label: string;
  readonly value: Value;
  readonly options: readonly (readonly [value: Value, text: string])[];
  readonly choose: (value: Value) => void;
}

/** A labelled list to choose from. */
export function Choice<Value extends string>({ label, value, options, choose }: ChoiceProps<Value>): VNode {
  const id = useId();
  return html`<span class="choice">
    <label for=${id}>${label}</label>
    <select
      id=${id}
      value=${value}
      onChange=${(event: Event) => choose((event.target as HTMLSelectElement).value as Value)}
    >
      ${options.map(([one, text]) => html`<option key=${one} value=${one} selected=${one === value}>${text}</option>`)}
    </select>
  </span>`;
}
