/**
 * W3C Trace Context 2.2: version, non-zero trace id, non-zero parent id, flags; `ff` is no version, and only a
 * version after `00` may add fields.
 */
const TRACEPARENT =
  /^(?!ff)(?!00.{54})[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-|$)/;

/** The value of a `traceparent` header if it is one; null if it is absent or malformed, as the standard wants. */
export function validTraceparent(value: unknown): string | null {
  return typeof value === 'string' && TRACEPARENT.test(value) ? value : null;
}
