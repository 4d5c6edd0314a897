/** The fields of a frame's head, validated as they are read. */
import { isCloseCode } from './close-code.js';
import { ERROR_KINDS, protocolError, type ErrorKind, type ServeError } from '../errors.js';
import {
  FIRST_WEBHOOK_REF,
  MAX_CLOSE_REASON_BYTES,
  METRIC_KINDS,
  WEBHOOK_OUTCOMES,
  type MetricKind,
  type WebhookOutcome,
} from './messages.js';
import { MAX_PHRASE_CHARS, isPhrase } from './phrase.js';

/** Typed access to a head's fields; every getter throws SERVE_PROTOCOL if the field has another type. */
export class Fields {
  readonly #fields: readonly unknown[];
  constructor(fields: readonly unknown[]) {
    this.#fields = fields;
  }

  /** Number of fields that were sent; later ones are left out. */
  get length(): number {
    return this.#fields.length;
  }

  uint(i: number): number {
    const value = this.#fields[i];
    if (Number.isSafeInteger(value) && (value as number) >= 0) return value as number;
    throw malformed(`field ${i} is not a whole number`);
  }

  positive(i: number): number {
    const value = this.uint(i);
    if (value > 0) return value;
    throw malformed(`field ${i} is 0`);
  }

  number(i: number): number {
    const value = this.#fields[i];
    if (Number.isFinite(value)) return value as number;
    throw malformed(`field ${i} is not a number`);
  }

  /** Between 0 and 1. */
  fraction(i: number): number {
    const value = this.number(i);
    if (value >= 0 && value <= 1) return value;
    throw malformed(`field ${i} is not between 0 and 1`);
  }

  numberOrNull(i: number): number | null {
    return this.#fields[i] === null ? null : this.number(i);
  }

  numberOrString(i: number): number | string {
    return typeof this.#fields[i] === 'string' ? this.string(i) : this.number(i);
  }

  uints(i: number): number[] {
    const list = new Fields(this.array(i));
    return this.array(i).map((_, at) => list.uint(at));
  }

  webhookRef(i: number): number {
    const value = this.uint(i);
    if (value >= FIRST_WEBHOOK_REF) return value;
    throw malformed(`webhook ${value} is numbered below ${FIRST_WEBHOOK_REF}`);
  }

  outcome(i: number): WebhookOutcome {
    const value = this.#fields[i] as WebhookOutcome;
    if (WEBHOOK_OUTCOMES.includes(value)) return value;
    throw malformed(`field ${i} is not the outcome of a webhook`);
  }

  status(i: number): number {
    const value = this.uint(i);
    if (value >= 200 && value <= 599) return value;
    throw malformed(`status ${value} is not between 200 and 599`);
  }

  /** 0 if it is left out. */
  errorStatus(i: number): number {
    const value = this.#fields[i] === undefined ? 0 : this.uint(i);
    if (value === 0 || (value >= 400 && value <= 599)) return value;
    throw malformed(`status ${value} of an error is neither 0 nor between 400 and 599`);
  }

  /** Empty if this version does not know the kind. */
  errorKind(i: number): ErrorKind {
    const value = this.stringOr(i, '') as ErrorKind;
    return ERROR_KINDS.includes(value) ? value : '';
  }

  /** A gauge if this version does not know the kind. */
  metricKind(i: number): MetricKind {
    const value = this.string(i) as MetricKind;
    return METRIC_KINDS.includes(value) ? value : 'gauge';
  }

  /** Empty if it is left out. */
  phrase(i: number): string {
    if (this.#fields[i] === undefined) return '';
    const value = this.string(i);
    if (isPhrase(value)) return value;
    throw malformed(
      `field ${i} must be a phrase for a status line: at most ${MAX_PHRASE_CHARS} characters of Latin-1, without control characters`,
    );
  }

  closeCode(i: number): number {
    const value = this.uint(i);
    if (isCloseCode(value)) return value;
    throw malformed(`close code ${value} is neither 1000 nor between 3000 and 4999`);
  }

  closeReason(i: number): string {
    const value = this.string(i);
    if (Buffer.byteLength(value) <= MAX_CLOSE_REASON_BYTES) return value;
    throw malformed(`a close reason of more than ${MAX_CLOSE_REASON_BYTES} bytes`);
  }

  string(i: number): string {
    const value = this.#fields[i];
    if (typeof value === 'string') return value;
    throw malformed(`field ${i} is not a string`);
  }

  /** Returns `otherwise` if the field is left out. */
  stringOr(i: number, otherwise: string): string {
    return this.#fields[i] === undefined ? otherwise : this.string(i);
  }

  oneOf<T extends string>(i: number, allowed: readonly T[], what: string): T {
    const value = this.#fields[i] as T;
    if (allowed.includes(value)) return value;
    throw malformed(`field ${i} is not ${what}`);
  }

  boolean(i: number): boolean {
    const value = this.#fields[i];
    if (typeof value === 'boolean') return value;
    throw malformed(`field ${i} is not a boolean`);
  }

  /** Returns false if the field is left out. */
  booleanOrFalse(i: number): boolean {
    return this.#fields[i] !== undefined && this.boolean(i);
  }

  array(i: number): unknown[] {
    const value = this.#fields[i];
    if (Array.isArray(value)) return value;
    throw malformed(`field ${i} is not an array`);
  }

  object(i: number): Record<string, unknown> {
    const value = this.#fields[i];
    // a map; not an array, binary or a timestamp
    if (typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype) {
      return value as Record<string, unknown>;
    }
    throw malformed(`field ${i} is not a map`);
  }
}

export function malformed(detail: string, cause?: unknown): ServeError {
  return protocolError(`malformed message: ${detail}`, cause);
}
