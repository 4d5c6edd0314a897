/** Recognises pictures and sounds by their first bytes: apps send many without a type, or in base64 inside JSON. */

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
