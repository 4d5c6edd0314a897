/** Checks the return value of a batch function and matches its entries with the calls. */
import { badOutput } from '../../protocol/errors.js';
import { isThenable } from '../values/not-data.js';

/**
 * Returns a copy of the entries, one per call, in the order of the calls.
 * @throws SERVE_OUTPUT_INVALID with the actual and the expected number; any error of reading the array
 */
export function entriesOf(returned: unknown, calls: number): readonly unknown[] {
  if (Array.isArray(returned) && returned.length === calls) return Array.from<unknown>(returned);
  if (Array.isArray(returned)) returned.forEach(ignoreRejection);
  const given = Array.isArray(returned) ? counted(returned.length, 'entry', 'entries') : kindOf(returned);
  throw badOutput(
    `The model's batch function returned ${given} for ${counted(calls, 'call', 'calls')}; it must return an array with one entry per call, in the same order.`,
  );
}

/**
 * Returns the entry of a batch of one, or a promise of it. @throws SERVE_OUTPUT_INVALID (or rejects) unless there is
 * exactly one
 */
export function onlyEntry(returned: unknown): unknown {
  return isThenable(returned) ? returned.then(onlyEntry) : entriesOf(returned, 1)[0];
}

/** Ignores an entry that is not used, so that its rejection does not count as unhandled by the app. */
function ignoreRejection(entry: unknown): void {
  if (entry instanceof Promise) entry.catch(() => {});
}

function counted(count: number, one: string, many: string): string {
  return `${count} ${count === 1 ? one : many}`;
}

function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  return typeof value === 'object' ? 'an object that is not an array' : `a ${typeof value}`;
}

/**
 * Splits items into two parts of nearly equal size, so that ceil(log2 n) halvings isolate each item. `items`: two or
 * more.
 */
export function halvesOf<Item>(items: readonly Item[]): [Item[], Item[]] {
  const middle = Math.ceil(items.length / 2);
  return [items.slice(0, middle), items.slice(middle)];
}
