/** Chooses how an answer is compressed: what its client accepts (RFC 9110 section 12.5.3), and whether it is worth it. */

export type AnswerCoding = 'br' | 'gzip';

/** Smaller answers fit into one packet as they are. */
export const MIN_COMPRESSED_BYTES = 1024;

/** Text, JSON and XML, also as the suffix of another type. */
const COMPRESSIBLE = /^(?:text\/[^;]+|application\/(?:json|xml|x-ndjson)|[^;]+\+(?:json|xml))\s*(?:;|$)/i;

/** Statuses whose answer has no body, or a part of one. */
const NOT_WHOLE: ReadonlySet<number> = new Set([204, 205, 206, 304]);

/** Headers that describe the bytes of the answer as they are sent, which the server cannot correct. */
const DIGESTS = ['digest', 'repr-digest', 'content-digest', 'content-md5'];

/** Returns the value of a header of the answer; undefined if it has none of that name, which is in lower case. */
export type HeaderOf = (name: string) => string | undefined;

/** Whether an answer with this status and these headers may be sent compressed. */
export function isCompressible(status: number, headerOf: HeaderOf): boolean {
  const length = headerOf('content-length');
  return (
    !NOT_WHOLE.has(status) &&
    COMPRESSIBLE.test(headerOf('content-type') ?? '') &&
    headerOf('content-encoding') === undefined &&
    headerOf('content-range') === undefined &&
    DIGESTS.every((name) => headerOf(name) === undefined) &&
    !/\bno-transform\b/i.test(headerOf('cache-control') ?? '') &&
    (length === undefined || Number(length) >= MIN_COMPRESSED_BYTES)
  );
}

/** Returns the coding that a client with this `Accept-Encoding` likes best, brotli if both; null if it accepts neither, or prefers none. */
export function chooseCoding(accepted: string | undefined): AnswerCoding | null {
  if (accepted === undefined) return null;
  const weights = weightsOf(accepted);
  const weightOf = (coding: string): number => weights.get(coding) ?? weights.get('*') ?? 0;
  const best = weightOf('gzip') > weightOf('br') ? 'gzip' : 'br';
  if (weightOf(best) === 0) return null;
  return weightOf(best) >= (weights.get('identity') ?? 0) ? best : null;
}

/** Returns codings in lower case with their weights, 0 to 1. */
function weightsOf(accepted: string): Map<string, number> {
  const weights = new Map<string, number>();
  for (const item of accepted.split(',')) {
    const [name = '', ...params] = item.split(';').map((part) => part.trim().toLowerCase());
    const weight = Number(params.find((param) => param.startsWith('q='))?.slice(2) ?? 1);
    weights.set(name === 'x-gzip' ? 'gzip' : name, weight >= 0 && weight <= 1 ? weight : 0);
  }
  return weights;
}
