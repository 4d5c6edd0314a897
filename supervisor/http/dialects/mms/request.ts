/**
 * Reads a request as Multi Model Server does: its path, the model that it names, and the parameters of one that manages
 * models: its query, or a JSON body instead. Errors use its messages. An invalid number counts as left out, and only the word
 * `true` means true.
 */
import { ServeError } from '../../../../protocol/errors.js';
import type { Model } from '../../../models/model.js';
import type { ModelRef, Models } from '../../../models/models.js';
import { findModel } from '../../call/find-model.js';
import { parseJson, readSmallBody, type RequestContext } from '../../request/request-context.js';
import { queryOf, writtenPath } from '../../socket/request-facts.js';
import { rewordNotFound } from '../dialect.js';

/**
 * Returns the segments of the path. It is percent-decoded as a whole, so that an encoded slash splits it too; empty
 * segments at its end are ignored. Empty for `/`. A path that cannot be decoded is split as written.
 */
export function segmentsOf({ path, request }: Pick<RequestContext, 'path' | 'request'>): string[] {
  const segments = (path.includes('%') ? decoded(writtenPath(request.url)) : path).split('/');
  while (segments.at(-1) === '') segments.pop();
  return segments[0] === '' ? segments.slice(1) : segments;
}

function decoded(written: string): string {
  try {
    return decodeURIComponent(written);
  } catch {
    return written;
  }
}

const PAGES: ReadonlySet<string> = new Set(['/ping', '/api-description', '/invocations']);

const CALLS = /^\/(?:predictions\/([^/]+)(?:\/.*)?|models\/([^/]+)\/invoke|([^/]+)\/predict)\/?$/;

/** Returns the model that the path names; empty for a path without a model, null for any other path. */
export function calledModel(path: string): string | null {
  if (PAGES.has(path)) return '';
  const [, ...names] = CALLS.exec(path) ?? [];
  return names.find((name) => name !== undefined) ?? null;
}

/**
 * Finds a model, and notes it for the log if it is being unregistered. @throws SERVE_MODEL_NOT_FOUND,
 * SERVE_VERSION_NOT_FOUND; SERVE_NOT_READY for a model that is being unregistered
 */
export function findNamed(context: RequestContext, models: Models, ref: ModelRef): Model {
  return withMmsErrors(ref, () => findModel(context, models, ref));
}

/** Whether there is such a model; one that is being unregistered counts. */
export function isModel(models: Models, name: string): boolean {
  try {
    models.find({ name });
    return true;
  } catch (thrown) {
    if (!(thrown instanceof ServeError)) throw thrown;
    return thrown.code !== 'SERVE_MODEL_NOT_FOUND';
  }
}

/** Returns the error with Multi Model Server's message, if a model or its version was not found. */
export function notFound(error: ServeError, { name, version = '' }: ModelRef): ServeError {
  const noVersion = `Model version: ${version} does not exist for model: ${name}`;
  return rewordNotFound(error, `Model not found: ${name}`, noVersion);
}

/** Does something with a model; an error about an unknown one gets the message of Multi Model Server. */
export function withMmsErrors<T>(ref: ModelRef, change: () => T): T {
  try {
    return change();
  } catch (thrown) {
    throw thrown instanceof ServeError ? notFound(thrown, ref) : thrown;
  }
}

export class Params {
  readonly #values: ReadonlyMap<string, string>;

  constructor(values: ReadonlyMap<string, string>) {
    this.#values = values;
  }

  /** Returns the text; undefined if it is left out or empty. */
  text(name: string): string | undefined {
    const text = this.#values.get(name);
    return text === '' ? undefined : text;
  }

  flag(name: string, fallback: boolean): boolean {
    const text = this.text(name);
    return text === undefined ? fallback : text.toLowerCase() === 'true';
  }

  /** Returns a 32-bit integer; undefined if it is left out or anything else. */
  number(name: string): number | undefined {
    const text = this.text(name)?.trim() ?? '';
    const number = /^[+-]?\d{1,10}$/.test(text) ? Number(text) : NaN;
    return Number.isNaN(number) || (number | 0) !== number ? undefined : number;
  }

  /** Returns a 32-bit integer within these bounds. @throws SERVE_BAD_REQUEST */
  count(name: string, least: number, most: number): number | undefined {
    const number = this.number(name);
    if (number === undefined || (number >= least && number <= most)) return number;
    throw new ServeError('SERVE_BAD_REQUEST', `Parameter ${name} must be from ${least} to ${most}.`);
  }
}

/** Reads the query. The first of several values of one name counts. */
export function queryParams(context: RequestContext): Params {
  const values = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(queryOf(context)))
    if (!values.has(name)) values.set(name, value);
  return new Params(values);
}

/** Reads the body if it is JSON, and ignores the query then. Rejects with SERVE_BAD_BODY, or as `receiveBody` does. */
export async function bodyOrQueryParams(context: RequestContext): Promise<Params> {
  const [type = ''] = (context.request.headers['content-type'] ?? '').split(';');
  if (type.trim().toLowerCase() !== 'application/json') return queryParams(context);
  const given = parseJson(await readSmallBody(context));
  if (typeof given !== 'object' || given === null)
    throw new ServeError('SERVE_BAD_BODY', 'The body must be a JSON object.');
  const plain = Object.entries(given).filter(([, value]) => value !== null && typeof value !== 'object');
  return new Params(new Map(plain.map(([name, value]) => [name, String(value)])));
}
