/**
 * The headers in which clients send their keys and call ids: those that every client may use, and those that a
 * listener's dialects add for their clients. Keys belong to the server, so each header counts on every path of the
 * listener.
 */

/** The headers that a dialect's clients send and read. Names are written as they are sent. */
export interface ClientHeaders {
  /** Contains a key; takes precedence over a bearer token. */
  readonly key?: string;
  /**
   * Contains the client's id of a call, the same for each retry; `X-Request-Id` takes precedence. The dialect sends it
   * back.
   */
  readonly callId?: string;
  /** Headers of the dialect's answers that a page of another origin may read. */
  readonly readable?: readonly string[];
}

/** The headers of all dialects of a listener. */
export interface ClientHeaderNames {
  /** In lower case, in the dialects' order. */
  readonly keys: readonly string[];
  readonly callIds: readonly string[];
  /**
   * `Access-Control-Expose-Headers`: headers of the front's answers that a page of another origin may read besides
   * those that the Fetch standard always allows.
   */
  readonly exposed: string;
}

/** In the answer to a background call: the id of the job, for `GET /_k/jobs/:id`. */
export const JOB_ID_HEADER = 'X-Banana-Job-Id';
/** Beside it: the path of the job's page. */
export const JOB_PAGE_HEADER = 'Location';

export function clientHeaderNames(
  dialects: Iterable<{ readonly clientHeaders?: ClientHeaders }>,
): ClientHeaderNames {
  const headers = Array.from(dialects, ({ clientHeaders = {} }) => clientHeaders);
  const ids = namesOf(headers.map(({ callId }) => callId));
  return {
    keys: namesOf(headers.map(({ key }) => key)).map((name) => name.toLowerCase()),
    callIds: ids.map((name) => name.toLowerCase()),
    exposed: [
      'X-Request-Id',
      ...ids,
      JOB_ID_HEADER,
      JOB_PAGE_HEADER,
      'Server-Timing',
      'Retry-After',
      ...namesOf(headers.flatMap(({ readable = [] }) => readable)),
    ].join(', '),
  };
}

function namesOf(names: readonly (string | undefined)[]): string[] {
  return [...new Set(names)].filter((name) => name !== undefined);
}
