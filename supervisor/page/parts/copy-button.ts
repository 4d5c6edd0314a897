import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { copyText } from './copy.js';
import { html } from './html.js';

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
