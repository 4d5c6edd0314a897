/**
 * The parts of a `multipart/form-data` body (RFC 7578), in one pass over its bytes.
 *
 * The parser is our own because the whole body is in memory: a streaming parser creates a stream for each part, also
 * for empty ones, which costs 12 us and at least a kilobyte for every five bytes that a client sends.
 */
import { paramsOf } from './headers.js';

export interface Part {
  readonly disposition: ReturnType<typeof paramsOf>;
  /** The content type of the part; empty if it has none. */
  readonly contentType: ReturnType<typeof paramsOf>;
  /** The content of the part, as a view of the body. */
  readonly content: Buffer;
}

/** Node's limit for the headers of a whole request. */
const MAX_HEAD_BYTES = 16 * 1024;

/** The limit of RFC 2046 section 5.1.1. */
const MAX_BOUNDARY_CHARS = 70;

const BLANK_LINE = '\r\n\r\n';

/** Returns every part in order. @throws Error that describes the first malformed part */
export function* partsOf(body: Buffer, contentType: string): Generator<Part> {
  const boundary = boundaryOf(contentType);
  const delimiter = Buffer.from(`\r\n--${boundary}`);
  let at = firstBoundaryEnd(body, delimiter);
  for (let number = 1; !isClosed(body, at); number += 1) {
    const start = lineEnd(body, at);
    const end = indexOrThrow(body, delimiter, start);
    yield readPart(body.subarray(start, end), number);
    at = end + delimiter.length;
  }
}

function boundaryOf(contentType: string): string {
  const boundary = paramsOf(contentType).params.get('boundary') ?? '';
  if (boundary !== '' && boundary.length <= MAX_BOUNDARY_CHARS) return boundary;
  throw new Error(`its content type has no boundary of 1 to ${MAX_BOUNDARY_CHARS} characters`);
}

/** The first boundary may lack the line break before it, because the body may begin with it. */
function firstBoundaryEnd(body: Buffer, delimiter: Buffer): number {
  const first = delimiter.subarray(2);
  if (body.subarray(0, first.length).equals(first)) return first.length;
  return indexOrThrow(body, delimiter, 0) + delimiter.length;
}

/** Two dashes after a boundary end the body. */
function isClosed(body: Buffer, at: number): boolean {
  if (at + 2 > body.length) throw cutShort();
  return body[at] === DASH && body[at + 1] === DASH;
}

/** Finds the end of a boundary's line: its line break, which may also begin the next boundary. */
function lineEnd(body: Buffer, from: number): number {
  let at = from;
  while (body[at] === SPACE || body[at] === TAB) at += 1;
  if (at + 2 > body.length) throw cutShort();
  if (body[at] === CR && body[at + 1] === LF) return at;
  throw new Error('a boundary does not end its line');
}

/** `part` is everything from the line break after its boundary to the one before the next boundary. */
function readPart(part: Buffer, number: number): Part {
  const headBytes = part.subarray(0, MAX_HEAD_BYTES).indexOf(BLANK_LINE);
  if (headBytes < 0) {
    const missing = part.length > MAX_HEAD_BYTES ? `headers within ${MAX_HEAD_BYTES} bytes` : 'headers';
    throw new Error(`part ${number} has no ${missing}, which end with an empty line`);
  }
  const headers = headersOf(part.toString('utf8', 0, headBytes));
  const disposition = paramsOf(headers.get('content-disposition') ?? '');
  if (disposition.value !== 'form-data' || /[\r\n]|^$/.test(disposition.params.get('name') ?? '\n'))
    throw new Error(`part ${number} has no "Content-Disposition: form-data" with a name`);
  const contentType = paramsOf(headers.get('content-type') ?? '');
  return { disposition, contentType, content: part.subarray(headBytes + BLANK_LINE.length) };
}

/** Returns headers by name in lower case. A line that begins with a space continues the previous one. */
function headersOf(head: string): Map<string, string> {
  const headers = new Map<string, string>();
  for (const line of head.replace(/\r\n[ \t]+/g, ' ').split('\r\n')) {
    const colon = line.indexOf(':');
    if (colon > 0) headers.set(line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim());
  }
  return headers;
}

function indexOrThrow(body: Buffer, delimiter: Buffer, from: number): number {
  const index = body.indexOf(delimiter, from);
  if (index < 0) throw cutShort();
  return index;
}

function cutShort(): Error {
  return new Error('Unexpected end of multipart data');
}

const [TAB, LF, CR, SPACE, DASH] = [0x09, 0x0a, 0x0d, 0x20, 0x2d];
