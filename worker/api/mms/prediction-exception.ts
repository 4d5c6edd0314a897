/** The error by which a custom service chooses the status and the message that its client gets. */

/** Known by a brand, not by its class: a TypeScript app may have been given another instance of this module. */
const BRAND = Symbol.for('banana-serve.mms.prediction-exception');

/**
 * Thrown by `handle`, it fails every item of the batch; returned in place of a result, that item alone. On Multi Model
 * Server's paths the client gets `errorCode` as the status, and the message.
 */
export class PredictionException extends Error {
  override readonly name: string = 'PredictionException';
  readonly [BRAND] = true;
  readonly errorCode: number;

  /** `errorCode`: a status from 400 to 599; any other number counts as 500. */
  constructor(message: string, errorCode = 500) {
    super(message);
    this.errorCode = errorCode;
  }

  /** The same as `errorCode`. */
  get error_code(): number {
    return this.errorCode;
  }
}

/** Never throws, whatever a Proxy does. */
export function isPredictionException(value: unknown): value is PredictionException {
  try {
    return value instanceof Error && BRAND in value;
  } catch {
    return false;
  }
}
