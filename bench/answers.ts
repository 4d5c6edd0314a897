/** Sides that are compared must do the same work: before a case starts, their answers are compared too. */
import { isDeepStrictEqual } from 'node:util';
import type { RequestSpec } from './load/plan.js';
import type { Side } from './rounds.js';

/** @throws an Error if one side fails or answers differently from the first */
export async function checkSameAnswers(
  sides: readonly Side[],
  request: Omit<RequestSpec, 'url'>,
  same: (a: unknown, b: unknown) => boolean = isDeepStrictEqual,
): Promise<void> {
  const answers = await Promise.all(sides.map(({ url }) => answerOf({ ...request, url })));
  for (const [i, side] of sides.entries()) {
    if (!same(answers[i], answers[0]))
      throw new Error(`${side.name} answers differently from ${sides[0]?.name}`);
  }
}

/** One request; the value of a JSON answer, the bytes of any other. @throws an Error unless the status is 200 */
export async function answerOf({ url, headers, body }: RequestSpec): Promise<unknown> {
  const response = await fetch(url, { method: 'POST', headers, body: Buffer.from(body) });
  if (response.status !== 200)
    throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
  const isJson = response.headers.get('content-type')?.includes('json') ?? false;
  return isJson ? response.json() : new Uint8Array(await response.arrayBuffer());
}
