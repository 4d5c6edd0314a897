/** Matches the error of a refused body or output. */
import assert from 'node:assert/strict';
import { ServeError, type ErrorCode } from '../../protocol/errors.js';

/** For `assert.throws` and `assert.rejects`: a ServeError of this code with such a message. */
export function serveError(code: ErrorCode, message: RegExp): (error: unknown) => boolean {
  return (error) => {
    assert.ok(error instanceof ServeError, String(error));
    assert.equal(error.code, code);
    assert.match(error.message, message);
    return true;
  };
}
