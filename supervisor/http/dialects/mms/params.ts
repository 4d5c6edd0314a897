/**
 * The parameters of a request that manages models: its query, or a JSON body instead. As on Multi Model Server, an
 * invalid number counts as left out, and only the word `true` means true.
 */
import { ServeError } from '../../../../protocol/errors.js';
import { parseJson, readSmallBody, type RequestContext } from '../../request/request-context.js';
import { queryOf } from '../../socket/request-facts.js';

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
