/** An error with a status and a message for the client of a custom service. */
import { isErrorOf } from '../http-error.js';

/** Marks the class by a symbol, because a TypeScript app may have loaded another instance of this module. */
const BRAND = Symbol.for('banana-serve.mms.prediction-exception');

/**
 * If `handle` throws it, every item of the batch fails; returned in place of a result, it fails that item alone. On
 * Multi Model Server's paths the client gets `errorCode` as the status, and the message.
 * @example
 * const check = (item: Item) => item['body'] ?? new PredictionException('send a body', 400);
 */
export class PredictionException extends Error {
  override readonly name: string = 'PredictionException';
  readonly [BRAND] = true;
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

/** Never throws, even for a hostile Proxy. */
export function isPredictionException(value: unknown): value is PredictionException {
  return isErrorOf(BRAND, value);
}
