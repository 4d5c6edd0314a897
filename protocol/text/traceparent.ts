/**
 * Matches W3C Trace Context 2.2: version, non-zero trace id, non-zero parent id, flags. `ff` is not a version, and only
 * versions after `00` may add fields.
 */
const TRACEPARENT =
  /^(?!ff)(?!00.{54})[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-|$)/;

/** Returns the value of a `traceparent` header; null if it is absent or malformed, as the standard requires. */
export function validTraceparent(value: unknown): string | null {
  return typeof value === 'string' && TRACEPARENT.test(value) ? value : null;
}
