/**
 * Prints the tables of `protocol/` for the worker in Python. It stands beside `check-python.ts`, which writes the file with
 * `npm run format`, and not in `protocol/`, whose files are in the package.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { CALL_ERRORS, ERRORS, WORKER_ERRORS } from '../../protocol/errors.js';
import * as paths from '../../protocol/reserved-paths.js';
import { BEGUN_NOTE_BYTES } from '../../protocol/wire/begun-note.js';
import { FRAME_PREFIX_BYTES } from '../../protocol/wire/frame.js';
import * as limits from '../../protocol/wire/limits.js';
import { PROTOCOL_VERSION, TASKS } from '../../protocol/wire/messages.js';
import { OPTIONS, OPTION_NAMES } from '../../supervisor/options/table.js';
import { ROOT } from '../helpers/server.js';

const FILE = `${ROOT}worker/python/banana_worker/protocol/tables.py`;

/** Numbers of the wire that only the front needs. */
const OF_THE_FRONT = new Set(['STREAM_WINDOW_BYTES']);

/** Whether the file was as it is printed; with `isWriting`, it is so from now on. */
export function areTablesCurrent(isWriting = false): boolean {
  const printed = pythonTables();
  const isCurrent = readFileSync(FILE, 'utf8') === printed;
  if (isWriting && !isCurrent) writeFileSync(FILE, printed);
  return isCurrent;
}

function pythonTables(): string {
  const numbers = Object.entries({
    PROTOCOL_VERSION,
    ...limits,
    FRAME_PREFIX_BYTES,
    BEGUN_NOTE_BYTES,
  }).filter(([name]) => !OF_THE_FRONT.has(name));
  const texts = [...CALL_ERRORS, ...WORKER_ERRORS].map(
    (code) => `    ${quoted(code)}: ${quoted(ERRORS[code].message)},`,
  );
  const options = OPTION_NAMES.filter((name) => OPTIONS[name].scope === 'model');
  return [
    '"""The tables of protocol/ in TypeScript, which `npm run format` prints (test/tools/python-tables.ts)."""\n',
    '# Numbers of the wire (protocol/wire/).',
    ...numbers.map(([name, value]) => `${name} = ${JSON.stringify(value)}`),
    '\n# Messages of the errors of a worker (protocol/errors.ts). Safe for a client: no secret, path or traceback is in them.',
    `MESSAGES = {\n${texts.join('\n')}\n}`,
    '\n# Codes with which a call ends; the front takes any other for the failure of the model.',
    `CALL_ERRORS = (\n${rows(CALL_ERRORS)}\n)`,
    '\n# Options that a model may set for itself (supervisor/options/table.ts).',
    `MODEL_OPTIONS = (\n${rows(options)}\n)`,
    '\n# The tasks of models, by which clients call them (protocol/wire/messages.ts).',
    `TASKS = ${tuple(TASKS)}`,
    '\n# Paths that the front answers by itself (protocol/reserved-paths.ts).',
    `HEALTH_PATHS = ${tuple(paths.HEALTH_PATHS)}`,
    `POTASSIUM_STATUS_PATHS = ${tuple(paths.POTASSIUM_STATUS_PATHS)}`,
    `WARM_UP_PATH = ${quoted(paths.WARM_UP_PATH)}`,
    `RESERVED_PATHS = ${tuple(paths.RESERVED_PATHS)}`,
    `RESERVED_PREFIXES = ${tuple(paths.RESERVED_PREFIXES)}`,
    '',
  ].join('\n');
}

/** A text as Python writes it. All of these are of ASCII without `"`. */
function quoted(text: string): string {
  return JSON.stringify(text);
}

function rows(texts: readonly string[]): string {
  return texts.map((text) => `    ${quoted(text)},`).join('\n');
}

function tuple(texts: readonly string[]): string {
  return `(${texts.map(quoted).join(', ')})`;
}
