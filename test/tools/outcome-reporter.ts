/** A reporter of node:test for the runner: a line of JSON, an `Outcome`, for each test, and for each suite whose hook failed. */
import type { TestEvent } from 'node:test/reporters';

type TestEnd = Extract<TestEvent, { type: 'test:pass' | 'test:fail' }>;

export interface Outcome {
  /** `empty` is a file that has defined no test. */
  readonly kind: 'passed' | 'failed' | 'skipped' | 'empty';
  readonly name: string;
  /** Absolute path of the compiled file that defines the test; of an empty file in a shared process its path below `dist`. */
  readonly file: string;
}

export default async function* outcomeReporter(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  let begun = '';
  for await (const event of events) {
    if (event.type === 'test:start') begun = event.data.name;
    if (event.type !== 'test:pass' && event.type !== 'test:fail') continue;
    const { name, file = '' } = event.data;
    const isEmptyFile = isSuiteOfFile(event) && begun === name;
    const kind = isEmptyFile ? 'empty' : kindOf(event);
    const outcome = { kind, name, file: isEmptyFile ? name : file };
    if (kind !== undefined) yield `${JSON.stringify(outcome)}\n`;
  }
}

/** Whether it is the suite of a file that `shared-process.ts` has imported. */
function isSuiteOfFile({ type, data }: TestEnd): boolean {
  return type === 'test:pass' && data.details.type === 'suite' && data.name.endsWith('.test.js');
}

/** Undefined for a suite, and for what failed only because a test inside of it did. */
function kindOf({ type, data }: TestEnd): Outcome['kind'] | undefined {
  if (type === 'test:fail') {
    const { failureType } = data.details.error as Error & { failureType?: string };
    return failureType === 'subtestsFailed' ? undefined : 'failed';
  }
  if (data.details.type === 'suite') return undefined;
  if (data.skip !== undefined || data.todo !== undefined) return 'skipped';
  // Node reports a file in which no test is defined as a test of the file's name.
  return data.name.endsWith('.test.js') && data.file?.endsWith(data.name) ? 'empty' : 'passed';
}
