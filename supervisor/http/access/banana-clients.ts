/** The headers of the Banana platform's clients, the same in every dialect for them. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { safeId } from '../socket/request-id.js';
import type { ClientHeaders } from './client-headers.js';

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
