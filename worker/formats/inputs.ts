/** Several inputs in the body of one call, each of which is a call of the app: what a dialect's format may read. */
import { ServeError } from '../../protocol/errors.js';
import { failureOf } from '../failures/failure.js';

export class Inputs {
  /** `field`: that of the body which has them. `most`: inputs that the app takes together. */
  constructor(
    readonly field: string,
    readonly values: readonly unknown[],
    readonly most: number,
  ) {}

  /** Returns all of them as `accept` returns each, before the app gets one. Rejects with its error, and the place. */
  async accepted(accept: (value: unknown) => unknown): Promise<Inputs> {
    const accepted: unknown[] = [];
    for (const [i, value] of this.values.entries()) {
      try {
        accepted.push(await accept(value));
      } catch (thrown) {
        throw this.errorAt(i, failureOf(thrown), thrown);
      }
    }
    return new Inputs(this.field, accepted, this.most);
  }

  /** The error of one input, with its place in the body. `thrown`: what the app threw. */
  errorAt(index: number, error: ServeError, thrown: unknown): ServeError {
    const { code, message, detail, status, kind } = error;
    const issues = error.issues.map(({ path, message: says }) => ({
      path: [this.field, index, ...path],
      message: says,
    }));
    const facts = { detail, status, kind, issues, cause: thrown };
    return new ServeError(code, `${this.field}[${index}]: ${message}`, facts);
  }
}
