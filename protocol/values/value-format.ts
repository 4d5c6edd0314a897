/** The interface of a format in which values cross between a program and an app that is its function. */
import { ServeError, describeThrown, type ErrorCode } from '../errors.js';

export interface ValueFormat {
  /**
   * Reads a value. If it `hasViews`, arrays in it are views of `bytes`, which must then not change.
   * @throws SERVE_BAD_BODY
   */
  read(bytes: Buffer): { readonly value: unknown; readonly hasViews: boolean };
  /**
   * Writes a value; `allocate` may lend the memory of large ones. @throws an error with `code` that names the place in it that
   * cannot cross; `name` is that of the value
   */
  write(value: unknown, name: string, code: ErrorCode, allocate?: (bytes: number) => Buffer): Buffer;
}

/** The error of a value with a part that cannot cross, which `what` names. */
export function unwritable(code: ErrorCode, what: string, cause: unknown): ServeError {
  return new ServeError(code, `Only data crosses between processes; ${what}`, { cause });
}

/** The error of bytes that are no value. */
export function unreadable(cause: unknown): ServeError {
  const message = `The value cannot be read: ${describeThrown(cause).message}`;
  return new ServeError('SERVE_BAD_BODY', message, { cause });
}
