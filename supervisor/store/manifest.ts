/**
 * Reads the manifest of a model's folder: `MAR-INF/MANIFEST.json` of Multi Model Server's archives, or `MANIFEST.json` of
 * its first versions. Values of the registration take precedence.
 */
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { ServeError } from '../../protocol/errors.js';
import { MODEL_NAME_RULE, isModelName } from '../options/model-name.js';
import { isObject } from '../options/read-objects.js';
import { RUNTIME_NAMES } from '../runtimes/index.js';
import { pathWithin } from './place.js';
import { archiveInvalid, type StoreQuery } from './stored-model.js';

export interface Manifest {
  /** Empty if it has none. */
  readonly name: string;
  readonly version: string;
  readonly handler: string;
  /** Empty if it has none. */
  readonly runtime: string;
}

/** Paths of a manifest in a model's folder, the newer one first. */
export const MANIFEST_FILE = 'MAR-INF/MANIFEST.json';
export const OLD_MANIFEST_FILE = 'MANIFEST.json';

/** Version of a model whose manifest has none. */
const UNVERSIONED = '1.0';
/** Version of a model of the first format, which had no versions. */
const OLD_VERSION = 'snapshot';

/** Manifests are a page of text; the front reads the whole file. */
const MAX_BYTES = 256 * 1024;

/** Null if the folder has no manifest. Both paths are real paths; no file outside `root` is read. @throws SERVE_ARCHIVE_INVALID */
export async function readManifest(
  folder: string,
  root: string,
  query: StoreQuery,
): Promise<Manifest | null> {
  for (const [file, fieldsOf] of FORMATS) {
    const text = await textOf(file, folder, root, query);
    if (text !== null) return checked(fieldsOf(objectOf(text, file, query), query), query);
  }
  return null;
}

const FORMATS = [
  [MANIFEST_FILE, newFields],
  [OLD_MANIFEST_FILE, oldFields],
] as const;

/** Null if there is no such file. */
async function textOf(
  file: string,
  folder: string,
  root: string,
  { url }: StoreQuery,
): Promise<string | null> {
  const path = await pathWithin(root, join(folder, file), file, url);
  if (path === null) return null;
  const found = await stat(path);
  if (!found.isFile()) return null;
  if (found.size > MAX_BYTES) throw archiveInvalid(url, `${file} has more than ${MAX_BYTES} bytes.`);
  return readFile(path, 'utf8');
}

function objectOf(text: string, file: string, { url }: StoreQuery): Record<string, unknown> {
  try {
    const value = JSON.parse(text) as unknown;
    if (isObject(value)) return value;
  } catch (thrown) {
    throw archiveInvalid(url, `${file} is not JSON: ${(thrown as Error).message}`);
  }
  throw archiveInvalid(url, `${file} is not a JSON object.`);
}

/** The relevant fields of a manifest, unchecked. */
type Fields = Readonly<Record<keyof Manifest, unknown>>;

function newFields({ model, runtime, engine }: Record<string, unknown>, { url }: StoreQuery): Fields {
  if (!isObject(model)) throw archiveInvalid(url, `${MANIFEST_FILE} has no object "model".`);
  if (
    engine !== undefined &&
    engine !== null &&
    textIn(isObject(engine) ? engine['engineName'] : null) === ''
  )
    throw archiveInvalid(url, `${MANIFEST_FILE} has an "engine" without "engineName".`);
  const { modelName: name, modelVersion: version = UNVERSIONED, handler } = model;
  return { name, version: version ?? UNVERSIONED, handler, runtime };
}

function oldFields({ Model: model }: Record<string, unknown>, { url }: StoreQuery): Fields {
  if (!isObject(model)) throw archiveInvalid(url, `${OLD_MANIFEST_FILE} has no object "Model".`);
  return { name: model['Model-Name'], version: OLD_VERSION, handler: model['Service'], runtime: '' };
}

/** Messages about missing fields are exactly those of Multi Model Server. */
function checked({ name, version, handler, runtime }: Fields, query: StoreQuery): Manifest {
  const values = {
    name: query.name ?? textIn(name),
    version: textIn(version),
    handler: query.handler ?? textIn(handler),
    runtime: query.runtime ?? textIn(runtime),
  };
  if (values.name === '' && query.mayGoUnnamed !== true) throw missing('Model name is not defined.');
  if (values.handler === '') throw missing('Model handler is not defined.');
  refuseInvalid(values, query.url);
  return values;
}

function refuseInvalid({ name, version, runtime }: Manifest, url: string): void {
  if (name !== '' && !isModelName(name))
    throw invalidField(url, 'name', name, `must consist of ${MODEL_NAME_RULE}`);
  if (!isModelName(version))
    throw invalidField(url, 'version', version, `must consist of ${MODEL_NAME_RULE}`);
  if (runtime !== '' && !RUNTIME_NAMES.includes(runtime))
    throw invalidField(url, 'runtime', runtime, `is one of ${RUNTIME_NAMES.join(', ')}`);
}

/** Accepts a number as text: a version without quotes is a common mistake. */
function textIn(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value).trim() : '';
}

function invalidField(url: string, what: string, given: string, rule: string): ServeError {
  return archiveInvalid(url, `its manifest has the ${what} ${JSON.stringify(given)}; a ${what} ${rule}.`);
}

function missing(message: string): ServeError {
  return new ServeError('SERVE_ARCHIVE_INVALID', message);
}
