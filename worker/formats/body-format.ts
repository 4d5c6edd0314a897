/** The interface of a wire format, in both directions. Each file in this folder that exports `FORMAT` is one. */
import type { Call } from '../../protocol/wire/messages.js';
import type { Signature } from '../../protocol/values/tensor.js';
import type { CallParams } from '../api/types.js';
import type { Reply } from './reply.js';

export interface EncodedOutput {
  readonly contentType: string;
  /** Text leaves as UTF-8. Bytes must not change until they have left the process. */
  readonly body: string | Uint8Array;
}

export type BodyFormat = InputFormat | DialectFormat;

interface AnyFormat {
  /**
   * Media type of such a body as a custom service sees it; left out if a custom service cannot be called in this
   * format.
   */
  readonly itemType?: string;
  /** Says so to the client of a custom service, and what it can do instead. */
  readonly itemRefusal?: string;
}

/** A format of bodies alone: the answer follows from the value and the client's Accept header. */
export interface InputFormat extends AnyFormat {
  /**
   * Returns the value of a body, which is not empty. May return a promise. @throws ServeError (or rejects with it) to refuse
   * the body with 400, or with the `status` of the error, whatever its code; an error
   * with a code that a call can end with (SERVE_INFERENCE_FAILED and the like) stays as it is
   */
  read(body: Buffer, call: Call): unknown;
}

/** The facts that an app tells of itself, as far as formats need them. */
export interface DescribedApp {
  readonly signature?: Signature;
  /** The app takes texts as numbers of its tokens, too. */
  readonly tokenInput?: true;
}

/** A dialect's own format: it writes whole answers, which may depend on what was read. */
export interface DialectFormat extends AnyFormat {
  /** Called once per call, before its body is read. */
  exchange(call: Call, app: DescribedApp): Exchange;
}

/** The body and the answer of one call; it may keep what the reader learns for the writer. */
export interface Exchange {
  /** Returns the app's input; the body may be empty. May return a promise. @throws ServeError as `InputFormat.read` does */
  read(body: Buffer): unknown;
  /** Parameters of the request for the app, if the body has some; complete once the body is read. */
  readonly params?: CallParams;
  /**
   * Returns the answer to send for the app's own, whose value, bytes or stream is not encoded yet. Not called for
   * errors, which the front words. @throws ServeError (or rejects with it), for the client; a stream is closed then
   */
  write(answer: Reply): Reply | Promise<Reply>;
  /** The caller is a program: it may see the app's own error, and `undefined` is an answer. */
  readonly isOfProgram?: true;
}
