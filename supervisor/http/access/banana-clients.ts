/** What is the same in every dialect of the Banana platform's clients: the headers by which they know their calls again. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { saneId } from '../socket/request-id.js';
import type { ClientHeaders } from './client-headers.js';

const CLIENT_HEADERS = {
  key: 'X-Banana-Api-Key',
  callId: 'X-Banana-Request-Id',
} as const satisfies ClientHeaders;

const KEY = CLIENT_HEADERS.key.toLowerCase();
const CALL_ID = CLIENT_HEADERS.callId.toLowerCase();

/** For a dialect to say as its own. */
export const BANANA_CLIENTS = {
  clientHeaders: CLIENT_HEADERS,
  headers: sentBack,
  ownHeaders: new Set([CALL_ID]),
};

/** They look for their id under the name they sent it by. */
export function sentBack({ request }: { readonly request: IncomingMessage }): Record<string, string> {
  const id = saneId(request.headers[CALL_ID]);
  return id === null ? NO_HEADER : { [CLIENT_HEADERS.callId]: id };
}

/** Whether one of them sends this; no other client has a reason to. */
export function isBananaClient(headers: IncomingHttpHeaders): boolean {
  return headers[KEY] !== undefined || headers[CALL_ID] !== undefined;
}

const NO_HEADER = {};
