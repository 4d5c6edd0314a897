import type { VNode } from 'preact';
import { logsAddress } from '../app/address.js';
import type { HiddenBecause, LiveFailure } from '../../status/live-types.js';
import { CopyButton } from '../parts/copy-button.js';
import { html, h } from '../parts/html.js';
import { HiddenWords } from './death-details.js';
import { failureTitle } from './failure.js';

interface FailureProps {
  readonly error: LiveFailure | null;
  readonly requestId: string;
  readonly hidden: HiddenBecause | null;
  readonly isOpen?: boolean;
}

/** Why a call failed: type, message and stack of what the app threw, and the way to its lines in the log. */
export function FailureView({ error, requestId, hidden, isOpen = false }: FailureProps): VNode {
  const lines = html`<a href=${logsAddress({ request: requestId })}>Log lines of this call</a>`;
  if (hidden !== null)
    return html`<div class="failure">
      ${error !== null && error.message !== '' && html`<p>${error.message}</p>`} ${h(HiddenWords, { hidden })}
    </div>`;
  if (error === null)
    return html`<div class="failure"><p class="muted">The app answered so itself. ${lines}</p></div>`;
  if (error.detail === '') return html`<div class="failure"><p>${error.message} ${lines}</p></div>`;
  return html`<div class="failure">
    <p><strong class="thrown">${failureTitle(error)}</strong> ${lines}</p>
    <details open=${isOpen}>
      <summary>Stack</summary>
      <pre tabindex="0" aria-label="Stack of the error">${error.detail}</pre>
      ${h(CopyButton, { text: error.detail, label: 'the stack' })}
    </details>
  </div>`;
}
