/**
 * The headers in which clients send their keys and call ids: those that every client may use, and those that a
 * listener's dialects add for their clients. Keys belong to the server, so each header counts on every path of the
 * listener.
 */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { safeId } from '../socket/request-facts.js';

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
      'Retry-After-Ms',
      'X-Should-Retry',
      ...namesOf(headers.flatMap(({ readable = [] }) => readable)),
    ].join(', '),
  };
}

function namesOf(names: readonly (string | undefined)[]): string[] {
  return [...new Set(names)].filter((name) => name !== undefined);
}

const CLIENT_HEADERS = {
  key: 'X-Banana-Api-Key',
  callId: 'X-Banana-Request-Id',
} as const satisfies ClientHeaders;

const KEY = CLIENT_HEADERS.key.toLowerCase();
const CALL_ID = CLIENT_HEADERS.callId.toLowerCase();

/** The part of a dialect that is about these headers. */
export const BANANA_CLIENTS = {
  clientHeaders: CLIENT_HEADERS,
  headers: echoedHeaders,
  ownHeaders: new Set([CALL_ID]),
};

/** Returns the client's call id under the name it was sent with, where the client looks for it. */
export function echoedHeaders({ request }: { readonly request: IncomingMessage }): Record<string, string> {
  const id = safeId(request.headers[CALL_ID]);
  return id === null ? NO_HEADER : { [CLIENT_HEADERS.callId]: id };
}

/** Whether a Banana client sends these headers; no other client has a reason to. */
export function isBananaClient(headers: IncomingHttpHeaders): boolean {
  return headers[KEY] !== undefined || headers[CALL_ID] !== undefined;
}

const NO_HEADER = {};
