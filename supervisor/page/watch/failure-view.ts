import type { VNode } from 'preact';
import { useContext } from 'preact/hooks';
import { logsAddress } from '../app/address.js';
import type { LiveFailure } from '../../status/live-types.js';
import { CopyButton } from '../parts/copy-button.js';
import { html, h } from '../parts/html.js';
import { failureTitle } from './failure.js';
import { Hidden, HiddenWords } from './hidden-words.js';

interface FailureProps {
  readonly error: LiveFailure | null;
  readonly requestId: string;
  readonly isOpen?: boolean;
}

/** Why a call failed: type, message and stack of what the app threw, and the way to its lines in the log. */
export function FailureView({ error, requestId, isOpen = false }: FailureProps): VNode {
  const lines = html`<a href=${logsAddress({ request: requestId })}>Log lines of this call</a>`;
  if (useContext(Hidden) !== null)
    return html`<div class="failure">
      ${error !== null && error.message !== '' && html`<p>${error.message}</p>`} ${h(HiddenWords, {})}
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
