/** Reads options from `banana.json`, or from the `banana` key of package.json, in the folder where the server starts. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ServeError, configError } from '../../protocol/errors.js';
import { isObject, readOptions, type GivenOptions } from './read-objects.js';

/** @throws SERVE_CONFIG if a file is not a JSON object, or if both files have options */
export function readConfigFile(folder: string): GivenOptions {
  const own = readObject(join(folder, 'banana.json'), 'banana.json');
  const inPackage = readObject(join(folder, 'package.json'), 'package.json')?.['banana'];
  if (own !== null && inPackage !== undefined) {
    throw configError('banana.json and the "banana" key of package.json both hold options; keep one.');
  }
  const file = own !== null ? 'banana.json' : 'package.json, key "banana"';
  const place = { where: (name: string) => `${file}: ${name}`, isProgram: false };
  return readOptions(asObject(own ?? inPackage ?? {}, file), place, ['app', 'models']);
}

function readObject(path: string, name: string): Record<string, unknown> | null {
  if (!existsSync(path)) return null;
  let text = '';
  try {
    text = readFileSync(path, 'utf8');
    return asObject(JSON.parse(text), name);
  } catch (cause) {
    if (cause instanceof ServeError) throw cause;
    const message = cause instanceof Error ? cause.message : String(cause);
    const reason = /api.?key|management.?key|secret|whsec_/i.test(text)
      ? message.replace(QUOTED_JSON, '')
      : message;
    throw configError(
      `${name} ${cause instanceof SyntaxError ? 'is not valid JSON' : 'cannot be read'}: ${reason}`,
    );
  }
}

/** V8 quotes the text around a syntax error, which may be a key. */
const QUOTED_JSON = /(^|, )(\.{3})?".*"(\.{3})? is not valid JSON$/s;

function asObject(value: unknown, name: string): Record<string, unknown> {
  if (isObject(value)) return value;
  throw configError(`${name} must contain an object of options.`);
}
