/**
 * Pictures and sounds that an app or a person gave: recognised by their first bytes, since apps send many without a type, or in
 * base64 inside JSON. They are shown as what they are, and never opened as a document: that would run in our origin.
 */
import { useEffect, useState } from 'preact/hooks';
import { html, type VNode } from './html.js';

/** Media type of bytes, or null. `head`: at least the first 12 bytes. */
export function mediaTypeOf(head: Uint8Array): string | null {
  const text = String.fromCharCode(...head.subarray(0, 12));
  if (text.startsWith('\x89PNG\r\n\x1a\n')) return 'image/png';
  if (text.startsWith('\xff\xd8\xff')) return 'image/jpeg';
  if (/^GIF8[79]a/.test(text)) return 'image/gif';
  if (/^RIFF[\s\S]{4}WEBP/.test(text)) return 'image/webp';
  if (/^[\s\S]{4}ftypavif/.test(text)) return 'image/avif';
  if (/^RIFF[\s\S]{4}WAVE/.test(text)) return 'audio/wav';
  if (text.startsWith('OggS')) return 'audio/ogg';
  if (text.startsWith('fLaC')) return 'audio/flac';
  return text.startsWith('ID3') ? 'audio/mpeg' : null;
}

/** Types that a browser shows in an `<img>`, of which none can hold a script. */
const PICTURES = /^image\/(?:png|jpeg|gif|webp|avif|bmp)$/;
/** Holds scripts, which do not run in an `<img>`, but would in a document of our origin. */
const VECTOR = 'image/svg+xml';

export type Medium = 'picture' | 'vector' | 'audio' | 'video';

/** The way in which a type can be shown; null for one that can only be saved. `type`: without parameters. */
export function mediumOf(type: string): Medium | null {
  if (PICTURES.test(type)) return 'picture';
  if (type === VECTOR) return 'vector';
  if (type.startsWith('audio/')) return 'audio';
  return type.startsWith('video/') ? 'video' : null;
}

const MIN_BASE64 = 64;

/** The picture or sound that a text is, in base64 or as a data URL; null if it is none. */
export function mediumInText(text: string): { readonly type: string; readonly base64: string } | null {
  if (text.length < MIN_BASE64) return null;
  const base64 = text.replace(/^data:[^,]{0,100};base64,/, '');
  const head = base64.slice(0, 16);
  if (!/^[A-Za-z0-9+/]{16}$/.test(head)) return null;
  const type = mediaTypeOf(Uint8Array.from(atob(head), (char) => char.charCodeAt(0)));
  return type === null ? null : { type, base64 };
}

/** @returns null if the text is no base64 after all */
export function bytesOfBase64(base64: string): Uint8Array<ArrayBuffer> | null {
  try {
    return Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
  } catch {
    return null;
  }
}

/** A picture of a type without scripts. */
export function Picture({ blob, alt }: { readonly blob: Blob; readonly alt: string }): VNode {
  const url = useBlobUrl(blob);
  const [problem, setProblem] = useState(false);
  if (problem) return html`<p class="problem">The browser cannot show this picture.</p>`;
  return html`<img class="picture" src=${url} alt=${alt} onError=${() => setProblem(true)} />`;
}

/** SVG may hold scripts, so it gets a data URL: whoever opens that by itself gets a document without an origin. */
export function VectorPicture({ blob, alt }: { readonly blob: Blob; readonly alt: string }): VNode {
  const [url, setUrl] = useState<string>();
  useEffect(() => {
    let isShown = true;
    void blob.text().then((text) => {
      if (isShown) setUrl(`data:image/svg+xml,${encodeURIComponent(text)}`);
    });
    return () => void (isShown = false);
  }, [blob]);
  return html`<img class="picture" src=${url} alt=${alt} />`;
}

/** A player for sound or film. */
export function Player({ blob, kind }: { readonly blob: Blob; readonly kind: 'audio' | 'video' }): VNode {
  const url = useBlobUrl(blob);
  if (kind === 'video') return html`<video class="picture" controls src=${url}></video>`;
  return html`<audio controls src=${url}></audio>`;
}

/** The address of a blob while the component is shown; none at first. */
function useBlobUrl(blob: Blob): string | undefined {
  const [url, setUrl] = useState<string>();
  useEffect(() => {
    const made = URL.createObjectURL(blob);
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [blob]);
  return url;
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
