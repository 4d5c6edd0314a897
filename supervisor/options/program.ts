/** A program, as an operator names it. */
import { NotAllowed } from './units.js';

/** @throws NotAllowed */
export function parseProgram(raw: unknown): string {
  if (typeof raw !== 'string' || raw.trim() === '') throw new NotAllowed('the path or the name of a program');
  return raw.trim();
}
