/**
 * API keys as an operator gives them, turned into digests as soon as they are read: no option, log line or status can
 * show what is not there any more.
 */
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { ServeError } from '../../protocol/errors.js';
import { asSentence } from '../../protocol/text/sentences.js';
import { NotAllowed } from './units.js';

/** SHA-256 of a key: all have one length, so comparing them tells nothing of the key. */
export type KeyDigest = Buffer;

/** A key that a header can carry and a list separated by commas can hold. */
const KEY = /^[\x21-\x2b\x2d-\x7e]{1,1024}$/;

export function digestOf(key: string): KeyDigest {
  return hash('sha256', key, 'buffer');
}

/** One key or several, as a text with commas or an array. @throws NotAllowed */
export function parseKeys(raw: unknown): readonly KeyDigest[] {
  const keys: readonly unknown[] = typeof raw === 'string' ? raw.split(',') : Array.isArray(raw) ? raw : [];
  if (keys.length === 0) throw new NotAllowed(ALLOWED);
  return keys.map((key) => {
    const trimmed = typeof key === 'string' ? key.trim() : '';
    if (!KEY.test(trimmed)) throw new NotAllowed(ALLOWED);
    return digestOf(trimmed);
  });
}

const ALLOWED = 'one key or several, separated by commas, each of up to 1024 visible ASCII characters';

/** The path of a file for `readKeyFile`. @throws NotAllowed */
export function parseKeyFilePath(raw: unknown): string {
  if (typeof raw !== 'string' || raw.trim() === '') throw new NotAllowed('the path of a file');
  return raw;
}

/** A key per line; empty lines and those that begin with # do not count. @throws SERVE_CONFIG naming file and line, never a key */
export function readKeyFile(path: string, folder: string): readonly KeyDigest[] {
  const lines = readText(path, folder)
    .replace(/^\ufeff/, '')
    .split('\n')
    .map((line) => line.trim());
  const digests = lines.flatMap((line, i) => {
    if (line === '' || line.startsWith('#')) return [];
    if (KEY.test(line)) return [digestOf(line)];
    throw keyFileError(
      path,
      `line ${i + 1} is no key; give one of up to 1024 visible ASCII characters, without a comma`,
    );
  });
  if (digests.length === 0) throw keyFileError(path, 'it holds no key; give one per line');
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
