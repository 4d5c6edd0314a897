/** Why a call failed, in the words of the app. */
import type { LiveCall, LiveFailure } from '../../status/live-types.js';
import { isFailed, type History } from '../live/history.js';

/** Type and message of what was thrown: the first line of a stack of JavaScript, the last line of a traceback of Python. */
export function thrownIn(detail: string): string {
  const lines = detail.split('\n').filter((line) => line.trim() !== '');
  const traceback = lines.findLastIndex((line) => line.startsWith('Traceback (most recent call last)'));
  if (traceback < 0) return lines[0]?.trim() ?? '';
  return (
    lines
      .slice(traceback + 1)
      .find((line) => !/^\s/.test(line))
      ?.trim() ??
    lines.at(-1)?.trim() ??
    ''
  );
}

/** One line that says why; empty if the answer says it all. */
export function failureTitle({ message, detail }: LiveFailure): string {
  const thrown = thrownIn(detail);
  return thrown === '' ? message : thrown;
}

/** The failed call of this request, as far as the page has seen it. */
export function failedCall(
  { failedCalls }: Pick<History, 'failedCalls'>,
  requestId: string,
): LiveCall | null {
  return failedCalls.findLast((call) => call.requestId === requestId && isFailed(call)) ?? null;
}
