/** What a batch function returned, matched with its calls. */
import { ServeError } from '../../protocol/errors.js';
import { isThenable } from '../values/thenable.js';

/**
 * A copy of the entries, one per call, in the order of the calls.
 * @throws SERVE_OUTPUT_INVALID that says how many there are and should be; whatever reading the array throws
 */
export function entriesOf(returned: unknown, calls: number): readonly unknown[] {
  if (Array.isArray(returned) && returned.length === calls) return Array.from<unknown>(returned);
  if (Array.isArray(returned)) returned.forEach(leaveAlone);
  const given = Array.isArray(returned) ? counted(returned.length, 'entry', 'entries') : kindOf(returned);
  throw new ServeError(
    'SERVE_OUTPUT_INVALID',
    `The model's batch function returned ${given} for ${counted(calls, 'call', 'calls')}; it must return an array with one entry for each, in their order.`,
  );
}

/** The entry of a batch of one, or a promise of it. @throws SERVE_OUTPUT_INVALID (or rejects) if there is none, or are more */
export function onlyEntry(returned: unknown): unknown {
  return isThenable(returned) ? returned.then(onlyEntry) : entriesOf(returned, 1)[0];
}

/** Nobody will hear of the entry: its rejection must not pass for one that the app forgot. */
function leaveAlone(entry: unknown): void {
  if (entry instanceof Promise) entry.catch(() => {});
}

function counted(count: number, one: string, many: string): string {
  return `${count} ${count === 1 ? one : many}`;
}

function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  return typeof value === 'object' ? 'an object that is no array' : `a ${typeof value}`;
}

/** Two parts as equal as can be: so ceil(log2 n) halvings leave each item alone. `items`: two or more. */
export function halvesOf<Item>(items: readonly Item[]): [Item[], Item[]] {
  const middle = Math.ceil(items.length / 2);
  return [items.slice(0, middle), items.slice(middle)];
}
