/**
 * The headers by which clients show their keys and name their calls: those that everybody may use, and those that the
 * dialects of a listener say their clients use. A key is the server's, so each counts on every path of the listener.
 */

/** What a dialect says of its clients. Names are written as they are sent. */
export interface ClientHeaders {
  /** Has a key; it counts before a bearer token. */
  readonly key?: string;
  /** Has the client's id of a call, the same for each retry; `X-Request-Id` counts before it. The dialect sends it back. */
  readonly callId?: string;
}

/** Those of all dialects of a listener. */
export interface ClientHeaderNames {
  /** In lower case, in the dialects' order. */
  readonly keys: readonly string[];
  readonly callIds: readonly string[];
  /** Those of the front's answers that a page of another origin may read besides the few that the Fetch standard lets it. */
  readonly exposed: string;
}

/** This header of the answer to a background call names the job, for `GET /_k/jobs/:id`. */
export const JOB_ID_HEADER = 'X-Banana-Job-Id';

export function clientHeaderNames(
  dialects: Iterable<{ readonly clientHeaders?: ClientHeaders }>,
): ClientHeaderNames {
  const said = Array.from(dialects, ({ clientHeaders = {} }) => clientHeaders);
  const ids = namesOf(said.map(({ callId }) => callId));
  return {
    keys: namesOf(said.map(({ key }) => key)).map((name) => name.toLowerCase()),
    callIds: ids.map((name) => name.toLowerCase()),
    exposed: ['X-Request-Id', ...ids, JOB_ID_HEADER, 'Server-Timing', 'Retry-After'].join(', '),
  };
}

function namesOf(names: readonly (string | undefined)[]): string[] {
  return [...new Set(names)].filter((name) => name !== undefined);
}
