/** The interface of a wire format, in both directions. Each file in this folder that exports `FORMAT` is one. */
import type { Call } from '../../protocol/wire/messages.js';

export interface EncodedOutput {
  readonly contentType: string;
  /** Text leaves as UTF-8. Bytes must not change until they have left the process. */
  readonly body: string | Uint8Array;
}

export interface BodyFormat {
  /**
   * Media type of such a body as a custom service sees it; left out if a custom service cannot be called in this
   * format.
   */
  readonly itemType?: string;
  /** Returns the value of a body, which is not empty. May return a promise. @throws SERVE_BAD_BODY (or rejects) */
  read(body: Buffer, call: Call): unknown;
  /**
   * Encodes a value; left out if clients cannot ask for the format. @throws SERVE_OUTPUT_INVALID (or rejects with it)
   */
  write?(value: unknown, call: Call): EncodedOutput | Promise<EncodedOutput>;
}
