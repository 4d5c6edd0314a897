/** The headers by which clients know whether they may repeat a call: held to the table of docs/errors.md. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ERRORS, ServeError, type ErrorCode } from '../../../../protocol/errors.js';
import { retryHeaders } from '../../../../supervisor/http/answer/own-answers.js';
import { tableRows } from '../../../helpers/doc-page.js';

const RAN = new Map(
  tableRows('errors.md', 'Codes', 'code').map(({ code = '', ...row }) => [
    code.replaceAll('`', ''),
    row['ran?'],
  ]),
);

for (const code of Object.keys(ERRORS) as ErrorCode[])
  test(`${code} may be repeated only if its call has not run, and may come again`, () => {
    const { status } = ERRORS[code];
    const mayRetry = (status === 503 || code === 'SERVE_QUEUE_TIMEOUT') && RAN.get(code) === 'no';
    assert.deepEqual(retryHeaders(new ServeError(code)), { 'X-Should-Retry': String(mayRetry) });
  });

test('Retry-After has its milliseconds beside it', () =>
  assert.deepEqual(retryHeaders(new ServeError('SERVE_QUEUE_FULL', undefined, { retryAfterS: 2 })), {
    'X-Should-Retry': 'true',
    'Retry-After-Ms': 2000,
  }));
