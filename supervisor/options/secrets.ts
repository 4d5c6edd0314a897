/**
 * API keys, turned into digests as soon as they are read, and the secrets that sign webhooks: no option, log line or status
 * can show one.
 */
import { hash, createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { ServeError } from '../../protocol/errors.js';
import { asSentence } from '../../protocol/text/sentences.js';
import { partsOf, NotAllowed } from './units.js';

/** A key must fit into a header and into a comma-separated list. */
const KEY = /^[\x21-\x2b\x2d-\x7e]{1,1024}$/;

/** SHA-256 of a key. All have the same length, so a comparison reveals nothing about the key. */
export function digestOf(key: string): Buffer {
  return hash('sha256', key, 'buffer');
}

/** Reads one or more keys from a comma-separated text or an array. @throws NotAllowed */
export function parseKeys(raw: unknown): readonly Buffer[] {
  return partsOf(raw, (key) => KEY.test(key), ALLOWED).map(digestOf);
}

const ALLOWED = 'one key or several, separated by commas, each of up to 1024 visible ASCII characters';

/** Reads one key per line; empty lines and lines that begin with # are skipped. @throws SERVE_CONFIG with file and line, never a key */
export function readKeyFile(path: string, folder: string): readonly Buffer[] {
  const lines = readText(path, folder)
    .replace(/^\ufeff/, '')
    .split('\n')
    .map((line) => line.trim());
  const digests = lines.flatMap((line, i) => {
    if (line === '' || line.startsWith('#')) return [];
    if (KEY.test(line)) return [digestOf(line)];
    throw keyFileError(
      path,
      `line ${i + 1} is not a key; a key has up to 1024 visible ASCII characters and no comma`,
    );
  });
  if (digests.length === 0) throw keyFileError(path, 'it has no keys; give one per line');
  return digests;
}

function readText(path: string, folder: string): string {
  try {
    return readFileSync(resolve(folder, path), 'utf8');
  } catch (cause) {
    throw keyFileError(path, `it cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`);
  }
}

function keyFileError(path: string, what: string): ServeError {
  return new ServeError('SERVE_CONFIG', `--api-key-file ${path}: ${asSentence(what)}`);
}

/** Signatures are those of Standard Webhooks (https://www.standardwebhooks.com): HMAC-SHA256 over id, timestamp and raw body. */
const PREFIX = 'whsec_';
const MIN_KEY_BYTES = 24;
const MAX_KEY_BYTES = 64;

/**
 * Returns the value of `webhook-signature`: one signature per key, so that a receiver may have the old or the new one. The
 * keys are in a closure, which neither JSON.stringify nor inspect shows.
 */
export type WebhookSigner = (id: string, timestampS: number, body: Uint8Array) => string;

/** Reads `whsec_` and base64 of 24 to 64 bytes; several may be separated by spaces or commas. @throws NotAllowed */
export function parseWebhookSecrets(raw: unknown): WebhookSigner {
  const parts = typeof raw === 'string' ? raw.split(/[\s,]+/).filter((part) => part !== '') : [];
  const keys = parts.map(keyOf);
  if (keys.length === 0 || keys.includes(null)) {
    throw new NotAllowed(
      `${PREFIX} and the base64 of ${MIN_KEY_BYTES} to ${MAX_KEY_BYTES} bytes; separate several with spaces or commas`,
    );
  }
  return (id, timestampS, body) =>
    (keys as Buffer[])
      .map((key) => createHmac('sha256', key).update(`${id}.${timestampS}.`).update(body).digest('base64'))
      .map((signature) => `v1,${signature}`)
      .join(' ');
}

function keyOf(secret: string): Buffer | null {
  const text = secret.slice(PREFIX.length);
  if (!secret.startsWith(PREFIX) || !/^[A-Za-z0-9+/]+={0,2}$/.test(text)) return null;
  const key = Buffer.from(text, 'base64');
  // Node skips characters that are not base64: only valid text encodes back to itself.
  const isWhole = key.toString('base64').replace(/=+$/, '') === text.replace(/=+$/, '');
  return isWhole && key.length >= MIN_KEY_BYTES && key.length <= MAX_KEY_BYTES ? key : null;
}
