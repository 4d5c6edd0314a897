/**
 * API keys, turned into digests as soon as they are read, so that no option, log line or status can show a key.
 */
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { ServeError } from '../../protocol/errors.js';
import { asSentence } from '../../protocol/text/sentences.js';
import { partsOf } from './units.js';

/** SHA-256 of a key. All have the same length, so a comparison reveals nothing about the key. */
export type KeyDigest = Buffer;

/** A key must fit into a header and into a comma-separated list. */
const KEY = /^[\x21-\x2b\x2d-\x7e]{1,1024}$/;

export function digestOf(key: string): KeyDigest {
  return hash('sha256', key, 'buffer');
}

/** Reads one or more keys from a comma-separated text or an array. @throws NotAllowed */
export function parseKeys(raw: unknown): readonly KeyDigest[] {
  return partsOf(raw, (key) => KEY.test(key), ALLOWED).map(digestOf);
}

const ALLOWED = 'one key or several, separated by commas, each of up to 1024 visible ASCII characters';

/** Reads one key per line; empty lines and lines that begin with # are skipped. @throws SERVE_CONFIG with file and line, never a key */
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
