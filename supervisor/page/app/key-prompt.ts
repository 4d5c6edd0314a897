import { useEffect, useRef, useState } from 'preact/hooks';
import { keyField } from '../parts/controls.js';
import { html, type VNode } from '../parts/html.js';
import type { Store } from './store.js';

/** Asks for the API key, which every request of the page needs then. */
export function KeyPrompt({ store }: { readonly store: Store }): VNode {
  const [key, setKey] = useState('');
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);
  const submit = (event: Event): void => {
    event.preventDefault();
    if (key.trim() !== '') store.useKey(key.trim());
  };
  const wasWrong = store.connection.state === 'needs key' && store.key !== '';
  return html`<form class="panel key-prompt" onSubmit=${submit}>
    <h2>This server needs an API key</h2>
    <p class="muted">
      It is kept for this tab until you close it, and sent to this server only. It is the value of
      ${' '}<code>--api-key</code>.
    </p>
    <div class="row">
      ${keyField('key', 'API key', key, wasWrong, setKey, {
        ref: field,
        'aria-describedby': wasWrong ? 'key-problem' : undefined,
      })}
      <button type="submit" class="primary">Use this key</button>
    </div>
    ${wasWrong && html`<p id="key-problem" class="problem" role="alert">The server does not know this key.</p>`}
  </form>`;
}
