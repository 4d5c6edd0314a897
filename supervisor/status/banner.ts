/** Texts of the log lines about a server's start, drain and end. */
import { relative } from 'node:path';
import type { Model } from '../models/model.js';
import type { FirstModel } from '../models/model-spec.js';
import { labelOf } from '../options/model-name.js';
import { isUnpacked } from '../store/archives/own-folder.js';
import type { ServerEnd } from './server-status.js';
import { formatMs } from '../options/units.js';
import { VERSION } from '../version.js';

/**
 * `banana-serve 0.1.0 serves app.ts with 2 workers on 2 GPUs (0, 1) on http://localhost:8000`; with several models, a line
 * for each follows. `threads`: CPU threads per worker.
 */
export function startTexts(models: readonly FirstModel[], threads: number, url: string): string[] {
  const [only] = models;
  if (only !== undefined && models.length === 1)
    return [`banana-serve ${VERSION} serves ${nameText(only)}${modelText(only, threads)} on ${url}`];
  const what = models.length === 0 ? 'no model yet' : `${models.length} models`;
  const lines = models.map((model) => `model ${labelOf(model.spec)}: ${modelText(model, threads)}`);
  return [`banana-serve ${VERSION} serves ${what} on ${url}`, ...lines];
}

/** Names a model of an archive, whose path says little. */
function nameText({ spec }: FirstModel): string {
  return isUnpacked(spec.app) ? `the model ${labelOf(spec)} of ` : '';
}

function modelText({ spec, placements, own }: FirstModel, threads: number): string {
  const { app, url, program, resolved } = spec;
  const workers =
    own === null
      ? slotsText(placements, threads)
      : `${own.min} to ${plural(own.max, 'worker')} (as its calls need them)`;
  return `${isUnpacked(app) ? url : shownPath(app)}${interpreterText(program)} with ${workers}${standbyText(resolved.options.standby)}`;
}

/** ` and 1 standby (the memory of one more worker)`; empty without any. */
function standbyText(standby: number): string {
  if (standby === 0) return '';
  return ` and ${plural(standby, 'standby')} (the memory of ${standby === 1 ? 'one more worker' : `${standby} more workers`})`;
}

/** ` (python 3.11.7, .venv/bin/python)`; empty if the app's language has no choice of interpreter. */
function interpreterText({ label, interpreter }: FirstModel['spec']['program']): string {
  return interpreter === null ? '' : ` (${label} ${interpreter.version}, ${shownPath(interpreter.path)})`;
}

function shownPath(path: string): string {
  const shown = relative(process.cwd(), path);
  return shown.startsWith('..') ? path : shown;
}

/** `names`: variables that workers do not get by default because of their names. */
export function withheldText(names: readonly string[]): string {
  return `workers do not get these variables, whose names look like secrets: ${names.join(', ')}; set --withhold-env to a pattern to withhold others, or to '' (blacklist_env_vars=) to withhold none`;
}

/**
 * A curl command that calls the app with its example; null if it has no example, because its input cannot be guessed, or one that is too long to paste. The
 * key is a variable of the shell, so that the log does not contain it.
 */
export function tryText(
  { info }: Pick<Model, 'info'>,
  url: string,
  socketPath: string | null,
  needsKey: boolean,
): string | null {
  const { path } = info?.routes.find(({ kind }) => kind !== 'websocket') ?? {};
  if (info === null || info.example === '' || path === undefined) return null;
  if (info.example.length > MAX_EXAMPLE_CHARS) return null;
  // curl's default type is that of a form, and the app may accept forms.
  const type = ['-H', quoted('Content-Type: application/json')];
  const key = needsKey ? ['-H "Authorization: Bearer $BANANA_API_KEY"'] : [];
  const socket = socketPath === null ? [] : ['--unix-socket', quotedIfNeeded(socketPath)];
  const server = socketPath === null ? url : 'http://localhost';
  const place = quotedIfNeeded(path === '/' ? server : `${server}${path}`);
  return ['Try it: curl', ...type, ...key, '-d', quoted(info.example), ...socket, place].join(' ');
}

/** Maximum length of an example in the log, enough for a 64-pixel image as JSON. */
const MAX_EXAMPLE_CHARS = 240;

/** Quotes any text as one word for a shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

function quotedIfNeeded(text: string): string {
  return /^[\w.:/-]+$/.test(text) ? text : quoted(text);
}

/** The work that a drain waits for. */
interface DrainWaits {
  readonly running: number;
  /** Accepted calls that have not begun, including those whose bodies still arrive. */
  readonly waiting: number;
  readonly workers: number;
  readonly webhooks: number;
}

/** `hint`: advice for the reader, such as how to stop at once; may be empty. */
export function drainText(limitMs: number, waits: DrainWaits, hint: string): string {
  const counts = [
    [waits.running, 'call', 'running'],
    [waits.waiting, 'call', 'waiting'],
    [waits.workers, 'worker', 'to stop'],
    [waits.webhooks, 'webhook', 'to send'],
  ] as const;
  const parts = counts
    .filter(([count]) => count > 0)
    .map(([count, noun, what]) => `${plural(count, noun)} ${what}`);
  const what = parts.length === 0 ? '' : `; waits for ${parts.join(', ')}`;
  return `draining (at most ${formatMs(limitMs)})${what}${hint === '' ? '' : `; ${hint}`}`;
}

const END_TEXTS: Readonly<Record<ServerEnd['reason'], string>> = {
  drained: 'stopped; every call was answered',
  cut: 'stopped; some calls were cut off',
  failed: 'stopped; no worker could start',
  killed: 'stopped at once',
};

export function endText({ reason }: ServerEnd): string {
  return END_TEXTS[reason];
}

function slotsText(placements: FirstModel['placements'], threads: number): string {
  const gpus = [...new Set(placements.flatMap(({ gpu }) => (gpu === null ? [] : [gpu])))];
  const workers = plural(placements.length, 'worker');
  if (gpus.length === 0) return `${workers} on the CPU (${plural(threads, 'thread')} each)`;
  return `${workers} on ${plural(gpus.length, 'GPU')} (${gpus.join(', ')})`;
}

function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
