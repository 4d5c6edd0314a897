/** The interface of a wire format, in both directions. `index.ts` is the table of all formats. */
import type { Call } from '../../protocol/wire/messages.js';

export interface EncodedOutput {
  readonly contentType: string;
  /** Text leaves as UTF-8. Bytes must not change until they have left the process. */
  readonly body: string | Uint8Array;
}

export interface BodyFormat {
  readonly name: string;
  /**
   * Returns the value of a body, which may be empty only for `mms`. May return a promise. @throws SERVE_BAD_BODY (or
   * rejects with it)
   */
  read(body: Buffer, call: Call): unknown;
  /**
   * Encodes a value; left out if clients cannot ask for the format. @throws SERVE_OUTPUT_INVALID (or rejects with it)
   */
  write?(value: unknown, call: Call): EncodedOutput | Promise<EncodedOutput>;
}

/** A format that clients can ask for. */
export type WritableFormat = BodyFormat & Required<Pick<BodyFormat, 'write'>>;
