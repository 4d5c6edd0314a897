/** The errors with which an app refuses a call: a status and a message for the client. */
import type { SchemaIssue } from './standard-schema.js';

/** They mark the classes, because a TypeScript app may have loaded another instance of this module. */
const HTTP_BRAND = Symbol.for('banana-serve.http-error');
const PREDICTION_BRAND = Symbol.for('banana-serve.mms.prediction-exception');

const NOT_TEXT =
  'new HttpError(status, message): the message is not text; for a body of your own, write `return new Response({ status, json })`';

/**
 * Thrown, or returned, by an app of any kind: the client gets the status and the message, with the code
 * `SERVE_HTTP_ERROR`. Thrown for a batch, it is the answer of each of its calls.
 * @example
 * export function inference({ image }: { image?: string }) {
 *   if (image === undefined) throw new HttpError(422, 'send an image');
 *   return { chars: image.length };
 * }
 */
export class HttpError extends Error {
  override readonly name: string = 'HttpError';
  readonly [HTTP_BRAND] = true;
  readonly status: number;
  readonly issues: readonly SchemaIssue[];

  /**
   * `status`: 400 to 599. `issues`: the wrong values of the input, which the client gets in a list. @throws RangeError for
   * any other status; TypeError for a message that is not text, or issues that are not a list
   */
  constructor(
    status: number,
    message?: string,
    options: ErrorOptions & { readonly issues?: readonly SchemaIssue[] } = {},
  ) {
    if (!isErrorStatus(status)) {
      throw new RangeError(
        `new HttpError(status, message): ${String(status)} is not a status from 400 to 599`,
      );
    }
    if (message !== undefined && typeof message !== 'string') throw new TypeError(NOT_TEXT);
    const { issues = [] } = options;
    if (!Array.isArray(issues))
      throw new TypeError('new HttpError(status, message, { issues }): issues is not a list');
    super(message, options);
    this.status = status;
    this.issues = issues;
  }
}

/**
 * If `handle` throws it, every item of the batch fails; returned in place of a result, it fails that item alone. On
 * Multi Model Server's paths the client gets `errorCode` as the status, and the message.
 * @example
 * const check = (item: Item) => item['body'] ?? new PredictionException('send a body', 400);
 */
export class PredictionException extends Error {
  override readonly name: string = 'PredictionException';
  readonly [PREDICTION_BRAND] = true;
  readonly errorCode: number;

  /** `errorCode` is a status from 400 to 599; any other number counts as 500. */
  constructor(message: string, errorCode = 500) {
    super(message);
    this.errorCode = errorCode;
  }

  /** The same as `errorCode`. */
  get error_code(): number {
    return this.errorCode;
  }
}

/** Whether the value is a status with which an app may refuse a call. */
export function isErrorStatus(status: unknown): status is number {
  return Number.isInteger(status) && (status as number) >= 400 && (status as number) <= 599;
}

/** Checks the status of an answer; `given`: as the app wrote it. @throws RangeError */
export function assertStatus(status: number, given: unknown = status): void {
  if (!Number.isInteger(status) || status < 200 || status > 599)
    throw new RangeError(`status ${String(given)} is not a whole number from 200 to 599`);
}

/** Never throws, even for a hostile Proxy. */
export function isHttpError(value: unknown): value is HttpError {
  return isErrorOf(HTTP_BRAND, value);
}

/** Never throws, even for a hostile Proxy. */
export function isPredictionException(value: unknown): value is PredictionException {
  return isErrorOf(PREDICTION_BRAND, value);
}

/** Whether it is an error of the class with this brand. Never throws. */
function isErrorOf(brand: symbol, value: unknown): boolean {
  try {
    return value instanceof Error && brand in value;
  } catch {
    return false;
  }
}
