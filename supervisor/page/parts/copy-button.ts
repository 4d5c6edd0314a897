import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
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
