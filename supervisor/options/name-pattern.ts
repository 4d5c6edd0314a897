/** A regular expression for the names of variables. */
import { NotAllowed } from './units.js';

/** It matches whole names only; an empty text is null, and matches none. @throws NotAllowed */
export function parseNamePattern(raw: unknown): RegExp | null {
  try {
    if (typeof raw === 'string') return raw.trim() === '' ? null : new RegExp(`^(?:${raw})$`);
  } catch {
    // said below
  }
  throw new NotAllowed(
    "a regular expression for whole names of variables, such as AWS_.*|.*_TOKEN, or '' for none",
  );
}
