/** Copies a text, also where the page came by plain http from another machine: there browsers have no `navigator.clipboard`. */

/** Whether the text is in the clipboard. */
export async function copyText(text: string): Promise<boolean> {
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
