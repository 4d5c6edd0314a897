/** Whether a request fits the route it asks for: before its body is read if the routes are known by then, else when they are. */
import type { IncomingMessage } from 'node:http';
import { joinPieces } from '../../../protocol/body-assembler.js';
import { ServeError } from '../../../protocol/errors.js';
import type { Route } from '../../../protocol/messages.js';
import { scanTopLevelFields } from './top-level-fields.js';

/** What is wrong with the request's route or content type; null if nothing is. */
export function routeMistake(route: Route | undefined, request: IncomingMessage): ServeError | null {
  if (route === undefined) return new ServeError('SERVE_NOT_FOUND');
  if (route.kind === 'websocket') return new ServeError('SERVE_UPGRADE_REQUIRED');
  if (route.input === 'any' || isJson(request.headers['content-type'])) return null;
  // 400, not 415: Potassium's answer, and a Banana client hides a 415 and its body.
  return new ServeError('SERVE_BAD_REQUEST', 'This route takes JSON: send Content-Type: application/json.');
}

/** Read in 3 ms (bench/top-level-fields.ts). */
const MAX_SCANNED_BYTES = 1024 * 1024;

/** The same, of the whole body. */
export function bodyMistake(route: Route, pieces: readonly Buffer[], bodyBytes: number): ServeError | null {
  if (route.input === 'any') return null;
  if (bodyBytes === 0)
    return new ServeError('SERVE_BAD_BODY', 'This route takes JSON, and the body is empty.');
  // The caller of a background route is gone before a worker reads the body. A large one is left to the worker all the
  // same, which fails the job: nobody else may wait while the front reads it.
  return route.kind === 'background' && bodyBytes <= MAX_SCANNED_BYTES
    ? jsonMistake(joinPieces(pieces))
    : null;
}

function jsonMistake(body: Buffer): ServeError | null {
  const scan = scanTopLevelFields(body, []);
  if (scan.is !== 'malformed') return null;
  return new ServeError(
    'SERVE_BAD_BODY',
    `The body is not valid JSON: it breaks off or goes wrong at byte ${scan.at}.`,
  );
}

/** Of a content type: JSON by name, or by suffix. */
export function isJson(contentType = ''): boolean {
  return (
    contentType === 'application/json' ||
    /^application\/(?:[\w.!#$&^-]+\+)?json\s*(?:;|$)/i.test(contentType.trim())
  );
}
