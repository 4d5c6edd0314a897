/**
 * Pictures and sounds that an app or a person gave. They are shown as what they are, and never opened as a document: that
 * would run in our origin.
 */
import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { html } from './html.js';

interface PictureProps {
  readonly blob: Blob;
  readonly alt: string;
}

/** The address of a blob while the component is shown. */
function useBlobUrl(blob: Blob): string {
  const [url, setUrl] = useState('');
  useEffect(() => {
    const made = URL.createObjectURL(blob);
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [blob]);
  return url;
}

/** A picture of a type without scripts. */
export function Picture({ blob, alt }: PictureProps): VNode {
  const url = useBlobUrl(blob);
  const [problem, setProblem] = useState(false);
  if (problem) return html`<p class="problem">The browser cannot show this picture.</p>`;
  return html`<img
    class="picture"
    src=${url === '' ? undefined : url}
    alt=${alt}
    onError=${() => setProblem(true)}
  />`;
}

/** SVG may hold scripts, so it gets a data URL: whoever opens that by itself gets a document without an origin. */
export function VectorPicture({ blob, alt }: PictureProps): VNode {
  const [url, setUrl] = useState('');
  useEffect(() => {
    let isShown = true;
    void blob.text().then((text) => {
      if (isShown) setUrl(`data:image/svg+xml,${encodeURIComponent(text)}`);
    });
    return () => void (isShown = false);
  }, [blob]);
  return html`<img class="picture" src=${url === '' ? undefined : url} alt=${alt} />`;
}

/** A player for sound or film. */
export function Player({ blob, kind }: { readonly blob: Blob; readonly kind: 'audio' | 'video' }): VNode {
  const url = useBlobUrl(blob);
  if (kind === 'video')
    return html`<video class="picture" controls src=${url === '' ? undefined : url}></video>`;
  return html`<audio controls src=${url === '' ? undefined : url}></audio>`;
}

/** Saves a blob under a name. As bytes of no type, so that it cannot be opened in our origin instead. */
export function saveBlob(blob: Blob, name: string): void {
  const url = URL.createObjectURL(new Blob([blob], { type: 'application/octet-stream' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000); // the browser reads it after this click
}
