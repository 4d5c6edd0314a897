import type { InferenceContext } from './types.js';

/** The `ctx` of a call with what only adapters may use of it. */
export interface CallInfo extends InferenceContext {
  /** The body as it came, in memory that belongs to the call. */
  readonly body: Buffer;
  /** The call's name on the wire. */
  readonly callId: number;
  /** The body is not needed any more. An app may keep the rest for long. */
  forgetBody(): void;
}
