/** The bodies that several cases send. */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { RequestSpec } from '../load/plan.js';
import { source } from '../servers/child-server.js';

type Request = Omit<RequestSpec, 'url'>;

const SMALL_BYTES = 200;
/** A megabyte of JSON, within a percent. */
const BIG_JSON_ITEMS = 8240;
export const BIG_BYTES = 10 * 2 ** 20;

/** A JSON object of exactly 200 bytes. */
export function smallJsonRequest(): Request {
  const empty = JSON.stringify({ prompt: '' }).length;
  return jsonRequest({ prompt: 'banana '.repeat(SMALL_BYTES).slice(0, SMALL_BYTES - empty) });
}

/** Text and numbers as an API would have them, a megabyte of them. */
export function bigJsonRequest(): Request {
  const items = Array.from({ length: BIG_JSON_ITEMS }, (_, i) => ({
    id: i,
    label: `item number ${i}`,
    score: Math.fround(Math.sin(i)),
    tags: ['ripe', 'yellow'],
    box: [i, i + 1.5, 2 * i, 3.25],
  }));
  return jsonRequest({ items });
}

/** Ten megabytes that nothing can shorten. */
export function bigBytesRequest(): Request {
  return { headers: { 'Content-Type': 'application/octet-stream' }, body: randomBytes(BIG_BYTES) };
}

/** The first image that the digits model is tested with. */
export function digitRequest(): Request {
  const test = JSON.parse(readFileSync(source('examples/digits/test.json'), 'utf8')) as {
    rows: { pixels: number[] }[];
  };
  return jsonRequest({ pixels: test.rows[0]?.pixels ?? [] });
}

/** The same image as a row of the model itself. */
export function digitImageRequest(): Request {
  const { pixels } = JSON.parse(String(digitRequest().body)) as { readonly pixels: readonly number[] };
  const lines = Array.from({ length: 8 }, (_, y) =>
    pixels.slice(8 * y, 8 * y + 8).map((pixel) => pixel / 16),
  );
  return jsonRequest({ image: [lines] });
}

/** Four tokens, as rows of bert-tiny. */
export function tokensRequest(): Request {
  return jsonRequest({
    input_ids: [2, 100, 200, 3],
    attention_mask: [1, 1, 1, 1],
    token_type_ids: [0, 0, 0, 0],
  });
}

export function jsonRequest(value: unknown): Request {
  return { headers: { 'Content-Type': 'application/json' }, body: Buffer.from(JSON.stringify(value)) };
}
