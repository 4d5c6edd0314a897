import type { VNode } from 'preact';
import { html } from './html.js';
import { SIGNS, type Tone } from './tone.js';

/** A state in a word, with its sign. */
export function State({ tone, text }: { readonly tone: Tone; readonly text: string }): VNode {
  return html`<span class=${`state ${tone}`}
    ><span class="sign" aria-hidden="true">${SIGNS[tone]}</span>${text}</span
  >`;
}
