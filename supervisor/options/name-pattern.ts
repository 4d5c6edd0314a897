/** A regular expression for the names of variables. */
import { NotAllowed } from './units.js';

/** It matches whole names only. @throws NotAllowed */
export function parseNamePattern(raw: unknown): RegExp {
  try {
    if (typeof raw === 'string' && raw.trim() !== '') return new RegExp(`^(?:${raw})$`);
  } catch {
    // said below
  }
  throw new NotAllowed('a regular expression for whole names of variables, such as AWS_.*|.*_TOKEN');
}
