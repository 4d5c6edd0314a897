/** Steps of tests of models as functions. */
import assert from 'node:assert/strict';
import { ServeError } from '../../index.js';
import { eventually } from './server.js';

/** The error of a call or a start that must fail. */
export async function refusalOf(promise: Promise<unknown>): Promise<ServeError> {
  const error: unknown = await promise.then(
    () => assert.fail('it was answered'),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof ServeError, String(error));
  return error;
}

export function until(isSo: () => boolean): Promise<void> {
  return eventually(isSo, 60_000, () => 'it did not come to that');
}
