import type { InferenceContext } from './types.js';

/** The `ctx` of a call, with parts that only adapters may use. */
export interface CallInfo extends InferenceContext {
  /** The body as it was sent, in memory that belongs to the call. */
  readonly body: Buffer;
  /** The call's id on the wire. */
  readonly callId: number;
  /** Releases the body, because an app may keep the rest of the context for long. */
  forgetBody(): void;
}
